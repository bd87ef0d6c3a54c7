"""The examples in the docstrings of every public module run as printed."""

import doctest
import importlib
import pkgutil

import pytest

import dpaudit

MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(dpaudit.__path__, "dpaudit.")
    if name != "dpaudit.__main__" and ".checks" not in name
]


def test_modules_are_found() -> None:
    folders = {name.split(".")[1] for name in MODULES}
    assert {"algorithms", "attacks", "audit", "reports", "claims"} <= folders


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert doctest.testmod(module, optionflags=flags).failed == 0
