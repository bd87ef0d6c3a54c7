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
    for name in FOLDERS[folder]:
        module = importlib.import_module(name)
        assert doctest.testmod(module, optionflags=flags).failed == 0, name
