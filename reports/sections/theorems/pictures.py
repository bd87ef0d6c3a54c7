"""What two papers say of their figures and tables, held to the tables of this report.

A sentence of a figure is a check of medians, of the mechanisms as published; the
verdict is that of `seen`. Where nothing in a figure comes near its aim, failures of
others are no evidence either: then it is vacuous.

Sources: Maunu, Yu, Lerman, MSML 2022, section 5 and appendix C; Imtiaz, Sarwate, ICASSP
2016, section 4.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pandas as pd
from numpy.random import default_rng
from numpy.typing import ArrayLike

from dpaudit.algorithms.robust.geometries import squared_distance
from dpaudit.reports.experiment import measure_named
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.robust.measures import TOLERANCE
from dpaudit.reports.sections.robust.section import PHASES
from dpaudit.reports.sections.theorems.judgement import BETTER
from dpaudit.reports.sections.theorems.ledger import JUDGES, Statement, Told
from dpaudit.reports.sections.theorems.measures import random_bases
from dpaudit.reports.sections.theorems.verdicts import seen
from dpaudit.reports.words import count, percent, short

Rule = Callable[[Results], Told]

_ON_BATCHES = ("dp-sgd-reap-published", "dp-smd-reap-published")
_ON_ALL = ("dp-gd-reap-published", "dp-md-reap-published")
_SGGD, _GGD = "dp-sggd-published", "dp-ggd-published"
_PUBLISHED = (_SGGD, _GGD, *_ON_BATCHES, *_ON_ALL)
_MAP = 0.95  # of the truth's squares: a map that is recovered
_AG, _SN, _PPCA = "analyze-gauss-published", "symmetric-noise", "exponential-pca-gibbs"
_PPM, _PURE_PPM = "power-method-published", "power-method-laplace-published"
_APART = 0.01  # of captured variance: what is said of less is no difference


def steps(results: Results) -> Told:
    """Figure 1 of robust PCA: GLAD ends lower, and REAPER leads at first."""
    paths, options = results["robust-recovery"], results.options("robust-recovery")
    medians = paths.pivot_table("error", "iteration", "mechanism", aggfunc="median")
    medians = medians.ffill()
    ends, checks, leads = medians.iloc[-1], {}, []
    for own, others in ((_SGGD, _ON_BATCHES), (_GGD, _ON_ALL)):
        names = " and ".join(map(short, others))
        checks[f"{short(own)} ends below {names}"] = ends[own] < ends[[*others]].min()
        ahead = [medians.index[medians[each] < medians[own]].max() for each in others]
        checks[f"{names} lead {short(own)} at first"] = not np.isnan(ahead).any()
        leads += [
            f"{short(each)} leads until step {count(last)}"
            for each, last in zip(others, ahead, strict=True)
            if not np.isnan(last)
        ]
    shape = 200, int(options["dimension"]), int(options["n_components"])
    one, two = (random_bases(*shape, default_rng(seed)) for seed in (0, 1))
    blind = float(np.median(squared_distance(one, two)))
    found = bool(ends[[_SGGD, _GGD]].min() <= BETTER * blind)
    last = f"of {count(medians.index[-1])} steps (in print 600 and 100 of 2,000)"
    return seen(checks, found, f"{', '.join(leads)}, {last}" if leads else "")


def sizes(results: Results) -> Told:
    """Figure 2: GLAD below REAPER, and batches below all rows where rows are long."""
    logs = _phase_logs(results)
    gd = _ON_ALL[0]
    both = logs[[_GGD, gd]].dropna()
    wide = logs[[_SGGD, _GGD]].dropna()
    longest = wide.index.get_level_values("dimension").max()
    wide = wide[wide.index.get_level_values("dimension") == longest]
    far = logs[[_SGGD, _GGD, _ON_BATCHES[0], gd]].dropna()
    ahead = far[[_SGGD, _GGD]].to_numpy() < far[[_ON_BATCHES[0], gd]].to_numpy() - 1
    checks = {
        "dp-ggd is below dp-gd-reap": _all(both[_GGD] < both[gd]),
        f"dp-sggd is below dp-ggd at D = {count(longest)}": _all(
            wide[_SGGD] < wide[_GGD]
        ),
        "descents on GLAD are ten times as accurate as those on REAPER": _all(ahead),
    }
    return seen(checks, _reached(logs, _SGGD, _GGD))


def _all(each: ArrayLike) -> bool:
    """Return whether something holds everywhere, and somewhere."""
    return bool(np.size(each) and np.all(each))


def small_and_many(results: Results) -> Told:
    """Figure 7: descents on all rows work where D is small and N is large."""
    logs = _phase_logs(results)
    return seen(_works(logs, lambda at: (at[1], -at[0])), _reached(logs, *_PUBLISHED))


def few_and_short(results: Results) -> Told:
    """Figure 6: descents on all rows work where D and r are small."""
    logs = _median_logs(results["robust-ranks"], ["dimension", "n_components"])
    return seen(_works(logs, lambda at: at), _reached(logs, *_PUBLISHED))


def _works(
    logs: pd.DataFrame, easy: Callable[[tuple[float, float]], tuple[float, float]]
) -> dict[str, bool]:
    """Return who succeeds in the easiest cell, and is worse in the hardest."""
    checks = {}
    for name in (_GGD, *_ON_ALL):
        own = logs[name].dropna()
        cells = sorted(own.index, key=easy)
        first, last = own[cells[0]], own[cells[-1]]
        works = first <= np.log10(TOLERANCE) and first < last
        checks[f"{short(name)} works there"] = works
    return checks


def abrupt(results: Results) -> Told:
    """Figure 4: dp-ggd goes over from failing to finding more abruptly than REAPER.

    Of those as published who find nothing that is not seen; of those who are corrected
    it counts where there is something to see.
    """
    logs = _median_logs(results["robust-budgets"], ["epsilon", "delta"])
    checks: dict[str, bool] = {}
    idle = []
    for end in ("-published", ""):
        own = logs[f"dp-ggd{end}"]
        for other in ("dp-gd-reap", "dp-md-reap"):
            beside, form = logs[f"{other}{end}"], "as published" if end else "corrected"
            if beside.min() > np.log10(TOLERANCE) or own.min() > np.log10(TOLERANCE):
                idle.append(f"{other} {form}")
                checks |= {f"than {other}, {form}": False} if end else {}
                continue
            wider = own.max() - own.min() > beside.max() - beside.min()
            checks[f"than {other}, {form}"] = wider
    told = f"nothing found: {', '.join(idle)}" if idle else ""
    return seen(checks, len(idle) < 4, told)


def shares_of_inliers(results: Results) -> Told:
    """Figure 5: from which share of inliers on runs come within the tolerance."""
    table = results["robust-batches"].copy()
    table["good"] = table["reached"].notna()
    shares = table.pivot_table(
        "good", "inlier_share", ["mechanism", "batch_size"], aggfunc="mean"
    )
    checks, told = {}, []
    for name, least in zip(_ON_BATCHES, (0.6, 0.2), strict=True):
        best = shares[name].max(axis=1)
        there = best >= 0.5
        right = there[best.index >= least].all() and not there[best.index < least].any()
        checks[f"{short(name)} from a share of {least:g} on, and not below"] = right
        told.append(f"{short(name)} from {there.idxmax():g}" if there.any() else "")
    large = shares[_SGGD].loc[:, lambda t: t.columns > 2]
    nearly_all = (large >= 0.5).to_numpy().mean() >= 0.9
    checks["dp-sggd at nearly all, with batches of more than 2"] = nearly_all
    tried = ", ".join(f"{each:g}" for each in shares.index)
    beside = f"here {', '.join(filter(None, told))}, of shares {tried}"
    return seen(checks, bool((shares >= 0.5).any(axis=None)), beside)


def maps(results: Results) -> Told:
    """Figure 3: dp-sggd recovers the map, and dp-PCA, dp-ggd, dp-sgd-reap do not.

    Private PCA there is another mechanism than ours, the power method. Who fails counts
    only where dp-sggd does not.
    """
    fits = pd.concat([results["genotypes"], results["genotypes-reaper"]])
    fit = fits.groupby("mechanism")["fit"].first()
    loci = [
        count(results.options(name)["dimension"])
        for name in ("genotypes", "genotypes-reaper")
    ]
    checks = {"dp-sggd recovers the map": fit[_SGGD] >= _MAP}
    for name, words in (
        ("power-method", "private PCA does not"),
        (_GGD, "dp-ggd does not"),
        (_ON_BATCHES[0], "dp-sgd-reap does not"),
    ):
        checks[words] = fit[name] < _MAP
    named = (_SGGD, "power-method", _GGD, _ON_BATCHES[0], "non-private-pca")
    told = ", ".join(f"{short(name)} {percent(float(fit[name]))}" for name in named)
    beside = f"R²: {told}; {loci[0]} loci, {loci[1]} for dp-sgd-reap"
    return seen(checks, checks["dp-sggd recovers the map"], beside)


def captured(results: Results) -> Told:
    """Figure 1 of SN: AG far above PPM, SN above PPM and PPCA, and near AG."""
    medians, chance = _captured(results, "epsilon")
    rivals = medians.loc[[_PPM, _PURE_PPM, _PPCA]].max()
    ag, sn = medians.loc[_AG], medians.loc[_SN]
    checks = {
        "AG is far above PPM": (ag > medians.loc[_PPM] + 0.05).any(),
        "SN is nowhere below PPM or PPCA": (sn >= rivals - _APART).all(),
        "SN meets AG at large ε": sn.iloc[-1] >= ag.iloc[-1] - _APART,
    }
    return seen(checks, bool(sn.iloc[-1] > chance / BETTER))


def by_rows(results: Results) -> Told:
    """Figure 2: with n AG, SN and PPCA improve, and AG and SN stay ahead."""
    medians, chance = _captured(results, "n")
    rises = (medians.iloc[:, -1] - medians.iloc[:, 0])[[_AG, _SN, _PPCA]]
    rivals, sn = medians.loc[[_PURE_PPM, _PPCA]].max(), medians.loc[_SN]
    checks = {
        "AG is above PPM": (medians.loc[_AG] > medians.loc[_PPM]).all(),
        "SN is above PPM and PPCA of δ = 0": (sn > rivals).all(),
        "AG, SN and PPCA rise by a tenth or more": (rises >= 0.1).all(),
    }
    return seen(checks, bool(sn.iloc[-1] > chance / BETTER))


def classified(results: Results) -> Told:
    """Table 1, synthetic rows: AG errs as SVD does, then PPCA, SN, PPM."""
    table = results["sn-errors-synthetic"]
    errors = table.pivot_table("error", "mechanism", "n", aggfunc="median")
    svd, ag, sn = (errors.loc[name] for name in ("non-private-pca", _AG, _SN))
    rises = errors.loc[[_AG, _PPCA, _SN, _PPM]].diff().iloc[1:]
    checks = {
        "AG errs within half a per cent of SVD": (ag <= svd + 0.005).all(),
        "AG < PPCA < SN < PPM": (rises > 0).all(axis=None),
        "SN errs more than SVD": (sn > svd).all(),
    }
    return seen(checks, bool((ag < 0.9 * errors.loc["random-subspace"]).any()))


def _captured(results: Results, variable: str) -> tuple[pd.DataFrame, float]:
    """Return median shares by mechanism and a variable, and that of a random subspace.

    At the delta of the paper, the larger one; pure claims have none.
    """
    name = f"sn-{variable}-synthetic"
    table = results[name]
    chosen = table[table["delta"].isin((0.0, results.options(name)["deltas"][0]))]
    medians = chosen.pivot_table(
        "captured_share", "mechanism", variable, aggfunc="median"
    )
    return medians, float(chosen["random_share"].median())


def _phase_logs(results: Results) -> pd.DataFrame:
    """Return mean log errors of the phases: a row a cell, a column a mechanism."""
    table = pd.concat([results[name] for name in PHASES])
    table = table.assign(log=np.log10(table["error"].fillna(1.0).clip(1e-30)))
    return table.pivot_table("log", ["rows", "dimension"], "mechanism", aggfunc="mean")


def _median_logs(table: pd.DataFrame, where: list[str]) -> pd.DataFrame:
    medians = table.fillna({"error": 1.0}).pivot_table(
        "error", where, "mechanism", aggfunc="median"
    )
    return np.log10(medians.clip(1e-30))


def _reached(logs: pd.DataFrame, *names: str) -> bool:
    return bool(logs[list(names)].min(axis=None) <= np.log10(TOLERANCE))


RULES: Mapping[str, Rule] = {
    name: partial(measure_named(f"sections.theorems.{told['is']}"), **told["of"])
    for name, told in JUDGES.items()
}


def heard(results: Results, statements: tuple[Statement, ...]) -> dict[str, Told]:
    """Return what each rule of statements says whose tables are all there."""
    had = {n for n, t in results.tables.items() if isinstance(t, pd.DataFrame)}
    return {
        each.rule: RULES[each.rule](results)
        for each in statements
        if each.rule and had.issuperset(each.experiments)
    }
