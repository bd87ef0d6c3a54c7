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
from dpaudit.audit.replay.judge import judge, repeated, settling

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
def released_in_few_rounds(in_few_rounds: Any) -> Iterator[None]:
    """What is judged by its releases is audited for a moment only.

    And what is drawn from exact laws, which are far from their claims, is a quarter.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settling, "_SIMULATED", settling._SIMULATED // 4)
        yield


@pytest.fixture(scope="module", autouse=True)
def proofs_repeated_less() -> Iterator[None]:
    """Of what recorded noise proves, 20 executions again, where 200 may be made.

    That they are needed at all, and how many, is in test_hidden.py, of what has no
    recorded noise.
    """
    repeat = settling.repeat

    def in_few(*given: Any, bare: bool, until: float) -> tuple[bool, int]:
        with pytest.MonkeyPatch.context() as patch:
            if not bare:
                patch.setattr(repeated, "_MOST", repeated._MOST // 10)
            return repeat(*given, bare=bare, until=until)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settling, "repeat", in_few)
        yield


@pytest.fixture(scope="module", autouse=True)
def looked_at_from_four_seeds() -> Iterator[int]:
    """Code that looks at noise is executed from four seeds, where 14 may be.

    From how many, and why, is in test_choices.py: on that many hangs alone what coins
    decide, and few of the tests' mechanisms toss any.
    """
    usual = judge._MORE_TURNS
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge, "_MORE_TURNS", 4)
        yield usual


@pytest.fixture
def looked_at_from_all_seeds(
    looked_at_from_four_seeds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Undo that for one test."""
    monkeypatch.setattr(judge, "_MORE_TURNS", looked_at_from_four_seeds)
