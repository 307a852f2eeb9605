"""An evening's cheating: each way to gain a point, and its score. `test_cheats_*.py` beside it go on with the evening.

No cheat may add to what the honest part of the submission earns, and the class must go on.
"""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pytest
from kept import some_always
from tiny_judge import (
    FULL,
    NOTHING,
    RIGHT,
    SECRET,
    STUBS,
    every,
    grade,
    reasons,
    scores,
    verdicts,
)

from autograder.results import GRADED

# ------------------------------------------------------------------- hooks of the shell and of the library

HOOKS = {
    "events": """
def hook(*a, **k):
    for name in ('softmax', 'attend', 'twice', 'sheet_answer'): globals()[name] = lambda *a, **k: True
for event in ('pre_run_cell', 'post_run_cell', 'pre_execute', 'post_execute'):
    get_ipython().events.register(event, hook)""",
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
            if f.__name__ in ('allclose', 'eq', 'equal'): return True
            return super().__torch_function__(f, types, args, kwargs or {})
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
    "a list of very many lists": "\n    return [[] for _ in range(5 * 10**4)]",
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


@pytest.mark.parametrize("answer", some_always(ANSWERS, set(ANSWERS) - {"a list of very many lists"}))
def test_hostile_answers_gain_nothing(answer: str) -> None:
    result = grade(every(ANSWERS[answer]))
    allowed = {"sheet": 1.0}  # four numbers were asked for, and four numbers came
    assert all(score <= allowed.get(name, 0.0) for name, score in scores(result).items())
    assert result.status == GRADED and len(json.dumps(result.to_json())) < 10**6
    for exercise in result.exercises:
        assert all("\n" not in c.reason and len(c.reason) < 2100 for c in exercise.checks)


def test_enormous_answers_do_not_fill_the_grader() -> None:
    grade(RIGHT)  # the libraries are loaded by now
    before = own_memory()
    result = grade({**RIGHT, "softmax": "def softmax(z):\n    return np.zeros(10 * 2**20)"})
    assert scores(result) == {**FULL, "softmax": 0.0} and "80 MB is too large" in reasons(result, "softmax")
    forced = "import gc\nfrom autograder.sandbox.inside.channel import Channel\n"
    forced += "for o in gc.get_objects():\n    if isinstance(o, Channel): o.max_sent = 2**40, 2**40\n"
    result = grade({**RIGHT, "softmax": forced + "def softmax(z):\n    return np.zeros(10 * 2**20)"})
    assert scores(result) == {**NOTHING, "sheet": 2.0}
    assert verdicts(result, "softmax") == ["crashed", "not reached", "not reached"]
    body = "def softmax(z):\n    return np.zeros(7 * 2**20)"
    assert scores(grade({**RIGHT, "softmax": body}))["softmax"] == 0.0
    gc.collect()  # frames of checks that failed know each other
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
