import math
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from executors import PickledThreads
from refusals import refused, refuses

from dpaudit import ApproxDP, GaussianDP, InputError, PureDP, Relation
from dpaudit.algorithms import CATALOGUE, GOEGaussian, build, entry
from dpaudit.audit import Budget, Run, Store, audit
from dpaudit.cli import main
from dpaudit.gram import gram
from dpaudit.object_pairs import ObjectPair
from dpaudit.reports import compare
from dpaudit.reports.comparison import plan, run
from dpaudit.reports.comparison.candidates import (
    ComparedMechanism,
    Setting,
    WithoutBound,
)
from dpaudit.reports.comparison.measures import measured
from dpaudit.reports.comparison.page import WARNING, answer, render
from dpaudit.reports.comparison.plan import suitable
from dpaudit.reports.comparison.problem import MEASURES, pair_of, problem_of
from dpaudit.reports.comparison.run import compared, comparison_figure
from dpaudit.reports.store import LIST, STORE

ROWS = np.random.default_rng(5).normal(size=(60, 4)) * [0.5, 0.3, 0.1, 0.05]
SETTING = Setting(1e-5, Relation.ADD_REMOVE, 1.0, 2)
SHORT = {"data": ROWS, "repetitions": 3, "budget": 8, "epsilons": [1.0]}


def moment(rows):
    return rows.T @ rows


def basis(rows, k=2):
    return np.linalg.eigh(moment(rows))[1][:, ::-1][:, :k]


# What is compared, as a user would write it.
def noisy(data, rng, epsilon, row_norm=1.0):
    """The second moment with Laplace noise: l1 sensitivity of the upper triangle."""
    d = data.shape[1]
    scale = row_norm**2 * (d + 1) / 2 / epsilon
    noise = rng.laplace(scale=scale, size=(d, d))
    return moment(data) + np.triu(noise) + np.triu(noise, 1).T


def careless(data, rng, epsilon):
    return noisy(data, rng, 100 * epsilon)


def broken(data, rng, epsilon):
    raise ZeroDivisionError("no rows, no luck")


def leaves(data, rng, epsilon):
    raise SystemExit(0)


def claimless(data, rng):
    return noisy(data, rng, 1.0)


def calibrated(epsilon, delta, relation):
    return GOEGaussian.calibrated(epsilon, delta, relation=relation)


class Truthful:
    """A class that takes the number of components too, and releases no noise."""

    def __init__(self, epsilon, n_components):
        self.claim = PureDP(epsilon)
        self.k = n_components

    def release(self, data, *, rng):
        return {"components": basis(data, self.k)}


class AsItIs:
    claim = PureDP(1.5)

    def release(self, data, *, rng):
        return noisy(data, rng, 1.5)


class WithoutPair(AsItIs):
    def worst_case(self, dimension=None):
        raise RuntimeError("there is none")


class Secretive(AsItIs):
    """Raises when it is asked for its claim."""

    def __init__(self, epsilon):
        pass

    @property
    def claim(self):
        raise RuntimeError("not telling")


class Estimator:
    def __init__(self, n_components, epsilon, random_state):
        self.k, self.epsilon = n_components, epsilon
        self.rng = np.random.default_rng(random_state)

    def fit(self, rows):
        noise = noisy(rows, self.rng, self.epsilon)
        self.components_ = np.linalg.eigh(noise)[1][:, ::-1][:, : self.k].T
        return self


class Unseeded(Estimator):
    def __init__(self, epsilon):
        super().__init__(1, epsilon, None)


# Measures.
def test_measures_are_what_their_formulas_say():
    problem = problem_of(ROWS * 3, row_norm=0.5, n_components=2)
    rng = np.random.default_rng(0)
    v = np.linalg.qr(rng.normal(size=(4, 2)))[0]
    found = {name: each[0] for name, each in problem.measure(v[None]).items()}
    x, best = ROWS * 3, basis(ROWS * 3)

    def error(b):
        return np.sum((x - x @ b @ b.T) ** 2)

    assert found["captured_variance"] == pytest.approx(
        np.sum((x @ v) ** 2) / np.sum((x @ best) ** 2)
    )
    assert found["error_ratio"] == pytest.approx(error(v) / error(best))
    cosine = np.linalg.svd(v.T @ best, compute_uv=False).min()
    degrees = np.degrees(np.arccos(cosine))
    assert found["largest_angle_degrees"] == pytest.approx(degrees)
    none = problem.measure(np.full((1, 4, 2), np.nan))
    assert none["captured_variance"] == [0.0]
    assert none["largest_angle_degrees"] == [90.0]
    assert none["error_ratio"] == pytest.approx([np.sum(x**2) / error(best)])


class Reads:
    """Says itself what components are in its releases."""

    claim = PureDP(1.0)

    def release(self, data, *, rng):
        return {"hidden": basis(data)}

    def components(self, releases, n_components):
        return releases["hidden"][:, :n_components]


FORMS = {
    **{"matrix": moment, "basis": basis},
    "more than are needed": lambda rows: basis(rows, 3),
    "all of them": lambda rows: basis(rows, 4),
    "not orthonormal": lambda rows: basis(rows) @ [[2.0, 1.0], [0.0, 1e150]],
    "dict": lambda rows: {"components": basis(rows)},
    "dict of rows": lambda rows: {"components_": basis(rows).T},
    "object": lambda rows: SimpleNamespace(components=basis(rows)),
    "fitted": lambda rows: SimpleNamespace(components_=basis(rows).T),
    "lists": lambda rows: basis(rows).tolist(),
    "huge": lambda rows: 1e300 * moment(rows),
}


def one(own, k=2, **options):
    problem = problem_of(ROWS, row_norm=10.0, n_components=k)
    return measured(problem, ComparedMechanism("own", problem.setting, own), 1.0, 1, 0)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_release_is_read(form):
    found = one(lambda data, rng, epsilon: FORMS[form](data))
    assert found["captured_variance"] == pytest.approx([1.0])
    assert found["largest_angle_degrees"] == pytest.approx([0.0], abs=1e-5)
    assert found["empty"] == 0


def test_components_are_read_and_releases_without_any_counted():
    vector = one(lambda data, rng, epsilon: 7 * basis(data, 1)[:, 0], k=1)
    for found in (vector, one(Reads())):
        assert found["captured_variance"] == pytest.approx([1.0])
    for nothing in (np.nan, np.inf, 0.0):
        for shape in ((4, 2), (4, 4)):
            release = np.full(shape, nothing)
            found = one(lambda data, rng, epsilon, release=release: release)
            assert (found["captured_variance"], found["empty"]) == ([0.0], 1)


REFUSED = {
    "of shape \\(4, 4\\) or \\(4, 2\\), got \\(3, 3\\)": lambda rows: np.eye(3),
    "components go in columns": lambda rows: basis(rows).T,
    "2 components cannot be had": lambda rows: basis(rows)[:, 0],
    "neither symmetric": lambda rows: np.triu(np.ones((4, 4))),
    "array of real numbers": lambda rows: "words",
    "entries of type complex128": lambda rows: basis(rows) + 1j,
    "must have components, got mean": lambda rows: {"mean": rows},
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_releases_without_a_basis_are_refused(sentence):
    refuses(sentence, one, lambda data, rng, epsilon: REFUSED[sentence](data))


def test_all_get_the_same_rows_and_cannot_spoil_them():
    seen = []

    def spoils(data, rng, epsilon):
        seen.append(data.copy())
        data[:] = 0.0
        return np.eye(4)

    problem = problem_of(ROWS, row_norm=0.3, n_components=2)
    measured(problem, ComparedMechanism("own", problem.setting, spoils), 1.0, 2, 0)
    for rows in seen:
        assert (rows == problem.rows).all()
    assert np.linalg.norm(problem.rows, axis=1).max() <= 0.3
    assert problem.scaled == np.sum(np.linalg.norm(ROWS, axis=1) > 0.3) > 0


# Who can be compared.
def candidate(own, **changes):
    return ComparedMechanism("own", Setting(**{**vars(SETTING), **changes}), own)


@pytest.mark.parametrize(
    ("own", "claim"),
    [
        *((noisy, PureDP(1.0)), (calibrated, ApproxDP(1.0, 1e-5))),
        *((Truthful, PureDP(1.0)), (Estimator, PureDP(1.0))),
        (GOEGaussian.calibrated, ApproxDP(1.0, 1e-5)),
    ],
)
def test_what_takes_an_epsilon_is_made_for_each(own, claim):
    each = candidate(own)
    assert each.points((0.5, 1.0)) == (0.5, 1.0)
    built = each.build(1.0)
    assert built.claim == claim
    assert built.release(ROWS, np.random.default_rng(0)) is not None


def test_instances_stand_at_their_claim_on_digits_and_end():
    assert candidate(AsItIs()).points((0.5, 1.0)) == (1.5,)
    gaussian = SimpleNamespace(claim=GaussianDP(0.3), release=noisy)
    (at,) = candidate(gaussian).points((0.5,))
    assert at == pytest.approx(GaussianDP(0.3).epsilon_at(1e-5))
    few, many = (Setting(0.0, Relation.ADD_REMOVE, 1.0, k) for k in (3, 4))
    assert ComparedMechanism("exponential-pca-acg", few).build(1.0)
    with pytest.raises(InputError, match="may never end for more than 3 components"):
        ComparedMechanism("exponential-pca-acg", many).build(1.0)
    problem = problem_of()
    assert problem.rows.shape == (1797, 64)
    assert problem.setting == Setting(1e-5, Relation.ADD_REMOVE, 64.0, 10)
    assert problem_of(ROWS).setting.n_components == 2


@pytest.mark.parametrize(
    ("own", "sentence"),
    [
        (claimless, "takes no epsilon and states no claim"),
        (SimpleNamespace(claim=ApproxDP(1.0, 0.1), release=noisy), "promises nothing"),
        (lambda epsilon, budget: 1, "nothing is known of its parameters budget"),
        (
            lambda epsilon: calibrated(2 * epsilon, 1e-5, "add-remove"),
            "was asked for epsilon = 1 and delta = 1e-05, and claims",
        ),
        (
            lambda epsilon: calibrated(epsilon, 1e-5, "replace-one"),
            "states its claim under replace-one, not add-remove",
        ),
        *((Unseeded, "has fit and no random_state"), (3, "got an object of type int")),
    ],
)
def test_what_cannot_be_compared_is_refused(own, sentence):
    each = candidate(own)
    refuses(sentence, lambda: each.build(*each.points((1.0,))))


@pytest.mark.parametrize(("k", "delta"), [(1, 0.0), (3, 1e-5), (10, 0.0)])
@pytest.mark.parametrize("relation", list(Relation))
def test_those_that_suit_can_be_built_and_are_not_known_to_be_false(k, delta, relation):
    setting = Setting(delta, relation, 1.0, k)
    names = suitable(setting)
    assert {"symmetrised-wishart"} <= set(names)
    assert ("goe-gaussian" in names) == (delta > 0)
    assert ("exponential-pca" in names) == (k == 1)
    for name in names:
        built = ComparedMechanism(name, setting).build(1.0)
        assert built.claim.delta_at(1.0) <= delta
        assert not CATALOGUE[name].expected_refuted


def test_rows_are_in_the_unit_ball_where_needed_and_those_that_suit_stand_beside(
    monkeypatch,
):
    problem = problem_of(
        ROWS * 50, row_norm=20.0, n_components=1, relation="replace-one"
    )
    each = ComparedMechanism("irls-reaper", problem.setting)
    assert each.build(1.0).unit_rows
    seen = []

    def draw(self, data, size, *, rng):
        seen.append(data)
        return np.stack([basis(data, 1)] * size)

    monkeypatch.setattr(type(each.build(1.0).mechanism), "draw", draw)
    measured(problem, each, 1.0, 1, 0)
    assert np.linalg.norm(seen[0], axis=1).max() == pytest.approx(1.0)
    suiting = "dpaudit.reports.comparison.plan.suitable"
    monkeypatch.setattr(suiting, lambda setting: ("goe-gaussian",))
    table = compare(own={"own": noisy}, **SHORT)
    assert set(table["mechanism"]) == {"own", "goe-gaussian"}


@pytest.mark.parametrize("norm", ["private", "directions"])
def test_what_needs_no_bound_stands_beside_others_by_its_name(norm):
    """At a bound that is a thousand times too large all is lost but without one."""
    name = f"goe-gaussian@{norm}"
    known = {"data": ROWS * 50, "row_norm": 1e5, "n_components": 1, "epsilons": [20.0]}
    with PickledThreads(2, mp_context=SimpleNamespace(get_start_method=str)) as pool:
        run = Run(executor=pool)
        found = compared(["goe-gaussian", name], **{**SHORT, **known}, run=run)
    table = found.table[found.table["measure"] == "largest_angle_degrees"]
    bounded, free = table.set_index("mechanism")["median"][["goe-gaussian", name]]
    assert free < 25 < 50 < bounded
    claims = {each["mechanism"]: each["claim"] for each in found.audits}
    assert claims[name] == str(ApproxDP(20.0, 1e-5))
    pure = WithoutBound.of(f"symmetrised-wishart@{norm}")
    assert candidate(pure).build(1.0).claim == PureDP(1.0)
    pca = pure(1.0, 1e-5, Relation.REPLACE_ONE, 2).factory
    assert (pca.row_norm, pca.relation) == (norm, Relation.REPLACE_ONE)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("goe-gaussian@2", "must end in @private or @directions"),
        ("goe-gausian@private", "unknown mechanism 'goe-gausian'; did you mean"),
        ("laplace@private", "mechanism must release principal components"),
    ],
)
def test_names_without_a_bound_are_checked(name, sentence):
    failed = compared(["goe-gaussian", name], **SHORT).failed
    assert sentence in str(failed[name])


# Pairs and verdicts.
@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("d", [1, 4])
def test_the_pair_made_of_the_data_reaches_the_sensitivity(relation, d):
    rows = problem_of(ROWS[:, :d] * 9, row_norm=2.0, n_components=1).rows
    pair = pair_of(rows, 2.0, relation)
    assert pair.relation is relation
    for side in (pair.data, pair.neighbour):
        assert np.linalg.norm(side, axis=1).max() <= 2.0
    moved = np.linalg.norm(moment(pair.neighbour) - moment(pair.data))
    most = math.sqrt(2) if relation is Relation.REPLACE_ONE and d > 1 else 1.0
    assert moved == pytest.approx(most * 4.0)


async def later(data, rng, epsilon):
    return moment(data)


@pytest.fixture(scope="module")
def found():
    """Four that stand, one that falls, and six that fail."""
    own = {
        **{"careless": careless, "broken": broken, "leaves": leaves},
        **{"secretive": Secretive, "claimless": claimless, "as it is": AsItIs()},
        **{"<b>odd</b>": WithoutPair(), "later": later},
    }
    mechanisms = ["goe-gaussian", "symmetrised-wishart", "goe-gausian"]
    return compared(mechanisms, own=own, **SHORT | {"budget": 40, "row_norm": 0.6})


def test_the_table_and_the_page_say_what_was_found(found):
    table = found.table
    assert list(table.columns) == [
        *("mechanism", "epsilon", "measure", "median", "low", "high"),
        *("seconds", "verdict"),
    ]
    for name, group in table.groupby("mechanism"):
        assert tuple(group["measure"]) == MEASURES, name
    whole = table[table["seconds"] > 0]
    assert (whole["low"] <= whole["median"]).all()
    assert (whole["median"] <= whole["high"]).all()
    assert set(table[table["mechanism"] == "as it is"]["epsilon"]) == {1.5}
    page = render(found, {})
    for said in (
        *(WARNING.replace("'", "&#39;"), "at most 40 releases a side"),
        "Not refuted is not a proof of privacy",
        *(f"<strong>{name} failed:</strong>" for name in found.failed),
        "&lt;b&gt;odd&lt;/b&gt; raised RuntimeError: there is none",
        f"{found.problem.scaled} of 60 rows were longer than the row norm",
        "REFUTED: careless breaks its claim.",
    ):
        assert said in page
    assert not re.search(r"<b>odd|verified|is private|are private", page)


def test_verdicts_refute_or_do_not(found):
    verdicts = dict(zip(found.table["mechanism"], found.table["verdict"], strict=True))
    # True claims: each is refuted with probability 0.001 at most; the seed is fixed.
    for name in ("goe-gaussian", "symmetrised-wishart", "as it is"):
        assert verdicts[name] == "NOT_REFUTED"
    assert verdicts["careless"] == "REFUTED"
    odd = "not audited: <b>odd</b> raised RuntimeError: there is none"
    assert verdicts["<b>odd</b>"] == odd
    names = {"broken", "leaves", "claimless", "goe-gausian", "secretive", "later"}
    assert set(found.failed) == names
    for name, said in {
        "broken": "raised ZeroDivisionError: no rows, no luck",
        "secretive": "raised RuntimeError: not telling",
        "leaves": "raised SystemExit: 0",
        "later": "the mechanism returns coroutine, which nobody awaits: audit a "
        "function that is not async, and returns asyncio.run(...)",
        "goe-gausian": "unknown mechanism 'goe-gausian'; did you mean 'goe-gaussian'?",
    }.items():
        assert verdicts[name] == f"failed: {said}"
    lost = found.table[found.table["mechanism"].isin(found.failed)]
    assert lost[["median", "low", "high", "seconds"]].isna().all(axis=None)


test_bad_rows_are_refused = refused(
    ([["a", "b"], ["c", "d"]], "must be a numeric array of shape"),
    (ROWS + 1j, "entries of type complex128"),
    (ROWS[:, 0], "must have shape"),
    (ROWS[:1], "n >= 2"),
    (np.full((3, 2), np.nan), "row 0 has a NaN or infinity"),
    (np.zeros((3, 2)), "must have rows that are not zero"),
    (1e300 * ROWS, "overflow"),
    by=lambda data: problem_of(data),
)


test_bad_options_are_refused = refused(
    ({"mechanisms": ["goe-gausian"]}, "no mechanism that was named could be.*: unk"),
    ({"mechanisms": ["numpy:pca"]}, "no mechanism that was named could be.*pca"),
    ({"n_components": 5}, "at most the columns of the data, 4, got 5"),
    ({"epsilons": []}, "epsilon must be one number or more, got none"),
    ({"epsilons": [1.0, -1.0]}, "epsilon must be a finite number > 0, got -1.0"),
    ({"row_norm": 0.0}, "row_norm must be a finite number > 0"),
    ({"delta": 1.0}, "delta must be in"),
    ({"relation": "other"}, "relation must be one of"),
    ({"budget": 1}, "releases must be an integer >= 2"),
    ({"budget": Budget(20, seconds=1.0)}, "compare takes no seconds"),
    ({"run": Run(name="x", attacks=[])}, "takes no attacks or name"),
    ({"run": Run(store=Store("x"))}, "takes a path for a store"),
    by=lambda options: compare(**{"mechanisms": ["goe-gaussian"], **SHORT, **options}),
)


# The runner: who works, and what is kept.
def printed(table):
    return table.drop(columns="seconds").to_csv()


def test_nothing_depends_on_who_works_and_what_cannot_be_sent_is_told():
    names = {"mechanisms": ["goe-gaussian"], "own": {"own": noisy}}
    alone = compared(**names, **SHORT)
    with PickledThreads(2, mp_context=SimpleNamespace(get_start_method=str)) as pool:
        together = compared(**names, **SHORT, run=Run(executor=pool))
        stuck = {"own": lambda data, rng, epsilon: moment(data)}
        told = compared(**names | {"own": stuck}, **SHORT, run=Run(executor=pool))
    assert printed(alone.table) == printed(together.table)
    for measure in MEASURES:
        first, second = (comparison_figure(f, measure) for f in (alone, together))
        assert first == second
    assert printed(compare(**names, **SHORT, seed=1)) != printed(alone.table)
    assert "cannot be sent to another process" in str(told.failed["own"])


def test_finished_work_is_not_done_again(tmp_path):
    calls = []

    def told(progress):
        calls.append(progress.done)

    options = {**SHORT, "own": {"own": noisy}, "output": tmp_path}
    options["run"] = Run(progress=told)
    first = compare(["goe-gaussian"], **options)
    assert calls == [0, 1, 2, 3, 4, 5, 6]
    written = (tmp_path / "compare.csv").read_bytes()
    calls.clear()
    again = compare(["goe-gaussian"], **options)
    assert calls == [6]
    assert first.equals(again)  # the times too
    assert (tmp_path / "compare.csv").read_bytes() == written
    calls.clear()
    compare(["goe-gaussian"], **options | {"data": ROWS / 2})
    assert calls[0] == 1  # the catalogue's audit, which is not about the rows


def test_code_that_looks_the_same_is_known_by_its_releases(tmp_path, monkeypatch):
    """At every epsilon: here it is other code at one of them."""

    def own(data, rng, epsilon):
        return moment(data) * (globals()["SIGN"] if epsilon == 2.0 else 1.0)

    options = {**SHORT, "own": {"own": own}, "run": Run(store=tmp_path / "work.db")}
    captured = []
    for sign in (1.0, -1.0):
        monkeypatch.setitem(globals(), "SIGN", sign)
        table = compare(["goe-gaussian"], **options | {"epsilons": [1.0, 2.0]})
        shares = table[table["measure"] == "captured_variance"]
        captured.append(shares[shares["mechanism"] == "own"]["median"].tolist())
    assert captured[0][0] == captured[0][1] == captured[1][0] > captured[1][1]


def test_code_is_known_by_its_looks_and_false_claims_not_recommended():
    two = (lambda d, rng, epsilon: moment(d), lambda d, rng, epsilon: moment(d) * 1.0)
    keys = [plan._identity(problem_of(ROWS), candidate(own), 1.0, 0) for own in two]
    assert None not in keys
    assert keys[0] != keys[1]
    found = compared(["analyze-gauss-published"], **SHORT | {"epsilons": [1.0, 10.0]})
    exact = {each["epsilon"]: each["exact"] for each in found.audits}
    assert exact == {1.0: "kept", 10.0: "false"}
    assert (found.table["verdict"] == "NOT_REFUTED").all()
    false = "The claim of analyze-gauss-published is false at ε = 10"
    assert any(note.startswith(false) for note in found.notes)
    assert answer(found) == []  # of the larger epsilon of the two


def test_what_no_store_can_tell_apart_is_compared_anew(tmp_path):
    source = np.random.default_rng(1)

    def own(data, rng, epsilon):
        return moment(data) * source.random()

    options = {**SHORT, "own": {"own": own}, "run": Run(store=tmp_path / "work.db")}
    found = compared(["goe-gaussian"], **options)
    assert not found.failed
    said = [note for note in found.notes if "own is compared anew each time" in note]
    assert len(said) == 1


# The page.


def test_the_best_is_named_among_those_that_stand(found):
    first, second = answer(found)
    # The one that falls keeps more, and is not recommended.
    assert "careless" not in first
    assert "symmetrised-wishart keeps" in first
    assert "goe-gaussian keeps" in first
    assert "careless" in second
    audits = [each | {"verdict": "NO_VERDICT"} for each in found.audits]
    page = render(replace(found, audits=audits), {})
    assert '<span class="badge open">NO VERDICT</span>' in page
    assert "its releases were seen not to be independent draws" in page
    assert '<span class="badge standing">' not in page


def test_what_is_written(tmp_path):
    options = {**SHORT, "budget": 40, "output": tmp_path / "deep"}
    compare(["goe-gaussian"], own={"../careless": careless}, **options)
    names = {path.name for path in (tmp_path / "deep").iterdir()}
    witness = "witness-..+2f+careless-1.json"
    svgs = {f"compare-{name.replace('_', '-')}.svg" for name in MEASURES}
    assert names == {"index.html", "compare.csv", STORE, LIST, witness, *svgs}
    page = (tmp_path / "deep" / "index.html").read_text(encoding="utf-8")
    assert f'<a href="{witness}">' in page
    fetched = re.findall(r"<(?:script|img|link|iframe)|(?:src|url\()=?['\"]?http", page)
    assert fetched == []
    assert page.count('<div class="wide">') == page.count('<div class="narrow">') == 3
    with pytest.raises(InputError, match="cannot write the report to"):
        compare(["goe-gaussian"], output=tmp_path / "deep" / "work.db" / "x", **SHORT)


def test_single_points_can_be_drawn_and_failing_ones_leave_the_others():
    own = {"a very long name of a mechanism, longer than there is room for": noisy}
    found = compared(["goe-gaussian"], own=own, **SHORT | {"n_components": 4})
    for narrow in (False, True):
        picture = comparison_figure(found, "captured_variance", narrow=narrow)
        assert "100 %" in picture
        assert "…" in picture
    # No error, so nothing to draw of it.
    page = render(found, {})
    assert "PCA without noise leaves no error" in page
    assert "There are as many components as columns" in page

    def fragile(data, rng, epsilon):
        return moment(data) if epsilon < 1 else 1 / 0

    found = compared(
        ["goe-gaussian"], own={"own": fragile}, **SHORT | {"epsilons": [0.5, 2.0]}
    )
    assert "own failed at ε = 2 only; its other points stand." in found.notes
    own = found.table[found.table["mechanism"] == "own"]
    failed = own["verdict"].str.startswith("failed: raised ZeroDivisionError")
    assert dict(zip(own["epsilon"], failed, strict=True)) == {0.5: False, 2.0: True}


def test_components_without_a_gap_after_them_are_said_not_to_be_unique():
    (note,) = run._notes(problem_of(np.tile(np.eye(4), (2, 1)), n_components=2))
    assert note.startswith("The 2 components of PCA without noise are not unique, for")
    assert run._notes(problem_of(np.diag([3.0, 2.0, 1.0]), row_norm=3.0)) == []


# -- files that are read in blocks


READERS = {x for x in suitable(SETTING) if "residual" not in x and "gibbs" not in x}


@pytest.mark.parametrize("name", sorted(READERS))
def test_mechanisms_that_need_the_moment_alone_take_it_for_data(name):
    chosen = entry(name)
    more = {"row_norm": 1.0} if chosen.has_row_norm else {}
    more |= {"n_components": 2} if chosen.has_components else {}
    mechanism = build(name, **more)
    rows = ROWS / (1.01 * np.linalg.norm(ROWS, axis=1).max())
    two = [
        mechanism.draw(data, 3, rng=np.random.default_rng(0))
        for data in (rows, gram(rows, row_norm=1.0))
    ]
    np.testing.assert_allclose(*map(np.asarray, two), rtol=1e-9, atol=1e-9)


def test_an_audit_takes_neighbours_that_are_read_once():
    """Half the noise on one row more, as all else cancels."""
    read = gram(ROWS, row_norm=1.0)
    pair = ObjectPair(read, read.with_row(np.eye(4)[0]), "add-remove")
    small = GOEGaussian.calibrated(4.0, 1e-5)
    result = audit(small, pair=pair, claim=ApproxDP(1.0, 1e-5), budget=2000)
    assert result.refuted


def test_a_file_read_in_blocks_gives_the_table_of_its_rows(tmp_path):
    names = "goe-gaussian", "exponential-pca-deflation"
    np.save(tmp_path / "rows.npy", ROWS)
    options = SHORT | {"n_components": 2, "row_norm": 0.5}
    whole = compared(names, **options)
    found = compared(names, **options | {"data": tmp_path / "rows.npy"})
    both = [each.table.drop(columns="seconds") for each in (whole, found)]
    pd.testing.assert_frame_equal(*both, rtol=1e-9)
    assert found.notes == whole.notes
    assert "60" in render(found, {})


def test_what_needs_rows_is_named_where_there_are_none(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    options = SHORT | {"data": tmp_path / "rows.npy"}
    found = compared(
        ["goe-gaussian", "residual-step-pca"], own={"mine": noisy}, **options
    )
    assert set(found.failed) == {"residual-step-pca", "mine"}
    for error in found.failed.values():
        assert "needs the rows, and a file that is read in blocks has but" in str(error)
    found = compared(**options | {"repetitions": 1, "budget": 2})
    assert {*READERS, "exponential-pca-gibbs"} == set(found.names)
    for data in ("rows.csv", "."):
        result = CliRunner().invoke(main, ["compare", "--streamed", "--data", data])
        assert result.exit_code == 2
        assert "--streamed needs --data FILE.parquet, FILE.npy or" in result.output
