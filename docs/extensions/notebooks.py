"""Notebooks: pages whose code is executed while the site is built.

A page in ``notebooks/`` is Markdown, and each block of Python in it is a cell. nbclient
executes them in order, in one kernel; what they print stands below them as text, what
they draw as pictures. A cell that raises ends the build.
"""

import re
from base64 import b64encode
from typing import Any

from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from sphinx.application import Sphinx

__all__ = ["setup"]

_CELL = re.compile(r"^```python\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
_FIRST = """%matplotlib inline
%config InlineBackend.figure_formats = ['svg']
import matplotlib
matplotlib.rcParams['svg.fonttype'] = 'none'
"""
_SECONDS = 300


def executed(page: str, folder: str) -> str:
    """Return a page with what its cells print and show."""
    sources = [_FIRST, *(each[1] for each in _CELL.finditer(page))]
    book = new_notebook(cells=[new_code_cell(source) for source in sources])
    where = {"metadata": {"path": folder}}
    quiet = ["--log-level=ERROR"]
    client = NotebookClient(
        book, timeout=_SECONDS, resources=where, extra_arguments=quiet
    )
    client.log.setLevel("WARNING")
    client.execute()
    outputs = iter(book.cells[1:])

    def with_output(match: re.Match[str]) -> str:
        return match[0] + "".join(map(_shown, next(outputs).outputs))

    return _CELL.sub(with_output, page)


def _shown(output: Any) -> str:
    """Return Markdown for a picture or for what is printed; others are left out."""
    data = output.get("data", {})
    if "image/svg+xml" in data:
        # An image of its own: what has a name in one picture has it in others.
        drawn = b64encode("".join(data["image/svg+xml"]).encode()).decode()
        image = f"data:image/svg+xml;base64,{drawn}"
        tag = f'<img alt="What the code above draws" src="{image}">'
        return f"\n```{{raw}} html\n{tag}\n```\n"
    text = output.get("text", "") if output.get("name") == "stdout" else ""
    if not text:
        return ""
    return f"\n```text\n{text.rstrip()}\n```\n"


def _read(app: Sphinx, name: str, source: list[str]) -> None:
    if name.startswith("notebooks/"):
        source[0] = executed(source[0], str(app.srcdir))


def setup(app: Sphinx) -> dict[str, object]:
    """Register with Sphinx."""
    app.connect("source-read", _read)
    return {"version": "1", "parallel_read_safe": True}
