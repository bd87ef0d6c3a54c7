"""What all textbook mechanisms share: how a query becomes releases, and the noise.

A textbook mechanism reads a dataset through one exact query, its `answers`, and
randomises the answers. Its privacy is known: `true_epsilon` is the smallest epsilon
that holds over *all* neighbours, whatever its author claims, and `worst_case` is a pair
on which it is attained or approached. That is what an audit is measured against.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import Claim, InputError, Pair, Profile, PureDP, Relation, UnsupportedError
from dpaudit.algorithms.shared.bases import Batched, Rng, laplace_noise
from dpaudit.arrays import Array
from dpaudit.claims.profile import LARGEST_DELTA, NO_LOSS
from dpaudit.validation import Checked, Positive, check_count, check_matrix, check_real

__all__ = ["LaplaceNoise", "PureTextbookMechanism", "TextbookMechanism"]

_BLOCK = 2**15  # releases that are made together: what passes by stays in cache
_KNOTS = 2001
MAX_LOSS = 700.0  # what a Profile can hold


@dataclass(frozen=True)
class TextbookMechanism(Batched[ArrayLike], Checked):
    """A mechanism whose true privacy is known."""

    claim: Claim = field(init=False)
    """What is promised, truly or not."""

    relation: ClassVar[Relation]
    """The neighbouring relation of the claim; there is one per mechanism."""

    @property
    @abstractmethod
    def true_epsilon(self) -> float:
        """The smallest true epsilon at the claim's delta, over all neighbours."""

    @abstractmethod
    def answers(self, data: ArrayLike) -> Array:
        """Return the exact query that is randomised."""

    @abstractmethod
    def _sample(self, answers: Array, size: int, *, rng: Rng) -> Array:
        """Return `size` releases on the answers, stacked along the first axis."""

    @abstractmethod
    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return the pair on which `true_epsilon` is attained or approached."""

    def draw(self, data: ArrayLike, size: int, *, rng: Rng) -> Array:
        answers = self.answers(data)
        whole, rest = divmod(check_count("size", size, minimum=0), _BLOCK)
        blocks = [self._sample(answers, _BLOCK, rng=rng) for _ in range(whole)]
        return np.concatenate([*blocks, self._sample(answers, rest, rng=rng)])


@dataclass(frozen=True)
class PureTextbookMechanism(TextbookMechanism):
    """A textbook mechanism that claims pure `epsilon`-DP."""

    epsilon: Positive = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "claim", PureDP(self.epsilon))

    @property
    def true_epsilon(self) -> float:
        return self.epsilon


class OneLoss(PureTextbookMechanism, ABC):
    """One answer; where it differs the loss is the true epsilon, of either sign."""

    def exact_claim(self, pair: Pair) -> Claim:
        """Return the true pure epsilon if the answers differ."""
        differ = self.answers(pair.data) != self.answers(pair.neighbour)
        return PureDP(self.true_epsilon) if differ else NO_LOSS


class LaplaceNoise(PureTextbookMechanism, ABC):
    """Independent Laplace noise on every answer."""

    @property
    def scale(self) -> float:
        """The scale b of the noise: 1/epsilon, where a subclass says nothing else."""
        return 1 / self.epsilon

    def _sample(self, answers: Array, size: int, *, rng: Rng) -> Array:
        releases = laplace_noise((size, *answers.shape), self.scale, rng=rng)
        releases += answers
        return releases

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        near, far = (
            np.abs(releases - answers).reshape(len(releases), answers.size).sum(axis=1)
            for answers in (self.answers(data), self.answers(other))
        )
        return np.asarray((far - near) / self.scale)

    def exact_claim(self, pair: Pair) -> Claim:
        """Return the privacy profile of a pair on which one answer differs.

        Tabulated at 2001 points and their convex hull: exact there, and between them
        too large by less than (r/2000)^2, r being the true epsilon of the pair, which
        is at most 700.
        """
        shifts = np.abs(self.answers(pair.data) - self.answers(pair.neighbour))
        differing = np.count_nonzero(shifts)
        if differing == 0:
            return NO_LOSS
        shift = float(shifts.sum() / self.scale)
        if differing > 1 or shift > MAX_LOSS:
            raise UnsupportedError(
                "the exact profile is known for one answer that differs by at most "
                f"{MAX_LOSS:g} scales, got {differing} answers and {shift:g} scales"
            )
        knots = np.unique(np.linspace(0.0, shift, _KNOTS))
        deltas = -np.expm1((knots - shift) / 2)
        return Profile(knots, np.minimum(deltas, LARGEST_DELTA))


def check_scalars(data: ArrayLike) -> Array:
    """Return finite scalars, given as (n,) or (n, 1), in shape (n,); or raise."""
    rows = check_real("data", data, "a numeric array of scalar rows")
    if rows.ndim not in (1, 2) or rows.shape[1:] not in ((), (1,)):
        raise InputError(
            f"data must have scalar rows, shape (n,) or (n, 1), got shape {rows.shape}"
        )
    return check_matrix("data", rows.reshape(-1, 1))[:, 0]


def check_one_scalar(data: ArrayLike) -> float:
    """Return the one row of a local mechanism, or raise if there are more or none."""
    rows = check_scalars(data)
    if len(rows) != 1:
        raise InputError(f"data must be one person's row, got {len(rows)} rows")
    return float(rows[0])


def check_dimension(dimension: int | None, allowed: int) -> int:
    """Return the one dimension that rows may have, or raise if another is asked for."""
    if dimension is not None:
        check_count("dimension", dimension, minimum=allowed, maximum=allowed)
    return allowed
