"""Keep pytest from importing the sub-packages twice.

The folders below are sub-packages of `dpaudit` (see `[tool.setuptools]`), so their
``__init__.py`` must not turn them into top-level packages when pytest walks over
them: they are collected as plain directories.
"""

from pathlib import Path

import pytest

SUBPACKAGES = {"algorithms", "attacks", "audit", "reports"}
ROOT = Path(__file__).parent


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Dir | None:
    if path.parent == ROOT and path.name in SUBPACKAGES:
        return pytest.Dir.from_parent(parent, path=path)
    return None
