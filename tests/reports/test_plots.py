from itertools import pairwise
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from results_of import verdicts
from strokes import written

from dpaudit.reports import lines, plots
from dpaudit.reports.lines import FALLEN, OPEN, WHOLE, Line, Verdicts, apart
from dpaudit.reports.plots import STYLE
from dpaudit.reports.svg import INK, MUTED, REFUTED, SERIES, told, told_whole

HEIGHTS = (0.5, 0.5, 0.1)
_BOX = ("x", "y", "width", "height")
SOME = Verdicts(refuted=["fell", "both"], standing=["stood", "both"])


@pytest.fixture
def axes():
    with matplotlib.rc_context(STYLE):
        figure = plots.canvas(300)
        found = plots.pixels(figure, 60, 40, 500, 200)
        found.set(xlim=(0, 10), ylim=(0, 1))
        yield found


def drawn(axes, *, narrow=False):
    """What it is as SVG."""
    figure = axes.figure
    svg = plots.to_svg(figure, "x", narrow=narrow, title="t", description="d")
    return ElementTree.fromstring(svg)


def shapes(axes):
    """The shapes that speak, and what they say."""
    (group,) = [g for g in drawn(axes).iter("g") if g.get("class") == "told"]
    assert group.get("fill") == "none"
    assert group.get("pointer-events") == "all"
    return [(each, each[0].text) for each in group]


def test_a_refuted_series_is_the_same_red_in_line_band_marker_and_name(axes):
    line = SOME.line("fell", 3)
    assert (line.colour, line.dash, line.label) == (REFUTED, FALLEN, "fell ✗")
    lines.band(axes, [1, 9], [[0.4, 0.6]] * 3, line, ["a", "b"])
    lines.name_ends(axes, [(line, (9, 0.6))])
    lines.list_below(axes, [line], 10, 20)
    painted = [
        *(each.get_color() for each in axes.lines),
        *(each.get_markeredgecolor() for each in axes.lines),
        *(each.get_markerfacecolor() for each in axes.lines if each.get_marker()),
        *(each.get_color() for each in axes.texts if each.get_text()),
    ]
    assert set(painted) == {REFUTED}
    (band,) = axes.collections
    assert matplotlib.colors.to_hex(band.get_facecolor()) == REFUTED
    assert SOME.line("both", 3).colour == REFUTED
    assert SOME.heading("fell") == REFUTED


def test_series_have_colours_and_markers_of_their_own_by_their_verdicts():
    every = [SOME.line("stood", place) for place in range(56)]
    assert len({(line.colour, line.marker) for line in every}) == 56
    # The refuted, of one colour, are told apart by theirs.
    assert len({SOME.line("fell", place).marker for place in range(7)}) == 7
    both = Verdicts.of(verdicts(["a"], ["b"]), verdicts(["c"], ["a"]))
    dashes = [both.line(name, 0).dash for name in "abcd"]
    assert dashes == [FALLEN, WHOLE, FALLEN, OPEN]
    stood, alone = (SOME.line(name, 2) for name in ("stood", "alone"))
    assert (stood.dash, alone.dash) == (WHOLE, OPEN)
    assert stood.colour == alone.colour == SERIES[2]
    assert stood.style["markerfacecolor"] == SERIES[2]
    assert alone.style["markerfacecolor"] != SERIES[2]
    assert (SOME.heading("stood"), SOME.heading("alone")) == (INK, MUTED)
    assert SOME.said("stood") == ""
    assert SOME.said("alone") == " (no claim audited here)"
    assert SOME.said("fell") == " (claim refuted)"


def test_no_marker_is_beyond_its_panel(axes):
    """Those at its edges are whole."""
    axes.set_ylim(0.4, 0.6)
    lines.markers(
        axes, [0, 3, 6, 9], [0.39, 0.4, 0.6, 0.61], Line("a", INK, marker="o")
    )
    assert axes.lines[-1].get_xydata().tolist() == [[3, 0.4], [6, 0.6]]


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("narrow", [False, True])
def test_a_key_says_what_is_there_and_no_more(axes, narrow, names):
    lines.key(axes.figure, [OPEN, FALLEN, OPEN], narrow=narrow, names=names)
    said = [text for text in written(ElementTree.tostring(drawn(axes)))]
    assert {"claim refuted ✗", "no claim audited here"} <= set(said)
    assert "claim audited, not refuted" not in said
    assert said.count("name") == 2 * names


def test_names_that_are_moved_are_led_to_their_lines(axes):
    ends = [(Line(name, INK), (10, y)) for name, y in zip("abc", HEIGHTS, strict=True)]
    lines.name_ends(axes, ends)
    leaders = [each for each in axes.texts if each.arrow_patch is not None]
    # The third stands where its line ends.
    assert len(leaders) == 2
    for each in leaders:
        assert each.xy[1] == pytest.approx(140)
    lines.name_ends(axes, [(Line("d", INK), (4, 0.9))])
    assert len([each for each in axes.texts if each.arrow_patch is not None]) == 3


def test_names_stay_beside_their_axes(axes):
    ends = [(Line(f"{i}\nx", INK, marker="o"), (10, 0.0)) for i in range(5)]
    lines.name_ends(axes, ends, 15.0)
    places = [each.xy[1] for each in axes.texts if each.get_text()]
    assert min(places) == pytest.approx(40 + 15)
    assert min(high - low for low, high in pairwise(sorted(places))) >= 30 - 1e-9


def test_places_are_the_nearest_that_do_not_touch():
    rng = np.random.default_rng(3)
    for _ in range(20):
        wanted, heights = rng.uniform(0, 60, 3), rng.uniform(5, 20, 3)
        found = np.array(apart(wanted, heights, (0, 60)))
        order = np.argsort(wanted)
        gaps = (heights[order][1:] + heights[order][:-1]) / 2
        low, high = heights[order[0]] / 2, 60 - heights[order[-1]] / 2

        def allowed(places, order=order, gaps=gaps, low=low, high=high):
            at = places[..., order]
            far = (np.diff(at, axis=-1) >= gaps - 1e-9).all(axis=-1)
            return far & (at[..., 0] >= low - 1e-9) & (at[..., -1] <= high + 1e-9)

        assert allowed(found)
        others = found + rng.normal(scale=3, size=(2000, 3))
        off = ((others - wanted) ** 2).sum(axis=1)[allowed(others)]
        assert (off >= ((found - wanted) ** 2).sum() - 1e-9).all()


def test_marks_say_their_values_where_they_are_drawn(axes):
    axes.set(xscale="log", xlim=(0.1, 10))
    told(axes, [1.0], [0.25], ["a < b & c"])
    ((shape, text),) = shapes(axes)
    assert text == "a < b & c"
    assert shape.tag == "circle"
    # In the middle of 60 to 560; a quarter of 200 above 40, of 300 from the top.
    assert (shape.get("cx"), shape.get("cy")) == ("310.0", "210.0")


def test_marks_at_one_place_speak_together_and_far_ones_alone(axes):
    told(axes, [5.0, 9.0], [0.5, 0.5], ["first", "last"])
    # Within 9 pixels, of 50 a unit, where one would hide the other.
    told(axes, [5.17, 9.0], [0.5, 0.55], ["second", "above"])
    assert [text for _, text in shapes(axes)] == ["first\nsecond", "last", "above"]


def test_some_marks_of_a_dense_series_speak_and_the_last_does(axes):
    x = np.linspace(0, 10, 1001)
    told(axes, x, np.full(1001, 0.5), [f"{each:g}" for each in x])
    found = shapes(axes)
    assert 30 < len(found) < 45
    assert found[-1][1] == "10"


def test_what_is_not_drawn_does_not_speak(axes):
    told(axes, [5.0, np.nan, 5.0], [0.5, 0.5, 9.0], ["in", "nan", "out"])
    told(axes, [np.nan], [np.nan], ["nothing"])
    assert [text for _, text in shapes(axes)] == ["in"]


def test_marks_stand_before_their_panel(axes):
    told(axes, [5.0], [0.5], ["a mark"])
    told_whole(axes, "the panel")
    assert [text for _, text in shapes(axes)] == ["the panel", "a mark"]


def test_tiles_and_panels_speak_where_they_are(axes):
    axes.set_ylim(4, 0)
    told_whole(axes, "the panel")
    told(axes, [2], [3], ["a tile"], (1, 1))
    (panel, whole), (tile, text) = shapes(axes)
    assert (whole, text) == ("the panel", "a tile")
    found = [[float(e.get(k)) for k in _BOX] for e in (panel, tile)]
    assert found == [[60, 60, 500, 200], [160, 210, 50, 50]]
