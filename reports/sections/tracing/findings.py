"""Who is useful on hard instances, whose rows are traced, and list culling: in words.

The corollaries have a universal constant gamma
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
from dpaudit.reports.tables import Printed
from dpaudit.reports.words import count, listed, plain, sentences

_CHANCE = 1e-3


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
    few, seen, says = few_rows(length), [], []
    for theorem, some in (
        ("Corollary 25", [each for each in found if each.components == 1]),
        ("Corollary 32", [each for each in found if each.components > 1]),
    ):
        useful: dict[str, list[Proportion]] = {}
        for e in some:
            if e.epsilon == 1 and e.mechanism not in refuted:
                own = useful.setdefault(e.mechanism, [])
                own += [e.useful[m] for m in e.useful if m <= few]
        by_name = [_sum(own) for own in useful.values() if own]
        if by_name:
            sizes = f"k = {listed(map(str, clusters(some)))}"
            hits, trials = (sum(counts) for counts in zip(*by_name, strict=True))
            seen.append((hits, trials, len(by_name), "s" * (len(by_name) > 1), sizes))
            chance = min(float(binom.sf(h - 1, n, 1 / length)) for h, n in by_name)
            verb = "contradicts" if chance <= _CHANCE / len(by_name) else "supports"
            says.append((verb, theorem, sizes))
    traced = _sum(e.betrayed[m] for e in found for m in e.betrayed if m <= few)
    told = {"few": few, "seen": seen, "says": says, "traced": traced}
    (said,) = sentences("tracing", "head", **told)
    return said


def instance_notes(table: pd.DataFrame, length: int) -> list[str]:
    """Return what is seen of Lemmas 28 and 30."""
    short, several = table[table["rows"] <= length], table[table["components"] > 1]
    return sentences("tracing", "instance_notes", short=short, several=several)


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
    first = {}
    for name in dict.fromkeys(each.name for each in found[: 3 * len(clusters(found))]):
        some = [each for each in found if each.name == name]
        first[name] = _where(some) if any(each.useful for each in some) else ""
    private: dict[str, list[Shares]] = {}
    for each in found:
        if each.epsilon == 1 and each.useful:
            private.setdefault(each.mechanism, []).append(each)
    most = min((max(e.useful) for some in private.values() for e in some), default=0)
    return sentences(
        *("tracing", "tracing_notes"),
        first=first,
        most=most,
        private=len(private),
        late=[
            name + mark(name, refuted)
            for name, some in private.items()
            if all(each.useful[most].share >= 0.5 for each in some)
        ],
        accused=_sum(p for each in found for p in each.innocent.values()),
    )


def refusals(found: Sequence[Shares]) -> str:
    """Return what mechanisms say that do not take everything, or nothing."""
    said: dict[str, str] = {}
    for each in found:
        if each.refusal:
            said.setdefault(each.mechanism, each.refusal)
    return " ".join(sentences("tracing", "refusals", said=list(said.items())))


def culling_notes(table: pd.DataFrame) -> list[str]:
    """Return who wins, and the verdict on Theorem 26."""
    naive, half = culled(table)
    bounds = half["loss_bound"].to_numpy(dtype=float)
    return sentences(
        *("tracing", "culling_notes"),
        won=[(e["won"].sum(), e["games"].sum()) for e in (naive, half)],
        bound=float(bounds[-1]),
        longest=half["length"].iloc[-1],
        falls=bool((np.diff(bounds) < 0).all()) and bounds[-1] < 0.01,
    )


def culled(table: pd.DataFrame) -> list[pd.DataFrame]:
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
