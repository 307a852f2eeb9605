"""What an audit works with: small alterations of a solution, and tasks that end apart."""

import textwrap
import time

import numpy as np

from autograder.audit.forked import run_apart
from autograder.audit.mutants import mutants_of


def test_mutants_leave_given_text_alone():
    cell = textwrap.dedent('''
        def f(x, axis: int = -1, *, scale=2.0) -> int:
            """Adds 1 + 1."""
            given = 3 + 4
            ### BEGIN SOLUTION
            """1 + 1"""
            if axis < 0:
                raise ValueError(f"{axis + 1}")
            return x.sum(axis=axis) + 5  # 6 + 6
            ### END SOLUTION
    ''').strip()
    found = mutants_of(cell)
    assert {m.line for m in found} == {6, 7, 8}
    changed = {m.new for m in found}
    assert {"if axis <= 0:", "if axis >= 0:", "pass", "return x.sum() + 5  # 6 + 6"} <= changed
    assert "return x.sum(axis=axis) - 5  # 6 + 6" in changed
    assert [m.new for m in found if m.line == 7] == ["pass"]
    assert len({m.text for m in found}) == len(found)


def test_mutants_of_our_own():
    cell = "### BEGIN SOLUTION\na = f((p + q) @ r.T, s, axis=1)\nb = np.swapaxes(a, -1, -2)\n### END SOLUTION"
    changed = {m.new for m in mutants_of(cell)}
    assert "a = f((p + q) @ r, s, axis=1)" in changed
    assert "a = f((p + q) @ r.T, s)" in changed
    assert "a = f(s, (p + q) @ r.T, axis=1)" in changed
    assert "a = f(((r.T)) @ (p + q), s, axis=1)" in changed
    assert "b = np.swapaxes(-1, a, -2)" in changed
    assert "b = np.swapaxes(a, -2, -1)" not in changed


def test_mutants_of_text_that_is_not_ascii():
    found = mutants_of("### BEGIN SOLUTION\nβ = {'größe': f(α, 1)}\n### END SOLUTION")
    assert "β = {'größe': f(1, α)}" in {m.new for m in found}


def test_tasks_end_apart():
    def hog():
        return len(np.ones((1 << 40,)))

    def die():
        raise SystemExit(3)

    tasks = [(lambda: 1, 20), (lambda: time.sleep(60), 0.5), (hog, 20), (die, 20), (lambda: "x" * 300_000, 20)]
    ran = dict(run_apart(tasks, 2))
    assert [ran[number].lost for number in range(5)] == ["", "timeout", "crashed", "crashed", ""]
    assert ran[0].value == 1 and len(ran[4].value) == 300_000


def test_torch_works_apart():
    import torch

    torch.set_num_threads(1)

    def gradient():
        x = torch.ones(200, 200, requires_grad=True)
        (x @ x).sum().backward()
        return float(x.grad.sum())

    expected = gradient()
    assert [r.value for _, r in run_apart([(gradient, 60)] * 3, 2)] == [expected] * 3
