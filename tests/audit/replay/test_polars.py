"""Series of polars with noise: what keeps it, what looks at it, and what is found."""

import numpy as np
import pytest

from dpaudit import Pair, PureDP
from dpaudit.audit.replay import replay

pl = pytest.importorskip("polars")

PAIR = Pair([0.0, 1.0, 1.0, 0.5], [0.0, 1.0, 1.0, 0.5, 1.0])
ONE, EACH = pl.DataFrame({"g": [0, 1]}), {"on": "g", "how": "left"}


def frame(x):
    x = np.ravel(x)
    return pl.DataFrame({"g": (x > 0.4).astype(int), "x": x})


def counts(x):
    return ONE.join(frame(x).group_by("g").agg(n=pl.len()), **EACH)["n"].fill_null(0)


def total(x):
    return frame(x).select(pl.col("x").sum())


OPEN = {
    "series plus noise": lambda x, r, b: counts(x) + r.laplace(scale=b, size=2),
    "noise plus series": lambda x, r, b: r.laplace(scale=b, size=2) + counts(x),
    "series of noise": lambda x, r, b: (
        pl.Series(r.laplace(scale=b, size=2)) + counts(x)
    ),
    "list of noise": lambda x, r, b: (
        counts(x) - pl.Series("z", [r.laplace(scale=b), r.laplace(scale=b)])
    ).alias("n"),
    "scaled": lambda x, r, b: (
        2 * (1 - (counts(x) / 2 + r.laplace(scale=b / 2, size=2))).to_numpy()
    ),
    "elements": lambda x, r, b: counts(x).map_elements(
        lambda n: n + r.laplace(scale=b), return_dtype=pl.Float64
    ),
    "item": lambda x, r, b: (total(x)["x"] + r.laplace(scale=b)).item(),
    "by name": lambda x, r, b: dict(
        zip("ab", counts(x) + r.laplace(scale=b, size=2), strict=True)
    ),
    "one of them": lambda x, r, b: (counts(x) + r.laplace(scale=b, size=2))[1:],
}
LOOKED_AT = {
    "column": lambda x, r, b: ONE.with_columns(
        noisy=counts(x) + r.laplace(scale=b, size=2)
    ).select("noisy"),
    "frame plus noise": lambda x, r, b: total(x) + r.laplace(scale=b),
    "noise plus frame": lambda x, r, b: r.laplace(scale=b) + total(x),
    "rounded": lambda x, r, b: (counts(x) + r.laplace(scale=b, size=2)).round(1),
    "lazy": lambda x, r, b: (
        pl.LazyFrame({"n": counts(x) + r.laplace(scale=b, size=2)})
        .select(pl.col("n") * 2)
        .collect()
    ),
}
NOT_FOLLOWED = {
    "literal": lambda x, r: frame(x).select(pl.col("x").sum() + pl.lit(r.laplace())),
    "expression": lambda x, r: frame(x).select(pl.col("x").sum() + r.laplace()),
    "series": lambda x, r: frame(x).select(
        pl.col("x").sum() + pl.Series([r.laplace()])
    ),
    "missing": lambda x, r: pl.Series([None, 1]) + counts(x) + r.laplace(size=2),
}


def judged(made, scale):
    def mechanism(x, rng):
        return made(x, rng, scale)

    return replay(mechanism, pair=PAIR, claim=PureDP(1.0))


@pytest.mark.parametrize("name", OPEN)
def test_what_keeps_noise_has_an_exact_law(name):
    right, wrong = (judged(OPEN[name], scale) for scale in (1.0, 0.6))
    assert right.verdict == "NOT_REFUTED"
    assert right.explored is None, "nothing was looked at"
    assert right.loss == pytest.approx(1)
    assert wrong.verdict == "REFUTED"
    assert wrong.proof
    assert wrong.findings[0].where.rpartition("/")[2].startswith("test_polars.py")


@pytest.mark.parametrize("name", LOOKED_AT)
def test_what_looks_at_noise(name):
    right, wrong = (judged(LOOKED_AT[name], scale) for scale in (1.0, 0.2))
    assert right.verdict == "NOT_REFUTED"
    assert right.explored is not None
    assert wrong.verdict != "NOT_REFUTED"
    assert wrong.findings[0].kind == "distance"
    assert wrong.findings[0].where.rpartition("/")[2].startswith("test_polars.py")


@pytest.mark.parametrize("name", NOT_FOLLOWED)
def test_what_is_not_followed(name):
    result = replay(NOT_FOLLOWED[name], pair=PAIR, claim=PureDP(1.0), budget=2)
    assert result.verdict == "NOT_FOLLOWED"
    coin = next(each for each in result.findings if each.kind == "coin")
    assert coin.where.rpartition("/")[2].startswith("test_polars.py")


def test_names_are_part_of_a_release():
    def named(x, rng):
        return pl.Series("n" * len(x), [0.0]) + rng.laplace()

    result = replay(named, pair=PAIR, claim=PureDP(1.0))
    assert (result.verdict, result.findings[0].kind) == ("REFUTED", "structure")


def test_a_series_that_is_kept_has_the_noise_of_its_execution():
    kept = []

    def mechanism(x, rng):
        kept.append(counts(x) + rng.laplace(size=2))
        return kept[0]

    result = replay(mechanism, pair=PAIR, claim=PureDP(1.0))
    assert result.verdict == "NOT_FOLLOWED"
    assert any("earlier execution" in each.message for each in result.findings)
