"""Test cells that can only be judged beside the answers: in a copy of the student's process, which ends with it.

They ask what no copy of an answer can tell, such as if two are one object, or they set what the answers read. A
student's code could answer in their place: results, feedback, report and release say of which cells this is so.
"""

from __future__ import annotations

from typing import Any

from autograder.judging.problems import StudentGone, raised
from autograder.judging.session import WHOLE, Outcome, credit_of
from autograder.judging.source import Source, TestCell
from autograder.judging.transports import RemoteTransport
from autograder.results import ERROR, FAILED, PASSED, Check
from autograder.sandbox.launcher import Limits, Sandbox


def judged_beside(test: TestCell, transport: RemoteTransport, seconds: float) -> Outcome:
    """What nbgrader would say of the test cell in the student's process."""
    question = {"op": "apart", "source": test.text, "helpers": test.helpers, "seconds": seconds}
    try:
        reply, _ = transport.ask(question, [], 2 * seconds, lambda *_: ({"error": "nothing to call"}, []))
    except StudentGone as gone:
        return _outcome(test, gone.verdict, gone.reason)
    if error := reply.get("error"):
        problem = raised({**error, "where": ""} if isinstance(error, dict) else error)  # where is a line of the test
        if problem.type_name == "AssertionError":
            return _outcome(test, FAILED, problem.message or "does not hold")
        return _outcome(test, problem.verdict, problem.reason)
    outputs = reply.get("outputs")
    for output in [o for o in outputs if isinstance(o, dict)] if isinstance(outputs, list) else []:
        if output.get("output_type") == "error" or output.get("name") == "stderr":
            return _outcome(test, ERROR, "it says something on stderr, where nothing is expected")
        if output.get("output_type") == "execute_result":
            data = output.get("data")
            credit = credit_of(str(data.get("text/plain", "")) if isinstance(data, dict) else "", test.points)
            if credit is not None:
                outcome = _outcome(test, FAILED, f"{credit * test.points:g} of {test.points:g} points")
                outcome.credit = credit
                return outcome
    return _outcome(test, PASSED)


def _outcome(test: TestCell, verdict: str, reason: str = "") -> Outcome:
    return Outcome([Check(WHOLE, test.points, verdict, reason, bool(test.hidden.strip()))])


def reference_as_notebook(source: Source, sandbox: Sandbox, limits: Limits) -> dict[str, Outcome]:
    """What the test cells without checks say beside the reference, run as a student's notebook is, by grade_id."""
    found: dict[str, Outcome] = {}
    student = sandbox.start(limits, source.files)
    transport = RemoteTransport(student, limits.notebook_seconds)
    try:
        for cell in source.notebook.cells:
            test = source.tests.get(cell.metadata.get("nbgrader", {}).get("grade_id", ""))
            if test is not None and test.is_whole:
                found[test.grade_id] = judged_beside(test, transport, limits.cell_seconds)
            elif test is None and cell.cell_type == "code" and cell.source.strip():
                question: dict[str, Any] = {"op": "run", "source": cell.source, "seconds": limits.cell_seconds}
                transport.ask(question, [], limits.cell_seconds, lambda *_: ({"error": "nothing to call"}, []))
    except StudentGone as gone:
        return {test.grade_id: _outcome(test, gone.verdict, gone.reason) for test in source.tests.values()} | found
    finally:
        student.end()
    return found
