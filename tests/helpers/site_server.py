"""A web server for a built site that compresses as real hosts do, and brings MathJax along.

Pages name MathJax's public CDN. So that tests and measurements need no network, the server replaces that address
in the pages it hands out by its own, and answers it from the installed package ``django-static-mathjax``.
"""

from __future__ import annotations

import gzip
import mimetypes
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from urllib.parse import unquote, urlsplit

CDN = re.compile(rb"https://cdn\.jsdelivr\.net/npm/mathjax@[\d.]+/")
MATHJAX_HERE = "/npm-mathjax/"
MATHJAX = Path(str(files("mathjax"))) / "static" / "mathjax"
COMPRESSED = ("text/", "application/javascript", "application/json", "image/svg+xml")


@lru_cache(maxsize=512)
def packed(path: Path, changed: int) -> tuple[bytes, str, bool]:
    """A file's body as it is sent, its type, and whether it is compressed. ``changed`` keeps the cache honest."""
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    kind = {"text/javascript": "application/javascript"}.get(kind, kind)
    body = path.read_bytes()
    if kind == "text/html":
        body = CDN.sub(MATHJAX_HERE.encode(), body)
    if not kind.startswith(COMPRESSED):
        return body, kind, False
    return gzip.compress(body, 6, mtime=0), kind, True


class Handler(BaseHTTPRequestHandler):
    """Files of ``server.folder`` under ``server.prefix``; what is not there is answered by its 404.html."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.file()
        code = 200 if path else 404
        path = path or self.server.folder / "404.html"
        body, kind, compressed = packed(path, path.stat().st_mtime_ns) if path.is_file() else (b"", "text/plain", False)
        self.send_response(code)
        self.send_header("Content-Type", kind + ("; charset=utf-8" if kind.startswith("text/") else ""))
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=600")
        if compressed:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(body)

    def file(self) -> Path | None:
        """The file that is asked for, if it exists and lies in the folder."""
        path = unquote(urlsplit(self.path).path)
        if path.startswith(MATHJAX_HERE):
            root, rest = MATHJAX, path.removeprefix(MATHJAX_HERE)
        elif path.startswith(self.server.prefix):
            root, rest = self.server.folder, path.removeprefix(self.server.prefix)
        else:
            return None
        found = (root / rest).resolve()
        found = found / "index.html" if found.is_dir() else found
        return found if found.is_file() and found.is_relative_to(root.resolve()) else None

    def log_message(self, *_: object) -> None:
        """Say nothing: the tests look at what arrives."""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder: Path, prefix: str = "/") -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.prefix = folder, prefix

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}{self.prefix}"


@contextmanager
def running(server: ThreadingHTTPServer) -> Iterator[None]:
    """A server answers while the block runs."""
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


@contextmanager
def serving(folder: Path, prefix: str = "/") -> Iterator[str]:
    """The address under which ``folder`` is served while the block runs."""
    with Server(folder, prefix) as server, running(server):
        yield server.address
