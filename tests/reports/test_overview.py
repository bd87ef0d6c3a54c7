import pandas as pd
import pytest
from audited_row import audited

from dpaudit.reports.site import mechanisms
from dpaudit.reports.tables import verdict_rows


def standing(name, family, verdict="NOT_REFUTED", claim="not known", planted=False):
    row = audited(mechanism=name, verdict=verdict, claim=claim)
    (shown,) = verdict_rows(pd.DataFrame([row]))
    return mechanisms.Standing(name, family, (shown,), planted=planted)


def by_name(*found):
    return {each.name: each for each in found}


SOUND = standing("sound", "covariance")
BROKEN = standing("broken", "robust", "REFUTED")
FORMULA = standing("formula", "subspace", claim="false")
PLANTED = standing("planted", "robust", "REFUTED", planted=True)
MISSED = standing("missed", "robust", planted=True)
SUITE = standing("suite", "textbook", "REFUTED")
UNDECIDED = standing("undecided", "online", "NO_VERDICT")
SILENT = mechanisms.Standing("silent", "online")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((), "No privacy claim was audited"),
        ((SILENT, SUITE, PLANTED), "No privacy claim was audited"),
        ((SOUND, UNDECIDED), "None of one audited privacy claim fell"),
        ((SOUND, BROKEN, PLANTED), "One of two audited privacy claims fell"),
        ((SOUND, BROKEN, FORMULA, SUITE), "Two of three audited privacy claims fell"),
    ],
)
def test_the_headline_counts_claims_of_all_families_that_are_meant(found, expected):
    assert mechanisms.headline(by_name(*found)) == expected


def test_the_lead_names_what_fell_and_tells_purpose_from_promise():
    text = mechanisms.lead(by_name(SOUND, BROKEN, PLANTED, MISSED, SUITE))
    assert text == (
        "Audits refuted what is claimed for broken. One of two mistakes that we "
        "made on purpose was found. What was not refuted is not thereby proven private."
    )
    assert mechanisms.lead(by_name(FORMULA)) == "False is what is claimed for formula."
    assert mechanisms.lead({}) == ""


def test_each_family_has_a_sentence_and_many_audits_may_err_more_often():
    told = dict(
        mechanisms.group_sentences(
            by_name(SOUND, BROKEN, PLANTED, MISSED, SUITE, SILENT)
        )
    )
    assert told["robust"].endswith(
        ": one of one audited claim was refuted (broken), and one of two mistakes "
        "that we made on purpose was found; up to 1,000 releases a side."
    )
    assert ": none of one audited claim was refuted; up to" in told["covariance"]
    assert ": one of one audited claim was refuted (suite); up" in told["textbook"]
    assert told["online"].endswith(": one in the catalogue, not audited here.")
    assert "streaming" not in told
    # By the union bound: every audited claim adds its alpha, planted ones too.
    said = mechanisms.overview(by_name(SOUND, BROKEN, PLANTED, SUITE, SILENT))
    assert said["alpha"] == pytest.approx(0.001)
    assert said["any"] == pytest.approx(0.004)
    assert mechanisms.overview({})["any"] == 0


def test_what_came_to_no_verdict_or_was_not_audited_does_not_stand():
    said = mechanisms.overview(by_name(SOUND, UNDECIDED, SILENT))
    assert said["undecided"] == ["undecided"]
    assert [each.name for each in said["unknown"]] == ["sound"]
    assert said["left_out"] == ["silent"]
    assert UNDECIDED.verdict == "NO VERDICT"
    (row,) = UNDECIDED.audits
    assert row.hint == "Its releases were seen not to be independent draws."
    said = mechanisms.overview(by_name(SOUND, BROKEN, SILENT, FORMULA))
    names = {kind: [e.name for e in said[kind]] for kind in ("unknown", "broken")}
    assert names == {"unknown": ["sound"], "broken": ["broken", "formula"]}
    assert (said["left_out"], said["kept"]) == (["silent"], [])
