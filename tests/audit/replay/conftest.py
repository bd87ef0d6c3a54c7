"""Replays of tests are made of fewer executions, and list fewer objects."""

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dpaudit.audit.replay.follow import foreign
from dpaudit.audit.replay.judge import judge, repeated, settling

listed_anew = foreign.all_objects


@pytest.fixture(scope="module", autouse=True)
def objects_listed_before(objects_listed_once: Callable[[], None]) -> None:
    """What files that ran before have left behind is listed once, too."""
    objects_listed_once()


@pytest.fixture
def objects_listed_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(foreign, "all_objects", listed_anew)
    yield
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def released_in_few_rounds(in_few_rounds: Any) -> Iterator[None]:
    """What is judged by its releases is audited for a moment only.

    And what is drawn from exact laws, which are far from their claims, is a quarter.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settling, "_SIMULATED", settling._SIMULATED // 4)
        yield


@pytest.fixture(scope="module", autouse=True)
def proofs_repeated_less() -> Iterator[Any]:
    """Of what recorded noise proves, 8 executions again, where 200 may be made.

    That they are needed at all, and how many, is in test_hidden.py, of what has no
    recorded noise.
    """
    repeat = settling.repeat

    def in_few(*given: Any, bare: bool, until: float) -> tuple[bool, int]:
        with pytest.MonkeyPatch.context() as patch:
            if not bare:
                patch.setattr(repeated, "_MOST", repeated._MOST // 25)
            return repeat(*given, bare=bare, until=until)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settling, "repeat", in_few)
        yield repeat


@pytest.fixture
def proofs_repeated_enough(
    proofs_repeated_less: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Undo that for one test."""
    monkeypatch.setattr(settling, "repeat", proofs_repeated_less)


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
