"""Who is useful on hard instances, whose rows are traced, and list culling: in words.

The sentences are chosen by the data. The corollaries have a universal constant gamma
that the paper does not give. They are held to what is measured with 1 in its place for
the rows, m <= sqrt(n/log n), and the option ``gamma`` for usefulness: a release that is
(1, 1/n^2)-private is useful with probability 1/n at most, then. *Contradicts*: of one
mechanism so many releases are useful that under that this has, by the binomial law, a
chance of at most `_CHANCE` over the number of mechanisms: releases of one mechanism are
independent (their instances are, too), those of two see the same instances. So that a
corollary that is true is called contradicted with probability `_CHANCE` at most.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
import pandas as pd
from scipy.stats import binom

from dpaudit.fingerprinting import Proportion
from dpaudit.reports.lines import mark
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.tracing import measures
from dpaudit.reports.tables import Printed, records
from dpaudit.reports.words import count, delta, listed, number, plain

_CHANCE = 1e-3
_ROUNDING = 1e-14  # of the probability to win, which is 1 up to here


@dataclass(frozen=True, eq=False)
class Shares:
    """One mechanism at one epsilon, for k components: shares by rows per cluster."""

    mechanism: str
    epsilon: float | None  # None for components without noise
    components: int  # k
    # useful, traced, innocent: only where the mechanism took the rows
    useful: Mapping[int, Proportion]
    traced: Mapping[int, Proportion]
    innocent: Mapping[int, Proportion]
    # how many of the useful releases are traced; only where there are some
    betrayed: Mapping[int, Proportion]
    refusal: str  # what it says where it takes nothing; or nothing

    @property
    def name(self) -> str:
        """What readers see, but for k."""
        if self.epsilon is None:
            return "PCA without noise"
        return f"{self.mechanism}, ε = {plain(self.epsilon)}"


def shares(*tables: pd.DataFrame) -> list[Shares]:
    """Return the shares that tables have, in their order."""
    return [each for table in tables for each in _shares(table)]


def _shares(table: pd.DataFrame) -> Iterator[Shares]:
    private = "epsilon" in table
    keys = ["mechanism", *(["epsilon"] if private else []), "components"]
    for key, group in table.groupby(keys, sort=False):
        mechanism, *epsilon, components = key
        refused = group["refused"].fillna("")
        by_rows = [(int(m), g) for m, g in group[refused == ""].groupby("rows")]
        useful = [(m, g[g["useful"] == 1]) for m, g in by_rows]
        yield Shares(
            mechanism=mechanism,
            epsilon=float(epsilon[0]) if private else None,
            components=int(components),
            useful=_counted(by_rows, "useful"),
            traced=_counted(by_rows, "traced"),
            innocent=_counted(by_rows, "innocent"),
            betrayed=_counted(useful, "traced"),
            refusal="" if by_rows else str(refused.iloc[0]),
        )


def _counted(
    by_rows: Iterable[tuple[int, pd.DataFrame]], name: str
) -> dict[int, Proportion]:
    return {m: Proportion(int(g[name].sum()), len(g)) for m, g in by_rows if len(g)}


def all_shares(results: Results) -> list[Shares]:
    """Return all shares of a report; those that the figure shows are the first."""
    names = ("tracing-references", "tracing", "tracing-catalogue")
    return shares(*(results[name] for name in names))


def clusters(found: Sequence[Shares]) -> list[int]:
    """Return every k, ascending."""
    return sorted({each.components for each in found})


def few_rows(length: int) -> float:
    """Return sqrt(n/log n), up to which rows are few for Corollaries 25 and 32."""
    return sqrt(length / log(length)) if length > 1 else 0.0


def head(found: Sequence[Shares], refuted: Collection[str], length: int) -> str:
    """Return what is seen on few rows, and what it says of the corollaries.

    ``refuted``: mechanisms whose claim is known to be false: the corollaries do not
    speak of them. ``length``: n.
    """
    few = few_rows(length)
    parts, verdicts = [], []
    for theorem, some in (
        ("Corollary 25", [each for each in found if each.components == 1]),
        ("Corollary 32", [each for each in found if each.components > 1]),
    ):
        private = [e for e in some if e.epsilon == 1 and e.mechanism not in refuted]
        useful: dict[str, list[Proportion]] = {}
        for e in private:
            own = useful.setdefault(e.mechanism, [])
            own += [e.useful[m] for m in e.useful if m <= few]
        by_name = [_sum(own) for own in useful.values() if own]
        if not by_name:
            continue
        hits, trials = (sum(counts) for counts in zip(*by_name, strict=True))
        sizes = f"k = {listed(map(str, clusters(some)))}"
        parts.append(
            f"{count(hits)} of {count(trials)} releases of {len(by_name)} "
            f"mechanism{'s' if len(by_name) > 1 else ''} ({sizes})"
        )
        chance = min(float(binom.sf(h - 1, n, 1 / length)) for h, n in by_name)
        says = "contradicts" if chance <= _CHANCE / len(by_name) else "supports"
        verdicts.append(f"{says} {theorem} ({sizes})")
    if not parts:
        return "No mechanism took so few rows as Corollaries 25 and 32 speak of."
    text = (
        f"Of mechanisms whose claim of ε = 1 was not refuted {listed(parts)} are "
        f"useful on m ≤ √(n/log n) = {number(few)} rows per cluster, where at most 1/n "
        f"of them may be: that {listed(verdicts)}, with 1 for the constant in m."
    )
    hits, trials = _sum(e.betrayed[m] for e in found for m in e.betrayed if m <= few)
    if trials:
        text += (
            " Theorems 22 and 27 prove it by tracing what is useful on so few rows: "
            f"here {count(hits)} of {count(trials)} such releases are traced."
        )
    return text


def instance_notes(table: pd.DataFrame, length: int) -> list[str]:
    """Return what is seen of Lemmas 28 and 30."""
    short = table[table["rows"] <= length]
    notes = []
    if len(short):
        notes.append(
            f"Lemma 28: up to m = {count(short['rows'].max())} rows the second "
            f"eigenvalue of a cluster is at most {number(short['second'].max())}, and "
            f"the first at least {number(short['first'].min())} m."
        )
    several = table[table["components"] > 1]
    if len(several):
        notes.append(
            "Lemma 30: no subspace has more of the clusters' rows in it, all "
            f"directions of a cluster counted alike, than "
            f"{number(several['overlap'].max())} k (1 + k m/d)."
        )
    return notes


def tracing_rows(
    found: Sequence[Shares], refuted: Collection[str], ends: tuple[int, int]
) -> list[Printed]:
    """Return the table of tracing: a row for each mechanism.

    ``ends``: the rows per cluster that are shown: few, and many.
    """
    private = [each for each in found if each.epsilon is not None]
    columns = _columns(found)
    cells = {(e.mechanism, e.epsilon, e.components): e for e in private}
    return [
        Printed(
            name=name + mark(name, refuted),
            cells=[_cell(cells.get((name, *column)), ends) for column in columns],
        )
        for name in dict.fromkeys(each.mechanism for each in private)
    ]


def table_heads(found: Sequence[Shares]) -> list[str]:
    """Return what is written above the columns of `tracing_rows`."""
    return [f"ε = {plain(epsilon)}, k = {k}" for epsilon, k in _columns(found)]


def tracing_notes(found: Sequence[Shares], refuted: Collection[str]) -> list[str]:
    """Return from where on who is useful, and up to where traced."""
    notes = []
    for name in dict.fromkeys(each.name for each in found[: 3 * len(clusters(found))]):
        some = [each for each in found if each.name == name]
        notes.append(
            f"{name} is {_where(some)}."
            if any(each.useful for each in some)
            else f"{name} does not take so few rows."
        )
    private: dict[str, list[Shares]] = {}
    for each in found:
        if each.epsilon == 1 and each.useful:
            private.setdefault(each.mechanism, []).append(each)
    if private:
        most = min(max(e.useful) for some in private.values() for e in some)
        late = [
            name + mark(name, refuted)
            for name, some in private.items()
            if all(each.useful[most].share >= 0.5 for each in some)
        ]
        notes.append(
            f"On m = {count(most)} rows per cluster {len(late)} of {len(private)} "
            "mechanisms are useful at ε = 1 for every k that they take"
            + (f": {listed(late)}." if late else ".")
        )
    hits, trials = _sum(p for each in found for p in each.innocent.values())
    notes.append(f"Innocents were accused in {count(hits)} of {count(trials)} trials.")
    return notes


def refusals(found: Sequence[Shares]) -> str:
    """Return what mechanisms say that do not take everything, or nothing."""
    said: dict[str, str] = {}
    for each in found:
        if each.refusal:
            said.setdefault(each.mechanism, each.refusal)
    parts = "; ".join(f"{name} ({text})" for name, text in said.items())
    return f"Refused: {parts}." if parts else ""


def culling_rows(table: pd.DataFrame) -> list[Printed]:
    """Return the table of list culling."""
    naive, half = _culled(table)
    return [
        Printed(
            length=count(own["length"]),
            most_agreement=f"{count(other['won'])} of {count(other['games'])}",
            random_half=f"{count(own['won'])} of {count(own['games'])}",
            loss=delta(1 - own["exact"])
            if 1 - own["exact"] > _ROUNDING
            else f"below {delta(_ROUNDING)}",
            bound=delta(own["loss_bound"]),
        )
        for other, own in zip(records(naive), records(half), strict=True)
    ]


def culling_notes(table: pd.DataFrame) -> list[str]:
    """Return who wins, and the verdict on Theorem 26."""
    naive, half = _culled(table)
    bounds = half["loss_bound"].to_numpy(dtype=float)
    falls = bool((np.diff(bounds) < 0).all())
    verdict = "consistent with that" if falls and bounds[-1] < 0.01 else "not seen yet"
    agreeing, halving = (
        f"{count(each['won'].sum())} of {count(each['games'].sum())}"
        for each in (naive, half)
    )
    return [
        f"Most agreement wins {agreeing} games, random half {halving}. Against any "
        "list of exp(c n) words random half loses with a probability of at most "
        f"{delta(float(bounds[-1]))} at n = {count(half['length'].iloc[-1])}: "
        f"Theorem 26 is {verdict}."
    ]


def _culled(table: pd.DataFrame) -> list[pd.DataFrame]:
    """Return what there is on most agreement, and on random half."""
    return [
        table[table["mechanism"] == strategy].sort_values("length")
        for strategy in measures.STRATEGIES
    ]


def _sum(several: Iterable[Proportion]) -> tuple[int, int]:
    """Return hits and trials of all together."""
    found = list(several)
    return sum(p.hits for p in found), sum(p.trials for p in found)


def _columns(found: Sequence[Shares]) -> list[tuple[float, int]]:
    epsilons = sorted({e.epsilon for e in found if e.epsilon is not None})
    return [(epsilon, k) for epsilon in epsilons for k in clusters(found)]


def _cell(each: Shares | None, ends: tuple[int, int]) -> Printed:
    """Return the shares at few and at many rows, in whole per cent."""
    if each is None or not each.useful:
        return Printed(useful="refused", traced="")
    useful, traced = (
        " … ".join(f"{100 * own[m].share:.0f}" if m in own else "–" for m in ends)
        for own in (each.useful, each.traced)
    )
    return Printed(useful=useful, traced=f"traced {traced}")


def _where(some: Sequence[Shares]) -> str:
    """Return from where on half is useful, and up to where traced, by k."""
    parts = []
    for which, name, words, nowhere in (
        (min, "useful", "useful from m = {} on", "not useful at any size"),
        (max, "traced", "traced up to m = {}", "not traced anywhere"),
    ):
        said = {}
        for each in some:
            half = [m for m, p in getattr(each, name).items() if p.share >= 0.5]
            said[each.components] = (
                words.format(count(which(half))) if half else nowhere
            )
        by_k = listed(f"{text} (k = {k})" for k, text in said.items())
        parts.append(by_k if len(set(said.values())) > 1 else next(iter(said.values())))
    return ", and ".join(parts)
