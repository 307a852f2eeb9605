"""The student's process: runs cells in the shell and answers requests in the workspace, until the grader hangs up."""

from __future__ import annotations

import builtins
import os
import signal
import sys
import threading

from autograder.sandbox.inside.channel import Channel, Closed, TooLarge
from autograder.sandbox.inside.protocol import Blobs, Header, Message
from autograder.sandbox.inside.shell import Shell, Stream
from autograder.sandbox.inside.workspace import Workspace


def no_input(prompt: object = "") -> str:
    raise EOFError("input() cannot be answered while a notebook is graded; give the value in the cell instead")


def serve(shell: Shell, channel: Channel) -> None:
    """Answer the grader until it hangs up. Runs in the student process's main thread."""
    lock = threading.RLock()

    def call_back(request: Header, blobs: Blobs) -> Message:
        with lock:
            channel.send({"number": asked[-1], **request}, blobs)
            return channel.receive()

    asked = [0]  # the number of the request that is being answered; each answer repeats it
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
        if request["op"] == "run":
            channel.send({"number": asked[-1], **shell.run(request["source"], request["seconds"])})
        elif request["op"] == "file":
            folder = os.path.dirname(request["name"])
            if folder:
                os.makedirs(folder, exist_ok=True)
            with open(request["name"], "wb") as file:
                file.write(blobs[0])
            channel.send({"ok": None})
        else:
            shell.outputs.start()
            reply, sent = workspace.answer(request, blobs)
            try:
                channel.send({"number": asked[-1], **reply}, sent)
            except TooLarge as error:
                said = {"kind": "exception", "type": "TooLarge", "message": str(error), "where": ""}
                channel.send({"number": asked[-1], "error": said})
