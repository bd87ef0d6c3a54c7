from math import inf, nan

import pandas as pd
import pytest
from audited_row import audited as audited_row

from dpaudit.reports.measures import BASELINE
from dpaudit.reports.sections.libraries.measures import LibraryComparison
from dpaudit.reports.sections.libraries.section import library_notes, library_rows
from dpaudit.reports.sections.suite.section import suite_rows
from dpaudit.reports.sections.utility import section
from dpaudit.reports.tables import Printed, quartiles, verdict_rows

# Skewed: the quartiles are 2, 4 and 8, the mean is none of them.
SKEWED = (1.0, 2.0, 4.0, 8.0, 100.0)


def printed(names, *values):
    return Printed(**dict(zip(names.split(), values, strict=True)))


TIMES = "name fit spread ratio throughput"
COMPONENTS = "name claim captured spread refuted verdict"
LIBRARIES = "name centre claim cells"


def audited(**columns):
    return pd.DataFrame([audited_row(**columns)])


def test_quartiles_are_those_of_every_group_and_times_medians():
    table = pd.DataFrame(
        {
            "who": ["b"] * 5 + ["a"] * 5,
            "where": [1, 1, 1, 1, 1, 2, 2, 2, 2, 2],
            "x": [*reversed(SKEWED), *(10 * x for x in SKEWED)],
        }
    )
    assert quartiles(table, "who", "x") == {"b": (2, 4, 8), "a": (20, 40, 80)}
    assert list(quartiles(table, ("who", "where"), "x")) == [("b", 1), ("a", 2)]
    table = pd.DataFrame(
        {
            "mechanism": [BASELINE] * 5 + ["m"] * 5,
            "fit_seconds": [*SKEWED, *(1e-3 * x for x in SKEWED)],
            "ratio": [*SKEWED, *(10 * x for x in SKEWED)],
            "releases_per_second": [nan] * 5 + [100 * x for x in SKEWED],
        }
    )
    assert section.time_rows(table) == [
        printed(TIMES, BASELINE, "4.00 s", "2.00 s – 8.00 s", "1", ""),
        printed(TIMES, "m", "4.00 ms", "2.00 ms – 8.00 ms", "40.00", "400"),
    ]


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (
            {},
            {
                **{"name": "m", "source": "a paper", "relation": "add-remove"},
                **{"claim": ("ε = 1", "δ = 0.125"), "exact": ("ε = 2", "δ = 0.25")},
                "audited": ("ε ≥ 1.50", "δ ≥ 0.2"),
                **{"refuted": False, "verdict": "NOT REFUTED", "witness_file": None},
                "hint": "On its best event ε ≥ 3 would have been refuted with 90 % "
                "power; blind to events rarer than 0.0625.",
            },
        ),
        (
            {"detectable_epsilon": nan, "claim": "not known"},
            {
                "hint": "Its last event could have shown no violation; blind to events "
                "rarer than 0.0625.",
                "exact": ("not known",),
            },
        ),
        (
            {"verdict": "REFUTED", "witness": "{}"},
            {
                **{"refuted": True, "verdict": "REFUTED"},
                "witness_file": "witness-m.json",
                "hint": "The release >= 3 in 300 of 1,000 fresh releases on D, 10 of "
                "1,000 on D' (attack: support).",
                **{"releases": "1,000", "fell": "refuted after 70"},
                "verify": "dpaudit verify witness-m.json --to-the-end --seed 1 "
                "--confidence 0.999 --max-samples 1000",
            },
        ),
    ],
)
def test_verdicts_have_what_was_claimed_what_is_true_and_what_was_proved(columns, says):
    (row,) = verdict_rows(audited(**columns))
    assert {name: getattr(row, name) for name in says} == says


def test_components_have_the_median_share_and_their_own_verdict():
    shares = pd.DataFrame(
        {
            "mechanism": ["low"] * 5 + ["high"] * 5,
            "captured_share": [0.1, 0.2, 0.3, 0.4, 0.99, 0.0, 0.5, 0.6, 0.7, 0.7],
        }
    )
    wall = pd.concat(
        [
            audited(mechanism="other"),
            audited(mechanism="high", claimed_epsilon=2.0),
            audited(mechanism="low", verdict="REFUTED"),
        ]
    )
    claims = [("ε = 2", "δ = 0.125"), ("ε = 1", "δ = 0.125")]
    high = ("high", claims[0], "60.0 %", "50.0 % to 70.0 %", False, "NOT REFUTED")
    low = ("low", claims[1], "30.0 %", "20.0 % to 40.0 %", True, "REFUTED")
    assert section.component_rows(shares, wall) == [
        printed(COMPONENTS, *high),
        printed(COMPONENTS, *low),
    ]


def test_the_best_of_each_kind_is_named_and_sn_beside_its_rivals():
    def notes(sn, refuted):
        names = ["gauss", "pure", "symmetric-noise", "exponential-pca-gibbs"]
        shares = pd.DataFrame(
            {"mechanism": names, "captured_share": [0.9, 0.5, sn, 0.6]}
        )
        deltas = (1e-5, 0.0, 0.0, 0.0)
        wall = pd.concat(
            audited(
                mechanism=name,
                claimed_delta=at,
                verdict="REFUTED" if name in refuted else "NOT_REFUTED",
            )
            for name, at in zip(names, deltas, strict=True)
        )
        return section.component_notes(shares, wall)

    first, second, third = notes(0.7, ["symmetric-noise"])
    assert first.startswith("gauss captures most of those with approximate claims")
    assert second.startswith("exponential-pca-gibbs captures most of those with pure")
    assert "is supported on these rows: it captures 70.0 %, they 60.0 %, but" in third
    _, second, third = notes(0.55, [])
    assert second.startswith("exponential-pca-gibbs")
    assert "is not seen on these rows" in third
    assert "but" not in third
    assert notes(0.7, [])[1].startswith("symmetric-noise captures most")


def test_the_fastest_and_the_slowest_fit_are_named():
    table = pd.DataFrame(
        {
            "mechanism": ["non-private-pca", "slow", "slow", "slow", "fast"],
            "ratio": [1.0, 2.0, 9.0, 4.0, 1.5],
        }
    )
    assert section.time_note(table) == (
        "A fit takes 1.50 times as long as one without privacy with fast, the fastest, "
        "and 4.00 times with slow, the slowest."
    )


@pytest.mark.parametrize(
    ("verdict", "lower", "fell", "shown"),
    [
        ("REFUTED", 0.1, "refuted after 70", "> 0.10"),
        ("NOT_REFUTED", 0.05, None, "≥ 0.05"),
    ],
)
def test_the_suite_has_the_truth_beside_the_bound(verdict, lower, fell, shown):
    told = {"summary": "what it does", "source": "a paper", "relation": "replace-one"}
    row = audited(
        **told,
        claimed_epsilon=0.1,
        claimed_delta=1e-5,
        true_epsilon=inf,
        epsilon_lower=lower,
        verdict=verdict,
    )
    (found,) = suite_rows(row)
    assert (
        vars(found).items()
        >= {
            **{"name": "m", **told, "claim": "0.1, δ = 10⁻⁵", "truth": "∞"},
            **{"audited": shown, "refuted": verdict == "REFUTED", "fell": fell},
            **{"verdict": verdict.replace("_", " "), "releases": "1,000"},
        }.items()
    )


def test_libraries_have_the_medians_of_the_fits_that_ended():
    fit = {"contender": "a", "centre": "known", "delta": 0.0, "n_components": 2}
    ended = [
        {**fit, "dimension": 6, "captured_share": x / 100, "fit_seconds": 10 * x}
        for x in SKEWED
    ]
    none = [{**fit, "dimension": 54, "captured_share": None, "fit_seconds": None}]
    found = LibraryComparison({}, 0.5, "replace-one", 10, 5, 60.0, [*ended, *none])
    cells = (("4.0 %", "40.0 s"), ("no fit", "within 60 s"))
    row = printed(LIBRARIES, "a", "known", ("ε = 0.50", "δ = 0"), cells)
    assert library_rows(found) == [row]
    # Nobody is best where no fit ended.
    found.records.extend(
        ended[0] | {"contender": name, "captured_share": share}
        for name, share in (("best", 0.8), ("middling", 0.5))
    )
    assert library_notes(found) == [
        "With 2 of 6 components best captures most, 80.0 %."
    ]
