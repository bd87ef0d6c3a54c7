"""Prefix sums that can also be made row by row."""

import json
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.online.prefix_sums import PrefixSums
from dpaudit.algorithms.online.streams import PrefixStream
from dpaudit.errors import InputError
from dpaudit.validation import check_count

__all__ = ["StreamableSums", "saved_dimension"]


@dataclass(frozen=True, kw_only=True)
class StreamableSums(PrefixSums):
    """Prefix sums with a stream.

    Parameters
    ----------
    noise, claim, length, row_norm
        See `PrefixSums`.
    """

    @property
    @abstractmethod
    def keeps_noise(self) -> bool:
        """Whether the noise of a prefix is that of its nodes, or all its own."""

    def start(self, dimension: int, *, rng: np.random.Generator) -> PrefixStream:
        """Return a stream of rows of length d.

        Parameters
        ----------
        dimension : int
            d.
        rng : numpy.random.Generator
            Belongs to the stream from now on.

        Raises
        ------
        InputError
            If no length is declared.

        Examples
        --------
        >>> from dpaudit.algorithms.online.tree_aggregation import TreeAggregation
        >>> mechanism = TreeAggregation.calibrated(1.0, 1e-5, length=1000)
        >>> stream = mechanism.start(3, rng=np.random.default_rng(0))
        >>> stream.add([0.0, 1.0, 0.0]).shape
        (3, 3)
        >>> mechanism.resume(stream.state()).step
        1
        """
        return PrefixStream(self, dimension, rng=rng)

    def resume(self, state: Mapping[str, ArrayLike]) -> PrefixStream:
        """Return a stream that goes on where another one gave this state.

        Raises
        ------
        InputError
            If the state is of another configuration, which is named.
        """
        stream = self.start(saved_dimension(state), rng=np.random.default_rng(0))
        stream.restore(state)
        return stream


def saved_dimension(state: Mapping[str, ArrayLike]) -> int:
    """Return d of a saved state.

    Raises
    ------
    InputError
        If it is no state.
    """
    try:
        return check_count(
            "dimension", json.loads(str(state["configuration"]))["dimension"]
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"state must be what a stream's state() returned: {error}"
        ) from error
