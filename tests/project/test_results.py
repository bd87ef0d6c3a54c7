"""What is kept at the papers' sizes is what the code gives now, and it is whole.

The share of one per cent is of the cells that take a second or less. In a test
that takes hours it is of all of them.
"""

from dataclasses import replace
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dpaudit.reports.experiment import cells
from dpaudit.reports.sections import plan

ROOT = Path(__file__).parents[2]
results = SimpleNamespace(**run_path(str(ROOT / "docs" / "results.py")))
CHEAP = 1.0  # seconds


def named(cell):
    return f"{cell.mechanism}-{'-'.join(f'{v:g}' for v in cell.point.values())}"


@pytest.mark.parametrize(
    ("experiment", "cell"),
    list(results.chosen(0.01, 0, CHEAP)),
    ids=lambda part: part.name if hasattr(part, "name") else named(part),
)
def test_cells_are_what_they_were(experiment, cell):
    assert results.check(experiment, cell) == []


@pytest.mark.hard
@pytest.mark.parametrize("seed", range(1, 4))
def test_more_cells_are_what_they_were(seed):
    for experiment, cell in results.chosen(0.01, seed, np.inf):
        assert results.check(experiment, cell) == []


def of_mechanism(name):
    """Return a cell of the smallest experiment that draws from a mechanism."""
    experiment = plan("full", 0)["sn-n-synthetic"]
    return experiment, next(c for c in cells(experiment) if c.mechanism == name)


def test_a_markov_chain_is_held_to_its_law(monkeypatch, tmp_path):
    """Not to its values, which hang on last bits: other runs of it will do."""
    experiment, cell = of_mechanism(*results.CHAINS)
    other = experiment.measure(replace(cell, key=(1, 2)))
    kept = results.wide(pd.DataFrame.from_records(other)).assign(
        mechanism=cell.mechanism, n=round(cell.point["n"])
    )
    monkeypatch.setitem(results.check.__globals__, "FOLDER", tmp_path)
    runs = [name for name in kept.columns if isinstance(name, int)]
    for factor, differ in ((1.0, False), (1.2, True)):
        changed = kept.assign(**{str(name): kept[name] * factor for name in runs})
        changed = changed.drop(columns=runs)
        changed.to_csv(tmp_path / f"{experiment.name}.csv", index=False)
        found = results.check(experiment, cell)
        assert any("captured_share" in each for each in found) == differ


def test_a_cell_that_changes_is_named(monkeypatch, tmp_path):
    """And one value of ten may, but for rounding."""
    experiment, cell = of_mechanism("goe-gaussian")
    kept = pd.read_csv(results.FOLDER / f"{experiment.name}.csv")
    runs = [name for name in kept.columns if name.isdecimal()]
    monkeypatch.setitem(results.check.__globals__, "FOLDER", tmp_path)
    for count, factor, differ in ((1, 1.01, 0), (len(runs), 1.01, 1), (2, 1e3, 0)):
        changed = kept.copy()
        changed[runs[:count]] *= factor
        changed.to_csv(tmp_path / f"{experiment.name}.csv", index=False)
        assert bool(results.check(experiment, cell)) == bool(differ)


def test_a_table_is_as_it_was(monkeypatch, tmp_path):
    """But for times, of which the median is kept: here most runs take for ever."""
    rows = [
        {
            **{"mechanism": name, "n": n, "repetition": i, "error": value / (1 + i)},
            **{"reached": np.nan if i else 3.0, "seconds": float(i)},
            "seconds_reached": np.nan if i else 0.5,
        }
        for name, value in (("b", 1.0), ("a", np.nan))
        for n in (10.0, 2.0)
        for i in range(3)
    ]
    results.wide(pd.DataFrame(rows)).to_csv(tmp_path / "x.csv", index=False)
    monkeypatch.setitem(results.check.__globals__, "FOLDER", tmp_path)
    found = results.table_of("x")
    wanted = pd.DataFrame(rows).assign(seconds=1.0, seconds_reached=np.inf)
    pd.testing.assert_frame_equal(found[wanted.columns], wanted, check_dtype=False)


def test_what_is_kept_is_whole():
    """Every experiment has all of its cells and repetitions, as they are declared."""
    everything = plan("full", 0)
    files = {path.stem for path in results.FOLDER.glob("*.csv")}
    assert files == results.runs().keys() <= everything.keys()
    for name in files:
        experiment, table = everything[name], results.table_of(name)
        keys = ["mechanism", *experiment.grid]
        repetitions = table.groupby(keys)["repetition"].nunique()
        assert (repetitions == experiment.repetitions).all()
        wanted = {(each.mechanism, *each.point.values()) for each in cells(experiment)}
        found = repetitions.reset_index()[keys].itertuples(index=False, name=None)
        assert {(name, *map(rounded, point)) for name, *point in found} == {
            (name, *map(rounded, point)) for name, *point in wanted
        }


def rounded(value):
    return f"{value:.4g}"
