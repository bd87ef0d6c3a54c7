"""Releases that show every noisy value on the way: transcripts are read off them.

Code that returns all of its weights releases its transcript. Where each noisy value
that the code looked at stands in the release, number by number, in several executions,
a release is turned into a transcript by taking these numbers, and the transcript's
exact loss is an attack on the release. A test on releases is valid for every attack,
also where the numbers are sometimes elsewhere. But the attack has to be a function of
the release. So code whose release is another one when it is given the same values again
is not attacked like this, and each release has one loss.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.execute.executor import Trace, execute
from dpaudit.errors import UnsupportedError
from dpaudit.mechanism import HasTranscriptLoss
from dpaudit.neighbours import Pair

__all__ = ["ShownTranscripts"]

_TURNS = 3  # executions in which numbers have to stand at one place
_NEAR = 1e-9  # relative, of numbers that are one
_MOST = 50.0  # loss that is told from others
_MOST_NUMBERS = 2_000  # of a release


@dataclass(frozen=True)
class ShownTranscripts:
    """A mechanism by the numbers of its releases, from which transcripts are read.

    Parameters
    ----------
    mechanism : Mechanism or callable
    followed : HasTranscriptLoss
        The same, by its transcripts.
    pair : Pair
        On which it is audited.
    layout : str
        Of the releases; others are all zeros.
    size : int
        How many numbers they have.
    places : list of (ndarray of int, tuple)
        Of each noisy value: where its numbers stand, and its shape.
    """

    mechanism: Any
    followed: Any
    pair: Pair
    layout: str
    size: int
    places: list[tuple[NDArray[np.intp], tuple[int, ...]]]
    _known: dict[tuple[bytes, bool], float] = field(
        init=False, repr=False, default_factory=dict
    )

    @classmethod
    def of(
        cls,
        mechanism: Any,
        followed: Callable[[], HasTranscriptLoss],
        pair: Pair,
        seed: int,
    ) -> "ShownTranscripts | None":
        """Return what reads transcripts off releases, None if they do not show them."""
        traces = [execute(mechanism, pair.data, seed + k) for k in range(_TURNS)]
        first = traces[0]
        if not len(first.tape.observations) or len(first.value) > _MOST_NUMBERS:
            return None
        shapes = [[each.shape for each in t.tape.observations] for t in traces]
        for trace in traces:
            hidden = trace.tape.coins or trace.tape.unfollowed or trace.raises
            if hidden or trace.layout != first.layout:
                return None
        if any(each != shapes[0] for each in shapes):
            return None
        places = [_stands(traces, number) for number in range(len(shapes[0]))]
        if any(place is None for place in places):
            return None
        known = [place for place in places if place is not None]
        found = list(zip(known, shapes[0], strict=True))
        made, again = (
            cls(mechanism, followed(), pair, first.layout, len(first.value), found)
            for _ in range(2)
        )
        releases = np.stack([np.append(trace.value, 1.0) for trace in traces])
        losses, others = (
            each.privacy_loss(releases, pair.data, pair.neighbour)
            for each in (made, again)
        )
        alike = np.allclose(losses, others, rtol=1e-9, atol=1e-12)
        return made if alike and (losses > -_MOST).all() else None

    def release(self, data: Any, *, rng: np.random.Generator) -> Array:
        """Return the numbers of one release, and whether it is of the layout."""
        seed = int(rng.integers(2**62))
        trace = execute(self.mechanism, data, seed, follows=False)
        if trace.layout != self.layout or len(trace.value) != self.size:
            return np.zeros(1 + self.size)
        return np.append(trace.value, 1.0)

    def privacy_loss(self, releases: Array, data: Any, other: Any) -> Array:
        """Return the losses of transcripts, 0 where none can be read.

        The datasets are those of the pair, in this order or the other.
        """
        ahead = self.pair.is_data(data)
        keys = [(each.tobytes(), ahead) for each in releases]
        for key, each in zip(keys, releases, strict=True):
            if key not in self._known:
                self._known[key] = self._loss(each, data, other)
        return np.array([self._known[key] for key in keys])

    def _loss(self, release: Array, data: Any, other: Any) -> float:
        if not release[-1]:
            return 0.0
        rows = {
            f"value {number}": release[place].reshape(1, *shape)
            for number, (place, shape) in enumerate(self.places)
        }
        rows["release"] = release[np.newaxis, :-1]
        try:
            found = self.followed.transcript_loss(rows, data, other)[0]
        except UnsupportedError:
            return 0.0
        return float(np.clip(found, -_MOST, _MOST))


def _stands(traces: Sequence[Trace], number: int) -> NDArray[np.intp] | None:
    """Return where the numbers of a noisy value stand in each of some releases."""
    places = []
    for entry in range(traces[0].tape.observations[number].value.size):
        there = np.ones(len(traces[0].value), dtype=bool)
        for trace in traces:
            value = float(np.ravel(trace.tape.observations[number].value)[entry])
            off = _NEAR * max(abs(value), 1e-300)
            there &= np.abs(trace.value - value) <= off
        if not there.any():
            return None
        places.append(int(np.argmax(there)))
    return np.array(places, dtype=np.intp)
