import doctest
import importlib
import pkgutil

import pytest

import dpaudit

FOLDERS: dict[str, list[str]] = {}
for _, name, _ in pkgutil.walk_packages(dpaudit.__path__, "dpaudit."):
    if name != "dpaudit.__main__" and ".checks" not in name:
        FOLDERS.setdefault(name.split(".")[1], []).append(name)


def test_modules_are_found() -> None:
    assert {"algorithms", "attacks", "audit", "reports", "claims"} <= FOLDERS.keys()


@pytest.mark.parametrize("folder", FOLDERS)
def test_examples(folder: str) -> None:
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(optionflags=flags)
    for name in FOLDERS[folder]:
        for test in finder.find(importlib.import_module(name)):
            # A docstring without examples would still be run: by a debugger, which
            # looks at all files that were ever read.
            assert not test.examples or runner.run(test).failed == 0, name
