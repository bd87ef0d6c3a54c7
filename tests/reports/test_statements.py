"""Verdicts of the ledger that are no exponents: each can be had, none by nothing."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from results_of import verdicts as audited
from scipy import stats

from dpaudit.reports.power_law import mean_limit
from dpaudit.reports.sections import Results, plan
from dpaudit.reports.sections.theorems import ledger, verdicts
from dpaudit.reports.sections.theorems.ledger import STATEMENTS, Statement
from dpaudit.reports.sections.theorems.pictures import RULES, heard

PLAN = plan("quick", 0)
SUPPORTED, PARTLY, VACUOUS = "supported", "supported in part", "vacuous"
OPEN, NOT, CONTRADICTED = "not decided", "not reproduced", "CONTRADICTED"
SGGD, GGD = "dp-sggd-published", "dp-ggd-published"
SGD, SMD = "dp-sgd-reap-published", "dp-smd-reap-published"
GD, MD = "dp-gd-reap-published", "dp-md-reap-published"
AG, SN, PPCA = "analyze-gauss-published", "symmetric-noise", "exponential-pca-gibbs"
PPM, PURE = "power-method-published", "power-method-laplace-published"


NOTHING, MANY = (0.9,) * 4, (0.5, 0.9, 1e-6, 1e-3)


def rows(columns, *values):
    return pd.DataFrame(
        [dict(zip(columns.split(), each, strict=True)) for each in values]
    )


def releases(k, names, epsilon, useful, traced):
    """Ten releases each; who is useful and traced depends on the rows of a cluster."""
    cells = product(names, (k,), (1.0, 2.0, 512.0), range(10))
    columns = "mechanism components rows repetition useful traced innocent refused"
    found = rows(
        columns, *((*cell, useful(cell[2]), traced(cell[2]), 0.0, "") for cell in cells)
    )
    return found if epsilon is None else found.assign(epsilon=epsilon)


def few(m):
    return float(m < 100)


def many(m):
    return float(m > 100)


def always(m):
    return 1.0


def never(m):
    return 0.0


def tracing(of=(1.0, 4.0), **changes):
    """Tables of releases of 1 and 4 components; ``of``: of which ones changes are."""
    usual = {
        "private": many,
        "open": always,
        "traced": few,
        "others": never,
        "beside": always,
    }
    parts = [traced_of(k, usual | (changes if k in of else {})) for k in (1.0, 4.0)]
    return {name: pd.concat([part[name] for part in parts]) for name in parts[0]}


def traced_of(k, told):
    open_ones = told["open"], told["traced"]
    private = releases(k, ["goe-gaussian"], 1.0, told["private"], told["others"])
    loose = releases(k, ["goe-gaussian"], 3000.0, *open_ones)
    return {
        "tracing-references": releases(k, ["pca"], None, *open_ones),
        "tracing": pd.concat([private, loose]),
        "tracing-catalogue": releases(k, ["oja"], 1.0, told["beside"], never),
    }


def instances(second=0.2, first=0.8, overlap=1.5):
    cells = product((1.0, 4.0), (2.0, 8.0, 512.0), range(3))
    columns = "components rows repetition first second overlap"
    seconds = {1: 0.2, 4: second}
    values = ((k, m, i, first, seconds[k] * m**0.1, overlap) for k, m, i in cells)
    return {"hard-instances": rows(columns, *values)}


def culled(won=100, naive=0, slope=0.2, bend=0.0, lift=0.0):
    n = np.array([500.0, 1000.0, 2000.0])
    bound = np.exp(lift - slope * 0.02 * n + bend * (n > 1000))
    half = {"mechanism": "random-half", "won": won, "loss_bound": bound}
    other = {"mechanism": "most-agreement", "won": naive, "loss_bound": np.nan}
    table = pd.concat([pd.DataFrame({**each, "length": n}) for each in (half, other)])
    return {"list-culling": table.assign(erased=0.02 * table["length"], games=100)}


def floors(first=(0.05, 0.02), floor=0.01, blind=0.9):
    columns = "mechanism n repetition error floor blind"
    values = [
        (who, n, i, error * (1 + 0.01 * i), floor, blind)
        for who, errors in (("goe-gaussian", first), ("oja", (0.001, 0.001)))
        for n, error in zip((1e4, 1e5), errors, strict=True)
        for i in range(4)
    ]
    return {"dp-pca-floor-gaussian": rows(columns, *values)}


def stability(mean):
    values = mean + 0.001 * np.arange(6)
    return {"robust-stability": pd.DataFrame({"batch_stability": values})}


def paths(**ends):
    """Errors by step: each starts at .9 and ends where it is told to."""
    errors = {SGGD: 1e-8, GGD: 1e-6, SGD: 1e-3, SMD: 1e-3, GD: 1e-3, MD: 1e-3, **ends}
    columns = "mechanism repetition iteration error"
    values = []
    for name, end in errors.items():
        early = 0.5 if name in (SGGD, GGD) else 0.1
        steps = ((1, 0.9), (100, max(early, end)), (1000, end))
        values += [(name, i, *each) for i in range(3) for each in steps]
    return {"robust-recovery": rows(columns, *values)}


def cells(first, second, errors, names):
    """Runs in four cells: hard is where both coordinates have their second value."""
    columns = f"mechanism {first[0]} {second[0]} repetition error reached"
    values = []
    for name in names:
        for i, (x, y) in enumerate(product(first[1:], second[1:])):
            error = errors[name][i]
            reached = 9.0 if error <= 0.01 else np.nan
            values += [(name, x, y, j, error, reached) for j in range(3)]
    return rows(columns, *values)


HARDER = {SGGD: (1e-9,) * 4, GGD: (1e-6, 1e-4, 1e-6, 1e-4)}
HARDER |= {SGD: (1e-3,) * 4, SMD: (1e-3,) * 4}
HARDER |= {GD: (1e-3, 0.5, 1e-3, 0.3), MD: (1e-3, 0.5, 1e-3, 0.3)}


def phases(**changes):
    at = ("rows", 250.0, 1000.0), ("dimension", 10.0, 40.0)
    errors = {**HARDER, **changes}
    return {
        "robust-phases": cells(*at, errors, [SGGD]),
        "robust-phases-full": cells(*at, errors, [GGD]),
        "robust-phases-reaper": cells(*at, errors, [SGD, SMD, GD, MD]),
    }


def ranks(**changes):
    at = ("dimension", 10.0, 20.0), ("n_components", 1.0, 4.0)
    return {
        "robust-ranks": cells(*at, {**HARDER, **changes}, [SGGD, SGD, SMD, GGD, GD, MD])
    }


def budgets(own=(0.9, 1e-6), other=(0.3, 1e-3), printed=None):
    at = ("epsilon", 0.4, 1.6), ("delta", 1e-6, 1e-2)
    errors = {"dp-ggd": own * 2, "dp-gd-reap": other * 2, "dp-md-reap": other * 2}
    found = errors | dict.fromkeys([*errors][1:], printed) if printed else errors
    errors |= {f"{name}-published": each for name, each in found.items()}
    return {"robust-budgets": cells(*at, errors, errors)}


def batches(sgd=(0.3, 0.3, 1e-3, 1e-3), smd=(0.3, 1e-3, 1e-3, 1e-3), **changes):
    """Errors by the share of inliers, ascending, with each batch."""
    at = ("batch_size", 2.0, 4.0, 32.0), ("inlier_share", 0.1, 0.3, 0.6, 0.8)
    own = {"two": NOTHING, "four": (1e-3,) * 4, "more": (1e-3,) * 4, **changes}
    sggd = (*own["two"], *own["four"], *own["more"])
    errors = {SGD: sgd * 3, SMD: smd * 3, SGGD: sggd}
    return {"robust-batches": cells(*at, errors, errors)}


def fits(**changes):
    own = {
        SGGD: 0.99,
        GGD: 0.5,
        "power-method": 0.6,
        "non-private-pca": 0.99,
        **changes,
    }
    first = rows("mechanism fit", *((n, x) for n, x in own.items() if n != SGD))
    return {
        "genotypes": first,
        "genotypes-reaper": rows("mechanism fit", (SGD, own.get(SGD, 0.4))),
    }


def shares(variable, **changes):
    own = {AG: (0.8, 0.99), SN: (0.7, 0.985), PPCA: (0.5, 0.9)}
    own |= {PPM: (0.2, 0.9), PURE: (0.1, 0.2), **changes}
    values = [
        (name, delta, x, share, 0.1)
        for name, both in own.items()
        for x, share in zip((0.1, 10.0), both, strict=True)
        for delta in ((0.1, 1e-6) if name in (AG, PPM) else (0.0,))
    ]
    columns = f"mechanism delta {variable} captured_share random_share"
    return {f"sn-{variable}-synthetic": rows(columns, *values)}


def errors(**changes):
    own = {"non-private-pca": 0.05, AG: 0.051, PPCA: 0.06, SN: 0.07, PPM: 0.08}
    own |= {"random-subspace": 0.09, **changes}
    values = [(name, n, x) for name, x in own.items() for n in (4000.0, 6000.0)]
    return {"sn-errors-synthetic": rows("mechanism n error", *values)}


LOST = dict.fromkeys(HARDER, NOTHING)
CASES = [
    *("few rows, one component", tracing((4.0,), private=always), SUPPORTED),
    *("few rows, clusters", tracing((1.0,), private=always), SUPPORTED),
    *("few rows", tracing(), SUPPORTED),
    *("few rows", tracing((4.0,), private=always), PARTLY),
    *("few rows", tracing(private=always), OPEN),
    *("few rows, clusters", tracing(private=always), OPEN),
    *("few rows, clusters", tracing(open=many), VACUOUS),  # nobody is useful there
    *("few rows, clusters", tracing(private=never), VACUOUS),  # a random subspace
    *("few rows", tracing(private=never), VACUOUS),
    *("traced, one component", tracing((4.0,), traced=many), SUPPORTED),
    *("traced, clusters", tracing((1.0,), traced=many), SUPPORTED),
    *("traced, clusters", tracing(traced=many), OPEN),
    *("traced, clusters", tracing(traced=lambda m: float(m == 1)), OPEN),  # half
    *("traced, clusters", tracing(others=always), OPEN),  # everybody is
    *("traced, clusters", tracing(open=never, beside=many), VACUOUS),
    *("second eigenvalue, one cluster", instances(second=0.7), SUPPORTED),
    *("second eigenvalue, clusters", instances(), SUPPORTED),
    *("second eigenvalue, clusters", instances(second=0.7), OPEN),
    *("second eigenvalue, clusters", instances(first=0.08), VACUOUS),
    *("overlap of clusters", instances(), SUPPORTED),
    *("overlap of clusters", instances(overlap=2.5), OPEN),
    *("overlap of clusters", instances(overlap=3.56), VACUOUS),
    *("list culling", culled(), SUPPORTED),
    *("list culling", culled(bend=4.0), OPEN),
    *("list culling", culled(slope=-0.1), OPEN),
    *("list culling", culled(lift=3.0), OPEN),  # a bound above 1 says nothing
    *("list culling", culled(naive=100), VACUOUS),
    *("floor, Gaussian rows", floors(), SUPPORTED),
    *("floor, Gaussian rows", floors(first=(0.0101, 0.02)), SUPPORTED),  # by chance
    *("floor, Gaussian rows", floors(first=(0.5, 0.02)), PARTLY),
    *("floor, Gaussian rows", floors(first=(0.5, 0.2)), VACUOUS),
    *("floor, Gaussian rows", floors(blind=0.03), VACUOUS),
    *("floor, Gaussian rows", floors(first=(0.05, 0.008)), CONTRADICTED),
    *("floor, Gaussian rows", floors(first=(0.05, np.nan)), PARTLY),
    *("batches are stable", stability(0.01), SUPPORTED),
    *("batches are stable", stability(-0.0025), OPEN),
    *("batches are stable", stability(-0.1), VACUOUS),
    *("error by step", paths(), SUPPORTED),
    *("error by step", paths(**{SGGD: 0.01}), PARTLY),
    *("error by step", paths(**dict.fromkeys(HARDER, 0.9)), VACUOUS),
    *("error by n and D", phases(), SUPPORTED),
    *("error by n and D", phases(**{SGGD: HARDER[GGD]}), PARTLY),
    *("error by n and D", phases(**{SGGD: (1e-3,) * 4}), PARTLY),
    *("error by n and D", phases(**{GGD: (5e-3,) * 4, SGGD: (6e-3,) * 4}), NOT),
    *("error by n and D", phases(**LOST), VACUOUS),
    *("small D, large N", phases(), SUPPORTED),
    *("small D, large N", phases(**dict.fromkeys((GGD, GD, MD), MANY)), SUPPORTED),
    *("small D, large N", phases(**{GD: NOTHING}), PARTLY),
    *("small D, large N", phases(**{MD: (1e-3,) * 4}), PARTLY),
    *("small D, large N", phases(**LOST), VACUOUS),
    *("small D, small r", ranks(), SUPPORTED),
    *("small D, small r", ranks(**dict.fromkeys((GD, MD, GGD), NOTHING)), NOT),
    *("small D, small r", ranks(**LOST), VACUOUS),
    *("by ε and δ", budgets(), SUPPORTED),
    *("by ε and δ", budgets((0.3, 1e-9), (0.9, 1e-3)), SUPPORTED),
    *("by ε and δ", budgets(other=(0.9, 1e-9)), NOT),
    *("by ε and δ", budgets(printed=(0.9, 0.9) * 2), PARTLY),
    *("by ε and δ", budgets(other=(0.9, 0.9)), VACUOUS),
    *("by batch and inliers", batches(), SUPPORTED),
    *("by batch and inliers", batches(sgd=(0.3, 1e-3, 1e-3, 1e-3)), PARTLY),
    *("by batch and inliers", batches(four=NOTHING), PARTLY),
    *("by batch and inliers", batches(NOTHING, four=NOTHING), PARTLY),
    *("by batch and inliers", batches(*[NOTHING] * 2, four=NOTHING, more=NOTHING)),
    VACUOUS,
    *("map", fits(), SUPPORTED),
    *("map", fits(**{SGD: 0.99}), PARTLY),
    *("map", fits(**{SGGD: 0.5}), VACUOUS),
    *("captured by ε", shares("epsilon"), SUPPORTED),
    *("captured by ε", shares("epsilon", **{PPCA: (0.9, 0.9)}), PARTLY),
    *("captured by ε", shares("epsilon", **{AG: (0.2, 0.93)}), PARTLY),
    *("captured by ε", shares("epsilon", **{SN: (0.1, 0.1)}), VACUOUS),
    *("captured by n", shares("n"), SUPPORTED),
    *("captured by n", shares("n", **{SN: (0.95, 0.99)}), PARTLY),
    *("captured by n", shares("n", **{SN: (0.1, 0.1)}), VACUOUS),
    *("classifier", errors(), SUPPORTED),
    *("classifier", errors(**{PPCA: 0.075}), PARTLY),
    *("classifier", errors(**{AG: 0.085}), VACUOUS),
]
CASES = [CASES[i : i + 3] for i in range(0, len(CASES), 3)]


def ruled(rule, tables, fell=("oja",)):
    wall = audited(fell).assign(claim="not known")
    results = Results("quick", 0, PLAN, {**tables, "privacy-wall": wall})
    statement = Statement(paper="P", at="A", kind="k", says="", rule=rule)
    return heard(results, (statement,))[rule]


@pytest.mark.parametrize(("rule", "tables", "verdict"), CASES)
def test_each_verdict_of_a_rule_can_be_had(rule, tables, verdict):
    assert ruled(rule, tables)[0] == verdict


def test_every_rule_has_cases_of_support_and_of_vacuity_and_a_statement():
    twins = {"floor, heavy rows", "printed bound"}  # other tables, the same function
    for word in (SUPPORTED, VACUOUS):
        some = {rule for rule, _, verdict in CASES if verdict == word}
        halves = {rule.replace("clusters", "one component") for rule in some}
        halves |= {"second eigenvalue, one cluster"} & {*RULES}
        assert {*RULES} - twins <= some | halves
    assert {each.rule for each in STATEMENTS} - {""} == {*RULES}


def test_claims_that_fell_owe_nothing_and_sentences_have_the_numbers():
    found = ruled("few rows, one component", tracing(), ())
    assert found[0] == OPEN  # oja, useful on all rows, counts
    assert "20 of 40 releases of 2 mechanisms" in found[1]
    assert "0 of 20 releases of 1 " in ruled("few rows, one component", tracing())[1]
    assert ruled("few rows, clusters", tracing())[1].endswith("noise: 20 of 20")
    told = ruled("traced, clusters", tracing(beside=many))[1]
    assert "40 of 40 releases" in told
    assert told.endswith("0 of 40 others")
    assert ruled("floor, Gaussian rows", floors(), ())[0] == CONTRADICTED
    told = ruled("floor, Gaussian rows", floors())[1]
    assert "n = 100,000: goe-gaussian at 2.03 times the floor" in told
    told = ruled("list culling", culled(won=70))[1]
    assert "it won 210 of 300 games, most agreement 0 of 300" in told
    told = ruled("error by step", paths())[1]
    assert "dp-sgd-reap leads until step 100, " in told
    assert "of 1,000 steps" in told
    told = ruled("by batch and inliers", batches())[1]
    assert "dp-sgd-reap from 0.6, dp-smd-reap from 0.3" in told
    assert (
        "nothing found: dp-gd-reap as"
        in ruled("by ε and δ", budgets(other=(0.9, 0.9)))[1]
    )
    assert "k = 1: 0 of 20" in ruled("few rows", tracing())[1]


def test_a_rule_waits_for_all_of_its_tables():
    statement = next(s for s in STATEMENTS if s.rule == "small D, large N")
    tables = phases()
    assert heard(Results("quick", 0, PLAN, tables), (statement,))
    tables["robust-phases-full"] = ValueError()
    assert not heard(Results("quick", 0, PLAN, tables), (statement,))
    words = ledger.judged(
        Results("quick", 0, PLAN, {}),
        dict.fromkeys([])
        | {name: ("supported", "") for s in STATEMENTS for name in s.rows},
    )
    told = {s.rule: verdict for s, verdict, _ in words if s.rule}
    assert {*told.values()} == {ledger.ABSENT}


def test_limits_of_means_are_students():
    alarm, drawn = verdicts._ALARM, np.random.default_rng(5).standard_normal(5)
    ends = stats.t.interval(1 - alarm, 4, drawn.mean(), stats.sem(drawn))
    limits = [mean_limit(drawn, alarm / 2, side) for side in (-1, 1)]
    assert limits == pytest.approx(ends, rel=1e-12)
    assert mean_limit(np.ones(1), 0.1, 1) == np.inf


def test_sizes_are_told_beside_the_papers():
    tables = {**paths(), **floors()}
    found = ledger.judged(
        Results("quick", 0, PLAN, tables),
        {name: ("supported", "") for s in STATEMENTS for name in s.rows},
    )
    sizes = {(s.paper, s.at): s.size for s, *_ in found}
    told = sizes["Robust PCA", "Figure 1"]
    assert told.startswith("in print N = 2,000, D = 20, 100 sets")
    assert told.endswith("here 5 draws a point, rows 1,000, dimension 20")
    floor = sizes["DP-PCA", "Theorem 5.3"]
    assert floor == "here 4 draws a point, n 10,000 to 100,000, d 20"
    assert sizes["Robust PCA", "Figure 4"] == "N = 2,000, D = 20, 50 runs"
