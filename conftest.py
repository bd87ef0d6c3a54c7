"""Keep pytest from importing the sub-packages twice.

The folders below are sub-packages of `dpaudit` (see `[tool.setuptools]`), so their
``__init__.py`` must not turn them into top-level packages when pytest walks over
them: they are collected as plain directories.

Python's search for cycles of dead objects goes over all that was imported, again and
again where many small objects are made: a third of the time of drawing figures went
into it. Here it searches more rarely, and what there is once tests are collected it
leaves out.

Tests that write files are skipped where there is no room for them, and ``--shuffle 1``
runs the files in another order: no test may need what another one left behind.
"""

import gc
import random
import shutil
import tempfile
from itertools import groupby
from pathlib import Path

import pytest

SUBPACKAGES = {"algorithms", "attacks", "audit", "reports"}
ROOT = Path(__file__).parent

ROOM = 200  # megabytes of temporary files that tests may need

gc.set_threshold(20_000, 20, 20)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shuffle", type=int, metavar="SEED", help="run the files in a random order"
    )


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    seed = config.getoption("--shuffle")
    if seed is not None:
        files = [list(group) for _, group in groupby(items, lambda item: item.path)]
        random.Random(seed).shuffle(files)
        items[:] = [item for group in files for item in group]
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free // 2**20
    if free < ROOM:
        reason = f"needs {ROOM} MB for temporary files, and {folder} has {free}"
        for item in items:
            if "tmp_path_factory" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish() -> None:
    gc.freeze()


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Dir | None:
    if path.parent == ROOT and path.name in SUBPACKAGES:
        return pytest.Dir.from_parent(parent, path=path)
    return None
