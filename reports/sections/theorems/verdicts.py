r"""Verdicts on what is no exponent: how often, how near a floor, and what is drawn.

A statement of the ledger that has a ``rule`` has its verdict from the function of that
name here, which reads tables of the report. In all of them:

- *vacuous*: who looks at no row (a random subspace, a constant, noise, nothing) would
  have the same verdict. So a bound on what private mechanisms can do is held to those
  who can do it on more rows, and what is said to fail counts only beside what is said
  to succeed, and does.
- *not decided*: what is seen is more, or less, than the statement says, and constants
  that it does not print may be the reason.
- Of a figure: supported if all that the paper says of it is seen, in part if some of it
  is, and not reproduced if nothing is. A figure here has other sizes than in print.

**How often they err.** A share is held to what is allowed by the interval of Clopper
and Pearson, 95 %: if the allowed share is true, it is exceeded with 2.5 % at most. A
mean that is called above 0, or below a floor, is so by Student's limit of the level
`_ALARM`, for each mean: 0.1 % at most, so far as errors are normal. Sentences on
figures compare medians of the same data sets; of an order that chance decides, one of
two is seen.
"""

from collections.abc import Iterable, Mapping
from math import inf, sqrt
from typing import Any

import numpy as np

from dpaudit.audit.bounds.laws import lower_proportion, upper_proportion
from dpaudit.reports.power_law import mean_limit
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.theorems.judgement import BETTER
from dpaudit.reports.sections.theorems.ledger import (
    CONTRADICTED,
    OPEN,
    PARTLY,
    SUPPORTED,
    VACUOUS,
    Told,
    audits,
)
from dpaudit.reports.sections.tracing.findings import Shares, all_shares, few_rows
from dpaudit.reports.sections.tracing.measures import dimension_of
from dpaudit.reports.words import count, listed, sentences

_ALARM = 0.001
_NEAR = 10.0  # times the floor: what is near it
_LEVEL = 0.025  # to a side
_OVERLAP = 2.0  # the K of Lemma 30


def few_useful(results: Results, *, one: bool) -> Told:
    """Corollaries 25 (``one``) and 32: on few rows 1/n of the releases are useful.

    Held to mechanisms whose claim of epsilon = 1 stands, and who are useful on the most
    rows: half of the time, at least. PCA without noise must be useful more often.
    """
    found = [e for e in results.once(all_shares) if (e.components == 1) == one]
    fell = results.once(audits)
    n = int(results.options("tracing")["length"])
    few = few_rows(n)
    able = [e for e in found if e.epsilon == 1 and not fell.get(e.mechanism, False)]
    able = [e for e in able if e.useful and e.useful[max(e.useful)].share >= 0.5]
    hits, trials = _on_few(able, few)
    open_hits, open_trials = _on_few((e for e in found if e.epsilon is None), few)
    (told,) = sentences(
        *("theorems", "few_useful"),
        private=(hits, trials),
        without_noise=(open_hits, open_trials),
        **{"who": len({e.mechanism for e in able}), "few": few, "n": n},
    )
    if not trials or not _more(open_hits, open_trials, 1 / n):
        return VACUOUS, told
    return OPEN if _more(hits, trials, 1 / n) else SUPPORTED, told


def _on_few(some: Iterable[Shares], few: float) -> tuple[int, int]:
    each = [e.useful[m] for e in some for m in e.useful if m <= few]
    return sum(p.hits for p in each), sum(p.trials for p in each)


def _more(hits: int, trials: int, share: float) -> bool:
    """Return whether a share of trials is above another, by its interval."""
    return trials > 0 and lower_proportion(hits, trials, _LEVEL) > share


def both_useful(results: Results) -> Told:
    """Judge Main Result 1, by both corollaries."""
    found = [few_useful(results, one=one) for one in (True, False)]
    words = {verdict for verdict, _ in found}
    told = "; ".join(
        f"k {'= 1' if i == 0 else '> 1'}: {x[1]}" for i, x in enumerate(found)
    )
    if SUPPORTED in words:
        return SUPPORTED if len(words) == 1 else PARTLY, told
    return words.pop() if len(words) == 1 else OPEN, told


def traced(results: Results, *, one: bool) -> Told:
    """Theorems 22 (``one``) and 27: who is useful on few rows is traced.

    More than half of them are, and more of them than of those who are not useful.
    """
    found = [e for e in results.once(all_shares) if (e.components == 1) == one]
    few = few_rows(int(results.options("tracing")["length"]))
    hits = trials = other_hits = others = 0
    for each in found:
        for m in (m for m in each.useful if m <= few):
            useful, all_traced = each.useful[m].hits, each.traced[m]
            seen = each.betrayed[m].hits if m in each.betrayed else 0
            hits, trials = hits + seen, trials + useful
            other_hits += all_traced.hits - seen
            others += all_traced.trials - useful
    (told,) = sentences(
        *("theorems", "traced"),
        **{"useful": (hits, trials), "others": (other_hits, others), "few": few},
    )
    null = upper_proportion(other_hits, others, _LEVEL) if others else 0.0
    if not trials:
        return VACUOUS, told
    return SUPPORTED if _more(hits, trials, max(0.5, null)) else OPEN, told


def culling(results: Results) -> Told:
    """Theorem 26: random half loses with exp(-gamma f) at most, for some gamma > 0.

    A bound is proven for each n; it must fall like that to the end of the grid. The
    list must not be one that most agreement wins against, too.
    """
    table = results["list-culling"]
    half = table[table["mechanism"] == "random-half"].sort_values("length")
    naive = table[table["mechanism"] == "most-agreement"]
    f = half["erased"].to_numpy(float)
    fallen = -np.log(np.maximum(half["loss_bound"].to_numpy(float), 1e-300))
    rates = fallen / f
    (told,) = sentences("theorems", "culling", half=half, naive=naive, rates=rates)
    won, games = int(half["won"].sum()), int(half["games"].sum())
    if not _more(won, games, naive["won"].sum() / max(naive["games"].sum(), 1)):
        return VACUOUS, told
    steady = rates.min() > 0 and (np.diff(fallen) >= rates[-1] / 2 * np.diff(f)).all()
    return SUPPORTED if steady else OPEN, told


def second(results: Results, *, one: bool) -> Told:
    """Lemma 28 (``one``) and Corollary 29: a second eigenvalue is O(1), for m <= n.

    Held to (sqrt m + sqrt n)^2/d, the size of what is left of the rows without their
    mean. The first eigenvalue must be above that on the most rows.
    """
    table, n = results["hard-instances"], int(results.options("tracing")["length"])
    d = dimension_of(results.options("hard-instances"))
    own = table[((table["components"] == 1) == one) & (table["rows"] <= n)]
    limit = (np.sqrt(own["rows"]) + sqrt(n)) ** 2 / d
    above, most = int((own["second"] > limit).sum()), own["rows"].max()
    (told,) = sentences("theorems", "second", own=own, above=above)
    last = own["rows"] == most
    if not (own["first"] * own["rows"] > 2 * limit)[last].all():
        return VACUOUS, told
    return SUPPORTED if above == 0 else OPEN, told


def overlap(results: Results) -> Told:
    """Lemma 30: no subspace has more than K k (1 + k m/d) of the clusters in it.

    With 2 for K, where any k directions have no more than k min(k, m) of k clusters.
    """
    table = results["hard-instances"]
    d = dimension_of(results.options("hard-instances"))
    k, m = table["components"], table["rows"]
    trivial = np.minimum(k, m) / (1 + k * m / d)
    tested = table[trivial > _OVERLAP]
    (told,) = sentences("theorems", "overlap", tested=tested, most=trivial.max())
    if not len(tested) or (tested["overlap"] > 0.9 * trivial[tested.index]).all():
        return VACUOUS, told
    return SUPPORTED if tested["overlap"].max() <= _OVERLAP else OPEN, told


def floor(results: Results, *, name: str) -> Told:
    """Theorems 5.3 and 5.4: no private estimate is better than a floor.

    The floor has the constants of a proof, so a claim that stands and is below it would
    contradict one or the other. It is supported at each n at which the best of these
    mechanisms is within 10 times of it, and not at half of what looks at no row or
    above.
    """
    table, fell = results[name], results.once(audits)
    good, parts = [], []
    for n, own in table.groupby("n", sort=True):
        lowest, blind = float(own["floor"].iloc[0]), float(own["blind"].iloc[0])
        best = (inf, "")
        for who, some in own.groupby("mechanism", sort=False):
            errors = some["error"].to_numpy(float)
            if fell.get(str(who), False) or np.isnan(errors).any():
                continue
            if len(errors) > 1 and mean_limit(errors, _ALARM / 2, 1) < lowest:
                return CONTRADICTED, f"{who} is below the floor at n = {count(n)}"
            best = min(best, (float(errors.mean()), str(who)))
        bites = best[0] <= _NEAR * lowest and best[0] <= BETTER * blind
        good.append(bites)
        told = {"n": n, "best": best, "floor": lowest, "blind": blind}
        parts += sentences("theorems", "floor", **told)
    if not any(good):
        return VACUOUS, "; ".join(parts)
    return SUPPORTED if all(good) else PARTLY, "; ".join(parts)


def stable(results: Results, *, column: str) -> Told:
    """Equations (3.2) and (3.3): what is proven of the mean S of batches is above 0.

    Of (3.3) as it is printed, without the 1/B of a mean, it may be below 0 always: then
    it says nothing of any S.
    """
    table = results["robust-stability"]
    values = table[column].to_numpy(float)
    (told,) = sentences("theorems", "stable", values=values)
    if mean_limit(values, _ALARM / 2, -1) > 0:
        return SUPPORTED, told
    return VACUOUS if mean_limit(values, _ALARM / 2, 1) < 0 else OPEN, told


def seen(checks: Mapping[str, Any], found: bool, beside: str = "") -> Told:
    """Return the verdict on a figure from what is said of it, and whether it is seen.

    ``found``: whether anything in it was found at all.
    """
    parts = []
    for head, holds in (("seen", True), ("not seen", False)):
        some = [words for words, each in checks.items() if each == holds]
        if some:
            parts.append(f"{head}: {listed(some)}")
    told = "; ".join([*parts, *filter(None, [beside])])
    if not found:
        return VACUOUS, told
    if all(checks.values()):
        return SUPPORTED, told
    return PARTLY if any(checks.values()) else "not reproduced", told
