"""The student's process: locked in first, then it runs cells and answers requests until the grader hangs up."""

from __future__ import annotations

import asyncio  # noqa: F401 - in the warm process already, as what numpy loads late
import builtins
import json
import os
import signal
import socket
import sys
import threading
from itertools import product
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.fft
import numpy.linalg
import numpy.random

from autograder.sandbox.inside.channel import MAX_ANSWER, Channel, Closed
from autograder.sandbox.inside.confinement import confine, die_with_parent, keep_only
from autograder.sandbox.inside.processes import open_waits
from autograder.sandbox.inside.protocol import Blobs, Header, Message, ProtocolError, pack
from autograder.sandbox.inside.shell import Shell, Stream
from autograder.sandbox.inside.workspace import Workspace, waits

FIRST_SHAPES = [(3,), (1, 3), (3, 4), (5, 4), (5, 6), (2, 3, 4), (2, 5, 4), (2, 5, 6), (2, 3, 5), (2, 3, 6)]


def warm_shell() -> Shell:
    """A fresh shell, where cells were run and requests answered: Python adapts its code to what it runs often."""
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    shell = Shell.warm()
    workspace = Workspace({"first": lambda *values: values}, use_time_limit=False)
    for kind, shape in product((float, np.float32, bool), FIRST_SHAPES):
        blobs: Blobs = []
        values = np.ones(shape, kind), np.ones(shape, kind).T, 1
        call: Header = {"op": "call", "target": 1, "args": [pack(v, blobs, repr) for v in values], "kwargs": {}}
        parts = json.dumps([{**call, "blobs": len(blobs)}] * 2).encode()
        workspace.answer({"op": "get", "names": ["first"], "forget": True}, [])
        reply, _ = workspace.answer({"op": "several", "seconds": 1.0, "all_seconds": 2.0}, [parts, *blobs, *blobs])
        assert len(reply["replies"]) == 2, reply
    return shell


def no_input(prompt: object = "") -> str:
    raise EOFError("input() cannot be answered while a notebook is graded; give the value in the cell instead")


def student_process(
    sock: socket.socket, limits: dict[str, Any], outside: tuple[int, int] | None, base: int, shell: Shell
) -> NoReturn:
    """All that a student's process does after the fork. For `outside` and `base` see `confine`."""
    os.setsid()  # signals to its own group must not reach the warm process, which is outside the PID namespace
    die_with_parent()
    keep_only(sock.detach())
    waits.append(open_waits("self"))
    channel = Channel(socket.socket(fileno=3), max_sent=MAX_ANSWER)
    try:
        confine(limits, outside, base)
    except OSError as error:
        channel.send({"refused": str(error)})
        os._exit(1)
    channel.send({"ready": os.getpid()})
    serve(shell, channel)


def serve(shell: Shell, channel: Channel) -> NoReturn:
    """Answer the grader until it hangs up."""
    lock = threading.RLock()
    asked = [0]  # the number of the request that is being answered; each answer repeats it

    def call_back(request: Header, blobs: Blobs) -> Message:
        with lock:
            channel.send({"number": asked[-1], **request}, blobs)
            return channel.receive()

    workspace = Workspace(shell.user_ns, call_back, shell.is_cell)
    sys.stdout, sys.stderr = Stream(shell.outputs, "stdout"), Stream(shell.outputs, "stderr")
    builtins.input = no_input
    sys.path.insert(0, "")  # a notebook can import the files that it has written beside itself
    signal.signal(signal.SIGINT, signal.default_int_handler)
    while True:
        try:
            request, blobs = channel.receive()
        except Closed:
            os._exit(0)
        asked[-1] = request.get("number", 0)
        reply: Header = {}
        sent: Blobs = []
        if request["op"] == "run":
            reply = shell.run(request["source"], request["seconds"])
        elif request["op"] == "file":
            Path(request["name"]).parent.mkdir(parents=True, exist_ok=True)
            Path(request["name"]).write_bytes(blobs[0])
        else:
            room = shell.outputs.total_left
            shell.outputs.start()
            reply, sent = workspace.answer(request, blobs)
            if request.get("exact"):
                shell.outputs.total_left = room  # what is printed for a test cell is not kept
                shown = [i for i in shell.outputs.items if i["output_type"] == "stream"]
                reply = {**reply, "printed": [[i["name"], i["text"]] for i in shown]}
        try:
            channel.send({"number": asked[-1], **reply}, sent)
        except ProtocolError as error:
            said = {"kind": "exception", "type": "TooLarge", "message": str(error), "where": ""}
            channel.send({"number": asked[-1], "error": said})
