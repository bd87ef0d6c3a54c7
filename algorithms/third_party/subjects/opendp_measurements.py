"""Measurements of OpenDP (0.16) at the input distance of one added or removed row.

OpenDP states the relation by a metric: what a measurement's map says at 1 is its claim
under the symmetric distance (or the number of changed rows, where that is the metric).
The claim below is that map, at the scale that is passed.
"""

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any

from dpaudit.algorithms.third_party.subjects.subject import Subjects
from dpaudit.claims import ApproxDP, Claim, PureDP, ZeroConcentratedDP

__all__ = ["SUBJECTS"]

_of = Subjects(__name__, "opendp")
_SLACK = 1e-6  # sums of floats are charged for their rounding
_REAL = "scalar:0,1:rows=8"


def _dp() -> Any:
    dp = import_module("opendp.prelude")
    dp.enable_features("contrib", "honest-but-curious")
    return dp


def _list(
    name: str,
    make: Callable[[Any], Any],
    domain: str = _REAL,
    claim: Claim | None = None,
    relation: str = "add-remove",
    read: Callable[[Any], Any] = lambda data: data.tolist(),
) -> None:
    """List a measurement, made once."""

    @lru_cache(maxsize=1)
    def made() -> Any:
        return make(_dp())

    @_of(
        name,
        domain,
        claim=PureDP(1.0 + _SLACK) if claim is None else claim,
        relation=relation,
        stated="its map at distance 1",
    )
    def measure(data: Any, rng: Any) -> Any:
        return made()(read(data))


def _vector(dp: Any, **size: int) -> Any:
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), **size)
    return domain, dp.symmetric_distance()


def _sum(dp: Any) -> Any:
    return _vector(dp) >> dp.t.then_clamp((0.0, 1.0)) >> dp.t.then_sum()


def _sized(dp: Any) -> Any:
    return _vector(dp, size=8) >> dp.t.then_clamp((0.0, 1.0))


def _counts(dp: Any) -> Any:
    domain = dp.vector_domain(dp.atom_domain(T=int))
    return (domain, dp.symmetric_distance()) >> dp.t.then_count_by_categories([0, 1, 2])


_list(
    "then_count.then_laplace",
    lambda dp: _vector(dp) >> dp.t.then_count() >> dp.m.then_laplace(1.0),
)
_list("then_sum.then_laplace", lambda dp: _sum(dp) >> dp.m.then_laplace(1.0 + 1e-7))
_list(
    "then_sum.then_gaussian",
    lambda dp: _sum(dp) >> dp.m.then_gaussian(1.0 + 1e-7),
    claim=ZeroConcentratedDP(0.5 + _SLACK),
)
_list(
    "then_mean.then_laplace",
    lambda dp: _sized(dp) >> dp.t.then_mean() >> dp.m.then_laplace(0.125 + 1e-7),
    relation="replace-one",
)
_list(
    "then_variance.then_laplace",
    lambda dp: _sized(dp) >> dp.t.then_variance() >> dp.m.then_laplace(0.125 + 1e-7),
    relation="replace-one",
    claim=PureDP(1.0 + 1e-4),
)
_list(
    "then_count_by_categories.then_laplace",
    lambda dp: _counts(dp) >> dp.m.then_laplace(1.0),
    domain="codes:3:rows=8",
    read=lambda data: [int(each) for each in data],
)
_list(
    "make_noisy_max",
    lambda dp: dp.m.make_noisy_max(
        dp.vector_domain(dp.atom_domain(T=int)),
        dp.linf_distance(T=int),
        dp.max_divergence(),
        2.0,
    ),
    domain="codes:3:rows=8",
    read=lambda data: [int((data == each).sum()) for each in range(3)],
)
_list(
    "make_randomized_response",
    lambda dp: dp.m.make_randomized_response([0, 1, 2], prob=0.5761168847658291),
    domain="codes:3:rows=1",
    relation="replace-one",
    read=lambda data: int(data[0]),
)
_list(
    "make_randomized_response_bool",
    lambda dp: dp.m.make_randomized_response_bool(prob=0.7310585786300049),
    domain="codes:2:rows=1",
    relation="replace-one",
    read=lambda data: bool(data[0]),
)
_list(
    "make_canonical_noise",
    lambda dp: dp.m.make_canonical_noise(
        dp.atom_domain(T=float, nan=False),
        dp.absolute_distance(T=float),
        d_in=1.0,
        d_out=(1.0, 1e-6),
    ),
    domain="scalar:0,1:rows=1",
    claim=ApproxDP(1.0, 1e-6),
    relation="replace-one",
    read=lambda data: float(data[0]),
)

SUBJECTS = tuple(_of.subjects)
"""What is audited."""
