r"""How many releases a refutation takes, before any is drawn.

Three models of a broken mechanism, each with the true epsilon (at the claim's delta)
that is asked for, and each on the pair of neighbours where it is at its worst:

- ``laplace``: Laplace noise, too little of it. Attacked by both tails.
- ``gaussian``: Gaussian noise, too little of it (delta > 0). Attacked by both tails.
- ``randomised-response``: a bit, flipped too seldom. The easiest case: at delta = 0, by
  data processing, no mechanism of this epsilon is refuted sooner by a known event.

Known event. The tails cut the outputs into cells of probabilities p on D and q on D'.
With half of the releases drawn on either side, betting on the cells grows the log
evidence by at most 2 G a release on each side, where

.. math:: G = \min_{(p', q')} \tfrac{1}{2} KL(p \| p') + \tfrac{1}{2} KL(q \| q')

over all cell probabilities that the claim allows (`dpaudit.audit.betting.projection`).
So log(1/alpha)/(2 G) releases a side are needed on average: the information limit. The
tails begin where G is largest. The bet that does it multiplies the wealth by p_i/p'_i
or q_i/q'_i for each release in cell i; with V the sum of the variances of their
logarithms on the two sides, the log evidence after n releases a side is nearly normal,
with mean 2 G n and variance V n. It passes log(1/alpha) with probability `power` where

.. math:: 2 G n - z \sqrt{V n} \ge \log(1/\alpha), \quad \Phi(z) = power.

Learning. An audit is not told the event, but it knows its budget, and can do better
than this bet towards the end of it. `_LEARNING` is the factor that remains. Measured at
power 0.9, in 86 audits for each factor: within the n of the known event 77 % refuted,
within 1.25 times as many 92 %, within 1.5 times as many 99 % (plain functions, the
whole portfolio of attacks, ten cases: the three models, claims from 0.1 to 3, true
epsilon 1.2 to 4 times the claim, confidence 0.999 and 1 - 1e-6).
`tests/audit/test_planning.py` repeats a part of it. A search for the pair of neighbours
is not included.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtr, ndtri

from dpaudit.arrays import Array
from dpaudit.audit.betting.evidence import Bets
from dpaudit.audit.betting.families import verdict_family
from dpaudit.audit.betting.projection import HalfSpaces, project
from dpaudit.audit.judged import PrintedResult
from dpaudit.audit.summary import rarest_event
from dpaudit.claims import ApproxDP, Claim, PureDP
from dpaudit.errors import InputError
from dpaudit.gaussian import gaussian_mu
from dpaudit.validation import (
    check_confidence,
    check_fraction,
    check_name,
    check_positive,
)

__all__ = ["MODELS", "Plan", "plan_audit"]

MODELS = ("laplace", "gaussian", "randomised-response")
_LEARNING = 1.25

_LARGEST = 30.0  # beyond, a handful of releases does
_MOST = 1e14  # releases: where the claim and the truth are so near, rounding decides
_ENDS, _RAREST, _IMPOSSIBLE = 100, 1e-7, 1e-300


@dataclass(frozen=True)
class Plan(PrintedResult):
    """What it takes to refute a claim, if the truth is so much worse.

    Parameters
    ----------
    model : str
        One of `MODELS`.
    claim : Claim
    true_epsilon : float
        Of the model, at the claim's delta.
    confidence, power : float
    event : str
        What is bet on.
    on_data, on_neighbour : float
        The probabilities of its first cell.
    limit : float
        Releases a side that a test which knows the event needs on average.
    known : int
        Releases a side within which it refutes with probability `power`.
    samples : int
        The same for an audit, which has to find the event: its budget.
    rarest_event : float
        What only one dataset gives, and is rarer, mostly evades an audit so long.
    """

    model: str
    claim: Claim
    true_epsilon: float
    confidence: float
    power: float
    event: str
    on_data: float
    on_neighbour: float
    limit: float
    known: int
    samples: int
    rarest_event: float

    @property
    def delta(self) -> float:
        """Of the claim, and where `true_epsilon` is meant."""
        return float(self.claim.parameters.get("delta", 0.0))

    def __str__(self) -> str:
        return (
            f"{self.model}: about {self.samples:,} releases a side refute {self.claim} "
            f"with probability {self.power:g}\n"
            f"  assumed        epsilon is {self.true_epsilon:g} in truth at delta "
            f"{self.delta:g}, on the pair that is audited\n"
            f"  event          {self.event}: {self.on_data:.4g} on the data, "
            f"{self.on_neighbour:.4g} on the neighbour\n"
            f"  known event    {self.limit:,.0f} on average, {self.known:,} for this "
            "power\n"
            f"  confidence     {self.confidence:g}; events rarer than "
            f"{self.rarest_event:.2g} would mostly be missed"
        )


def plan_audit(
    epsilon: float,
    true_epsilon: float,
    *,
    delta: float = 0.0,
    model: str = "laplace",
    power: float = 0.9,
    confidence: float = 0.999,
) -> Plan:
    """Return how many releases an audit needs to refute an (epsilon, delta) claim.

    Parameters
    ----------
    epsilon : float
        Of the claim, > 0.
    true_epsilon : float
        What it is in truth at `delta`, > `epsilon`, <= 30.
    delta : float
        In [0, 1).
    model : {"laplace", "gaussian", "randomised-response"}
        How the mechanism is broken, see `dpaudit.audit.planning`. The pair that is
        audited is taken to be the worst; the search for it costs releases too.
    power : float
        How probable the refutation has to be, in (0, 1).
    confidence : float
        Of the audit, in (0, 1).

    Raises
    ------
    InputError
        If a number is out of range, or the Gaussian model is asked for at delta = 0,
        where every epsilon is infinite, or it would take more than 1e14 releases.

    Examples
    --------
    >>> plan = plan_audit(1.0, 2.0)
    >>> round(plan.limit), plan.limit < plan.known < plan.samples
    (80, True)
    """
    epsilon = check_positive("epsilon", epsilon)
    true_epsilon = check_positive("true_epsilon", true_epsilon)
    delta = check_fraction("delta", delta, allow_zero=True)
    alpha = 1 - check_confidence("confidence", confidence)
    power = check_fraction("power", power)
    check_name("model", model, MODELS)
    if not epsilon < true_epsilon <= _LARGEST:
        raise InputError(
            f"the true epsilon must be > {epsilon:g}, the claim's, and at most "
            f"{_LARGEST:g}, got {true_epsilon:g}"
        )
    p, q, event = _best_cells(model, epsilon, true_epsilon, delta)
    half_spaces = _half_spaces(1, p.shape[1], epsilon, delta)
    bets = Bets.place(half_spaces, project(p, q, half_spaces, 0.5), p.shape[1], 1, 1)
    growth, variance = 0.0, 0.0
    for cells, returns in ((p, bets.on_p), (q, bets.on_q)):
        logs = np.log1p(returns[0]) - bets.slack[0]
        mean = float(cells[0] @ logs)
        growth += mean
        variance += float(cells[0] @ (logs - mean) ** 2)
    goal, z = -math.log(alpha), float(ndtri(power))
    if not growth * _MOST > goal:
        raise InputError(
            f"the model {model!r} with epsilon {true_epsilon!r} at delta {delta:g} "
            f"takes more than {_MOST:.0e} releases to tell from the claim, or has no "
            "event that shows it: a double does not tell how many"
        )
    spread = z * math.sqrt(variance)
    # The larger root of growth n - spread sqrt(n) = goal; z may be negative.
    root = (spread + math.sqrt(spread**2 + 4 * growth * goal)) / (2 * growth)
    samples = math.ceil(_LEARNING * root**2)
    claim = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
    return Plan(
        model=model,
        claim=claim,
        true_epsilon=true_epsilon,
        confidence=confidence,
        power=power,
        event=event,
        on_data=float(p[0, 0]),
        on_neighbour=float(q[0, 0]),
        limit=goal / growth,
        known=math.ceil(root**2),
        samples=samples,
        rarest_event=rarest_event(verdict_family(claim).claim_only(), samples, alpha),
    )


def _best_cells(
    model: str, epsilon: float, true_epsilon: float, delta: float
) -> tuple[Array, Array, str]:
    """Return probabilities on D and D', (1, cells), and what the cells are."""
    if model == "randomised-response":
        # P(truth) - e^true_epsilon P(lie) = delta
        lie = np.array([[(1 - delta) * expit(-true_epsilon)]])
        p, q = np.hstack([1 - lie, lie]), np.hstack([lie, 1 - lie])
        return p, q, "the bit is told truly"
    if model == "laplace":
        # delta(epsilon) = 1 - e^((epsilon - shift)/2)
        cdf, low = _laplace_cdf, math.log(2 * _RAREST)
        shift = true_epsilon - 2 * math.log1p(-delta)
    elif delta > 0:
        cdf, low = ndtr, float(ndtri(_RAREST))
        shift = gaussian_mu(true_epsilon, delta)
    else:
        raise InputError("the gaussian model needs delta > 0: its epsilon is infinite")
    # Where the tail ends, in deviations: at most half way, where it meets its mirror.
    high = shift / 2
    for _ in range(2):  # a coarse grid, and a fine one around its best point
        ends = np.linspace(low, high, _ENDS)
        p, q = cdf(ends), np.maximum(cdf(ends - shift), _IMPOSSIBLE)
        middle = np.maximum(1 - p - q, 0.0)
        cells = np.stack([p, middle, q], axis=1)
        mirrored = np.ascontiguousarray(cells[:, ::-1])
        half_spaces = _half_spaces(_ENDS, 3, epsilon, delta)
        best = int(project(cells, mirrored, half_spaces, 0.5).growth.argmax())
        low, high = ends[max(best - 1, 0)], ends[min(best + 1, _ENDS - 1)]
    row = slice(best, best + 1)
    return cells[row], mirrored[row], "a tail, and its mirror image"


def _laplace_cdf(x: Array) -> Array:
    tail = np.exp(-np.abs(x)) / 2
    return np.where(x > 0, 1 - tail, tail)


def _half_spaces(problems: int, cells: int, epsilon: float, delta: float) -> HalfSpaces:
    """Return what the claim says of every union of first cells, and its complement."""
    ratio = math.exp(epsilon)
    unions = np.tile(np.arange(1, cells), (problems, 1))
    ones = np.ones(unions.shape)
    # P <= e^epsilon Q + delta, and 1 - Q <= e^epsilon (1 - P) + delta.
    return HalfSpaces(
        np.hstack([unions, unions]),
        np.hstack([ones, ratio * ones]),
        np.hstack([-ratio * ones, -ones]),
        np.hstack([delta * ones, (ratio - 1 + delta) * ones]),
    )
