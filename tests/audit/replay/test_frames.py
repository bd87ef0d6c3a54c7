"""Noise in pandas: what keeps it, what looks at it, and that a false claim falls."""

import numpy as np
import pandas as pd
import pytest

from dpaudit import Pair, PureDP
from dpaudit.audit import replay

PAIR = Pair([[0.2], [0.4], [0.5], [0.9]], [[0.2], [0.4], [0.5], [0.9], [1.0]])
KEYS = ["a", "b", "c"]


def table(data):
    x = np.asarray(data)[:, 0].clip(0, 1)
    k = np.select([x < 0.33, x < 0.66], ["a", "b"], "c")
    return pd.DataFrame({"k": k, "x": x, "high": np.where(x > 0.7, "y", "n")})


def counts(data):
    return table(data)["k"].value_counts().reindex(KEYS, fill_value=0)


def noisy(data, rng):
    return counts(data) + rng.laplace(size=3)


def with_new_labels(data, rng):
    made = pd.Series({"z": 1.0})
    for key, count in counts(data).items():
        made[key] = count + rng.laplace()
    return made


def in_place(data, rng):
    made = pd.DataFrame({"n": counts(data)})
    made["n"] += rng.laplace(size=3)
    made["twice"] = 2 * made["n"]
    return made["twice"]


def by_entry(data, rng):
    made = counts(data).astype(float)
    for key in KEYS:
        made[key] += rng.laplace()
    return made


def crossed(data, rng):
    made = pd.crosstab(table(data).k, table(data).high)
    made = made.reindex(index=KEYS, columns=["n", "y"], fill_value=0)
    return (made + rng.laplace(size=made.shape)).to_numpy() / 2


FOLLOWED = {
    "a vector": noisy,
    "from the left": lambda data, rng: rng.laplace(size=3) + counts(data),
    "a method": lambda data, rng: counts(data).add(rng.laplace(size=3)).tolist(),
    "a series": lambda data, rng: counts(data) + pd.Series(rng.laplace(size=3), KEYS),
    "sums": lambda data, rng: (
        table(data).groupby("k")["x"].sum().reindex(KEYS, fill_value=0)
        + rng.laplace(size=3)
    ),
    **{"in place": in_place, "two axes": crossed},
    "columns": lambda data, rng: (
        pd.DataFrame({"n": counts(data)}).apply(lambda c: c + rng.laplace(size=3)).T
    ),
    "by entries": lambda data, rng: counts(data).map(lambda n: n + rng.laplace()),
    "a series of them": lambda data, rng: pd.Series(
        {key: n + rng.laplace() for key, n in counts(data).items()}
    ),
    "joined": lambda data, rng: pd.concat([noisy(data, rng), pd.Series({"z": 1})]),
    "merged": lambda data, rng: (
        pd.DataFrame({"k": KEYS})
        .merge(noisy(data, rng).rename("n").reset_index(), on="k")
        .to_dict("records")
    ),
    "one": lambda data, rng: noisy(data, rng).drop("a").loc["c"] / 3,
    "an array": lambda data, rng: np.asarray(noisy(data, rng))[::-1],
    "a label": lambda data, rng: pd.Series(table(data).size / 3 + rng.laplace(), ["n"]),
    "new labels": with_new_labels,
    "a row": lambda data, rng: pd.DataFrame({"n": noisy(data, rng)["c"]}, index=[0]),
}
LOOKED_AT = {
    "clipped": lambda data, rng: noisy(data, rng).clip(lower=0),
    "rounded": lambda data, rng: noisy(data, rng).round().astype(int),
    "sorted": lambda data, rng: noisy(data, rng).sort_values().head(2),
    "a part": lambda data, rng: noisy(data, rng)[lambda s: s > 1].to_json(),
    "shares": lambda data, rng: (lambda s: s / s.sum())(noisy(data, rng).abs()),
    "entry by entry": by_entry,
    "a description": lambda data, rng: noisy(data, rng).describe(),
}


@pytest.mark.filterwarnings("ignore:Setting an item of incompatible")
@pytest.mark.parametrize("name", FOLLOWED)
def test_a_noisy_column_has_the_loss_of_an_array(name):
    kept = replay(FOLLOWED[name], pair=PAIR, claim=PureDP(1.0))
    assert kept.verdict == "NOT_REFUTED"
    assert kept.loss == pytest.approx(1)
    false = replay(FOLLOWED[name], pair=PAIR, claim=PureDP(0.3))
    assert (false.verdict, bool(false.proof)) == ("REFUTED", True)


@pytest.mark.parametrize("name", LOOKED_AT)
def test_what_looks_at_a_column_leaves_a_transcript(name):
    kept = replay(LOOKED_AT[name], pair=PAIR, claim=PureDP(1.0))
    assert kept.verdict == "NOT_REFUTED"
    false = replay(LOOKED_AT[name], pair=PAIR, claim=PureDP(0.5), sees="transcript")
    assert (false.verdict, bool(false.proof)) == ("REFUTED", True)


def with_rows(data, rng):
    return noisy(data, rng).rename("n").to_frame().assign(rows=len(data))


def over_rows(data, rng):
    return noisy(data, rng) / len(data)


def with_labels(data, rng):
    values = table(data)["x"].value_counts()
    return values + rng.laplace(size=len(values))


def with_categories(data, rng):
    return pd.Series(table(data)["x"].astype("category").iloc[:1]), noisy(data, rng)


def with_levels(data, rng):
    left = table(data).groupby(["k", "x"]).size().loc[["a"]]
    return left * 0.0 + rng.laplace()


def written_by_rows(data, rng):
    return f"{3 if len(data) > 4 else 3.0}", counts(data).sum() + rng.laplace()


def padded_by_rows(data, rng):
    return ["007" if len(data) > 4 else "7", counts(data).sum() + rng.laplace()]


FORMS = [with_labels, with_categories, with_levels, written_by_rows, padded_by_rows]


@pytest.mark.parametrize(
    ("kind", "mechanism"),
    [
        ("release", with_rows),
        ("scale", over_rows),
        *(("structure", each) for each in FORMS),
    ],
)
def test_what_has_no_noise_is_a_finding(kind, mechanism):
    result = replay(mechanism, pair=PAIR, claim=PureDP(1.0))
    assert (result.verdict, bool(result.proof)) == ("REFUTED", True)
    assert kind in {each.kind for each in result.findings}


def test_labels_that_differ_are_told_in_a_few_words():
    def labels(data, rng):
        return table(data)["k"].value_counts().apply(lambda n: n + rng.laplace())

    pair = Pair(np.empty((0, 1)), [[0.2]])
    (finding,) = replay(labels, pair=pair, claim=PureDP(1.0)).findings
    assert (
        "is ... [ ] no number on D and ... [ 'a' ] 1 number on D'," in finding.message
    )
