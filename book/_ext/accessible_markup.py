"""Sphinx extension: mend the places where the tools' HTML is a riddle to screen readers.

axe-core finds them: MyST-NB names the summary of a folded cell other than what stands on it, docutils calls
citations by a role that was withdrawn, and a table's empty corner is marked as a heading that says nothing.
"""

from sphinx.application import Sphinx

MENDED = {
    '<summary aria-label="Toggle hidden content">': "<summary>",
    ' role="doc-biblioentry"': ' role="listitem"',
    '<th class="head"><p></p></th>': "<td></td>",
}


def mend(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Replace the faulty pieces in a page's article."""
    body = context.get("body")
    if app.builder.format != "html" or not body:
        return
    for wrong, right in MENDED.items():
        body = body.replace(wrong, right)
    context["body"] = body


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", mend)
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
