"""Cheats at the channel: forged messages and answers, many questions in one message, equal answers of a class."""

from __future__ import annotations

import json
import textwrap
import time

import nbformat
import pytest
from nbformat import v4
from tiny_judge import (
    NOTHING,
    RIGHT,
    SECRET,
    STUBS,
    TESTS,
    grade,
    job_for,
    printed,
    reasons,
    scores,
    source_notebook,
    submission,
    verdicts,
)

from autograder.judging import worker
from autograder.results import GRADED, Result

# ------------------------------------------------------------------------------------ the channel itself

RAW = """
import gc, json, os, socket, struct, sys, threading
from autograder.sandbox.inside.channel import Channel, frame
wire = next(o for o in gc.get_objects() if isinstance(o, Channel))
def asked():
    frame = sys._getframe()
    while frame:
        if 'asked' in frame.f_locals and isinstance(frame.f_locals['asked'], list): return frame.f_locals['asked'][-1]
        frame = frame.f_back
"""
WIRE = {
    "answers before the question": "wire.send({'number': 0, 'ok': True}); wire.send({'number': 0, 'found': {}})",
    "a forged answer with the right number": """
def softmax(z): wire.send({'number': asked(), 'ok': {'list': [0.5, 0.5]}, 'changed': []}); return z""",
    "verdicts as an answer": """
def softmax(z):
    wire.send({'number': asked(), 'verdict': 'passed', 'passed': True, 'score': 4, 'ok': None})
    os._exit(0)""",
    "bytes that are no message": "os.write(3, b'\\0' * 100)",
    "a promise of sixteen exabytes": "os.write(3, struct.pack('!IQ', 10, 2**64 - 1))",
    "half a message": "os.write(3, struct.pack('!IQ', 100, 0) + b'{'); import time; time.sleep(60)",
    "no end of messages": """
while True: wire.sock.sendall(frame({'number': 1, 'ok': None}) * 100)""",
    "no end of callbacks": """
def twice(f, x):
    while True: f(1)""",
    "callbacks by numbers of one's own": """
def twice(f, x):
    for n in range(50):
        wire.send({'number': asked(), 'callback': n, 'args': [], 'kwargs': {}}); print(wire.receive())
    return x""",
    "callbacks with handles and nonsense": """
def twice(f, x):
    for args in ([{'handle': 1}], 3, None, [{'callback': 1}], [{'list': 3}], {'a': 1}):
        wire.send({'number': asked(), 'callback': 1, 'args': args, 'kwargs': args}); wire.receive()
    return x""",
    "descriptors along with an answer": """
for _ in range(20): socket.send_fds(wire.sock, [b''], [3, 0, 1]) if 0 else wire.sock.sendmsg(
    [frame({'number': 0})], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack('iii', 0, 1, 3))])""",
    "a closed connection": "os.close(3)",
    "a shut connection": "wire.sock.shutdown(2)",
    "a server of one's own": """
def serve():
    while True:
        request, blobs = wire.receive()
        reply = {'number': request['number'], 'ok': True, 'error': None, 'outputs': [], 'changed': []}
        if request['op'] == 'get': reply['found'] = {n: {'handle': 1, 'callable': True} for n in request['names']}
        wire.send(reply)
wire.send({'number': asked(), 'error': None, 'outputs': []}); serve()""",
    "replies of the wrong kind": """
from autograder.sandbox.inside.workspace import Workspace
odd = iter([{'ok': {'dtype': '(1 2)f8'}}, {'ok': {'tensor': 0, 'form': '<f4 2', 'dtype': 'quint8'}},
            {'found': 3}, {'error': 3}, {'error': {'kind': []}}] * 50)
def answer(self, request, blobs): return next(odd), []
Workspace.answer = answer""",
    "values that no reader can take": """
from autograder.sandbox.inside.workspace import Workspace
def get(self, request, blobs, sent):
    return {'found': {n: {'dtype': '(1 2)f8'} for n in request['names']}}
Workspace.do_get = get""",
    "one array in a million places": """
from autograder.sandbox.inside.workspace import Workspace
call = Workspace.do_call
def many(self, request, blobs, sent):
    reply = call(self, request, blobs, sent)
    sent[:] = [bytes(8 * 2**20)]
    one = {'array': 0, 'form': '<f8 1048576'}
    return {**reply, 'ok': {'list': [{'list': [one] * 300}] * 60}}
Workspace.do_call = many
def softmax(z): return z""",
    "ranges that are arrays": """
def softmax(z): return [range(10**6)] * 60000""",
    "tensors of no type": """
from autograder.sandbox.inside.workspace import Workspace
def get(self, request, blobs, sent):
    sent.append(bytes(16))
    said = {'form': '<f4 4', 'dtype': 'quint4x2'}
    return {'found': {n: {'tensor': 0, **said} for n in request['names']}}
Workspace.do_get = get""",
    "an array that lies about its shape": """
from autograder.sandbox.inside import protocol as channel
node = channel._array_node
channel._array_node = lambda *a, **k: {**node(*a, **k), 'form': '<f8 99999999'}
import numpy as np
def softmax(z): return np.zeros(2)""",
    "nested as deep as it goes": """
import json
from autograder.sandbox.inside.workspace import Workspace
sys.setrecursionlimit(10**6)
def deep(n):
    x = 0
    for _ in range(n): x = [x]
    return x
def several(self, request, blobs, sent):
    return {'replies': [{'ok': deep(900), 'changed': deep(900), 'blobs': 0}] * len(request['parts'])}
Workspace.do_several = several
Workspace.do_call = lambda *a: {'ok': None, 'changed': [deep(900)]}
error = {'output_type': 'error', 'ename': deep(900), 'traceback': [deep(900)]}
type(get_ipython()).run = lambda *a: {'error': {'type': deep(900)}, 'outputs': [error]}""",
    "outputs without end": """
ip = get_ipython()
ip.outputs.cell_bytes = ip.outputs.total_left = ip.outputs.left = 10**12
for _ in range(300): print('x' * 10**4)
long = {'output_type': 'stream', 'name': 'stdout', 'text': 'y' * 10**6}
type(ip).run = lambda self, *a: {'error': None, 'outputs': [long] * 5}""",
}


@pytest.mark.usefixtures("the_class_goes_on")
@pytest.mark.parametrize("cheat", WIRE)
def test_the_channel_gains_nothing(cheat: str) -> None:
    answers = {n: t for n, t in STUBS.items() if f"def {n}" not in WIRE[cheat]}
    start = time.process_time()
    code = RAW + WIRE[cheat]
    named = [name for name in ("softmax", "twice") if f"def {name}" in code][:1]
    result = grade({**answers, **dict.fromkeys(named, code)}, first="" if named else code)
    assert result.status == GRADED and scores(result) == NOTHING
    assert time.process_time() - start < 40
    assert len(json.dumps(result.to_json())) < 6 * 10**6
    assert SECRET not in json.dumps(result.to_json())


def test_many_cells_of_forged_output_stay_small() -> None:
    flood = WIRE["outputs without end"]
    notebook = submission(STUBS, first=flood)
    for n in range(20):
        notebook.cells.append(v4.new_code_cell(f"print({n})", id=f"own-{n}"))
    result = Result.from_json(json.loads(worker.run_job(job_for(notebook).to_bytes())))
    assert len(json.dumps(result.to_json())) < 6 * 10**6 and scores(result) == NOTHING


# ------------------------------------------------------------------------------------- many questions in one message

BATCH = {
    "one right answer for all": "reply['replies'] = reply['replies'][:1] * len(reply['replies'])",
    "answers in another order": "reply['replies'].reverse()",
    "no answer": "reply['replies'].clear(); sent.clear()",
    "more answers": "reply['replies'].append({'ok': True, 'blobs': 0})",
    "answers of no size": "for part in reply['replies']: part['blobs'] = 0",
    "sizes below zero": "reply['replies'][0]['blobs'], reply['replies'][-1]['blobs'] = -1, 5",
    "sizes that are true": "reply['replies'][0]['blobs'] = True",
    "no list of answers": "reply['replies'] = {'ok': True}",
    "no answers but verdicts": """
reply['replies'] = [{'ok': None, 'passed': True, 'blobs': 0}] * len(reply['replies'])
sent.clear()""",
    "errors that are none": "reply['replies'] = [{'error': None, 'blobs': 0}] * len(reply['replies']); sent.clear()",
    "time that ran out": """
reply['replies'] = [{'error': {'kind': 'timeout'}, 'blobs': 0}] * len(reply['replies'])
sent.clear()""",
    "the questions as answers": """
sent[:] = blobs
reply['replies'] = [{'ok': p['args'][0] if p.get('args') else None, 'blobs': p['blobs']} for p in request['parts']]""",
    "handles of others": """
handle = {'handle': 1, 'callable': True, 'type': 'numpy.ndarray', 'mro': ['numpy.ndarray']}
for part in reply['replies']: part['ok'] = handle""",
    "an answer that never ends": """
reply['replies'] = [{'ok': True, 'blobs': 0}]
sent.clear()
request['parts'].append(request['parts'][0])""",
}


@pytest.mark.parametrize("cheat", BATCH)
def test_nothing_is_gained_by_having_many_questions_at_once(cheat: str) -> None:
    """Each answer is a plausible one, to one of the questions or to none; whatever is done with them, none is right."""
    code = f"""
from autograder.sandbox.inside.workspace import Workspace
several = Workspace.do_several
def at_once(self, request, blobs, sent):
    reply = several(self, request, blobs, sent)
{textwrap.indent(BATCH[cheat].strip(), "    ")}
    return reply
Workspace.do_several = at_once"""
    body = "def softmax(z):\n    return np.full_like(z, 1 / z.shape[-1])"
    result = grade({"softmax": body, "attend": "def attend(Q, K, V):\n    return V, Q"}, first=code)
    assert result.status == GRADED and scores(result) == NOTHING
    assert SECRET not in json.dumps(result.to_json())


@pytest.mark.parametrize(
    "found",
    ["{n: True for n in request['names']}", "{'check': True, 'agrees': True, 'reference': 1, '__builtins__': {}}"],
)
def test_names_that_are_something_else_gain_nothing(found: str) -> None:
    code = f"""
from autograder.sandbox.inside.workspace import Workspace
Workspace.do_get = lambda self, request, blobs, sent: {{'found': {found}}}"""
    assert scores(grade(RIGHT, first=code)) == NOTHING


COUNTING = """
import collections, json
from autograder.sandbox.inside.workspace import Workspace
several, times = Workspace.do_several, collections.Counter()
def counting(self, request, blobs, sent):
    start = 1
    for part in json.loads(blobs[0]):
        times[b''.join(blobs[start:start + part['blobs']])] += part['op'] == 'call' and part['blobs'] == 1
        start += part['blobs']
    return several(self, request, blobs, sent)
Workspace.do_several = counting"""


def test_every_question_is_asked_once_and_for_real() -> None:
    """There is no rehearsal to be told from the real thing, nor where the first answers are those of a friend."""
    look = "print('most', max(times.values()), 'of', len(times))"
    late = RIGHT["softmax"].replace("    e =", "    if abs(z).max() > 100: return z\n    e =")
    for softmax in (RIGHT["softmax"], late, RIGHT["softmax"]):
        result = grade({**STUBS, "softmax": softmax}, first=COUNTING, last=look, assignment_version="asked-once")
        assert "most 1 of" in printed(result)


def test_what_follows_an_answer_is_asked_only_of_who_gave_it() -> None:
    """The test cell makes its second question of the first answer. Friends who were right leave nothing of it here."""
    hidden = """
@check("a chain", points=3)
def _(rng):
    agrees(softmax, agrees(softmax, np.arange(3.0)))"""
    keep = "asked = []\ndef softmax(z):\n    asked.append(z.tolist())\n    return z"

    def judged(softmax: str) -> Result:
        job = job_for(submission({**STUBS, "softmax": softmax}, last="print('asked', asked)"))
        job.source = nbformat.writes(source_notebook({**TESTS, "softmax": (4, "", hidden)}))
        job.assignment_version = "tiny-chain"
        return Result.from_json(json.loads(worker.run_job(job.to_bytes())))

    for _ in range(2):
        assert scores(judged(RIGHT["softmax"]))["softmax"] == 4.0
    assert "asked [[0.0, 1.0, 2.0]]" in printed(judged(keep))


ALIKE = {
    "right": "return e / e.sum(axis=-1, keepdims=True)",
    "the same bytes as whole numbers": "return (e / e.sum(axis=-1, keepdims=True)).view(np.int64)",
    "the same bytes in another shape": "return (e / e.sum(axis=-1, keepdims=True)).reshape(z.shape[::-1])",
    "another order in memory": "return np.asfortranarray(e / e.sum(axis=-1, keepdims=True))",
    "a view": "return np.repeat(e / e.sum(axis=-1, keepdims=True), 2, axis=-1)[..., ::2]",
    "a list": "return (e / e.sum(axis=-1, keepdims=True)).tolist()",
    "a tuple": "return tuple(map(tuple, np.atleast_2d(e / e.sum(axis=-1, keepdims=True))))",
    "a tensor": "return torch.from_numpy(e / e.sum(axis=-1, keepdims=True))",
    "text": "return (e / e.sum(axis=-1, keepdims=True)).astype(str)",
    "minus nought": "return np.copysign(0.0 * e, -1.0)",
    "nought": "return 0.0 * e",
    "NaN": "return np.full_like(e, np.nan)",
    "another NaN": "return np.full(e.shape, 0x7FF8000000000001).view(np.float64)",
    "the input, changed": "z[...] = e / e.sum(axis=-1, keepdims=True); return z",
    "an error": "raise ValueError('e')",
    "a name": "return 'ValueError: e'",
}


def test_no_outcome_is_taken_for_that_of_other_answers() -> None:
    """Outcomes are remembered by what was answered. Whoever comes first: each gets what it gets alone."""
    head = "def softmax(z):\n    e = np.exp(z - z.max(axis=-1, keepdims=True))\n    "

    def said(name: str, version: str) -> tuple:
        result = grade({"softmax": head + ALIKE[name]}, assignment_version=version)
        return scores(result)["softmax"], verdicts(result, "softmax"), reasons(result, "softmax")

    alone = {name: said(name, f"alone-{number}") for number, name in enumerate(ALIKE)}
    together = {name: said(name, "together") for name in [*ALIKE, *reversed(ALIKE)]}
    assert together == alone
    full = {name for name, (score, _, _) in alone.items() if score == 4.0}
    assert full == {"right", "another order in memory", "a view", "a tensor", "a list"}


def test_a_given_function_reads_an_array_once_too() -> None:
    repeated = """
from autograder.sandbox.inside.channel import Channel
send = Channel.send
def again(self, header, blobs=None, deadline=None):
    if 'callback' in header: header, blobs = {**header, 'args': [{'array': 0, 'form': '<f8 1'}] * 2}, [bytes(8)]
    return send(self, header, blobs, deadline)
Channel.send = again
"""
    result = grade({**RIGHT, "twice": repeated + RIGHT["twice"]})
    assert scores(result)["twice"] == 0.0
    assert "was read before" in reasons(result, "twice")
