"""What students' cells show, reduced to text and pictures that are safe to look at."""

from __future__ import annotations

import base64
import json
from typing import Any

MOST_CLEAN_BYTES = 4_000_000
PNG = b"\x89PNG\r\n\x1a\n"


def clean_outputs(outputs: Any, left: int = MOST_CLEAN_BYTES) -> list[dict[str, Any]]:
    """Outputs as the student process sent them, reduced to text and PNG pictures, `left` bytes at most.

    Anything else is dropped.
    """
    clean = []
    for output in outputs if isinstance(outputs, list) else []:
        kept = _clean_output(output) if isinstance(output, dict) else None
        if kept is not None:
            left -= len(json.dumps(kept))
            if left < 0:
                break
            clean.append(kept)
    return clean


def _clean_output(output: dict[str, Any]) -> dict[str, Any] | None:
    kind = output.get("output_type")
    if kind == "stream" and output.get("name") in ("stdout", "stderr") and isinstance(output.get("text"), str):
        return {"output_type": "stream", "name": output["name"], "text": output["text"]}
    if kind == "error" and isinstance(output.get("traceback"), list):
        lines = [str(line) for line in output["traceback"]]
        return {
            "output_type": "error",
            "ename": str(output.get("ename")),
            "evalue": str(output.get("evalue")),
            "traceback": lines,
        }
    if kind in ("display_data", "execute_result") and isinstance(output.get("data"), dict):
        data = {}
        text, picture = (output["data"].get(mime) for mime in ("text/plain", "image/png"))
        if isinstance(text, str):
            data["text/plain"] = text
        if isinstance(picture, str) and (png := _png(picture)):
            data["image/png"] = png
        if data:
            more = {"execution_count": None} if kind == "execute_result" else {}
            return {"output_type": kind, "data": data, "metadata": {}, **more}
    return None


def _png(content: str) -> str:
    """The picture as base64 and nothing else, "" when it is none: what stands beside base64 would reach a page."""
    try:
        raw = base64.b64decode("".join(content.split()), validate=True)
    except ValueError:
        return ""
    return base64.b64encode(raw).decode() if raw.startswith(PNG) else ""
