"""How a result shows itself: in a line, in a notebook, as a picture, as a page."""

import json
from html import escape

import numpy as np
import pytest
from matplotlib.figure import Figure

from dpaudit import ApproxDP, GaussianDP, Pair, Profile, PureDP
from dpaudit.audit import Budget, Run, audit
from dpaudit.reports.audit_page import page_of, write_page

HOSTILE = "<script>alert(1)</script>\x1b[31m & two\nlines"


def noisy_sum(data, rng):
    return data.sum() + rng.laplace(scale=0.4)


@pytest.fixture(scope="module")
def result():
    pair, run = Pair([0.0], [0.0, 1.0]), Run(name=HOSTILE)
    budget = Budget(400, refine=0.2)
    return audit(noisy_sum, pair=pair, claim=PureDP(1.0), budget=budget, run=run)


def test_a_result_is_one_line(result):
    assert "\n" not in repr(result)
    assert "\x1b" not in repr(result)
    assert "REFUTED at confidence 0.999, epsilon >= " in repr(result)


def test_a_notebook_shows_all_that_print_does(result):
    shown = result._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    for line in str(result).splitlines()[1:]:
        name, _, text = line.strip().partition("  ")
        assert escape(name) in shown
        assert escape(text.strip()) in shown


def test_the_trajectory_ends_with_the_bound(result):
    releases, bounds = zip(*result.trajectory, strict=True)
    assert list(releases) == sorted(set(releases))
    assert releases[-1] == result.samples
    assert bounds[-1] == result.epsilon_lower
    assert list(bounds) == sorted(bounds)
    before = [bound for n, bound in result.trajectory if n < result.refuted_at]
    assert max(before) < 1.0


def test_the_roc_is_of_past_releases(result):
    on_neighbour, on_data = np.array(result.roc).T
    assert (np.diff(on_neighbour) >= 0).all()
    assert (np.diff(on_data) >= 0).all()
    # At the best event, a release below 1/2 or above, the laws differ by 0.71; chance
    # moves a difference of a hundred releases a side by 0.06.
    widest = np.abs(on_data - on_neighbour).max()
    assert widest == pytest.approx(1 - np.exp(-1.25), abs=0.35)


def test_it_is_drawn(result):
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


def test_a_result_without_an_event_is_drawn_too():
    pair = Pair([0.0], [1.0], "replace-one")
    silent = audit(lambda data, rng: "no", pair=pair, claim=GaussianDP(1.0), budget=20)
    assert silent.roc == ()
    assert len(silent.plot().axes) == 2


def test_claims_are_objects_in_json():
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
    page = page_of(result)
    assert "<script>alert" not in page
    assert "\x1b" not in page
    assert page.count("<svg") == 1
    for outside in ("http:", "https:", "src=", "@import"):
        inside = page.replace("http://www.w3.org", "").replace("https://matplotlib", "")
        assert outside not in inside, outside
    assert ">REFUTED</span>" in page
    write_page(result, tmp_path / "page.html")
    assert "epsilon_lower" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_page_without_a_verdict_draws_nothing(result):
    page = page_of(result.withdrawn())
    assert "NO VERDICT" in page
    assert "Nothing follows from these releases." in page
    assert "<figure" not in page
    assert "<figure" in page_of(result)
