"""Keep pytest from importing the sub-packages twice.

The folders below are sub-packages of `dpaudit` (see `[tool.setuptools]`), so their
``__init__.py`` must not turn them into top-level packages when pytest walks over
them: they are collected as plain directories.

Python's search for cycles of dead objects goes over all that was imported, again and
again where many small objects are made: a third of the time of drawing figures went
into it. Here it searches more rarely.
"""

import gc
from pathlib import Path

import pytest

SUBPACKAGES = {"algorithms", "attacks", "audit", "reports"}
ROOT = Path(__file__).parent

gc.set_threshold(20_000, 20, 20)


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Dir | None:
    if path.parent == ROOT and path.name in SUBPACKAGES:
        return pytest.Dir.from_parent(parent, path=path)
    return None
