"""Sphinx extension: each chapter has its own list of works, and its citations lead there.

sphinxcontrib-bibtex wants keys to be unique in the whole book as soon as two pages list the same work, and
offers a prefix for this. A chapter says only what it cites; this extension adds the page's name to the keys
and the same prefix to the list, before the page is parsed.
"""

import re

from sphinx.application import Sphinx

CITATION = re.compile(r"(\{cite:[tp]\}`)([^`]+)(`)")
LIST = re.compile(r"^(`{3,}|:{3,})\{bibliography\}[ ]*$", re.M)


def prefix(docname: str) -> str:
    """What the keys of a page start with."""
    return docname.replace("/", "-") + "--"


def with_prefixes(text: str, docname: str) -> str:
    """Return the page's text with its citations and its list of works made local."""
    here = prefix(docname)

    def renamed(match: re.Match) -> str:
        return match[1] + ",".join(here + key.strip() for key in match[2].split(",")) + match[3]

    return LIST.sub(rf"\g<0>\n:keyprefix: {here}\n:labelprefix: {here}", CITATION.sub(renamed, text))


def make_local(app: Sphinx, docname: str, source: list[str]) -> None:
    source[0] = with_prefixes(source[0], docname)


def setup(app: Sphinx) -> dict:
    app.connect("source-read", make_local)
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
