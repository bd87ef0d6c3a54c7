"""Signs that an audit does not see what it seems to see.

Every statement of an audit assumes that, given the dataset, each release is drawn anew
from the same distribution, with the generator that it was handed. Three checks find the
usual ways to break this, and no more than these:

- the same seeds are used again after the audit: a release that differs from the first
  depends on the calls in between, or on randomness of the mechanism's own;
- a mechanism that leaves its generator untouched does not use it;
- a batched draw whose releases are nearer each other than one of another batch shares
  noise between them.

Where one of them shows that the assumption fails, there is no verdict. Two things are
no such showing. A mechanism that never uses its generator and always releases the same
is deterministic: its releases are of one law. And a mechanism may say that it draws
from the operating system instead, with an attribute `seedable` that is False: its
author then answers for its releases, which are to be independent all the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpaudit.audit.sampling.sampler import Sampler
from dpaudit.errors import DPAuditError

__all__ = ["Signs"]

_STATE = (
    "the same seed gave another release at the end than at the beginning: the "
    "mechanism keeps state between calls, or draws randomness of its own"
)
_UNUSED = (
    "the mechanism does not use its rng: its releases are constant, or draw randomness "
    "from elsewhere"
)

_SHARED = (
    "releases of one batched draw resemble each other more than those of another one: "
    "they share noise, so that they are fewer independent releases than they seem"
)


@dataclass(frozen=True)
class Signs:
    """What was seen of the assumption that releases are independent draws of one law.

    Parameters
    ----------
    warnings : tuple of str
        What speaks against it.
    refute_it : bool
        Whether it was seen to fail, so that nothing follows from the releases.
    """

    warnings: tuple[str, ...]
    refute_it: bool

    @classmethod
    def of(
        cls,
        mechanism: Any,
        *,
        repeats: bool,
        uses_rng: bool,
        shares_noise: bool = False,
        varies: bool = False,
    ) -> "Signs":
        """Return what was seen of a mechanism.

        Parameters
        ----------
        mechanism : Mechanism or callable
        repeats : bool
            Whether the same seed gave the same release at the end as at the beginning.
        uses_rng : bool
            Whether it ever drew from the generator that it was handed.
        shares_noise : bool
            Whether the releases of a batch resemble each other.
        varies : bool
            Whether two releases on one dataset differed.
        """
        found = {_STATE: not repeats, _UNUSED: not uses_rng, _SHARED: shares_noise}
        seeded = getattr(mechanism, "seedable", True) is not False
        elsewhere = not repeats or (varies and not uses_rng)
        return cls(
            warnings=tuple(sign for sign, seen in found.items() if seen),
            refute_it=shares_noise or (seeded and elsewhere),
        )

    @classmethod
    def seen(
        cls, sampler: Sampler, mechanism: Any, repeats: Callable[[], bool]
    ) -> "Signs":
        """Return what was seen of the mechanism that is sampled.

        Parameters
        ----------
        sampler : Sampler
            Which drew the releases.
        mechanism : Mechanism or callable
            Not its view at the audit's layer.
        repeats : callable
            Says whether the same streams give the first releases once more.
        """
        try:
            return cls.of(
                mechanism,
                repeats=repeats(),
                uses_rng=sampler.uses_rng(),
                shares_noise=sampler.shares_noise(),
                varies=sampler.varies,
            )
        except DPAuditError:
            # It refuses now what it took at the beginning.
            return cls.of(mechanism, repeats=False, uses_rng=True)
