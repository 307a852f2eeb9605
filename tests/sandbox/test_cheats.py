# ruff: noqa: E501 - cheats stand here as students would write them
"""An evening's cheating: each way to gain a point, to see a test, to harm others or to outlive the run, and its score.

`worth` is what the honest part of the submission earns; no cheat may add to it, and the class must go on.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import v4
from tiny_judge import (
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

from autograder.grading.runner import local_executor
from autograder.judging import judge, worker
from autograder.judging.reference import Judged
from autograder.notebook.finder import find_notebook
from autograder.results import GRADED, Result

FULL = {name: float(points) for name, (points, _, _) in TESTS.items()}
NOTHING = dict.fromkeys(TESTS, 0.0)


@pytest.fixture
def the_class_goes_on() -> Iterator[None]:
    """After a cheat the next student gets what is due, from the same warm process."""
    before = {key: sandbox.process for key, sandbox in worker._sandboxes.items()}
    yield
    result = grade(RIGHT)
    assert result.status == GRADED and scores(result) == FULL
    for key, process in before.items():
        assert worker._sandboxes[key].process is process, "the warm process died"


def every(body: str) -> dict[str, str]:
    """All functions with the same body; the worksheet's answer is what `softmax` gives for nothing."""
    return {
        "sheet": f"def given():\n{body}\nsheet_answer = given()",
        "softmax": f"def softmax(z=None):\n{body}",
        "attend": f"def attend(Q, K, V):\n{body}",
        "twice": f"def twice(f, x):\n{body}",
        "scale": f"def Scale(width):\n{body}",
    }


# ------------------------------------------------------------------- hooks of the shell and of the library

HOOKS = {
    "events": """
def hook(*a, **k):
    for name in ('softmax', 'attend', 'twice', 'sheet_answer'): globals()[name] = lambda *a, **k: True
for event in ('pre_run_cell', 'post_run_cell', 'pre_execute', 'post_execute'): get_ipython().events.register(event, hook)""",
    "transformers": """
import ast
ip = get_ipython()
class Drop(ast.NodeTransformer):
    def visit_Assert(self, node): return ast.Pass()
    def visit_Raise(self, node): return ast.Pass()
ip.ast_transformers.append(Drop())
ip.input_transformers_post.append(lambda lines: ['pass\\n'] if 'assert' in ''.join(lines) else lines)
import IPython.core.compilerop as c
c.CachingCompiler.ast_parse = lambda *a, **k: ast.parse('pass')""",
    "display and exceptions": """
import sys
ip = get_ipython()
sys.displayhook = lambda value: None
ip.displayhook(-1); ip.displayhook(float('nan')); ip.displayhook('1')
ip.set_custom_exc((BaseException,), lambda *a, **k: None)
sys.excepthook = lambda *a: None""",
    "run_cell and magics": """
ip = get_ipython()
ip.run_cell = lambda *a, **k: None
ip.run = lambda *a, **k: {'error': None, 'outputs': []}
type(ip).run = lambda *a, **k: {'error': None, 'outputs': []}
from IPython.core.magic import register_line_magic
register_line_magic('assert')(lambda line: None)""",
    "trace and profile": """
import sys, threading
def trace(frame, event, arg):
    frame.f_trace_lines = False
    return trace
sys.settrace(trace); sys.setprofile(trace); threading.settrace(trace)""",
    "builtins": """
import builtins
builtins.abs = lambda x: 0
builtins.all = builtins.any = builtins.isinstance_ = lambda *a: True
builtins.AssertionError = Exception
builtins.__debug_off__ = True""",
    "numpy and torch": """
import numpy as np, torch
np.allclose = np.array_equal = torch.allclose = torch.equal = lambda *a, **k: True
np.abs = np.max = np.isnan = lambda *a, **k: 0.0
np.testing.assert_allclose = lambda *a, **k: None
np.random.default_rng = lambda *a: None""",
    "planted modules": """
import sys, types, os
for name in ('autograder.checks', 'autograder.judging.judge', 'autograder.judging.proxies', 'autograder.results'):
    m = types.ModuleType(name); m.agrees = m.check = m.compare = lambda *a, **k: (lambda f: f); sys.modules[name] = m
os.makedirs('autograder', exist_ok=True)
open('autograder/checks.py', 'w').write('def agrees(*a, **k): return True')
open('sitecustomize.py', 'w').write('1/0'); open('numpy.py', 'w').write('1/0')
sys.path.insert(0, os.getcwd())""",
    "importlib": """
import importlib, builtins, sys
real = builtins.__import__
builtins.__import__ = lambda name, *a, **k: real('math') if name.startswith('autograder') else real(name, *a, **k)
importlib.reload(sys.modules['autograder.sandbox.inside.protocol'])""",
    "names of the grader": """
import numpy
class Any:
    def __getattr__(self, name): return lambda *a, **k: True
np = torch = reference = zlib = Any()
check = lambda *a, **k: (lambda f: f)
agrees = compare = gradients = parameter_gradients = lambda *a, **k: True
uses = fail = print = lambda *a, **k: None
numbers = lambda student_id: numpy.zeros(4)
__builtins__ = {}; __name__ = 'tests'; _ = None""",
    "the connection": """
import gc
from autograder.sandbox.inside import workspace as student
from autograder.sandbox.inside import protocol as channel
from autograder.sandbox.inside.workspace import Workspace
for o in gc.get_objects():
    if isinstance(o, Workspace):
        o.namespace.update(softmax=1, passed=True)
        o.call_back = lambda *a: None
Workspace.do_get = lambda self, request, blobs, sent: {'found': {n: True for n in request['names']}}
Workspace.do_call = lambda self, request, blobs, sent: {'ok': True, 'passed': True, 'verdict': 'passed', 'score': 99}
student._snapshot = lambda value: 0
channel.pack = lambda *a: True""",
    "handles that claim to be anything": """
from autograder.sandbox.inside.workspace import Workspace
def other(self, value):
    self.objects[1] = value
    return {'handle': 1, 'type': 'numpy.ndarray', 'callable': True, 'mro': ['numpy.ndarray', 'torch.Tensor', 'float']}
Workspace.out = lambda self, value, blobs: other(self, value)
Workspace.do_call = lambda self, *a: {'ok': other(self, 1), 'changed': []}
Workspace.do_attribute = lambda self, request, b, s: {'ok': {'tuple': [1, 4]} if request['name'] == 'shape' else True}
Workspace.do_item = Workspace.do_length = Workspace.do_items = lambda self, *a: {'ok': 0}""",
}


@pytest.mark.parametrize("hook", HOOKS)
def test_hooks_gain_nothing(hook: str) -> None:
    result = grade(STUBS, first=HOOKS[hook])
    assert scores(result) == NOTHING
    assert SECRET not in json.dumps(result.to_json())


def test_hooks_by_themselves_cost_nothing_either() -> None:
    for hook in ("events", "display and exceptions", "planted modules"):
        answers = RIGHT if hook != "events" else {}
        assert scores(grade(answers, first=HOOKS[hook])) in (FULL, NOTHING)


# ------------------------------------------------------------------------------------- hostile answers

ANSWERS = {
    "always equal": """
    class Equal(int):
        def __eq__(self, other): return True
        __ne__ = __lt__ = __gt__ = __bool__ = lambda self, *a: False
        __le__ = __ge__ = __eq__
        __abs__ = __sub__ = __rsub__ = __add__ = lambda self, *a: self
        def __hash__(self): return 0
    return Equal(0)""",
    "an array that agrees": """
    class Agree(np.ndarray):
        def __array_ufunc__(self, *a, **k): return np.True_
        def __array_function__(self, *a, **k): return True
        def __eq__(self, other): return True
        shape = property(lambda self: (4,))
    return np.zeros(4).view(Agree)""",
    "a tensor that agrees": """
    class Agree(torch.Tensor):
        @classmethod
        def __torch_function__(cls, f, types, args=(), kwargs=None):
            return True if f.__name__ in ('allclose', 'eq', 'equal') else super().__torch_function__(f, types, args, kwargs or {})
    return torch.zeros(4).as_subclass(Agree)""",
    "a mock": """
    from unittest.mock import MagicMock
    mock = MagicMock()
    for name in ('__eq__', '__le__', '__ge__', '__lt__', '__contains__', '__bool__'):
        getattr(mock, name).return_value = True
    mock.shape = (4,); mock.__array__ = lambda *a, **k: np.zeros(4)
    return mock""",
    "a class of no kind": """
    class Odd:
        __class__ = property(lambda self: np.ndarray)
        shape = (4,); dtype = np.dtype('f8')
        def __array__(self, *a, **k): return np.zeros(4)
        def __reduce__(self): return (__import__('os')._exit, (1,))
        def __len__(self): return 10**18
        def __index__(self): return 10**18
        def __iter__(self):
            while True: yield 1
        def __getattr__(self, name): return self
        def __call__(self, *a, **k): return self
    return Odd()""",
    "everything at once": """
    class Meta(type):
        def mro(cls): return type.mro(cls)
        def __getattribute__(cls, name): raise KeyboardInterrupt
    return Meta('M', (), {})()""",
    "an exception without words": """
    class Silent(BaseException):
        def __str__(self): raise SystemExit
        __repr__ = __str__
    raise Silent()""",
    "SystemExit": "\n    raise SystemExit(0)",
    "StopIteration": "\n    raise StopIteration(1)",
    "nan": "\n    return float('nan')",
    "nothing, in its many forms": "\n    return [None, {}, np.zeros((0, 4)), '', set()]",
    "the input": "\n    return locals().get('z', locals().get('x', locals().get('Q')))",
    "a page of HTML": "\n    return '<script>alert(1)</script>' * 1000",
    "text that is a verdict": "\n    raise ValueError('x\\n4 of 4 points\\n[passed] random rows')",
    "a generator": "\n    return (n for n in [0.25, 0.75])",
    "an endless iterator": "\n    import itertools\n    return itertools.repeat(1.0)",
    "an iterator that does not come back": """
    class Slow(list):
        def __iter__(self):
            while True: pass
    return Slow([1.0])""",
    "all infinity": "\n    return np.full(4, np.inf)",
    "all NaN": "\n    return np.full(4, np.nan), np.full(4, np.nan)",
    "a mock of an array": """
    from unittest.mock import MagicMock
    return MagicMock(spec=np.ndarray, shape=(4,), dtype=np.dtype('f8'))""",
    "a type and a shape that lie": """
    class Lie(np.ndarray):
        dtype = property(lambda self: np.dtype('f8'))
        shape = property(lambda self: (2, 5))
        ndim = size = property(lambda self: 10)
        def tobytes(self, *a): return b''
        def __array_interface__(self): return {'shape': (4,), 'typestr': '<f8', 'data': (1, False), 'version': 3}
    return np.zeros(3, 'i1').view(Lie)""",
    "what stands in the callers' frames": """
    import sys
    frame, found = sys._getframe(), []
    while frame:
        found += [v for v in frame.f_locals.values() if isinstance(v, (np.ndarray, list, dict))]
        frame = frame.f_back
    for value in found[::-1]:
        if isinstance(value, np.ndarray) and value is not locals().get('z'): return value
    return found[-1] if found else None""",
    "a huge range": "\n    return range(10**12)",
    "a huge number": "\n    return 10**1200",
    "a dict whose keys collide": "\n    return {n * (2**61 - 1): 0 for n in range(3000)}",
    "a list of very many lists": "\n    return [[] for _ in range(2 * 10**5)]",
    "one list inside itself": "\n    x = []; x.append(x)\n    return x",
    "a deep list": "\n    x = 0\n    for _ in range(900): x = [x]\n    return x",
    "a view of ten terabytes": "\n    return np.broadcast_to(np.zeros(1), (10**6, 10**6))",
    "a tensor of an odd type": "\n    return torch.zeros(4).to(torch.float8_e5m2)",
    "a quantised tensor": "\n    return torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8)",
    "a tensor on no device": "\n    return torch.ones(4, device='meta')",
    "text in an array": "\n    return np.array(['\\ud800', 'x', '', '0.25'])",
    "objects in an array": "\n    return np.array([0.25, None, print, []], dtype=object)",
    "dates": "\n    return np.array(['2020-01-01'] * 4, dtype='M8[s]')",
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_hostile_answers_gain_nothing(answer: str) -> None:
    result = grade(every(ANSWERS[answer]))
    allowed = {"sheet": 1.0}  # four numbers were asked for, and four numbers came
    assert all(score <= allowed.get(name, 0.0) for name, score in scores(result).items())
    assert result.status == GRADED and len(json.dumps(result.to_json())) < 10**6
    for exercise in result.exercises:
        assert all("\n" not in c.reason and len(c.reason) < 2100 for c in exercise.checks)


def test_enormous_answers_do_not_fill_the_grader() -> None:
    before = own_memory()
    result = grade({**RIGHT, "softmax": "def softmax(z):\n    return np.zeros(10 * 2**20)"})
    assert scores(result) == {**FULL, "softmax": 0.0} and "80 MB is too large" in reasons(result, "softmax")
    forced = "import gc\nfrom autograder.sandbox.inside.channel import Channel\n"
    forced += "for o in gc.get_objects():\n    if isinstance(o, Channel): o.max_sent = None\n"
    result = grade({**RIGHT, "softmax": forced + "def softmax(z):\n    return np.zeros(10 * 2**20)"})
    assert scores(result) == {**NOTHING, "sheet": 2.0}
    assert verdicts(result, "softmax") == ["crashed", "not reached", "not reached"]
    body = "def softmax(z):\n    return np.zeros(7 * 2**20)"
    assert scores(grade({**RIGHT, "softmax": body}))["softmax"] == 0.0
    assert own_memory() - before < 400 * 2**20


def own_memory() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def test_answers_that_depend_on_the_number_of_the_call() -> None:
    body = RIGHT["softmax"].replace("def softmax(z):\n", "calls = []\ndef softmax(z):\n    calls.append(1)\n")
    body = body.replace("    return e", "    if len(calls) % 2: return z\n    return e")
    assert scores(grade({**RIGHT, "softmax": body}))["softmax"] <= 1.0


def test_arrays_that_change_after_they_were_answered() -> None:
    body = """import threading, time
def softmax(z):
    e = np.zeros_like(z)
    def later():
        time.sleep(0.05); e[...] = np.exp(z - z.max(axis=-1, keepdims=True)); e[...] /= e.sum(axis=-1, keepdims=True)
    threading.Thread(target=later).start()
    return e"""
    assert scores(grade({**RIGHT, "softmax": body}))["softmax"] == 0.0


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
def softmax(z): wire.send({'number': asked(), 'verdict': 'passed', 'passed': True, 'score': 4, 'ok': None}); os._exit(0)""",
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
odd = iter([{'ok': {'dtype': '(1 2)f8'}}, {'ok': {'tensor': 0, 'dtype': 'quint8'}}, {'found': 3}, {'error': 3}, {'error': {'kind': []}}] * 50)
def answer(self, request, blobs): return next(odd), []
Workspace.answer = answer""",
    "values that no reader can take": """
from autograder.sandbox.inside.workspace import Workspace
def get(self, request, blobs, sent):
    return {'found': {n: {'dtype': '(1 2)f8'} for n in request['names']}}
Workspace.do_get = get""",
    "tensors of no type": """
from autograder.sandbox.inside.workspace import Workspace
import numpy, io
def get(self, request, blobs, sent):
    file = io.BytesIO(); numpy.save(file, numpy.ones(4)); sent.append(file.getvalue())
    return {'found': {n: {'tensor': 0, 'dtype': 'quint4x2'} for n in request['names']}}
Workspace.do_get = get""",
    "an array that lies about its shape": """
from autograder.sandbox.inside import protocol as channel
header = channel._npy_header
channel._npy_header = lambda descr, shape: header(descr, (10**9,))
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
type(get_ipython()).run = lambda *a: {'error': {'type': deep(900)}, 'outputs': [{'output_type': 'error', 'ename': deep(900), 'traceback': [deep(900)]}]}""",
    "outputs without end": """
ip = get_ipython()
ip.outputs.cell_bytes = ip.outputs.total_left = ip.outputs.left = 10**12
for _ in range(300): print('x' * 10**4)
type(ip).run = lambda self, *a: {'error': None, 'outputs': [{'output_type': 'stream', 'name': 'stdout', 'text': 'y' * 10**6}] * 5}""",
}


@pytest.mark.usefixtures("the_class_goes_on")
@pytest.mark.parametrize("cheat", WIRE)
def test_the_channel_gains_nothing(cheat: str) -> None:
    answers = {n: t for n, t in STUBS.items() if f"def {n}" not in WIRE[cheat]}
    start = time.monotonic()
    code = RAW + WIRE[cheat]
    result = grade({**answers, **({"softmax": code} if "def softmax" in code else {"twice": code} if "def twice" in code else {})},
                   first="" if "def softmax" in code or "def twice" in code else code)  # fmt: skip
    assert result.status == GRADED and scores(result) == NOTHING
    assert time.monotonic() - start < 40
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
    "no answers but verdicts": "reply['replies'] = [{'ok': None, 'passed': True, 'blobs': 0}] * len(reply['replies']); sent.clear()",
    "errors that are none": "reply['replies'] = [{'error': None, 'blobs': 0}] * len(reply['replies']); sent.clear()",
    "time that ran out": "reply['replies'] = [{'error': {'kind': 'timeout'}, 'blobs': 0}] * len(reply['replies']); sent.clear()",
    "the questions as answers": "sent[:] = blobs; reply['replies'] = [{'ok': p['args'][0] if p.get('args') else None, 'blobs': p['blobs']} for p in request['parts']]",
    "handles of others": "for part in reply['replies']: part['ok'] = {'handle': 1, 'callable': True, 'type': 'numpy.ndarray', 'mro': ['numpy.ndarray']}",
    "an answer that never ends": "reply['replies'] = [{'ok': True, 'blobs': 0}]; sent.clear(); request['parts'].append(request['parts'][0])",
}


@pytest.mark.parametrize("cheat", BATCH)
def test_nothing_is_gained_by_having_many_questions_at_once(cheat: str) -> None:
    """Each answer is a plausible one, to one of the questions or to none; whatever is done with them, none is right."""
    code = f"""
from autograder.sandbox.inside.workspace import Workspace
several = Workspace.do_several
def at_once(self, request, blobs, sent):
    reply = several(self, request, blobs, sent)
    {BATCH[cheat]}
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


# ------------------------------------------------------------------------- looking for tests and answers


def test_nothing_worth_knowing_is_in_reach() -> None:
    code = f"""
import gc, os, sys
needle = {SECRET[::-1]!r}[::-1]
seen, hits = 0, []
for o in gc.get_objects():
    if isinstance(o, (dict, list, tuple)):
        for x in (o.values() if isinstance(o, dict) else o):
            if isinstance(x, str) and needle in x and x != needle: hits.append(x[:50])
frame = sys._getframe()
while frame:
    hits += [k for k, v in frame.f_locals.items() if isinstance(v, str) and needle in v and v != needle and 'gc.get' not in v]
    frame = frame.f_back
history = [*In, *map(str, Out.values())]
for root in ('/home', '/tmp', '/opt', '/etc', '/dev/shm', '/proc'):
    for d, inside, files in os.walk(root):
        inside[:] = [i for i in inside if os.path.join(d, i) not in (sys.prefix, sys.base_prefix)]
        for f in files:
            try: text = open(os.path.join(d, f), errors='replace').read(10**6)
            except OSError: continue
            if needle in text: hits.append(f)
print('hits:', [h for h in hits if 'gc.get_objects' not in h])
print('names:', [n for n in list(globals()) if 'reference' in n or 'expected' in n or 'hidden' in n.lower()])"""
    result = grade(STUBS, last=code, limits={"cell_seconds": 30})  # it looks into every file it can find
    assert "hits: []" in printed(result) and "names: []" in printed(result)
    assert SECRET not in printed(result) and scores(result) == NOTHING


def test_questions_can_be_seen_but_not_answers() -> None:
    """The inputs of hidden checks must reach the student's code; what is expected of it never does."""
    spy = """
from autograder.sandbox.inside.workspace import Workspace
seen, answer = [], Workspace.answer
def spying(self, request, blobs):
    seen.append((request.get('op'), sorted(request)))
    return answer(self, request, blobs)
Workspace.answer = spying"""
    result = grade(
        RIGHT, first=spy, last="print(sorted({k for _, keys in seen for k in keys}), {op for op, _ in seen})"
    )
    shown = printed(result)
    assert not any(word in shown for word in ("expected", "reference", "check", "points", "verdict"))


HOARD = """
from autograder.sandbox.inside.workspace import Workspace
hoard = []
replace = Workspace.do_replace
def keeping(self, request, blobs, sent):
    reply = replace(self, request, blobs, sent)
    hoard.append(self.namespace[request['name']])
    return reply
Workspace.do_replace = keeping"""  # keeps each helper that is lent for follow-through


def test_follow_through_is_no_oracle_for_other_exercises() -> None:
    """The stub of softmax is kept and used for everything that comes later: nothing is forgotten or restored."""
    keep = f"""{HOARD}
answer = Workspace.answer
def forgetting_nothing(self, request, *more): return answer(self, {{**request, 'forget': False}}, *more)
def refuse(self, *a): raise ValueError('no')
Workspace.answer, Workspace.do_restore = forgetting_nothing, refuse"""
    body = "def twice(f, x):\n    return hoard[0](x) if hoard else x"
    answers = {**STUBS, "softmax": "def softmax(z):\n    return z", "attend": RIGHT["attend"], "twice": body}
    probe = "for n in range(5):\n    try: print('oracle says', hoard[0](np.ones(2)))\n    except Exception as e: print('silent', e)"
    result = grade(answers, first=keep, last=probe)
    assert scores(result) == {**NOTHING, "attend": 1.0}
    assert "silent" in printed(result) and "oracle says" not in printed(result)


def test_a_lent_helper_ends_where_the_answers_are_known_already() -> None:
    """The friend before gave the same answers, so that `attend` is not judged again; `softmax` must fall silent too."""
    body = "def twice(f, x):\n    raise ValueError(f'oracle says {hoard[0](np.ones(2))}')"
    answers = {**STUBS, "softmax": "def softmax(z):\n    return z", "attend": RIGHT["attend"], "twice": body}
    for _ in range(2):
        result = grade(answers, first=HOARD)
        assert scores(result) == {**NOTHING, "attend": 3.0}
        assert "KeyError" in reasons(result, "twice") and "ValueError: oracle" not in reasons(result, "twice")


def test_helpers_are_lent_only_where_they_may_be_used() -> None:
    """`softmax` fails, so `attend` gets ours; `softmax` itself does not."""
    lazy = "def softmax(z):\n    return z * 0"
    assert scores(grade({"softmax": lazy, "attend": RIGHT["attend"]})) == {**NOTHING, "attend": 3.0}


def test_given_functions_do_not_run_for_ever_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hidden check's own function, called with numbers that make it endless."""
    monkeypatch.setattr(judge, "OWN_SECONDS", 0.0)
    hidden = """
@check("any function", points=1)
def _(rng):
    twice(lambda n: sum(1 for _ in range(n)), 3)"""
    tests = {**TESTS, "twice": (2, "", hidden)}
    job = job_for(submission({**RIGHT, "twice": "def twice(f, x):\n    return f(10**18)"}))
    job.source = nbformat.writes(source_notebook(tests))
    job.assignment_version = "tiny-endless"
    start = time.monotonic()
    result = Result.from_json(json.loads(worker.run_job(job.to_bytes())))
    assert time.monotonic() - start < 30
    assert verdicts(result, "twice") == ["timeout"] and scores(result)["twice"] == 0.0
    assert scores(result)["softmax"] == 4.0


# ------------------------------------------------------------------------------------------------- ids


def answers_for(student_id: str) -> str:
    return f"sheet_answer = {[2 * n for n in Judged(source_notebook()).reference['numbers'](student_id).tolist()]}"


def test_an_id_with_two_faces_is_graded_as_the_one_that_is_recorded() -> None:
    """The grader asks for the id once to note it and once to grade by it; a friend's sheet, one's own name."""
    two_faces = """
from autograder.sandbox.inside.workspace import Workspace
get, times = Workspace.do_get, []
def faces(self, request, blobs, sent):
    reply = get(self, request, blobs, sent)
    if 'student_id' in reply['found']:
        times.append(1)
        reply['found']['student_id'] = 'student-07' if len(request['names']) == 1 or len(times) % 2 else 'friend'
    return reply
Workspace.do_get = faces"""
    result = grade({"sheet": answers_for("friend")}, first=two_faces)
    assert result.typed_id == "student-07" and scores(result)["sheet"] == 1.0


def test_a_change_of_id_inside_the_notebook_is_noted() -> None:
    result = grade({"sheet": "student_id = 'friend'\n" + answers_for("friend")})
    assert result.typed_id == "friend" and scores(result)["sheet"] == 2.0


@pytest.mark.parametrize(
    "student_id",
    [
        *(
            '"\\ud800"',
            '"x" * 10**7',
            "None",
            "float('nan')",
            "[1, 2]",
            "print",
            "b'student-07'",
            '""',
            "True",
            "10**4000",
        ),
        *(
            '"<script>alert(1)</script>"',
            '"../../gradebook"',
            '"\\0\\x1b[2J"',
            "range(10**12)",
            "type('S', (str,), {})('x')",
        ),
    ],
)
def test_odd_ids_stop_nobody(student_id: str) -> None:
    result = grade({"softmax": RIGHT["softmax"], "sheet": answers_for("friend")}, student_id=student_id)
    assert result.status == GRADED and scores(result)["softmax"] == 4.0
    assert scores(result)["sheet"] <= 1.0
    assert result.typed_id is None or len(result.typed_id) <= 200
    json.dumps(result.to_json(), ensure_ascii=False).encode()


# -------------------------------------------------------------------------- ending, outliving, harming

DEATHS = {
    "exit": "import os; os._exit(0)",
    "exit with a score": "import sys; print('5/5'); sys.exit('passed')",
    "killed by itself": "import os, signal; os.kill(os.getpid(), signal.SIGKILL); signal.raise_signal(signal.SIGSEGV)",
    "a crash in C": "import ctypes; ctypes.string_at(0)",
    "a stack without end": "import ctypes; f = lambda: f(); import sys; sys.setrecursionlimit(10**7); f()",
    "a stop": "import os, signal; os.kill(0, signal.SIGSTOP); signal.raise_signal(signal.SIGSTOP)",
    "a fork bomb": "import os, time\ndef bomb():\n    while True:\n        try: os.fork()\n        except OSError: time.sleep(0.01)\nbomb()",
    "a crowd of threads": "import threading, time\nfor _ in range(10**4): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    "a memory hog": "hog = []\nwhile True: hog.append(bytearray(10**8))",
    "a memory hog of many": "import os\nfor _ in range(10): os.fork()\nhog = [bytearray(5 * 10**7) for _ in range(9)]\nimport time; time.sleep(9)",
    "a full disk": "import os\nfor n in range(10**5): open(f'/tmp/{n}', 'wb').write(bytes(10**6))",
    "a flood of output": "while True: print('x' * 10**5)",
    "kills everybody": "import os\nfor pid in [-1, *range(2, 4000)]:\n    try: os.kill(pid, 9)\n    except OSError: pass",
    "the parent's memory": "import ctypes; print(ctypes.CDLL(None).ptrace(16, 1, 0, 0)); open('/proc/1/mem', 'r+b').write(b'x')",
    "threads that go on": "import threading, time\ndef on():\n    while True: globals().update(softmax=lambda z: z / z.sum()); time.sleep(0.001)\nthreading.Thread(target=on, daemon=True).start()",
    "hard links and links out": "import os\nfor to in ('/usr/bin/env', '/proc/1/mem', '/etc/localtime'):\n    for how in (os.link, os.symlink):\n        try: how(to, 'x'); open('x', 'r+b').write(b'x')\n        except OSError as e: print(e)",
    "variables of the environment": "import os\nos.environ.update(LD_PRELOAD='/tmp/x.so', PYTHONSTARTUP='/tmp/x.py', PYTHONPATH='/tmp', PYTHONHOME='/tmp', AUTOGRADER_BWRAP='/bin/true')",
    "a thread that waits for the tests": "import gc, threading, time\nfrom autograder.sandbox.inside.workspace import Workspace\ndef on():\n    time.sleep(0.5)\n    while True:\n        for o in gc.get_objects():\n            if isinstance(o, Workspace): o.namespace.update(softmax=lambda z: z, attend=lambda *a: a); o.objects.clear()\nthreading.Thread(target=on, daemon=True).start()",
    "at exit": "import atexit, os; atexit.register(os._exit, 0); atexit.register(lambda: open('/tmp/late', 'w').write('x'))",
}  # fmt: skip


@pytest.mark.usefixtures("the_class_goes_on")
@pytest.mark.parametrize("death", DEATHS)
def test_ends_of_all_kinds_gain_nothing_and_stop_nobody(death: str) -> None:
    start = time.monotonic()
    result = grade(STUBS, first=DEATHS[death], limits={"notebook_seconds": 12})
    assert result.status == GRADED and scores(result) == NOTHING
    assert time.monotonic() - start < 60
    assert len(json.dumps(result.to_json())) < 3 * 10**6


def test_nothing_is_handed_from_one_submission_to_the_next() -> None:
    """Two friends, one after the other on the same worker: the first leaves a note in every place it can think of."""
    leave = """
import os, socket, ctypes, glob, sys, gc
note = 'note-' + 'from-the-first'
for place in ('/tmp', '/dev/shm', '/home/student', '/', '/dev', '/opt/autograder-student', '/etc', os.getcwd()):
    try: open(os.path.join(place, 'note'), 'w').write(note)
    except OSError: pass
os.environ['NOTE'] = note
keep = socket.socket(socket.AF_UNIX); keep.bind('\\0note'); keep.listen()
import numpy, torch, IPython, builtins
numpy.note = torch.note = builtins.note = IPython.note = note
libc = ctypes.CDLL(None, use_errno=True)
print('key', libc.syscall(248, b'user', b'note', note.encode(), len(note), -3), libc.syscall(248, b'user', b'note', b'x', 1, -4))
print('shm', libc.shmget(4711, 4096, 0o1666), 'queue', libc.msgget(4711, 0o1666))
get_ipython().user_ns['note'] = note
numpy.random.seed(4711)
if os.fork() == 0:
    import time
    os.setsid(); time.sleep(300)"""
    look = """
import os, socket, ctypes, gc, numpy, torch, builtins, IPython
needle = 'note-' + 'from-the-first'
found = [d for d in ('/tmp', '/dev/shm', '/home/student', '/', '/dev', '/opt/autograder-student') if os.path.exists(d + '/note')]
found += ['environment'] if 'NOTE' in os.environ else []
found += [m.__name__ for m in (numpy, torch, builtins, IPython) if hasattr(m, 'note')]
try: socket.socket(socket.AF_UNIX).connect('\\0note'); found.append('socket')
except OSError: pass
libc = ctypes.CDLL(None, use_errno=True)
found += ['key'] if libc.syscall(250, 10, -3, b'user', b'note', 0) > 0 else []
found += ['shm'] if libc.shmget(4711, 0, 0) >= 0 else []
found += [type(o).__name__ for o in gc.get_objects() if isinstance(o, dict) and any(type(v) is str and v == needle for v in o.values()) and o is not globals()]
print('processes', [p for p in range(2, 300) if not __import__('os').system(f'kill -0 {p} 2>/dev/null')])
print('found', found)"""
    first = printed(grade(STUBS, first=leave))
    assert "key -1 -1" in first and "shm -1 queue -1" in first
    second = printed(grade(STUBS, first=look))
    assert "found []" in second, second


# --------------------------------------------------------------------------------- outputs and files


def test_outputs_carry_no_code_to_whoever_looks_at_them() -> None:
    code = """
from IPython.display import HTML, Javascript, SVG, Markdown, Image, display, publish_display_data
display(HTML('<script>alert(1)</script>'), Javascript('alert(1)'), Markdown('<img src=x onerror=alert(1)>'))
publish_display_data({'text/html': '<script>x</script>', 'application/vnd.jupyter.widget-view+json': {}, 'text/plain': 'kept'}, {'text/html': {'isolated': False}})
publish_display_data({'image/png': 'iVBORw0KGgo=\\"><script>alert(1)</script>', 'text/plain': 'a picture'})
print('\\x1b]8;;javascript:alert(1)\\x07link\\x1b]8;;\\x07 <script>alert(2)</script>')"""
    result = grade(STUBS, first=code)
    assert result.notebook is not None
    outputs = [o for c in result.notebook["cells"] for o in c.get("outputs", [])]
    kinds = {mime for o in outputs for mime in o.get("data", {})}
    assert kinds <= {"text/plain", "image/png"} and "kept" in json.dumps(outputs)
    assert not any("script" in json.dumps(o["data"].get("image/png", "")) for o in outputs if "data" in o)
    assert all(o.get("metadata", {}) == {} for o in outputs)


def test_metadata_and_tags_of_the_notebook_change_nothing() -> None:
    notebook = submission(STUBS)
    notebook.metadata.update(autograder={"cell_seconds": 10**6, "memory_bytes": 10**15}, kernelspec={"name": "evil"})
    for cell in notebook.cells:
        cell.metadata["tags"] = ["skip-execution", "raises-exception", "nbgrader-skip"]
        cell.metadata.setdefault("nbgrader", {}).update(points=100, grade=False, locked=False)
    result = Result.from_json(json.loads(worker.run_job(job_for(notebook).to_bytes())))
    assert scores(result) == NOTHING and [e.points for e in result.exercises] == list(FULL.values())


def test_rewritten_tests_are_not_run() -> None:
    notebook = submission(STUBS)
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade"):
            cell.source = "print('all good')"
    notebook.cells = [c for c in notebook.cells if c.id != "helpers"]
    result = Result.from_json(json.loads(worker.run_job(job_for(notebook).to_bytes())))
    assert scores(result) == NOTHING and len(result.exercises) == len(TESTS)


def test_links_out_of_the_submission_are_not_followed(tmp_path: Path) -> None:
    course, folder = tmp_path / "source", tmp_path / "submitted" / "someone"
    course.mkdir()
    folder.mkdir(parents=True)
    (course / "tiny.ipynb").write_text("{}")
    for target in (course / "tiny.ipynb", Path("/etc/passwd"), Path("/dev/zero")):
        link = folder / "tiny.ipynb"
        link.symlink_to(target)
        assert find_notebook(folder, "tiny")[0] is None
        link.unlink()
    (folder / "inner").symlink_to(course)
    assert find_notebook(folder, "tiny")[0] is None


# --------------------------------------------------------------------------- what reaches the grader's side


def test_no_expected_value_in_a_reason() -> None:
    """A hidden check that compares with numpy's own assertion would print what is expected."""
    hidden = """
@check("by numpy", points=1)
def _(rng):
    np.testing.assert_allclose(softmax(np.array([0.0, np.log(3)])), [0.25, 0.75])

@check("in words", points=2)
def _(rng):
    assert softmax(np.zeros(2))[0] == 0.5, "equal scores share equally" """
    job = job_for(submission({**RIGHT, "softmax": "def softmax(z):\n    return z + 5"}))
    job.source = nbformat.writes(source_notebook({**TESTS, "softmax": (4, "", hidden)}))
    job.assignment_version = "tiny-numpy"
    result = Result.from_json(json.loads(worker.run_job(job.to_bytes())))
    assert "0.75" not in json.dumps(result.to_json()["exercises"])
    assert "equal scores share equally" in reasons(result, "softmax")


def test_a_mistake_of_the_graders_own_costs_one_submission_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError("a mistake of our own")

    with monkeypatch.context() as patch:
        patch.setattr(judge.Judge, "_exercise", fails)
        result = grade(RIGHT)
    assert result.status == "unreadable" and "the grader itself failed" in result.reason
    assert any("a mistake of our own" in e for e in result.events)


def test_a_check_that_hangs_in_compiled_code_costs_one_submission_only() -> None:
    """No exception reaches `sum`; the worker is ended from a thread of its own, and its pool is told."""
    hidden = """
@check("any function", points=1)
def _(rng):
    sum(range(int(twice(lambda n: n, 3))))"""
    job = job_for(submission({**RIGHT, "twice": "def twice(f, x):\n    return 10**15"}), {"notebook_seconds": 8})
    job.source = nbformat.writes(source_notebook({**TESTS, "twice": (2, "", hidden)}))
    job.assignment_version = "tiny-hang"
    with local_executor(1) as pool:
        started = time.monotonic()
        future = pool.submit(hang_soon, job.to_bytes())
        assert future.exception(timeout=120) is not None
        assert time.monotonic() - started < 100


def hang_soon(data: bytes) -> bytes:
    """`run_job` in a worker whose watchdog does not wait that long."""
    guard = worker.guard_worker
    worker.guard_worker = lambda seconds: guard(12.0)
    return worker.run_job(data)


def test_hostile_text_does_not_stop_the_rebuild() -> None:
    for text in ("(" * 50_000, "-" * 50_000 + "1", "a." * 50_000 + "a", "lambda:" * 9_000 + "1", "not " * 20_000 + "1",
                 "x=" * 20_000 + "1", "[" * 150 + "]" * 150, "f'{" * 200, "1" + "+1" * 30_000, "%" * 9999, "!" * 9999,
                 "\n".join(" " * n + "if 1:" for n in range(300)), "\\\n" * 50_000, "'''" * 3333, "\x00", "%%bash\nrm -rf /"):  # fmt: skip
        result = grade({**STUBS, "softmax": text})
        assert result.status == GRADED and scores(result) == NOTHING, text[:20]


def test_environment_of_the_grader_is_unharmed() -> None:
    assert "NOTE" not in os.environ and Path("/tmp/note").exists() is False
