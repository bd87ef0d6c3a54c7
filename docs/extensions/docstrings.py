"""Docstrings in numpydoc's sections, with mathematics in plain text."""

import inspect
from typing import Any

from plain_text import plain
from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, NumpyDocstring

__all__ = ["setup"]

# Parameters and attributes as lists of words, of which none is a link.
_SECTIONS = Config(
    napoleon_use_param=False,
    napoleon_use_rtype=False,
    napoleon_custom_sections=[("Attributes", "params_style")],
)


def _process(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    # Of attributes napoleon would take what stands before a colon for their type.
    kind = "function" if what in {"attribute", "data", "property"} else what
    read = NumpyDocstring(plain(lines), _SECTIONS, app, kind, name, obj, options)
    lines[:] = read.lines()


def _skip(
    app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out functions of other libraries that are the default of a field."""
    home = getattr(obj, "__module__", None) if inspect.isroutine(obj) else None
    return True if home and not home.startswith("dpaudit") else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Read docstrings as numpydoc ones, in plain text."""
    app.connect("autodoc-process-docstring", _process)
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
