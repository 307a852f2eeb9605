"""Judges one submission: runs the student's cells in the sandbox and the test cells here.

A job is plain data and so is its result; nothing here touches a database or a course folder.
"""

from __future__ import annotations

import base64
import faulthandler
import json
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from autograder.judging.client import Client
from autograder.judging.diagnosis import DIAGNOSIS_SECONDS, diagnosed
from autograder.judging.job import Job
from autograder.judging.problems import StudentGone, StudentProblem, raised
from autograder.judging.proxies import Proxy
from autograder.judging.reference import Judged
from autograder.judging.session import Outcome, run_test_cell
from autograder.judging.source import BadSource, TestCell
from autograder.judging.transports import RemoteTransport
from autograder.judging.trials import Trial, smallest
from autograder.judging.variants import value_for
from autograder.notebook.names import bound_names
from autograder.notebook.rebuild import RebuiltCell, to_content
from autograder.results import NOT_REACHED, Check, Exercise, Misconception, Result
from autograder.sandbox.inside.workspace import OutOfTime, time_limit
from autograder.sandbox.launcher import Limits, Sandbox
from autograder.text import shown_text

LONGEST_ID = 200
MOST_CLEAN_BYTES = 4_000_000
OUTPUT_BYTES = 1_000  # that each output weighs at least: showing it costs a millisecond
PIXELS_A_BYTE = 40  # of a picture as a page shows it
OWN_SECONDS = 30.0  # of computing, for what a check itself does with the answers, beside the students' calls
TRIAL_SECONDS = 0.5  # of the student's process, and of computing here, in which inputs are cut down
MOST_RIGHT = 4  # variants that are asked whether an input is allowed
TRIES = 4  # of a test cell, one after the other: the reference's, the student's two, a last variant's
PNG = b"\x89PNG\r\n\x1a\n"
# the large libraries, and by which words a student's cells speak of them
MENTIONS = {"matplotlib": ("matplotlib", "plt", "pylab"), "torch": ("torch",)}


def watch(seconds: float) -> None:
    """End this process, saying where it hangs, once it has computed for that long; 0 ends the watch.

    A check can hand a student's numbers to compiled code that does not come to an end: no exception reaches it there.
    """
    faulthandler.register(signal.SIGVTALRM, file=sys.__stderr__ or sys.stderr, chain=True)  # chain: and end
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)


class Judge:
    """The run of one job."""

    def __init__(self, job: Job, source: Judged) -> None:
        self.job = job
        self.source = source
        self.rebuilt = job.rebuilt()
        text = "\n".join(c.source for c in self.rebuilt.cells if c.cell_type == "code" and c.kind != "test")
        self.libraries = [name for name, words in MENTIONS.items() if any(word in text for word in words)]
        settings = source.notebook.metadata.get("autograder", {})
        self.limits = Limits().changed(job.limits).changed(settings)
        self.outputs: dict[int, list[dict[str, Any]]] = {}
        self.outputs_left = MOST_CLEAN_BYTES
        self.cell_errors: dict[str, StudentProblem] = {}
        self.sources: dict[str, str] = {}
        self.exercises: list[Exercise] = []
        self.full: dict[str, bool] = {}
        self.trials: list[tuple[Exercise, int, Trial, Callable[[], list[Any]]]] = []  # of checks, by their number
        self.events = list(job.events)
        self.typed_ids: list[str] = []
        self.student_id: str | None = None  # by which the test cell at hand judges
        self.seconds = {"cells": 0.0, "checks": 0.0}

    def run(self, sandbox: Sandbox) -> Result:
        """Raises SandboxRefused or BadSource."""
        start = time.monotonic()
        files = {name: base64.b64decode(data) for name, data in self.job.files.items()}
        student = sandbox.start(self.limits, files, self.libraries)
        self.transport = RemoteTransport(student, self.limits.notebook_seconds)
        self.client = Client(self.transport, self.limits.call_seconds, self.sources)
        try:
            for number, cell in enumerate(self.rebuilt.cells):
                watch(TRIES * (self.limits.exercise_seconds + OWN_SECONDS) + DIAGNOSIS_SECONDS)
                self._one_cell(number, cell)
            waited = student.waited
            self._cut_down()
        finally:
            watch(0)
            student.end()
        if waited >= student.most and not student.end().get("crowd"):  # which takes processors from itself
            reason = "other programs had the processors of this machine for too long; it is graded by the next run"
            return self.job.unjudged(reason, self.events)
        self.events += self.transport.events
        if len(set(self.typed_ids)) > 1:
            shown = ", ".join(repr(i) for i in dict.fromkeys(self.typed_ids))
            self.events.append(f"student_id changes inside the notebook: {shown}")
        return self._result(time.monotonic() - start)

    def broken(self, error: Exception) -> Result:
        """The result where the grader itself failed: no score, and who must act."""
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__} in {last.name}, line {last.lineno}"
        events = [*self.events, f"the grader failed: {where}: {shown_text(error, 300)}"]
        return self.job.unjudged(f"the grader itself failed on this submission ({where}); please report it", events)

    def _one_cell(self, number: int, cell: RebuiltCell) -> None:
        begin, grade_id = time.monotonic(), cell.grade_id or ""
        if cell.kind == "test":
            exercise = self._exercise(self.source.tests[grade_id])
            exercise.seconds = round(time.monotonic() - begin, 4)
            self.seconds["checks"] += time.monotonic() - begin
            self.exercises.append(exercise)
            self.outputs[number] = [_verdicts_as_output(exercise)]
        elif cell.kind == "written":
            title, points = self.source.written[grade_id]
            exercise = Exercise(grade_id, title, points, "written", None if cell.answered else 0.0)
            exercise.solution_ids, exercise.answered = [grade_id], cell.answered
            self.exercises.append(exercise)
        if cell.kind != "test" and cell.cell_type == "code" and cell.source.strip():
            self._run_cell(number, cell)
            self.seconds["cells"] += time.monotonic() - begin

    # the student's cells

    def _run_cell(self, number: int, cell: RebuiltCell) -> None:
        names = bound_names(cell.source) | bound_names(self.source.solutions.get(cell.grade_id or "", ""))
        if cell.kind != "locked":
            self.sources.update(dict.fromkeys(names, cell.source))
        question = {"op": "run", "source": cell.source, "seconds": self.limits.cell_seconds}
        problem: StudentProblem | None = None
        try:
            reply, _ = self.transport.ask(
                question, [], self.limits.cell_seconds, lambda *_: ({"error": "nothing to call"}, [])
            )
        except StudentGone as gone:
            problem = gone
            self.outputs[number] = [_error_output(gone.verdict, gone.reason, [f"{gone.verdict}: {gone.reason}"])]
        else:
            self.outputs[number] = clean_outputs(reply.get("outputs"), self.outputs_left)
            self.outputs_left -= sum(map(_weight, self.outputs[number]))
            if reply.get("error"):
                problem = raised(reply["error"])
        for name in names:
            self.cell_errors.pop(name, None)
        if problem is not None:
            self.cell_errors.update(dict.fromkeys(names, problem))

    def _explain(self, missing: NameError) -> str:
        self.client.is_told = False
        name = getattr(missing, "name", None) or str(missing)
        problem = self.cell_errors.get(name)
        if problem is not None and problem.type_name == "NotImplementedError":
            return problem.reason
        if problem is not None:
            return f"`{name}` is not defined, because its cell stopped: {problem.reason}"
        return f"`{name}` is not defined; does a cell of yours define it under exactly this name?"

    # test cells

    def _exercise(self, test: TestCell) -> Exercise:
        answered = any(c.answered for c in self.rebuilt.cells if c.grade_id in test.solution_ids)
        exercise = Exercise(test.grade_id, test.title, test.points, solution_ids=test.solution_ids, answered=answered)
        outcome, expected = self._verdict(test)
        self.full.update(dict.fromkeys(test.solution_names, outcome.full))
        own = outcome  # with right helpers the answers show what is this exercise's own mistake
        helpers = [u for u in expected.uses if not self.full.get(u, True)]
        if helpers and not outcome.full and self.transport.gone is None:
            own = self._with_our_helpers(test, expected, helpers) or outcome
            if own.share > outcome.share:
                outcome, exercise.follow_through = own, helpers
        exercise.checks = self._with_cell_error(test, list(outcome.checks))
        if answered and not exercise.follow_through:  # helpers lent are gone by the time the inputs are cut down
            self._keep_trials(test, exercise, outcome)
        exercise.figures = outcome.figures
        exercise.score = round(test.points * outcome.share, 2)
        self.events += [f"{test.grade_id}: {line}" for line in outcome.internal]
        if not outcome.full and answered:
            exercise.misconceptions = self._misconceptions(test, expected, own)
        return exercise

    def _verdict(self, test: TestCell) -> tuple[Outcome, Outcome]:
        """The outcome, and the reference's with the same numbers.

        The own numbers' reference is asked only where an answer is not right by it. An id that gives none counts as
        the source notebook's own.
        """
        own_id = self.source.own_id
        expected = self.source.reference_outcome(test, self.job.seed, own_id)  # has the same checks
        outcome = self._try(test, expected)
        if outcome.full or (self.student_id or own_id) == own_id:
            return outcome, expected
        try:
            return outcome, self.source.reference_outcome(test, self.job.seed, self.student_id or own_id)
        except BadSource as error:
            self.events.append(f"{test.grade_id}: the typed student_id cannot be used ({error})")
            return self._try(test, expected, own_id), expected

    def _with_cell_error(self, test: TestCell, checks: list[Check]) -> list[Check]:
        """The checks; where an answer's cell stopped half-way, those that did not pass say so."""
        problem = next((self.cell_errors[n] for n in sorted(test.solution_names) if n in self.cell_errors), None)
        if problem is None or self.transport.gone is not None:
            return checks
        said = f" (the cell with your answer stopped before its end: {problem.reason})"
        return [c if c.passed or problem.reason in c.reason else replace(c, reason=c.reason + said) for c in checks]

    def _usable_id(self, value: Any) -> str | None:
        """The id as typed in the notebook, which test cells use; None when there is no id."""
        if type(value) is int:  # typed without quotes
            value = str(value)
        if value is None:
            return None
        if type(value) is not str or len(value) > LONGEST_ID:
            self.events.append("student_id is no id: a long text or a value of another type")
            return self.source.own_id
        typed: str = value.strip()
        self.typed_ids.append(typed)
        return typed

    def _try(
        self, test: TestCell, expected: Outcome, student_id: str | None = None, helpers: tuple[str, ...] = ()
    ) -> Outcome:
        """What the test cell says, with these helpers lent; what it said about the very same answers, if it did.

        It judges by `student_id`, where that is None by the typed one.
        """

        def given(found: dict[str, Any]) -> dict[str, Any]:
            self.student_id = student_id or self._usable_id(found.get("student_id"))
            if self.student_id is None and test.is_personal:
                self.events.append(f"{test.grade_id}: there is no student_id in the notebook")
            return found if self.student_id is None else {**found, "student_id": self.student_id}

        client, seed = self.client, self.job.seed
        self.student_id = None
        client.begin(self.limits.exercise_seconds)
        client.exact, client.may_be_asked = test.is_whole, expected.asked
        key = test.grade_id, seed, *helpers
        outcome = None
        if not test.is_personal and self.transport.gone is None:
            outcome = self.source.conversations.follow(key, client)
            client.replay()
        if outcome is None:
            known = self.source.known_answers(test, seed)
            settings = {"explain": self._explain, "check_seconds": OWN_SECONDS, "draws": True, "known": known}
            outcome = run_test_cell(test, client, self.source, seed, given, **settings)
            is_told = client.is_told and not test.is_personal and not outcome.internal and self.transport.gone is None
            outcome.internal = [] if self.transport.gone else outcome.internal
            outcome.checks = self._all_checks(expected, outcome)
            if is_told:
                self.source.conversations.keep(key, client.exchanges, outcome)
        client.callbacks.clear()  # helpers lent for this exercise end with it
        return outcome

    def _all_checks(self, expected: Outcome, outcome: Outcome) -> list[Check]:
        """The reference's list of checks, with the verdicts that were reached; the others are not reached.

        After them come those that a right answer does not have.
        """
        reached = {c.name: c for c in outcome.checks}
        why = outcome.internal[0] if outcome.internal else "the test cell stopped before it"
        if self.transport.gone is not None:
            why = f"not reached: {self.transport.gone.reason}"
        asked = [reached.pop(c.name, Check(c.name, c.points, NOT_REACHED, why, c.hidden)) for c in expected.checks]
        return [*asked, *reached.values()]

    def _with_our_helpers(self, test: TestCell, expected: Outcome, helpers: list[str]) -> Outcome | None:
        """Follow-through: judge again with the reference's answers in place of the student's failed helpers."""
        try:
            names = self.source.namespace_for(test, self.student_id or "")
            for name in helpers:
                self.client.replace(name, names[name])
            outcome = self._try(test, expected, self.student_id, tuple(helpers))
            self.client.restore()
        except StudentProblem as problem:
            self.events.append(f"{test.grade_id}: follow-through stopped: {problem.reason}")
            return None
        return outcome

    def _keep_trials(self, test: TestCell, exercise: Exercise, outcome: Outcome) -> None:
        """What `_cut_down` will look at: of checks that failed for the same reason the first."""
        seen = set[str]()
        for number, check in enumerate(exercise.checks):
            trial = None if check.reason in seen else outcome.trials.get(check.name)
            seen.add(check.reason)
            if trial is not None and trial.name in test.solution_names:
                right = partial(self._right_functions, test, trial.name, self.student_id or "")
                self.trials.append((exercise, number, trial, right))

    def _right_functions(self, test: TestCell, name: str, student_id: str) -> list[Any]:
        """The reference's function of this name, and the catalogue's right variants of it."""
        names = self.source.namespace_for(test, student_id)
        right = [v for v in self.source.catalogue.variants if v.is_right and v.exercise == name]
        cheap = [v for v in right if "torch" not in v.source or "torch" in sys.modules]  # which takes a second to load
        return [names[name], *(value_for(variant, names, student_id) for variant in cheap[:MOST_RIGHT])]

    def _cut_down(self) -> None:
        """Look for smaller inputs that fail, now that nothing more is asked that counts."""
        self.client.transcript = []  # that of the last outcome may be kept for others
        trials, self.trials = self.trials, []  # which know this judge: it and its answers would outlive their use
        self.client.begin(TRIAL_SECONDS)
        self.client.call_seconds = TRIAL_SECONDS / 2
        try:
            end = time.process_time() + TRIAL_SECONDS
            with time_limit(OWN_SECONDS, again=0, clock=time.process_time):
                for exercise, number, trial, right in trials:
                    if time.process_time() > end:
                        return
                    student = self.client.get([trial.name]).get(trial.name)
                    found = smallest(trial, student, right(), end) if isinstance(student, Proxy) else None
                    if found is not None:
                        exercise.checks[number] = replace(exercise.checks[number], example=found)
        except (StudentProblem, OutOfTime):  # the others keep the inputs that the checks asked
            return
        except Exception as error:  # inputs or answers of a kind that nobody foresaw: they cost no verdict
            self.events.append(f"no smaller inputs could be looked for: {type(error).__name__}")

    def _misconceptions(self, test: TestCell, expected: Outcome, outcome: Outcome) -> list[Misconception]:
        if outcome.named is not None:
            return outcome.named
        made_for = self.student_id or self.source.own_id
        try:
            named, is_done = diagnosed(self.source, test, expected, outcome, self.job.seed, made_for, OWN_SECONDS)
        except (Exception, OutOfTime) as error:  # answers of a kind that nobody foresaw: they cost no verdict
            self.events.append(f"{test.grade_id}: no misconception could be looked for: {type(error).__name__}")
            return []
        outcome.named = named if is_done else None  # None: cut short, not done
        return named

    # the result

    def _result(self, seconds: float) -> Result:
        notebook = to_content(self.rebuilt, self.source.notebook)
        for number, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] == "code":
                cell["outputs"] = self.outputs.get(number, [])
        return self.job.result(
            typed_id=self.typed_ids[0] if self.typed_ids else None,
            exercises=self.exercises,
            events=self.events,
            timings={"total": round(seconds, 4), **{k: round(v, 4) for k, v in self.seconds.items()}},
            notebook=notebook,
        )


def _error_output(name: str, reason: str, lines: list[str]) -> dict[str, Any]:
    return {"output_type": "error", "ename": name, "evalue": reason, "traceback": lines}


def _verdicts_as_output(exercise: Exercise) -> dict[str, Any]:
    lines = [f"{exercise.score:g} of {exercise.points:g} points"]
    for check in exercise.checks:
        mark = "passed" if check.passed else check.verdict
        lines.append(f"[{mark}] {check.name}" + (f": {check.reason}" if check.reason else ""))
    lines += [f"What we saw: {m.says}" for m in exercise.misconceptions]
    return {"output_type": "stream", "name": "stdout", "text": "\n".join(lines) + "\n"}


def clean_outputs(outputs: Any, left: int = MOST_CLEAN_BYTES) -> list[dict[str, Any]]:
    """Outputs as the student process sent them, reduced to text and PNG pictures that weigh `left` bytes at most.

    Anything else is dropped.
    """
    clean = []
    for output in outputs if isinstance(outputs, list) else []:
        kept = _clean_output(output) if isinstance(output, dict) else None
        if kept is not None and (weight := _weight(kept)) <= left:
            left -= weight
            clean.append(kept)
    return clean


def _weight(output: dict[str, Any]) -> int:
    """Its bytes; a picture's pixels weigh too, of which few bytes make enough to fill a reader's memory."""
    head = base64.b64decode(output.get("data", {}).get("image/png", "")[:32])
    pixels = int.from_bytes(head[16:20], "big") * int.from_bytes(head[20:], "big")
    return OUTPUT_BYTES + len(json.dumps(output)) + pixels // PIXELS_A_BYTE


def _clean_output(output: dict[str, Any]) -> dict[str, Any] | None:
    kind = output.get("output_type")
    if kind == "stream" and output.get("name") in ("stdout", "stderr") and isinstance(output.get("text"), str):
        return {"output_type": "stream", "name": output["name"], "text": output["text"]}
    if kind == "error" and isinstance(output.get("traceback"), list):
        return _error_output(str(output.get("ename")), str(output.get("evalue")), list(map(str, output["traceback"])))
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
