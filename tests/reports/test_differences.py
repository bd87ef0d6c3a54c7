import json

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from schemas import check
from seeded import rng

from dpaudit.cli import main
from dpaudit.reports.differences import ALARM, KINDS, compare_reports, page_of

AUDIT = {
    **{"mechanism": "m", "relation": "add-remove", "claim_text": "PureDP(epsilon=1.0)"},
    **{"claimed_epsilon": 1.0, "exact_epsilon": 1.0, "verdict": "NOT_REFUTED"},
    **{"epsilon_lower": 0.5, "delta_lower": 0.0},
}
ERRORS = pd.DataFrame(
    {
        **{"mechanism": np.repeat(["m", "n"], 40), "d": np.tile([5.0, 9.0], 40)},
        **{"repetition": np.arange(80) // 2 % 20, "error": rng(1).exponential(size=80)},
        **{"bottom": 0.0, "seconds": rng(2).random(80)},
    }
)


def written(folder, audits=(AUDIT, {**AUDIT, "mechanism": "n"}), errors=ERRORS, **more):
    folder.mkdir(exist_ok=True)
    for name, table in {
        "audits": pd.DataFrame(audits),
        "errors": errors,
        **more,
    }.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    return folder


def changed(tmp_path, *rows, **changes):
    """What is said where the second report has these rows, or tables."""
    audits = [{**AUDIT, **row} for row in rows] or [AUDIT]
    old = written(tmp_path / "old", [AUDIT])
    return compare_reports(old, written(tmp_path / "new", audits, **changes))


@pytest.mark.parametrize(
    ("change", "kind", "said"),
    [
        ({"verdict": "REFUTED"}, "verdict", ("NOT_REFUTED", "REFUTED")),
        ({"claim_text": "PureDP(epsilon=2.0)", "claimed_epsilon": 2.0}, "claim", None),
        ({"exact_epsilon": 1.0001}, "number", ("1", "1.0001")),
        ({"exact_epsilon": np.nan}, "number", ("1", "none")),
        ({"epsilon_lower": 0.53}, "bound", ("0.5", "0.53")),
        ({"relation": "replace-one"}, "new", None),
        ({"epsilon_lower": 0.51}, None, None),
        ({"exact_epsilon": 1.0 + 1e-9}, None, None),
    ],
)
def test_each_change_of_an_audit_is_told_once(change, kind, said, tmp_path):
    found = changed(tmp_path, change)
    told = [each for each in found.changes if each.kind != "gone"]
    assert [each.kind for each in told] == [kind] * (kind is not None)
    assert found.matters == (kind not in (None, "bound", "new"))
    if said:
        assert (told[0].old, told[0].new) == said
        assert told[0].where == "m, add-remove"


def test_errors_beyond_chance_are_told_by_cell_and_times_are_not(tmp_path):
    slow = changed(tmp_path, errors=ERRORS.assign(seconds=99.0))
    assert (slow.changes, slow.cells, slow.other, slow.matters) == ((), 8, 0, False)
    here = (ERRORS["mechanism"] == "n") & (ERRORS["d"] == 9)
    worse = ERRORS.assign(error=ERRORS["error"].where(~here, ERRORS["error"] + 9))
    found = changed(tmp_path, errors=worse)
    (one,) = found.changes
    assert (one.kind, one.table, one.what) == ("error", "errors", "median of error")
    assert (one.where, found.other) == ("n, d = 9", 1)
    lost = changed(tmp_path, errors=ERRORS.assign(error=np.nan))
    assert [each.new for each in lost.changes] == ["inf"] * 4
    few = ERRORS[ERRORS["repetition"] < 3]
    old = written(tmp_path / "old", errors=few)
    blind = compare_reports(old, written(tmp_path / "new", errors=few.assign(error=9)))
    assert (blind.changes, blind.other, blind.blind) == ((), 4, 4)
    assert "4 of them with too few" in blind.measured


def test_columns_that_came_or_went_are_told(tmp_path):
    audits = [{name: AUDIT[name] for name in AUDIT if name != "verdict"}]
    old = written(tmp_path / "old", [AUDIT])
    new = written(tmp_path / "new", audits, errors=ERRORS.drop(columns="mechanism"))
    lost = compare_reports(old, new)
    told = [(each.kind, each.table, each.where) for each in lost.changes]
    assert told == [
        ("gone", "audits", "column verdict"),
        ("gone", "errors", "column mechanism"),
        *(("gone", "errors", name) for name in ("m", "n")),
    ]
    new = written(tmp_path / "new", errors=ERRORS.assign(mechanism=np.nan))
    nameless = compare_reports(old, new).changes
    assert [each.where for each in nameless if each.table == "errors"] == ["m", "n"]
    first = ["repetition", *ERRORS.columns.drop("repetition")]
    other = written(tmp_path / "other", errors=ERRORS[first])
    assert compare_reports(other, other).cells == 0


def test_what_is_not_compared_is_told(tmp_path):
    """A headline says that nothing changed only where all was held against all."""
    some = ERRORS[(ERRORS["mechanism"] == "m") | (ERRORS["d"] == 5)]
    (lost,) = changed(tmp_path, errors=some).changes
    assert (lost.kind, lost.table, lost.where) == ("gone", "errors", "1 of 4 cells")
    (more,) = compare_reports(tmp_path / "new", tmp_path / "old").changes
    assert (more.kind, more.where) == ("new", "1 of 4 cells")
    for column, told in {
        "error": ["column error of numbers"],
        "d": ["column d of numbers", "4 of 4 cells", "5 of 5 cells"],
    }.items():
        texts = ERRORS.astype({column: object})
        texts.loc[3, column] = "oops"
        found = changed(tmp_path, errors=texts)
        assert [each.where for each in found.changes] == told


def test_numbers_of_tables_without_repetitions_are_told(tmp_path):
    exact = pd.DataFrame({"mechanism": list("abc"), "exact": [1.0, 2.0, 3.0]})
    exact["seconds"] = 1.0
    old = written(tmp_path / "old", exact=exact)
    for other, where, said in (
        (
            exact.assign(exact=[1.0, 2.5, 9.0]),
            "b (and 1 of 2 other rows)",
            ("2", "2.5"),
        ),
        (exact.assign(exact=[1.0, 2.0, np.nan]), "c", ("3", "none")),
        (exact.assign(mechanism=list("abd")), "c", ("c", "d")),
        (exact[:2], "1 rows", ("", "")),
    ):
        (one,) = compare_reports(old, written(tmp_path / "new", exact=other)).changes
        assert (one.table, one.where, (one.old, one.new)) == ("exact", where, said)
    same = exact.assign(exact=exact["exact"] * (1 + 1e-9), seconds=2.0)
    assert not compare_reports(old, written(tmp_path / "new", exact=same)).changes


def test_no_number_is_too_large_and_none_is_told_besides(tmp_path, capfd):
    huge = {**AUDIT, "exact_epsilon": "1" * 400, "epsilon": "1" * 400}
    (one,) = changed(tmp_path, {"exact_epsilon": "1" * 400}).changes
    assert (one.old, one.new) == ("1", "inf")
    written(tmp_path / "old", [huge])
    assert not compare_reports(
        tmp_path / "old", written(tmp_path / "new", [huge])
    ).changes
    # Of samples that are next to the same the exact test says p > 1, by rounding.
    five = ERRORS[ERRORS["repetition"] < 5]
    near = five.assign(error=five["error"] + 1e-5)
    written(tmp_path / "old", errors=five)
    assert not compare_reports(
        tmp_path / "old", written(tmp_path / "new", errors=near)
    ).changes
    assert capfd.readouterr().err == ""


def test_a_word_among_numbers_leaves_the_others_numbers(tmp_path):
    old = written(tmp_path / "old", [AUDIT, {**AUDIT, "mechanism": "n"}])
    rows = [AUDIT, {**AUDIT, "mechanism": "n", "epsilon_lower": "much"}]
    (one,) = compare_reports(old, written(tmp_path / "new", rows)).changes
    assert (one.where, one.old, one.new) == ("n, add-remove", "0.5", "much")


def test_chance_alone_is_told_as_a_change_as_rarely_as_it_says(tmp_path):
    """Errors of one law, with ties, and rare events: each of 30 reports is called
    changed with probability 1e-3 at most, two or more are with 5e-4."""
    draw, called = rng(4), 0
    for _ in range(30):
        fresh = [
            ERRORS.assign(
                error=draw.geometric(0.1, 80), bottom=draw.binomial(1, 0.02, 80)
            )
            for _ in range(2)
        ]
        pair = [
            written(tmp_path / name, errors=each)
            for name, each in zip(("old", "new"), fresh, strict=True)
        ]
        found = compare_reports(*pair)
        called += found.matters
        assert (found.cells, found.blind) == (8, 0)
    assert called <= 1
    assert ALARM == 1e-3


def test_the_command_prints_writes_and_ends_by_what_changed(tmp_path, capsys):
    old = written(tmp_path / "old")
    new = written(
        tmp_path / "new",
        [{**AUDIT, "mechanism": "<b>m"}],
        errors=ERRORS[ERRORS["mechanism"] == "m"],
        more=ERRORS,
    )
    page = tmp_path / "changes.html"
    arguments = ["report", "diff", str(old), str(new)]
    code = main([*arguments, "--page", str(page)], standalone_mode=False)
    text = capsys.readouterr().out
    assert code == 0  # nothing that was in both changed
    assert text.startswith("Changed: 3 no longer there, 2 new.")
    assert "  errors: n\n" in text
    assert "&lt;b&gt;m" in page.read_text()
    assert "<b>m" not in page.read_text()
    written(new, [{**AUDIT, "verdict": "REFUTED"}])
    assert main([*arguments, "--json"], standalone_mode=False) == 1
    found = json.loads(capsys.readouterr().out)
    check("report-diff", found)
    assert {each["kind"] for each in found["changes"]} <= set(KINDS)
    assert found["changes"][0]["new"] == "REFUTED"
    assert found["headline"] in page_of(compare_reports(old, new), "old", "new")


def test_what_is_no_report_is_one_sentence(tmp_path):
    old = written(tmp_path / "old")
    refuses(
        "nowhere' is no folder of a report", compare_reports, old, tmp_path / "nowhere"
    )
    (tmp_path / "empty").mkdir()
    refuses("it has no tables", compare_reports, tmp_path / "empty", old)
    (old / "broken.csv").write_bytes(b"")
    refuses("cannot read .*broken.csv", compare_reports, old, old)
    (old / "broken.csv").write_bytes(b"a,b\n1,2,3,4\n\xff\xfe")
    refuses("cannot read .*broken.csv", compare_reports, old, old)
