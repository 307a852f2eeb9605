"""Sphinx extension: self-check questions as plain forms of the page.

In a notebook ``quiz`` (the set-up cell of the chapters) shows its questions with jupyterquiz. That is a script per
question, in which an arrow key already answers. On the site each question becomes a fieldset with radio buttons (check
boxes where several answers are right), a Check button for ``_static/quizzes.js``, and its explained answers, folded:
they can be read without JavaScript, and no script stands in the page.
"""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

ASKED = re.compile(r"var questions\w+=(?=\[)")


def questions(html: str) -> list[dict[str, Any]]:
    """The questions in an output that jupyterquiz made; none for other outputs."""
    found = ASKED.search(html)
    return json.JSONDecoder().raw_decode(html, found.end())[0] if found else []


def form(question: dict[str, Any], name: str) -> str:
    """One question as HTML; ``name`` tells it from the others of the page."""
    several = question["type"] == "many_choice"
    kind = "checkbox" if several else "radio"
    choices, reasons = [], []
    for number, answer in enumerate(question["answers"]):
        verdict = "Right" if answer["correct"] else "Wrong"
        text, why = escape(answer["answer"]), escape(answer["feedback"])
        choices.append(
            f"<div class='quiz-answer' data-right='{str(answer['correct']).lower()}'><label>"
            f"<input type='{kind}' name='{name}' value='{number}' autocomplete='off'> <span>{text}</span></label>"
            f"<p class='quiz-why' hidden>{why}</p></div>"
        )
        reasons.append(f"<li><strong>{verdict}:</strong> {text}. {why}</li>")
    hint = " <span class='quiz-hint'>Several answers are right.</span>" if several else ""
    return (
        f"<fieldset class='quiz' id='{name}'><legend>{escape(question['question'])}{hint}</legend>{''.join(choices)}"
        "<p class='quiz-bar'><button type='button' class='quiz-check' hidden>Check"
        f"<span class='visually-hidden'> “{escape(question['question'])}”</span></button> "
        "<span class='quiz-verdict' role='status'></span></p>"
        "<details class='quiz-reasons'><summary>All answers, explained"
        f"<span class='visually-hidden'>: {escape(question['question'])}</span></summary>"
        f"<ul>{''.join(reasons)}</ul></details></fieldset>"
    )


class WriteForms(SphinxPostTransform):
    """Replace the outputs of jupyterquiz, after MyST-NB has chosen which form of an output the page shows."""

    default_priority = 260
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        number = 0
        for output in list(self.document.findall(nodes.raw)):
            forms = []
            for question in questions(output.astext()):
                number += 1
                forms.append(form(question, f"quiz-{number}"))
            if forms:
                output.replace_self(nodes.raw("", "\n".join(forms) + "\n", format="html"))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_post_transform(WriteForms)
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
