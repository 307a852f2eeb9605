"""`mark`: a page for markers on this machine, one question after the other, on top of nbgrader's database.

It is served to 127.0.0.1 only, below a secret address; what students wrote comes from `html/sanitize.py`, and the
pages' policy lets no script run but ours. A student's name never reaches the page: answers have shuffled numbers.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import isclose
from typing import TYPE_CHECKING, Any

import click

from autograder.errors import AutograderError
from autograder.options import Names, chosen_sets, course_option, sets_argument

if TYPE_CHECKING:
    from autograder.course import Course
    from autograder.gradebook.marking import Mark

MOST_BYTES = 100_000  # of one request
POLICY = "; ".join(
    f"{what} {where}"
    for what, where in (
        *(("default-src", "'none'"), ("img-src", "data:"), ("style-src", "'self'"), ("script-src", "'self'")),
        *(("connect-src", "'self'"), ("base-uri", "'none'"), ("form-action", "'none'"), ("frame-ancestors", "'none'")),
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class NotThere(AutograderError):
    """There is no such page."""


class Marking:
    """The questions of a course, the shuffled order of their answers, and what can be undone."""

    def __init__(self, course: Course, names: list[str], base: str) -> None:
        from autograder.grading.store import Store
        from autograder.judging.source import Source

        self.course, self.base, self.store = course, base, Store(course.results_folder)
        self.titles: dict[str, tuple[str, str, str]] = {}
        for name in names:
            for grade_id, (title, _) in Source(course.set_files(name).source, name=name).written.items():
                self.titles[f"question/{len(self.titles) + 1}"] = name, grade_id, title
        self._orders: dict[str, list[str]] = {place: [] for place in self.titles}
        self._undos: dict[str, tuple[str, int, Mark, str]] = {}
        self._lock = threading.Lock()

    def _answers(self, place: str) -> tuple[list[str], dict[str, Mark]]:
        """The students in their order, to whom those who are new are added at the end, and their marks."""
        from autograder.gradebook.marking import marks_on

        if place not in self.titles:
            raise NotThere("There is no such question.")
        name, grade_id, _ = self.titles[place]
        marks = {s: m for s, m in marks_on(self.course, name, grade_id).items() if self.store.path(name, s).is_file()}
        with self._lock:
            order = self._orders[place]
            new = [student for student in marks if student not in order]
            secrets.SystemRandom().shuffle(new)
            order += new
            return list(order), marks

    def index(self) -> str:
        """The page with all questions that somebody answered."""
        from autograder.html import sanitize as pages

        questions = []
        for place, (name, grade_id, title) in self.titles.items():
            _, marks = self._answers(place)
            done = sum(not mark.needs_manual for mark in marks.values())
            if marks:
                about = {"place": f"{place}/1", "title": title, "set": name, "grade_id": grade_id}
                questions.append({**about, "marked": done, "count": len(marks)})
        return pages.page("mark.html.j2", question=None, questions=questions, base=self.base)

    def answer(self, place: str, number: int) -> str:
        """The page of one answer. Raises NotThere."""
        from autograder.gradebook.marking import comments_on
        from autograder.gradebook.rubric import rubric_items, without_rubric
        from autograder.html import sanitize as pages
        from autograder.html.feedback import answer_cells

        order, marks = self._answers(place)
        if not 1 <= number <= len(order) or order[number - 1] not in marks:
            raise NotThere("There is no such answer (any more).")
        student, (name, grade_id, title) = order[number - 1], self.titles[place]
        mark = marks[student]
        result = self.store.get(name, student)
        files = self.course.set_files(name)
        model = files.rubrics[grade_id]
        items = [{**vars(i), "html": pages.inline(i.text)} for i in rubric_items(model, mark.max_score)]
        said, comment = without_rubric(mark.comment)
        done = [s not in marks or not marks[s].needs_manual for s in order]
        after = [*range(number, len(order)), *range(number - 1)]  # places of the others, those that follow first
        return pages.page(
            "mark.html.j2",
            question={"place": place, "title": title},
            base=self.base,
            number_of=number,
            count=len(order),
            marked=sum(done),
            mark=mark,
            key=result.key if result else "",
            cells=answer_cells(result, grade_id) if result else [],
            task=pages.markdown(files.tasks[grade_id]),
            model=pages.markdown(model),
            items=items,
            given=[text for text, was in said.items() if was],
            comment=comment,
            comments=comments_on(marks),
            unmarked=next((n + 1 for n in after if not done[n]), None),
            all_done=done,
        )

    def change(self, place: str, asked: dict[str, Any]) -> dict[str, Any]:
        """Save a mark, or take one back. Raises NotThere, Refused, GradebookError."""
        from autograder.gradebook.autograded import any_database_takes
        from autograder.gradebook.marking import Refused, write_mark
        from autograder.gradebook.rubric import rubric_items, with_rubric

        order, marks = self._answers(place)
        name, grade_id, _ = self.titles[place]
        if "undo" in asked:
            with self._lock:
                kept = self._undos.pop(str(asked["undo"]), None)
            if kept is None or kept[0] != place:
                raise Refused("This cannot be undone any more.")
            _, there, old, seen = kept
            write_mark(self.course, name, grade_id, order[there - 1], seen, old.manual, old.comment, old.needs_manual)
            return {"number": there}
        number: Any = asked.get("number")
        points: Any = asked.get("points")
        comment, given = asked.get("comment"), asked.get("given")
        if type(number) is not int or not 1 <= number <= len(order) or order[number - 1] not in marks:
            raise NotThere("There is no such answer (any more).")
        is_number = type(points) in (int, float) and abs(points) < 1e6
        if not is_number or not isinstance(comment, str) or not isinstance(given, list | None):
            raise Refused("Points are a number, and a comment is text.")
        student, comment = order[number - 1], any_database_takes(comment).strip()
        result = self.store.get(name, student)
        if result is None or result.key != asked.get("key"):
            raise Refused("This answer was graded again meanwhile. Nothing was saved; load the page anew.")
        items = rubric_items(self.course.set_files(name).rubrics[grade_id], marks[student].max_score)
        if given is not None:
            if not items or not isclose(sum(item.points for n, item in enumerate(items) if n in given), points):
                raise Refused("The points are not the sum of the rubric's.")
            comment = with_rubric(items, given, comment)
        old, new = write_mark(self.course, name, grade_id, student, str(asked.get("version")), float(points), comment)
        undo = secrets.token_urlsafe(12)
        with self._lock:
            self._undos[undo] = place, number, old, new.version
        return {"undo": undo}


class Server(ThreadingHTTPServer):
    """Serves one course on 127.0.0.1; `address` holds the secret."""

    daemon_threads = True

    def __init__(self, course: Course, names: list[str], port: int = 0) -> None:
        base = f"/{secrets.token_urlsafe(24)}/"
        self.marking = Marking(course, names, base)
        super().__init__(("127.0.0.1", port), Handler)
        self.hosts = {f"{host}:{self.server_port}" for host in ("127.0.0.1", "localhost")}
        self.address = f"http://127.0.0.1:{self.server_port}{base}"


class Handler(BaseHTTPRequestHandler):
    """Answers whoever knows the address, and nobody else."""

    server: Server
    timeout = 30

    def do_GET(self) -> None:
        """A page, its style or its script."""
        self._answer(self._page)

    def do_POST(self) -> None:
        """A mark, or one taken back, as JSON."""
        length = self.headers.get("Content-Length", "")
        self.sent = b""
        if re.fullmatch("[0-9]{1,9}", length):  # read whoever sent it: who is cut off does not hear why
            self.sent = self.rfile.read(min(int(length), MOST_BYTES + 1))
        self._answer(self._change)

    def _answer(self, reply: Any) -> None:
        marking, kind = self.server.marking, "application/json"
        path = self.path.encode()
        knows = secrets.compare_digest(path[: len(marking.base)], marking.base.encode())
        origin = self.headers.get("Origin")
        own = origin is None or origin in {f"http://{host}" for host in self.server.hosts}
        if self.headers.get("Host") not in self.server.hosts or not own or not knows:
            status, body = HTTPStatus.FORBIDDEN, '{"problem": "Use the address that the command `mark` printed."}'
        else:
            try:
                status, (kind, body) = HTTPStatus.OK, reply(self.path[len(marking.base) :])
            except NotThere as error:
                status, body = HTTPStatus.NOT_FOUND, json.dumps({"problem": str(error)})
            except AutograderError as error:
                status, body = HTTPStatus.CONFLICT, json.dumps({"problem": str(error)})
        data = body.encode()
        self.send_response(status)
        for header, value in {**HEADERS, "Content-Type": f"{kind}; charset=utf-8"}.items():
            self.send_header(header, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _page(self, place: str) -> tuple[str, str]:
        from autograder.html import sanitize as pages

        if place == "mark.css":
            return "text/css", pages.page("mark.css.j2")
        if place == "mark.js":
            return "text/javascript", pages.page("mark.js")
        question, _, number = place.rpartition("/")
        if not place:
            return "text/html", self.server.marking.index()
        return "text/html", self.server.marking.answer(
            question, int(number) if re.fullmatch("[0-9]{1,9}", number) else 0
        )

    def _change(self, place: str) -> tuple[str, str]:
        from autograder.gradebook.marking import Refused

        if len(self.sent) > MOST_BYTES:
            raise Refused("The comment is too long.")
        if self.headers.get("Content-Type") != "application/json":
            raise Refused("A mark is sent as JSON.")
        try:
            asked = json.loads(self.sent)
        except (ValueError, RecursionError) as error:
            raise Refused("A mark is sent as JSON.") from error
        if not isinstance(asked, dict):
            raise Refused("A mark is sent as JSON.")
        return "application/json", json.dumps(self.server.marking.change(place, asked))

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: a line for each request would tell the secret address."""


@click.command()
@course_option
@sets_argument
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0: any that is free.")
@click.option("--browser/--no-browser", default=True, help="Open the page in a browser.")
def mark(course: Course, sets: Names, port: int, browser: bool) -> None:
    """Mark written answers by question, in a browser on this machine (all sets by default).

    Answers are anonymous, with the model answer and the rubric beside them. Marks and comments stand in the gradebook
    at once, as formgrader's do; both may be used at the same time. Ctrl+C ends it.
    """
    import webbrowser

    with Server(course, chosen_sets(course, sets, course.set_names()), port) as server:
        click.echo(f"Mark at {server.address} (only you should know this address; Ctrl+C ends it)")
        if browser:
            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo("")
