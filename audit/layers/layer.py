"""The layers of evidence, and which of them a mechanism offers.

From the strongest to the one that needs the least: an exact profile; Monte Carlo over
the exact privacy loss; attacks on every noisy value that the privacy proof releases;
attacks on final releases alone. What each proves, and what it takes for granted, stands
in ``docs/layers.md``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

import numpy as np

from dpaudit.arrays import Array
from dpaudit.claims import Claim
from dpaudit.errors import InputError
from dpaudit.mechanism import (
    HasExactClaim,
    HasGaussianSteps,
    HasPrivacyLoss,
    HasTranscript,
    HasTranscriptLoss,
    HasWorstCase,
)
from dpaudit.neighbours import Pair, Relation

__all__ = ["Layer", "TranscriptView", "applicable_layers", "view_transcript"]


class Layer(StrEnum):
    """A kind of evidence about a privacy claim."""

    EXACT = "exact"
    WHITE_BOX = "white-box"
    TRANSCRIPT = "transcript"
    BLACK_BOX = "black-box"
    REPLAY = "replay"


def applicable_layers(mechanism: Any) -> tuple[Layer, ...]:
    """Return the layers of evidence that a mechanism offers, the strongest first.

    A capability may still be missing for some pairs, and then raises
    `~dpaudit.errors.UnsupportedError`.

    Parameters
    ----------
    mechanism : Mechanism or callable

    Examples
    --------
    >>> from dpaudit.algorithms import GOEGaussian
    >>> [layer.value for layer in applicable_layers(GOEGaussian.from_mu(1.0))]
    ['exact', 'white-box', 'black-box']
    >>> [layer.value for layer in applicable_layers(lambda data, rng: data.sum())]
    ['black-box']
    """
    offers = {
        Layer.EXACT: isinstance(mechanism, HasExactClaim),
        Layer.WHITE_BOX: isinstance(mechanism, HasPrivacyLoss),
        Layer.TRANSCRIPT: isinstance(mechanism, HasTranscript),
        Layer.BLACK_BOX: True,
    }
    return tuple(layer for layer, offered in offers.items() if offered)


@dataclass(frozen=True)
class TranscriptView:
    """A mechanism whose release is the transcript of another.

    A privacy proof by composition covers every noisy value on the way, so the claim of
    the whole is one about the transcript too. Audited like any mechanism, this view
    shows what an adversary sees who watches all of it.

    Parameters
    ----------
    mechanism : Mechanism
        With a `transcript`.

    Raises
    ------
    InputError
        If it has none.
    """

    mechanism: Any

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, HasTranscript):
            raise InputError(
                f"mechanism must have a transcript, got {type(self.mechanism).__name__}"
            )

    @property
    def claim(self) -> Claim:
        """The claim of the mechanism."""
        return cast(Claim, self.mechanism.claim)

    @property
    def relation(self) -> Relation:
        """The relation of the mechanism."""
        return cast(Relation, self.mechanism.relation)

    @property
    def seedable(self) -> bool:
        """Whether the same seed gives the same transcript, unless it says no."""
        return getattr(self.mechanism, "seedable", True) is not False

    def draw(
        self, data: Array, size: int, *, rng: np.random.Generator
    ) -> Mapping[str, Array]:
        """Return `size` independent transcripts."""
        assert isinstance(self.mechanism, HasTranscript)
        return self.mechanism.transcript(data, size, rng=rng)

    def release(self, data: Array, *, rng: np.random.Generator) -> Mapping[str, Array]:
        """Return one transcript."""
        return {key: value[0] for key, value in self.draw(data, 1, rng=rng).items()}

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return the mechanism's worst pair.

        Raises
        ------
        InputError
            If it names none.
        """
        if not isinstance(self.mechanism, HasWorstCase):
            raise InputError("pair is needed: the mechanism names no worst case")
        return self.mechanism.worst_case(dimension)


class _GaussianTranscriptView(TranscriptView):
    """A view that passes on what makes the likelihood of a transcript known."""

    def step_means(
        self, transcript: Mapping[str, Array], data: Array
    ) -> Mapping[str, Array]:
        return cast(HasGaussianSteps, self.mechanism).step_means(transcript, data)

    @property
    def step_scales(self) -> Mapping[str, float]:
        return cast(HasGaussianSteps, self.mechanism).step_scales


class _LikelihoodView(TranscriptView):
    """A view whose privacy loss is the mechanism's transcript loss."""

    def privacy_loss(
        self, releases: Mapping[str, Array], data: Array, other: Array
    ) -> Array:
        mechanism = cast(HasTranscriptLoss, self.mechanism)
        return mechanism.transcript_loss(releases, data, other)


def view_transcript(mechanism: Any) -> TranscriptView:
    """Return the mechanism whose releases are the transcripts of another.

    Raises
    ------
    InputError
        If it has no transcript.
    """
    if isinstance(mechanism, HasTranscriptLoss):
        return _LikelihoodView(mechanism)
    if isinstance(mechanism, HasGaussianSteps):
        return _GaussianTranscriptView(mechanism)
    return TranscriptView(mechanism)
