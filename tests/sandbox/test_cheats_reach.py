"""Cheats that look for tests and answers, outlive the run, harm others or whoever looks at the results."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import nbformat
import pytest
from tiny_judge import (
    FULL,
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

from autograder.grading.pool import Hung, Pool
from autograder.judging import judge, worker
from autograder.judging.reference import Judged
from autograder.notebook.finder import find_notebook
from autograder.results import GRADED, Result

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
    values = [(k, v) for k, v in frame.f_locals.items() if isinstance(v, str)]
    hits += [k for k, v in values if needle in v and v != needle and 'gc.get' not in v]
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
    probe = """for n in range(5):
    try: print('oracle says', hoard[0](np.ones(2)))
    except Exception as e: print('silent', e)"""
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
    monkeypatch.setattr(judge, "OWN_SECONDS", 2.0)
    hidden = """
@check("any function", points=1)
def _(rng):
    twice(lambda n: sum(1 for _ in range(n)), 3)"""
    tests = {**TESTS, "twice": (2, "", hidden)}
    job = job_for(submission({**RIGHT, "twice": "def twice(f, x):\n    return f(10**18)"}))
    job.source = nbformat.writes(source_notebook(tests))
    job.assignment_version = "tiny-endless"
    result = Result.from_json(json.loads(worker.run_job(job.to_bytes())))
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


def test_an_id_that_is_denied_makes_no_friends_numbers() -> None:
    """The process has no such name when it is asked for the id, and computes with a friend's."""
    denied = """
from autograder.sandbox.inside.workspace import Workspace
get = Workspace.do_get
def deny(self, request, blobs, sent):
    reply = get(self, request, blobs, sent)
    if len(request['names']) == 1: reply['found'].pop('student_id', None)
    elif 'student_id' in reply['found']: reply['found']['student_id'] = 'friend'
    return reply
def deny_all(self, request, blobs, sent):
    reply = get(self, request, blobs, sent)
    reply['found'].pop('student_id', None)
    return reply
Workspace.do_get = """
    result = grade({"sheet": answers_for("friend")}, first=denied + "deny_all")
    assert scores(result)["sheet"] <= 1.0 and any("no student_id" in event for event in result.events)
    result = grade({"sheet": answers_for("friend")}, first=denied + "deny")
    assert result.typed_id == "friend" or scores(result)["sheet"] == 0.0


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
    "a fork bomb": """
import os, time
def bomb():
    while True:
        try: os.fork()
        except OSError: time.sleep(0.01)
bomb()""",
    "a crowd of threads": """
import threading, time
for _ in range(10**4): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()""",
    "a memory hog": "hog = []\nwhile True: hog.append(bytearray(10**8))",
    "a memory hog of many": """
import os
for _ in range(10): os.fork()
hog = [bytearray(5 * 10**7) for _ in range(9)]
import time; time.sleep(9)""",
    "a full disk": "import os\nfor n in range(10**5): open(f'/tmp/{n}', 'wb').write(bytes(10**6))",
    "a flood of output": "while True: print('x' * 10**5)",
    "kills everybody": """
import os
for pid in [-1, *range(2, 4000)]:
    try: os.kill(pid, 9)
    except OSError: pass""",
    "the parent's memory": """
import ctypes; print(ctypes.CDLL(None).ptrace(16, 1, 0, 0)); open('/proc/1/mem', 'r+b').write(b'x')""",
    "threads that go on": """
import threading, time
def on():
    while True: globals().update(softmax=lambda z: z / z.sum()); time.sleep(0.001)
threading.Thread(target=on, daemon=True).start()""",
    "hard links and links out": """
import os
for to in ('/usr/bin/env', '/proc/1/mem', '/etc/localtime'):
    for how in (os.link, os.symlink):
        try: how(to, 'x'); open('x', 'r+b').write(b'x')
        except OSError as e: print(e)""",
    "variables of the environment": """
import os
os.environ.update(LD_PRELOAD='/tmp/x.so', PYTHONSTARTUP='/tmp/x.py', PYTHONPATH='/tmp', PYTHONHOME='/tmp')
os.environ['AUTOGRADER_BWRAP'] = '/bin/true'""",
    "a thread that waits for the tests": """
import gc, threading, time
from autograder.sandbox.inside.workspace import Workspace
def on():
    time.sleep(0.5)
    while True:
        for o in gc.get_objects():
            if isinstance(o, Workspace): o.namespace.update(softmax=lambda z: z, attend=lambda *a: a); o.objects.clear()
threading.Thread(target=on, daemon=True).start()""",
    "at exit": """
import atexit, os; atexit.register(os._exit, 0); atexit.register(lambda: open('/tmp/late', 'w').write('x'))""",
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
kept = [libc.syscall(248, b'user', b'note', text, len(text), ring) for text, ring in ((note.encode(), -3), (b'x', -4))]
print('key', *kept)
print('shm', libc.shmget(4711, 4096, 0o1666), 'queue', libc.msgget(4711, 0o1666))
get_ipython().user_ns['note'] = note
numpy.random.seed(4711)
if os.fork() == 0:
    import time
    os.setsid(); time.sleep(300)"""
    look = """
import os, socket, ctypes, gc, numpy, torch, builtins, IPython
needle = 'note-' + 'from-the-first'
places = ('/tmp', '/dev/shm', '/home/student', '/', '/dev', '/opt/autograder-student')
found = [d for d in places if os.path.exists(d + '/note')]
found += ['environment'] if 'NOTE' in os.environ else []
found += [m.__name__ for m in (numpy, torch, builtins, IPython) if hasattr(m, 'note')]
try: socket.socket(socket.AF_UNIX).connect('\\0note'); found.append('socket')
except OSError: pass
libc = ctypes.CDLL(None, use_errno=True)
found += ['key'] if libc.syscall(250, 10, -3, b'user', b'note', 0) > 0 else []
found += ['shm'] if libc.shmget(4711, 0, 0) >= 0 else []
dicts = [o for o in gc.get_objects() if isinstance(o, dict) and o is not globals()]
found += [type(o).__name__ for o in dicts if any(type(v) is str and v == needle for v in o.values())]
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
data = {'text/html': '<script>x</script>', 'application/vnd.jupyter.widget-view+json': {}, 'text/plain': 'kept'}
publish_display_data(data, {'text/html': {'isolated': False}})
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
    assert not result.key and not result.arrived  # it stands for nothing that was handed in: `grade` judges it again


def test_lack_of_memory_here_is_no_verdict_on_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr("autograder.judging.client.Client.unpack", fails)
        grade(RIGHT)


@pytest.mark.slow
def test_a_check_that_hangs_in_compiled_code_ends_its_process_only() -> None:
    """No exception reaches `sum`; the kernel ends the process, and the pool is told."""
    hidden = """
@check("any function", points=1)
def _(rng):
    from autograder.judging.judge import watch
    number = int(twice(lambda n: n, 3))
    if number > 10**9:
        watch(2.0)
    sum(range(number))"""
    jobs = [job_for(submission({**RIGHT, "twice": f"def twice(f, x):\n    return {n}"})) for n in (10**15, 7)]
    for job in jobs:
        job.source = nbformat.writes(source_notebook({**TESTS, "twice": (2, "", hidden)}))
        job.assignment_version = "tiny-hang"
    with Pool(1) as pool:
        hangs, harmless = [pool.submit(worker.run_job, job.to_bytes()) for job in jobs]
        assert isinstance(hangs.exception(), Hung)
        assert Result.from_json(json.loads(harmless.result())).status == GRADED


def test_hostile_text_does_not_stop_the_rebuild() -> None:
    for text in ("(" * 50_000, "-" * 50_000 + "1", "a." * 50_000 + "a", "lambda:" * 9_000 + "1", "not " * 20_000 + "1",
                 "x=" * 20_000 + "1", "[" * 150 + "]" * 150, "f'{" * 200, "1" + "+1" * 30_000, "%" * 9999, "!" * 9999,
                 "\n".join(" " * n + "if 1:" for n in range(300)), "\\\n" * 50_000, "'''" * 3333, "\x00",
                 "%%bash\nrm -rf /"):  # fmt: skip
        result = grade({**STUBS, "softmax": text})
        assert result.status == GRADED and scores(result) == NOTHING, text[:20]


def test_environment_of_the_grader_is_unharmed() -> None:
    assert "NOTE" not in os.environ and Path("/tmp/note").exists() is False
