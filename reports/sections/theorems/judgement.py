r"""The verdict on a theorem's exponent, or on its probability: the rules, and why.

A theorem says that an error is at most C x^p, for some C that it may not give, and for
all x in a regime. A grid that ends cannot contradict that by an exponent: with C large
enough any errors are below the bound. What can be seen is the slope b of the error in
logs on this grid, with an interval [low, high] (`dpaudit.reports.power_law`: 95 %, from
the repetitions), and whether errors are below the bound where its constants are known.

**The bound's own slope.** Bounds have lower-order terms and logarithms, which bend them
on a grid as they bend the error: gap - ||E|| in place of the gap, say. So f, the slope
of the bound itself on the same grid, counts beside p, and a slope anywhere from the one
to the other is what the theorem says. What is left is the bend of the error alone, due
to small d or k. It must not be called a contradiction, nor hidden. Up to `TOLERANCE` =
0.1 it has a verdict of its own: over a grid from 1 to 8, as most are, that is 23 % of
the error. Beyond, the row says so, and by how much.

**Hypotheses.** A row that is measured where the theorem promises nothing (``unmet``
says which hypothesis is not met) has a verdict that says so, and neither supports the
theorem nor contradicts it.

**What looks at no row.** A random subspace has an error as well, and its slope may be
the one that a theorem says: it tells nothing of the theorem. So beside every error
stands that of a release that looks at no row (a random subspace, zero, the multiple of
the identity: the best of them, drawn in the same cell), and slopes count only where
errors are well below it: at most `BETTER` = 1/2 of it at each point of the grid, by
geometric means. Else the row is ``vacuous``. What looks at no row itself has errors of
the same law, independent of those beside it. Of two such means one at most is at half
of the other or below, so either is with probability 1/2 at most, whatever the law: at
all of four points with 1/16 at most, and with next to none by the means of many draws.

**The rule**, in this order, with p to f for the range from the lesser to the greater:

1. ``contradicted``: an error was above a bound that is proven for every draw, constants
   and all. No chance is involved: then a proof, or the code, is wrong. Or, where a
   bound with its constants is proven for the mean, the lower limit of the mean error at
   some point was above it: Student's, which a true mean is below with probability
   `MEANS` = 1e-4 at most at each point, so far as errors are normal.
2. ``undecided``: there is no interval, or it reaches further than `RESOLVED` = 1/4 to a
   side. Exponents of these theorems are multiples of 1/4: such an interval does not
   tell one from the next. Likewise if more than a twentieth of the errors has no
   logarithm (a regret below 0, a release that is bottom, or none but for rounding, less
   than 1e-12 of what looks at no row): the rest is a choice.
3. ``vacuous``: at some point the errors are more than half of those of a release that
   looks at no row.
4. ``consistent``: the interval has a slope from p to f in it. ``off by less than the
   tolerance``: it has none, and b is within 0.1 of one.
5. ``faster than the bound``: the interval is below. In the direction in which x grows
   the error grows slower, or shrinks faster, than the bound; p - b says by how much.
6. ``steeper than the bound on this grid``: the interval is above. Of bounds on the mean
   this is all that is said; where a bound is sure, no error is above it (1).

A theorem is supported by rows of 4 and 5, and of 6 where the print has a slope as steep
and less can be proven. Those within the tolerance count: with enough draws the interval
misses any slope that is not exact, so else the theorem would be supported the less, the
better it is measured.

**How often that errs.** If the mean of log errors has any slope from p to f on this
grid, 5 and 6 have probability 2.5 % each at most, since the interval must miss that
slope to one side, where Student's interval has half of its 5 %; and less, since b must
be 0.1 away besides. So of 40 rows two are called one or the other by chance at most, on
average. In return, a slope is called consistent with probability 1/2 at most if it is
off by the greater of 0.1 and the reach of the interval, and with 2.5 % if it is off by
the reach more: then the estimate must be wrong by more than the reach, to one side.
(Intervals rest on normal means of logs; see `power_law`.)

**A probability** (`Chance`). A theorem says that an event has probability zeta at most,
and the event was seen in some of so many independent draws: the share, and its interval
of Clopper and Pearson, 95 %. In this order:

1. ``contradicted``: what is proven covers the draws, constants and all, and even the
   lower limit at the level `ALARM` = 0.001, divided by the number of such rows, is
   above zeta.
2. ``more often than the bound here``: the interval is above zeta. A theorem whose
   constants are not known is not contradicted by that.
3. ``vacuous``: what looks at no row does no worse: its own interval begins at zeta or
   below.
4. ``rarer than the bound``: the interval ends at zeta/2 or below.
5. ``consistent`` otherwise.

If the probability is zeta or less, 1 happens with 0.1 % at most in *any* of the rows
(the union bound), and 2 with 2.5 % at most in each; if it is more than zeta/2, 4
happens with 2.5 % at most. In return, of n draws 1 and 2 miss any probability whose
excess over zeta is small beside sqrt(zeta/n).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite, nan

import numpy as np
import pandas as pd

from dpaudit.arrays import Array
from dpaudit.audit.bounds.laws import lower_proportion, upper_proportion
from dpaudit.errors import InputError
from dpaudit.reports.power_law import PowerLaw, fit_power_law, mean_limit
from dpaudit.reports.sections.theorems.rows import Chance, ExponentRow

__all__ = ["score"]

TOLERANCE, RESOLVED = 0.1, 0.25
BETTER = 0.5
MEANS = 1e-4
ALARM = 0.001


class Ruling(StrEnum):
    """What is said of an exponent, or of a probability, see the module."""

    CONSISTENT = "consistent"
    FASTER = "faster than the bound"
    WITHIN = "off by less than the tolerance"
    STEEPER = "steeper than the bound on this grid"
    CONTRADICTED = "contradicted"
    UNDECIDED = "undecided"
    VACUOUS = "vacuous"
    NOTHING = "nothing released"
    RARER = "rarer than the bound"
    OFTEN = "more often than the bound here"


VERDICTS = tuple(Ruling)[:8]
"""On exponents, in the order in which they are told."""
AGREEING = VERDICTS[:3]
"""With the theorem: a bound from above may be better than it says."""
_ROUNDING, _TINY = 1 + 1e-6, 1e-12
_LOST = 0.05  # of the errors: as many may have no logarithm


@dataclass(frozen=True)
class Score:
    """What was measured of a row."""

    row: ExponentRow
    errors: Mapping[float, Array]  # in every draw, by the variable, ascending
    fit: PowerLaw  # of the errors
    formula: float  # f, the slope of the bound on the same grid; NaN without one
    # the largest ratio of an error to its bound, if that is sure; or else of a mean
    # error to what is proven for the mean; else NaN
    share: float
    # the largest ratio of typical errors to those of what looks at no row, at a point
    beside: float
    above: bool = False  # whether that is a contradiction, see the module

    @property
    def foretold(self) -> tuple[float, float]:
        """The least and the greatest slope that the theorem says for this grid."""
        other = self.formula if isfinite(self.formula) else self.row.predicted
        return min(self.row.predicted, other), max(self.row.predicted, other)

    @property
    def verdict(self) -> Ruling:
        """One of `VERDICTS`, see the module."""
        (least, most), fit = self.foretold, self.fit
        if self.above:
            return Ruling.CONTRADICTED
        if not any(np.isfinite(errors).any() for errors in self.errors.values()):
            return Ruling.NOTHING
        if not (fit.high - fit.low) / 2 <= RESOLVED or self.lost > _LOST:
            return Ruling.UNDECIDED
        if self.beside > BETTER:
            return Ruling.VACUOUS
        if fit.high >= least and fit.low <= most:
            return Ruling.CONSISTENT
        if least - TOLERANCE <= fit.exponent <= most + TOLERANCE:
            return Ruling.WITHIN
        return Ruling.FASTER if fit.high < least else Ruling.STEEPER

    @property
    def as_printed(self) -> bool:
        """Whether it is steeper than what is provable, and not than the print."""
        return self.verdict == Ruling.STEEPER and self.fit.low <= self.row.printed

    @property
    def told(self) -> str:
        """The verdict, and whether it is one on the theorem at all."""
        unmet = self.row.unmet
        return f"{self.verdict}; hypothesis not met: {unmet}" if unmet else self.verdict

    @property
    def law(self) -> tuple[float, float, float]:
        """The exponent, and the ends of its interval."""
        return self.fit.exponent, self.fit.low, self.fit.high

    @property
    def lost(self) -> float:
        """The share of the errors that have no logarithm."""
        every = np.concatenate(list(self.errors.values()))
        return float(np.mean(~(np.isfinite(every) & (every > 0))))


def stated(found: Sequence[Score]) -> str:
    """Return what is measured of one theorem does to it: a verb, and where.

    Rows in which its hypotheses are not met have no say.
    """
    met = [each for each in found if not each.row.unmet]
    if any(each.verdict == Ruling.CONTRADICTED for each in met):
        return "contradicts"
    agreeing = [each.verdict in AGREEING or each.as_printed for each in met]
    if agreeing and all(agreeing):
        return "supports"
    return "supports in some variables only" if any(agreeing) else "does not decide on"


def score(row: ExponentRow, table: pd.DataFrame) -> Score:
    """Return what the table of a row's experiment says of it.

    Raises `InputError` if the table has no such columns, or nothing of the mechanism.
    """
    read = row.column, row.null, row.against, row.bound, row.proven
    chosen = own_rows(row, table, *read)
    if not len(chosen):
        raise InputError(f"row {row.name!r}: nothing of {row.mechanism!r} in its table")
    errors = _by(chosen, row.against, row.column)
    nulls = _by(chosen, row.against, row.null)
    # Errors that are rounding are none.
    tiny = {x: np.nan_to_num(_TINY * _typical(nulls[x])) for x in errors}
    errors = {x: np.where(abs(e) <= tiny[x], 0.0, e) for x, e in errors.items()}
    ratios = [_typical(errors[x]) / _typical(nulls[x]) for x in errors]
    beside = max((each for each in ratios if isfinite(each)), default=nan)
    formula, share, above = nan, nan, False
    if row.bound:
        bounds = _by(chosen, row.against, row.bound)
        formula = fit_power_law(
            {x: np.resize(values, max(2, len(values))) for x, values in bounds.items()}
        ).exponent
    if row.sure:
        floors = {x: np.maximum(bounds[x], tiny[x]) for x in errors}
        share = max(float(np.max(errors[x] / floors[x])) for x in errors)
        above = share > _ROUNDING
    elif row.proven:
        limits = _by(chosen, row.against, row.proven)
        share = max(float(np.mean(errors[x]) / limits[x][0]) for x in errors)
        above = any(
            mean_limit(errors[x], MEANS, -1) > limits[x][0] * _ROUNDING for x in errors
        )
    return Score(row, errors, fit_power_law(errors), formula, share, beside, above)


def own_rows(
    row: ExponentRow | Chance, table: pd.DataFrame, *columns: str
) -> pd.DataFrame:
    """Return what a table has of the mechanism of a row, and of the points it is on.

    Raises `InputError` if the table has no such columns.
    """
    where = row.where if isinstance(row, ExponentRow) else {}
    for column in sorted({"mechanism", *where, *columns} - {"", *table.columns}):
        raise InputError(f"row {row.name!r}: no column {column!r} in its table")
    chosen = table[table["mechanism"] == row.mechanism]
    for column, values in where.items():
        chosen = chosen[chosen[column].isin(values)]
    return chosen


def _typical(errors: Array) -> float:
    """Return the geometric mean of the errors that have a logarithm, else NaN."""
    known = errors[np.isfinite(errors) & (errors > 0)]
    return float(np.exp(np.log(known).mean())) if len(known) else nan


def _by(table: pd.DataFrame, against: str, column: str) -> dict[float, Array]:
    return {
        float(x): group[column].to_numpy(dtype=np.float64)
        for x, group in table.groupby(against, sort=True)
    }


@dataclass(frozen=True)
class Share:
    """How often an event was seen that a theorem allows with probability zeta."""

    row: Chance
    zeta: float
    seen: int
    draws: int
    level: float  # how probable a false contradiction of this row may be
    missed: int  # how often it happened to what looks at no row

    @property
    def measured(self) -> float:
        return self.seen / self.draws

    @property
    def low(self) -> float:
        return lower_proportion(self.seen, self.draws, 0.025)

    @property
    def high(self) -> float:
        return upper_proportion(self.seen, self.draws, 0.025)

    @property
    def law(self) -> tuple[float, float, float]:
        """The share, and the ends of its interval."""
        return self.measured, self.low, self.high

    @property
    def verdict(self) -> Ruling:
        """One of the verdicts on a probability, see the module."""
        sure = lower_proportion(self.seen, self.draws, self.level)
        if self.row.sure and sure > self.zeta:
            return Ruling.CONTRADICTED
        if self.low > self.zeta:
            return Ruling.OFTEN
        if lower_proportion(self.missed, self.draws, 0.025) <= self.zeta:
            return Ruling.VACUOUS
        return Ruling.RARER if self.high <= self.zeta / 2 else Ruling.CONSISTENT


def shares(rows: Sequence[Chance], tables: Mapping[str, pd.DataFrame]) -> list[Share]:
    """Return what tables say of all rows, for each zeta from the largest on.

    Raises `InputError` if a table has no such columns, nothing of the mechanism, or
    numbers that are neither 0 nor 1.
    """
    found = []
    for row in rows:
        columns = row.column, f"{row.column}_null"
        chosen = own_rows(row, tables[row.experiment], *columns, "zeta")
        for column in columns:
            if not len(chosen) or not chosen[column].isin((0, 1)).all():
                raise InputError(
                    f"row {row.name!r}: its table must have 0 or 1 in {column!r} for "
                    f"{row.mechanism!r}"
                )
        seen, missed = (_by(chosen, "zeta", column) for column in columns)
        found += [(row, x, seen[x], missed[x]) for x in sorted(seen, reverse=True)]
    level = ALARM / max(len(found), 1)
    return [
        Share(row, zeta, int(events.sum()), len(events), level, int(null.sum()))
        for row, zeta, events, null in found
    ]
