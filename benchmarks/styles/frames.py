"""Tables as pandas has them: columns, groups, and noise for each."""
# What stubs do not know.
# pyright: reportArgumentType=false
# pyright: reportAttributeAccessIssue=false
# pyright: reportCallIssue=false

import numpy as np
import pandas as pd

from benchmarks.styles.pairs import (
    BITS,
    CODES,
    FAR,
    GAUSS,
    GROUPS,
    MISSING,
    NEWGROUP,
    NUMBERS,
    ONE,
    RECORDS,
    SWAPPED,
    TWO,
    UNIT,
)
from benchmarks.styles.registry import right, wrong
from dpaudit import Pair

CITIES = ("Aachen", "Bonn", "Celle", "Dessau")
SWAPPED_RECORDS = Pair(
    [[0.0, 0.5], [1.0, 0.25], [1.0, 1.0], [2.0, 0.0]],
    [[0.0, 0.5], [1.0, 0.25], [1.0, 1.0], [1.0, 1.0]],
)


def table(data):
    """Return records as a table of cities and amounts."""
    cities = [CITIES[int(code)] for code in data[:, 0]]
    return pd.DataFrame({"city": cities, "amount": data[:, 1]})


def column(data):
    """Return numbers as a column."""
    return pd.Series(data, name="amount", dtype=float)


@right(ONE, NUMBERS, domain=UNIT)
def sum_of_a_column(data, rng):
    """A clipped column's sum with noise."""
    return column(data).clip(0, 1).sum() + rng.laplace(0, 1.0)


@wrong(ONE, FAR, "the column is not clipped")
def sum_of_a_raw_column(data, rng):
    """A column's sum with noise, and the clipped copy is thrown away."""
    amounts = column(data)
    amounts.clip(0, 1)
    return amounts.sum() + rng.laplace(0, 1.0)  # fault


@right(ONE, RECORDS, "one group moves by at most 1", source="pandas")
def groups_reindexed(data, rng):
    """Sums by group over public groups, plus a vector of noise."""
    sums = table(data).groupby("city")["amount"].sum().reindex(CITIES, fill_value=0.0)
    return sums + rng.laplace(0, 1.0, len(CITIES))


@wrong(ONE, NEWGROUP, "the groups are those of the data")
def groups_of_the_data(data, rng):
    """Sums by group plus noise, for the groups that there are."""
    sums = table(data).groupby("city")["amount"].sum()
    return sums + rng.laplace(0, 1.0, len(sums))  # fault


@right(ONE, RECORDS)
def categorical_groups(data, rng):
    """Sizes of the groups of a categorical column."""
    frame = table(data)
    frame["city"] = pd.Categorical(frame["city"], categories=CITIES)
    sizes = frame.groupby("city", observed=False).size()
    return sizes.to_numpy() + rng.laplace(0, 1.0, 4)


@wrong(ONE, NEWGROUP, "a group without rows is left out")
def observed_groups(data, rng):
    """Sizes of the groups of a categorical column, of those that are observed."""
    frame = table(data)
    frame["city"] = pd.Categorical(frame["city"], categories=CITIES)
    sizes = frame.groupby("city", observed=True).size()
    return sizes.to_numpy() + rng.laplace(0, 1.0, len(sizes))  # fault


@right(ONE, CODES, domain=GROUPS)
def value_counts(data, rng):
    """Value counts over public values, a draw for each by a comprehension."""
    counts = pd.Series(data.astype(int)).value_counts()
    return {k: int(counts.get(k, 0)) + rng.laplace(0, 1.0) for k in range(4)}


@wrong(
    ONE,
    Pair([0.0, 1.0, 1.0, 2.0, 2.0], [0.0, 1.0, 1.0, 2.0, 2.0, 2.0]),
    "the order of the values is that of their counts",
)
def value_counts_in_order(data, rng):
    """Noisy value counts in the order of value_counts."""
    counts = pd.Series(data.astype(int)).value_counts(sort=True)
    noisy = counts + rng.laplace(0, 1.0, len(counts))
    return noisy.index.to_numpy(), noisy.to_numpy()  # fault


@right(ONE, MISSING, "what is missing counts as 0, and rows are clipped")
def fill_and_clip(data, rng):
    """A sum of a column where missing values are filled with a constant."""
    return column(data).fillna(0.0).clip(0, 1).sum() + rng.laplace(0, 1.0)


@wrong(
    ONE,
    Pair([0.0, 0.0, 0.0, 0.1], [0.0, 0.0, 0.0, 1.0]),
    "the mean fills other rows, so that one row moves many",
)
def fill_with_the_mean(data, rng):
    """A sum of a column where zeros count as missing, and get the mean."""
    amounts = column(data).where(data > 0)
    filled = amounts.fillna(amounts.mean()).clip(0, 1)  # part
    return filled.sum() + rng.laplace(0, 1.0)  # fault


@wrong(ONE, MISSING, "NaN is not clipped, and makes the sum NaN")
def nan_in_a_column(data, rng):
    """A sum of an array of a column, where nothing drops what is missing."""
    amounts = column(data).clip(0, 1).to_numpy()
    return amounts.sum() + rng.laplace(0, 1.0)  # fault


@wrong(ONE, NUMBERS, "how many values are present is exact")
def mean_of_the_present(data, rng):
    """A mean of what is present, from a noisy sum."""
    amounts = column(data).dropna().clip(0, 1)
    noisy = amounts.sum() + rng.laplace(0, 1.0)
    return noisy / max(1, len(amounts))  # fault


@right(TWO, RECORDS, "two columns of epsilon 1")
def columns_assigned(data, rng):
    """A table of noisy sums and sizes, assigned column by column."""
    groups = table(data).groupby("city")["amount"]
    out = pd.DataFrame(index=list(CITIES))
    out["total"] = groups.sum().reindex(CITIES, fill_value=0.0)
    out["total"] = out["total"] + rng.laplace(0, 1.0, 4)
    out["size"] = groups.size().reindex(CITIES, fill_value=0)
    out["size"] += rng.laplace(0, 1.0, 4)
    return out


@wrong(ONE, RECORDS, "each of two columns has all of epsilon")
def columns_unsplit(data, rng):
    """A table of noisy sums and sizes that spends epsilon twice."""
    groups = table(data).groupby("city")["amount"]
    frame = groups.agg(["sum", "size"]).reindex(CITIES, fill_value=0.0)
    noisy = frame + rng.laplace(0, 1.0, frame.shape)  # fault
    return noisy.to_numpy()


@right(ONE, SWAPPED, "each row has noise of its own", source="local privacy")
def apply_to_rows(data, rng):
    """Noise for each row by apply(axis=1)."""
    frame = pd.DataFrame({"amount": np.clip(data, 0, 1)})
    return frame.apply(lambda row: row["amount"] + rng.laplace(0, 1.0), axis=1).tolist()


@right(TWO, RECORDS, "counts and amounts have epsilon 1 each")
def apply_to_columns(data, rng):
    """Noise for each column's sum by apply."""
    frame = pd.DataFrame({"one": np.ones(len(data)), "amount": data[:, 1].clip(0, 1)})
    return frame.apply(lambda each: each.sum() + rng.laplace(0, 1.0)).to_dict()


@right(ONE, NUMBERS, "the bins are public", domain=UNIT)
def cut_and_count(data, rng):
    """A histogram by cut over public bins."""
    bins = pd.cut(column(data), [-0.01, 0.25, 0.5, 0.75, 1.0])
    counts = bins.value_counts(sort=False).to_numpy()
    return counts + rng.laplace(0, 1.0, 4)


@wrong(ONE, NUMBERS, "the bins are quantiles of the data")
def qcut_and_count(data, rng):
    """A histogram by qcut, whose bins are released with the counts."""
    bins = pd.qcut(column(data), 2, labels=False, retbins=True)
    counts = np.bincount(bins[0], minlength=2)
    return bins[1], counts + rng.laplace(0, 1.0, 2)  # fault


@right(ONE, RECORDS)
def crosstab(data, rng):
    """A contingency table by crosstab, over public rows and columns."""
    frame = table(data)
    high = frame["amount"] > 0.5
    cells = pd.crosstab(frame["city"], high)
    cells = cells.reindex(index=CITIES, columns=[False, True], fill_value=0)
    return cells.to_numpy() + rng.laplace(0, 1.0, (4, 2))


@right(ONE, RECORDS, "the groups are public, and each has a draw of its own")
def loop_over_groups(data, rng):
    """A loop over public groups with a query for each."""
    frame, noisy = table(data), {}
    for city in CITIES:
        rows = frame.query("city == @city")
        noisy[city] = rows["amount"].clip(0, 1).sum() + rng.laplace(0, 1.0)
    return pd.Series(noisy)


@wrong(ONE, NEWGROUP, "the keys of the groups are those of the data")
def loop_over_their_groups(data, rng):
    """A loop over the groups of the data with noise for each."""
    noisy = {}
    for city, rows in table(data).groupby("city"):  # fault
        noisy[city] = rows["amount"].sum() + rng.laplace(0, 1.0)  # part
    return noisy


@right(ONE, RECORDS, "the public table decides which groups there are")
def merged_with_public(data, rng):
    """A public table that is merged with sums, and noise in a new column."""
    sums = table(data).groupby("city", as_index=False)["amount"].sum()
    public = pd.DataFrame({"city": CITIES})
    merged = public.merge(sums, on="city", how="left").fillna({"amount": 0.0})
    return merged.assign(noisy=merged["amount"] + rng.laplace(0, 1.0, 4))["noisy"]


@right(ONE, CODES, domain=GROUPS)
def map_over_counts(data, rng):
    """A column of counts where map adds noise to each."""
    counts = pd.Series(data.astype(int)).value_counts().reindex(range(4), fill_value=0)
    return counts.map(lambda count: count + rng.laplace(0, 1.0)).round(2)


@right(GAUSS, RECORDS, "one row of one-hot codes", source="pandas")
def dummies(data, rng):
    """Sums of dummy columns over public names, with Gaussian noise."""
    codes = pd.get_dummies(table(data)["city"], dtype=float)
    codes = codes.reindex(columns=list(CITIES), fill_value=0.0)
    return codes.sum() + rng.normal(0, 1.0, 4)


@wrong(GAUSS, NEWGROUP, "the columns are the groups of the data")
def dummies_of_the_data(data, rng):
    """Sums of dummy columns with noise, for the columns that there are."""
    codes = pd.get_dummies(table(data)["city"], dtype=float)
    return codes.sum() + rng.normal(0, 1.0, codes.shape[1])  # fault


@wrong(
    ONE,
    Pair([0.25, 0.75, 0.5], [0.25, 0.75, 0.5, 0.9]),
    "the mean's divisor and sensitivity are private",
)
def mean_of_a_column(data, rng):
    """A column's mean with noise of scale 1/n."""
    amounts = column(data).clip(0, 1)
    return amounts.mean() + rng.laplace(0, 1.0 / len(amounts))  # fault


@right(ONE, SWAPPED, "n is public, and the mean moves by 1/n")
def mean_of_as_many(data, rng):
    """A column's mean with noise of scale 1/n, where n is public."""
    amounts = column(data).clip(0, 1)
    return amounts.mean() + rng.laplace(0, 1.0 / len(amounts))


@wrong(
    ONE,
    Pair([0.25, 0.75, 0.75, 0.75], [0.25, 0.75, 0.75, 0.75, 40.0]),
    "the bounds are those of the data",
)
def min_max_scaled(data, rng):
    """A column that is scaled by its own minimum and maximum."""
    amounts = column(data)
    scaled = (amounts - amounts.min()) / (amounts.max() - amounts.min())  # part
    return scaled.sum() + rng.laplace(0, 1.0)  # fault


@wrong(ONE, SWAPPED_RECORDS, "the rows' own index and number are released with them")
def noise_by_transform(data, rng):
    """Sums by group that transform() hands back to each row."""
    frame = table(data)
    sums = frame.groupby("city")["amount"].transform("sum")
    return sums.drop_duplicates() + rng.laplace(0, 2.0)  # fault


@right(ONE, BITS, "a noisy count, formatted", domain="codes:2")
def styled_text(data, rng):
    """A sentence with a noisy count in it."""
    count = pd.Series(data).eq(1).sum() + rng.laplace(0, 1.0)
    return np.array([len(f"about {max(count, 0.0):.0f} of them"), round(count)])


@right(ONE, RECORDS, "one cell moves by 1", source="pandas")
def pivoted(data, rng):
    """A pivot table of counts with noise from a frame of the same shape."""
    frame = table(data).assign(high=lambda each: each["amount"] > 0.5)
    cells = frame.pivot_table(
        index="city", columns="high", values="amount", aggfunc="count", fill_value=0
    ).reindex(index=CITIES, columns=[False, True], fill_value=0)
    noise = pd.DataFrame(
        rng.laplace(0, 1.0, (4, 2)), index=cells.index, columns=cells.columns
    )
    return (cells + noise).clip(lower=0)
