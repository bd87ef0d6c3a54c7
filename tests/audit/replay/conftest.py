"""What is there before a file is listed once, and not for each of a thousand replays.

A replay lists all objects, to find the generators among them. Where tests run, these
are the objects of every test that was collected, and of all that ran before. Those that
are there when a file begins are frozen: the collector leaves them out then, and the
generators among them are kept here.
"""

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from dpaudit.audit.replay.follow import foreign

listed_anew = foreign.all_objects
generators: list[Any] = []


@pytest.fixture(scope="module", autouse=True)
def objects_listed_once() -> Iterator[None]:
    def objects() -> list[Any]:
        return [*generators, *gc.get_objects()]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(foreign, "all_objects", objects)
        generators[:] = foreign.ForeignGenerators().found
        gc.freeze()
        yield


@pytest.fixture
def objects_listed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "all_objects", listed_anew)


@pytest.fixture(scope="module", autouse=True)
def released_in_few_rounds(in_few_rounds: Any) -> None:
    """What is judged by its releases is audited for a moment only."""
