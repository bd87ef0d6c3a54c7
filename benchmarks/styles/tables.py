"""Histograms, contingency tables, heavy hitters, and queries as of SQL."""

import collections
import itertools
import sqlite3

import numpy as np

from benchmarks.styles.pairs import (
    APPROX,
    CODES,
    GAUSS,
    GROUPS,
    NEWGROUP,
    NUMBERS,
    ONE,
    RARE,
    RECORDS,
    TWO,
    UNIT,
)
from benchmarks.styles.registry import right, wrong
from dpaudit import ApproxDP, Pair

CUT = 1 + np.log(1 / 2e-5)  # of stability histograms, at epsilon 1 and delta 1e-5
WORDS = ("flu", "cold", "asthma", "none")


@right(ONE, CODES, "one cell moves by 1", domain=GROUPS)
def bincount(data, rng):
    """A histogram by bincount."""
    return np.bincount(data.astype(int), minlength=4) + rng.laplace(size=4)


@right(ONE, NUMBERS, "one cell moves by 1", domain=UNIT)
def histogram_of_public_bins(data, rng):
    """A histogram by numpy.histogram over public bins, cut and rounded."""
    counts, _ = np.histogram(data, bins=5, range=(0.0, 1.0))
    return np.rint(np.clip(counts + rng.laplace(scale=1.0, size=5), 0, None)).astype(
        int
    )


@wrong(ONE, NUMBERS, "the bins are those of the data")
def histogram_of_own_bins(data, rng):
    """A histogram by numpy.histogram with bins from the data."""
    counts, edges = np.histogram(data, bins=3)
    return edges, counts + rng.laplace(scale=1.0, size=3)  # fault


@right(ONE, CODES, "one cell moves by 1", domain=GROUPS)
def counter(data, rng):
    """A histogram by Counter over public words, as a dictionary."""
    counts = collections.Counter(WORDS[int(code)] for code in data)
    return {word: counts[word] + float(rng.laplace(0, 1.0)) for word in WORDS}


@wrong(ONE, RARE, "the keys are those of the data")
def counter_of_the_data(data, rng):
    """A histogram by Counter over the words that there are."""
    counts = collections.Counter(WORDS[int(code)] for code in data)
    return {word: n + rng.laplace(0, 1.0) for word, n in counts.items()}  # fault


@right(
    APPROX,
    RARE,
    "a word of one row passes with delta",
    domain=GROUPS,
    source="Korolova, Kenthapadi, Mishra, Ntoulas 2009",
)
def stability_histogram(data, rng):
    """A histogram of the words that there are, cut at a threshold."""
    out = {}
    for word, count in collections.Counter(int(code) for code in data).items():
        noisy = count + rng.laplace(0, 1.0)
        if noisy >= CUT:
            out[word] = noisy
    return sorted(out.items())


@wrong(ApproxDP(1.0, 1e-5), RARE, "the threshold is ten times too low")
def stability_with_a_low_threshold(data, rng):
    """A histogram of the words that there are, cut at a tenth of the threshold."""
    out = []
    for word, count in sorted(collections.Counter(data.tolist()).items()):
        noisy = count + rng.laplace(0, 1.0)
        if noisy >= CUT / 10:  # fault
            out.append(int(word))
    return out


@wrong(
    ApproxDP(1.0, 1e-5),
    Pair([0.0] * 9 + [1.0] * 2, [0.0] * 9 + [1.0] * 3),
    "the exact count is cut at a threshold",
)
def small_cells_suppressed(data, rng):
    """A histogram where cells of fewer than three rows are left out."""
    counts = np.bincount(data.astype(int), minlength=4)
    cells = np.flatnonzero(counts >= 3)  # fault
    return cells, counts[cells] + rng.laplace(0, 1.0, len(cells))  # part


@right(APPROX, RARE, "a word of one row passes with delta", domain=GROUPS)
def stability_by_arrays(data, rng):
    """A histogram by unique, cut at a threshold."""
    words, counts = np.unique(data, return_counts=True)
    noisy = counts + rng.laplace(0, 1.0, len(words))
    kept = noisy >= CUT
    return words[kept], noisy[kept]


@right(ONE, RECORDS, "one cell moves by 1", domain="box:0,3:2")
def histogram_in_two_dimensions(data, rng):
    """A contingency table by histogram2d."""
    edges = [0, 0.5, 1.5, 2.5, 3.01]
    cells, _, _ = np.histogram2d(data[:, 0], data[:, 1], bins=[edges, edges])
    return cells + rng.laplace(0, 1.0, cells.shape)


@right(TWO, RECORDS, "two margins at 1 each")
def margins(data, rng):
    """Both margins of a contingency table, added in place."""
    cells = np.zeros((4, 2))
    for code, amount in data:
        cells[int(code), int(amount > 0.5)] += 1
    rows, columns = cells.sum(axis=1), cells.sum(axis=0)
    rows += rng.laplace(0, 1.0, 4)
    columns += rng.laplace(0, 1.0, 2)
    return rows, columns


@wrong(ONE, RECORDS, "two margins have all of epsilon")
def margins_for_one(data, rng):
    """Both margins of a contingency table in one loop, at all of epsilon each."""
    cells = np.zeros((4, 2))
    np.add.at(cells, (data[:, 0].astype(int), (data[:, 1] > 0.5).astype(int)), 1)
    sums = (cells.sum(axis=1), cells.sum(axis=0))
    return [each + rng.laplace(0, 1.0, len(each)) for each in sums]  # fault


@wrong(ONE, CODES, "shares of an exact total")
def normalised_by_the_sum(data, rng):
    """Shares: noisy counts, divided by the exact number of rows."""
    counts = np.bincount(data.astype(int), minlength=4)
    noisy = counts + rng.laplace(0, 1.0, 4)
    return noisy / counts.sum()  # fault


@right(ONE, CODES, "shares of a noisy total", domain=GROUPS)
def normalised_by_the_noisy_sum(data, rng):
    """Shares: noisy counts, divided by their sum."""
    noisy = np.maximum(
        np.bincount(data.astype(int), minlength=4) + rng.laplace(size=4), 0
    )
    return noisy / max(noisy.sum(), 1.0)


@wrong(ONE, CODES, "noise that is made to add up to zero shows the total")
def noise_that_adds_up_to_zero(data, rng):
    """Counts with noise from which its mean is taken, so that totals are right."""
    noise = rng.laplace(0, 1.0, 4)
    counts = np.bincount(data.astype(int), minlength=4)
    return counts + (noise - noise.mean())  # fault


@wrong(ONE, RARE, "empty cells stay empty")
def noise_where_there_is_something(data, rng):
    """Counts with noise where they are not zero."""
    counts = np.bincount(data.astype(int), minlength=4).astype(float)
    return np.where(counts > 0, counts + rng.laplace(0, 1.0, 4), 0.0)  # fault


@right(ONE, RECORDS, "a sum per public group, in SQL", source="GROUP BY")
def group_by_in_sql(data, rng):
    """Sums by group in SQLite, joined to public groups."""
    with sqlite3.connect(":memory:") as base:
        base.execute("CREATE TABLE t (k INTEGER, v REAL)")
        base.executemany("INSERT INTO t VALUES (?, ?)", [(int(k), v) for k, v in data])
        rows = dict(base.execute("SELECT k, SUM(MIN(MAX(v, 0), 1)) FROM t GROUP BY k"))
    base.close()
    return [rows.get(k, 0.0) + rng.laplace(0, 1.0) for k in range(4)]


@wrong(ONE, NEWGROUP, "groups are those of the data", source="GROUP BY")
def group_by_of_the_data(data, rng):
    """Sums by group by itertools.groupby, for the groups that there are."""
    rows, out = sorted(map(tuple, data)), []
    for key, group in itertools.groupby(rows, key=lambda row: row[0]):  # fault
        total = sum(min(max(amount, 0.0), 1.0) for _, amount in group)
        out.append((key, total + rng.laplace(0, 1.0)))  # part
    return out


@right(ONE, RECORDS, "each person counts in one group, once", source="GROUP BY")
def distinct_rows(data, rng):
    """Numbers of distinct groups over public ones, a set for each."""
    members = {k: set() for k in range(4)}
    for person, (code, _) in enumerate(data):
        members[int(code)].add(person)
    return [len(members[k]) + rng.laplace(0, 1.0) for k in sorted(members)]


@right(
    ONE,
    CODES,
    "a cell of each row moves by 1, at scale 2",
    source="count-min sketch",
    domain=GROUPS,
)
def count_sketch(data, rng):
    """A sketch of two hashes with noise in its cells."""
    sketch = np.zeros((2, 3))
    for code in data.astype(int):
        for row, (a, b) in enumerate(((5, 1), (7, 2))):
            sketch[row, (a * code + b) % 3] += 1
    noisy = sketch + rng.laplace(0, 2.0, sketch.shape)
    return [float(noisy[0, (5 * k + 1) % 3]) for k in range(4)]


@right(
    ONE,
    CODES,
    "two levels of a prefix tree at 1/2",
    domain=GROUPS,
    source="heavy hitters",
)
def prefix_tree(data, rng):
    """Heavy hitters by a tree of prefixes, where branches below a cut are left."""
    codes, found = data.astype(int), []
    for high in (0, 1):
        if np.sum(codes // 2 == high) + rng.laplace(0, 2.0) < 1.5:
            continue
        for code in (2 * high, 2 * high + 1):
            noisy = np.sum(codes == code) + rng.laplace(0, 2.0)
            if noisy > 1.0:
                found.append((code, round(noisy, 1)))
    return found


@wrong(ONE, CODES, "branches are left by their exact counts")
def prefix_tree_of_exact_counts(data, rng):
    """Heavy hitters by a tree of prefixes that are cut by exact counts."""
    codes, found = data.astype(int), []
    for high in (0, 1):
        if np.sum(codes // 2 == high) > 3:  # fault
            for code in (2 * high, 2 * high + 1):
                found.append(np.sum(codes == code) + rng.laplace(0, 1.0))
    return found


@right(GAUSS, CODES, "dict of arrays: one cell moves by 1", domain=GROUPS)
def dictionary_of_arrays(data, rng):
    """A release that is a dictionary of arrays."""
    counts = np.bincount(data.astype(int), minlength=4) + rng.normal(0, 1.0, 4)
    return {"counts": counts, "shares": counts / 100, "names": list(WORDS)}


@wrong(ONE, CODES, "the noise of neighbours in the table is one draw")
def repeated_noise(data, rng):
    """Counts whose noise is two draws, each repeated twice."""
    counts = np.bincount(data.astype(int), minlength=4)
    return counts + np.repeat(rng.laplace(0, 1.0, 2), 2)  # fault
