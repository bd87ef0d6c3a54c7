"""The reference: a page for each public module, written from its docstrings.

The pages (``api/``) are written before Sphinx reads: a module with its public names, a
package with the names that it gathers, and what is in it. A name in a docstring links
to its place, by whatever way it can be imported; one that cannot be is a warning.
"""

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

from docutils import nodes
from plain_text import plain
from public import modules
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

__all__ = ["setup"]

_CLASS = re.compile(r"[A-Z]\w*[a-z]\w*[A-Z]\w*")


def _summary(documented: object) -> str:
    """Return the first paragraph of a docstring, in one line."""
    first = (inspect.getdoc(documented) or "").partition("\n\n")[0]
    return " ".join(plain(first.splitlines())).strip()


def _heading(text: str, line: str) -> list[str]:
    return [text, line * len(text), ""]


def _is_package(module: ModuleType) -> bool:
    return hasattr(module, "__path__")


def _page(name: str, names: set[str]) -> str:
    """Return the page of a module: its text, what it gathers, what is in it.

    In the list beside each page stand packages alone: with all modules in it, it would
    be most of each page.
    """
    module = import_module(name)
    own, gathered = [], []
    for each in getattr(module, "__all__", ()):
        found = getattr(module, each)
        defined = inspect.isclass(found) or inspect.isroutine(found)
        here = not defined or found.__module__ == name or found.__module__ not in names
        (own if here else gathered).append((each, found))
    inside = sorted(each for each in names if each.rpartition(".")[0] == name)

    lines = [] if _is_package(module) else [":orphan:", ""]
    lines += _heading(name, "=")
    if not _is_package(module):
        lines += [f"Part of :py:mod:`{name.rpartition('.')[0]}`.", ""]
    lines += [f".. automodule:: {name}"]
    if own:
        lines += [f"   :members: {', '.join(each for each, _ in own)}"]
    lines += [""]
    if gathered:
        lines += _heading("Names", "-")
    for each, found in gathered:
        place = f"{found.__module__}.{found.__qualname__}"
        lines += [f":py:obj:`{each} <{place}>`", f"   {_summary(found)}", ""]
    if inside:
        lines += _heading("Modules", "-")
    for each in inside:
        lines += [f":py:mod:`{each}`", f"   {_summary(import_module(each))}", ""]
    packages = [each for each in inside if _is_package(import_module(each))]
    if packages:
        lines += [".. toctree::", "   :hidden:", "", *(f"   {p}" for p in packages)]
    return "\n".join(lines) + "\n"


def _write_pages(app: Sphinx) -> None:
    """Write the pages that have changed, and remove those of modules that are gone."""
    names = set(modules())
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    for page in folder.glob("*.rst"):
        if page.stem not in names:
            page.unlink()
    for name in sorted(names):
        page, text = folder / f"{name}.rst", _page(name, names)
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def _found(name: str) -> object | None:
    """Return what has that dotted name in dpaudit, or None."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:count]))
            for part in parts[count:]:
                found = getattr(found, part)
        except (ImportError, AttributeError):
            continue
        return found
    return None


def _places(node: pending_xref) -> Iterator[str]:
    """Yield where a name may be defined: inside of what the text is about, or as it is.

    What is imported from elsewhere is at the place that it names as its own.
    """
    name, module = node["reftarget"], node.get("py:module")
    around = [module, f"{module}.{node.get('py:class')}"] if module else []
    for each in (name, *(f"{outer}.{name}" for outer in around)):
        found = _found(each) if each.startswith("dpaudit.") else None
        if found is not None:
            home = getattr(found, "__module__", "")
            yield f"{home}.{getattr(found, '__qualname__', '')}"
            yield each


def _resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, text: nodes.TextElement
) -> nodes.Element | None:
    """Link a name to where it is defined, or show it as code.

    A name that begins with ``dpaudit.``, or looks like that of a class, must be there:
    if it is not, Sphinx warns. Other names may be those of parameters.
    """
    if node.get("refdomain") != "py":
        return None
    objects = env.domains.python_domain.objects
    name = node["reftarget"]
    places = list(_places(node))
    unique = [each for each in objects if each.endswith(f".{name}")]
    if _CLASS.fullmatch(name) and len(unique) == 1:
        places += unique
    for place in places:
        if place in objects:
            page = objects[place]
            return make_refnode(
                app.builder, node["refdoc"], page.docname, page.node_id, text, place
            )
    must = name.startswith("dpaudit.") or _CLASS.fullmatch(name)
    return None if must and not places else text


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages first, and look for names where they are defined."""
    app.connect("builder-inited", _write_pages)
    app.connect("missing-reference", _resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
