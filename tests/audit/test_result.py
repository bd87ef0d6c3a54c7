"""What a result prints, every number beside its claim, and how it shows itself.

In a line, in a notebook, as a picture, as a page.
"""

import json
from dataclasses import replace
from functools import partial
from html import escape

import numpy as np
import pytest
from audit_cases import PAIR, laplace_sum
from matplotlib.figure import Figure

from dpaudit import ApproxDP, GaussianDP, Pair, Profile, PureDP, ZeroConcentratedDP
from dpaudit.attacks import Identity
from dpaudit.audit import Budget, Judged, Run, Verdict, audit, audit_guesses, replay
from dpaudit.reports.page import page_of, write_page

pytestmark = pytest.mark.usefixtures("in_few_rounds")

CLAIMS = [
    *(PureDP(1.0), GaussianDP(1.0), ZeroConcentratedDP(0.5)),
    Profile((1.0, 2.0), (0.2, 0.05)),
]


def gaussian_sum(data, rng):
    return data.sum() + rng.normal(scale=2.0)


@pytest.fixture(scope="module")
def results():
    options = {"pair": PAIR, "run": Run(attacks=[Identity()]), "budget": 150}
    return {claim: audit(gaussian_sum, claim=claim, **options) for claim in CLAIMS}


def test_numbers_that_json_does_not_have_are_words(results):
    result = replace(
        results[CLAIMS[0]],
        at_delta=0.0,
        claim=GaussianDP(1.0),
        trajectory=((1, np.inf),),
    )
    written = result.to_dict()
    assert written["allowed_epsilon"] == "inf"
    assert written["trajectory"] == [[1, "inf"]]


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_bounds_the_claim_and_what_was_detectable_can_be_compared(results, claim):
    """All are epsilons at one delta, in this order unless the claim is refuted."""
    result = results[claim]
    assert not result.refuted
    assert result.allowed_epsilon == claim.epsilon_at(result.at_delta)
    assert result.allowed_delta == claim.delta_at(result.at_epsilon)
    assert result.epsilon_lower <= result.allowed_epsilon
    assert result.allowed_epsilon <= result.detectable_epsilon
    assert (result.detectable_mu is None) == (not isinstance(claim, GaussianDP))
    stored = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert stored["allowed_epsilon"] == result.allowed_epsilon
    assert stored["allowed_delta"] == result.allowed_delta
    # Every epsilon is printed with its delta, and what the claim allows there.
    delta = f"at delta = {result.at_delta:.3g}"
    lines = str(result).splitlines()
    (bound,) = (line for line in lines if "epsilon_lower" in line)
    assert bound.endswith(
        f"({delta}, where the claim allows {result.allowed_epsilon:.4g})"
    )
    (bound,) = (line for line in lines if "delta_lower" in line)
    assert bound.endswith(
        f"(at epsilon = {result.at_epsilon:.4g}, where the claim allows "
        f"{result.allowed_delta:.3g})"
    )
    assert f"epsilon >= {result.detectable_epsilon:.4g} {delta}" in lines[-1]
    uneven = replace(result, drawn=(1000, 2000))
    assert "2,000 on the neighbour" in str(uneven)


@pytest.mark.parametrize(
    "claim", [PureDP(0.1), ApproxDP(0.1, 0.05), GaussianDP(0.3)], ids=str
)
def test_refuted_claims_have_a_bound_that_refutes_them(claim):
    def clear_sum(data, rng):
        return data.sum() + rng.normal(scale=0.3)

    options = {"pair": PAIR, "run": Run(attacks=[Identity()]), "budget": 300}
    result = audit(clear_sum, claim=claim, **options)
    assert result.refuted
    if isinstance(claim, GaussianDP):
        assert result.mu_lower >= claim.parameters["mu"]
    else:
        assert result.at_delta == claim.parameters.get("delta", 0.0)
        assert result.epsilon_lower >= claim.parameters["epsilon"]


def test_gaussian_claims_have_a_mu_and_bounds_above_them_are_explained(results):
    result = results[GaussianDP(1.0)]
    assert 1.0 < result.detectable_mu
    epsilon = GaussianDP(result.detectable_mu).epsilon_at(result.at_delta)
    assert epsilon == pytest.approx(result.detectable_epsilon)
    text = str(result)
    assert f"mu_lower       {result.mu_lower:.4g}  (the claim allows 1)" in text
    assert f"(mu >= {result.detectable_mu:.4g}) on its best event" in text
    assert replace(result, detectable_epsilon=None).detectable_mu is None
    # It is a test of its own, at an error probability of its own.
    result = results[GaussianDP(1.0)]
    above = replace(result, epsilon_lower=result.allowed_epsilon + 0.1)
    for shown, explained in (
        (result, False),
        (above, True),
        (replace(above, verdict=Verdict.REFUTED), False),
    ):
        assert ("epsilon_lower alone exceeds" in str(shown)) == explained


def test_results_of_all_kinds_have_the_same_face():
    options = {"pair": PAIR, "claim": PureDP(0.5), "seed": 1}
    wrong = partial(audit, laplace_sum), partial(replay, laplace_sum)
    coins = [True, False] * 20
    guesses = audit_guesses(coins, coins, claim=PureDP(0.5))
    for result in (*(judge(**options) for judge in wrong), guesses):
        assert isinstance(result, Judged)
        assert result.refuted
        assert result.findings
        assert all(str(finding) for finding in result.findings)
        assert 0 < result.confidence < 1
        json.dumps(result.to_dict(), allow_nan=False)
        assert "REFUTED" in result._repr_html_()


HOSTILE = "<script>alert(1)</script>\x1b[31m & two\nlines"


def noisy_sum(data, rng):
    return data.sum() + rng.laplace(scale=0.4)


@pytest.fixture(scope="module")
def result():
    pair, run = Pair([0.0], [0.0, 1.0]), Run(name=HOSTILE)
    budget = Budget(400, refine=0.2)
    return audit(noisy_sum, pair=pair, claim=PureDP(1.0), budget=budget, run=run)


def test_a_result_is_one_line_and_a_notebook_shows_all_that_print_does(result):
    assert "\n" not in repr(result)
    assert "\x1b" not in repr(result)
    assert "REFUTED at confidence 0.999, epsilon >= " in repr(result)
    shown = result._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    for line in str(result).splitlines()[1:]:
        name, _, text = line.strip().partition("  ")
        assert escape(name) in shown
        assert escape(text.strip()) in shown


def test_the_trajectory_ends_with_the_bound_and_the_roc_is_of_past_releases(result):
    releases, bounds = zip(*result.trajectory, strict=True)
    assert list(releases) == sorted(set(releases))
    assert releases[-1] == result.samples
    assert bounds[-1] == result.epsilon_lower
    assert list(bounds) == sorted(bounds)
    before = [bound for n, bound in result.trajectory if n < result.refuted_at]
    assert max(before) < 1.0
    on_neighbour, on_data = np.array(result.roc).T
    assert (np.diff(on_neighbour) >= 0).all()
    assert (np.diff(on_data) >= 0).all()
    # At the best event, a release below 1/2 or above, the laws differ by 0.71; chance
    # moves a difference of a hundred releases a side by 0.06.
    widest = np.abs(on_data - on_neighbour).max()
    assert widest == pytest.approx(1 - np.exp(-1.25), abs=0.35)


def test_it_is_drawn_and_without_a_verdict_is_not(result):
    figure = result.plot()
    assert isinstance(figure, Figure)
    bound, roc = figure.axes
    (proven,) = (line for line in bound.lines if line.get_label() == "proven, at least")
    assert proven.get_ydata()[-1] == result.epsilon_lower
    assert bound.get_ylim()[0] == 0
    (seen,) = (line for line in roc.lines if "as seen" in line.get_label())
    assert (seen.get_ydata() >= seen.get_xdata() - 0.1).all()
    diagonal = roc.lines[-1]  # what guessing reaches
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata()) == [0, 1]
    page = page_of([result.withdrawn()])
    assert "NO VERDICT" in page
    assert "Nothing follows from these releases." in page
    assert "<figure" not in page
    assert "<figure" in page_of([result])


def test_results_are_drawn_without_an_event_too_and_claims_objects_in_json():
    pair = Pair([0.0], [1.0], "replace-one")
    silent = audit(lambda data, rng: "no", pair=pair, claim=GaussianDP(1.0), budget=20)
    assert silent.roc == ()
    assert len(silent.plot().axes) == 2
    curve = {"epsilons": [0.0, 1.0], "deltas": [0.5, 0.3]}
    for claim, printed in (
        (ApproxDP(0.1 + 0.2, 1e-5), {"epsilon": 0.3, "delta": 1e-5}),
        (Profile([0.0, 1.0], [0.5, 0.1 + 0.2]), curve),
    ):
        named = {"kind": type(claim).__name__, "text": str(claim)}
        assert json.loads(json.dumps(claim.to_dict())) == printed | named
        assert "0.30000000000000004" not in str(claim)
        assert "0.30000000000000004" in repr(claim)


def test_a_page_of_one_audit(result, tmp_path):
    page = page_of([result])
    assert "<script>alert" not in page
    assert "\x1b" not in page
    assert page.count("<svg") == 1
    for outside in ("http:", "https:", "src=", "@import"):
        inside = page.replace("http://www.w3.org", "").replace("https://matplotlib", "")
        assert outside not in inside, outside
    assert ">REFUTED</span>" in page
    write_page([result], tmp_path / "page.html")
    assert "epsilon_lower" in (tmp_path / "page.html").read_text(encoding="utf-8")
