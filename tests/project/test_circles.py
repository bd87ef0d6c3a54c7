"""No module imports itself by way of others, not even for type checkers alone."""

import ast
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def modules() -> dict[str, Path]:
    """Return every module of the package by its name."""
    found = {}
    for package, folder in PROJECT["tool"]["setuptools"]["package-dir"].items():
        for path in (ROOT / folder).rglob("*.py"):  # which follows no links
            inside = path.relative_to(ROOT / folder).with_suffix("")
            name = ".".join([package, *inside.parts]).removesuffix(".__init__")
            found[name] = path
    return found


def imports(node: ast.AST) -> Iterator[str]:
    """Yield what is imported outside functions, and names that may be modules."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ImportFrom) and not child.level:
            yield str(child.module)
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        elif isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from imports(child)


def graph(sources: dict[str, str]) -> dict[str, set[str]]:
    """Return what each module imports; a name from a package is asked of its module."""
    arrows: dict[str, set[str]] = {}
    for name, source in sources.items():
        found = {each for each in imports(ast.parse(source)) if each in sources}
        packages = {each.rpartition(".")[0] for each in found}
        arrows[name] = found - packages - {name}
    return arrows


def test_no_module_imports_itself_by_way_of_others():
    sources = {
        name: path.read_text(encoding="utf-8") for name, path in modules().items()
    }
    assert len(sources) > 300
    list(TopologicalSorter(graph(sources)).static_order())


def test_a_circle_for_type_checkers_is_one():
    first = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from b import B"
    with pytest.raises(CycleError):
        TopologicalSorter(graph({"a": first, "b": "import a"})).prepare()
