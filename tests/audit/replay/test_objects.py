"""Releases that are objects: what they hold is read, and what they may hide is said."""

from dataclasses import dataclass
from enum import Enum
from types import SimpleNamespace

import numpy as np
import pytest
from replay_cases import rows

from dpaudit import Pair, PureDP
from dpaudit.audit import audit, replay
from dpaudit.outputs import read

PAIR, ONE = Pair(rows(0, 1), rows(0, 1, 1)), PureDP(1.0)


@dataclass
class Card:
    count: object
    remark: object = 0.0


@dataclass(frozen=True, slots=True)
class Frozen:
    _count: object
    remark: object = 0.0


class Fitted:
    def __init__(self, count, remark=0.0):
        self.count, self.remark = count, remark


class Slotted:
    __slots__ = ("count", "remark")

    def __init__(self, count, remark=0.0):
        self.count, self.remark = count, remark


def with_entries(kind):
    def make(count, remark=0.0):
        made = kind(count)
        made.remark = remark
        return made

    return make


class Entries(list):
    def __init__(self, count):
        super().__init__([count])


class Table(dict):
    def __init__(self, count):
        super().__init__(count=count)


class Number(float):
    pass


def array(count):
    return np.array([float(count)]).view(type("Array", (np.ndarray,), {}))


READ = [Card, Frozen, Fitted, Slotted, lambda c, r=0: SimpleNamespace(count=c, r=r)]
BESIDES = [with_entries(kind) for kind in (Entries, Table, Number, array)]


@pytest.mark.parametrize("kind", [*READ, *BESIDES])
def test_what_an_object_holds_is_part_of_the_release(kind):
    def right(x, rng):
        return kind(x.sum() + rng.laplace())

    def bare(x, rng):
        return kind(x.sum() + rng.laplace(), len(x))

    assert replay(right, pair=PAIR, claim=ONE).verdict == "NOT_REFUTED"
    result = replay(bare, pair=PAIR, claim=ONE, budget=2)
    assert result.verdict != "NOT_REFUTED"
    assert "a number without noise is 2 on D and 3 on D'" in result.findings[0].message
    if kind in READ:
        assert result.proof
        short = replay(right, pair=PAIR, claim=PureDP(0.5))
        assert (short.verdict, short.proof) == ("REFUTED", True)
        assert short.loss == pytest.approx(1.0)


class Quiet:
    def __init__(self, count):
        self._count = count


class Shelf(Quiet):
    """Has entries by its own account, and more in it."""

    def __len__(self):
        return 1

    def __getitem__(self, place):
        return [self._count][place]


class OpenShelf(Shelf):
    def __init__(self, count):
        self.count = count

    @property
    def _count(self):
        return self.count


class Graph:
    """Iterates over its nodes, as one of networkx does."""

    __module__ = "networkx.classes.graph"

    def __init__(self, *edges):
        self.graph, self._nodes = {}, {n: {} for n in range(3)}
        self._near = {n: {} for n in self._nodes}
        for one, other, weight in edges:
            self._near[one][other] = self._near[other][one] = {"weight": weight}

    def nodes(self, data):
        return [*self._nodes.items()]

    def adjacency(self):
        return iter(self._near.items())

    def __iter__(self):
        return iter(self._nodes)

    def __len__(self):
        return len(self._nodes)

    def __getitem__(self, node):
        return self._near[node]


class Size(Enum):
    FEW = 1
    MANY = 2


def test_objects_that_know_each_other_come_to_an_end_and_members_are_names():
    def circle(x, rng):
        made = Card(x.sum() + rng.laplace())
        made.remark = [Card(made, [made, made]), made]
        return made

    assert replay(circle, pair=PAIR, claim=ONE).verdict == "NOT_REFUTED"
    result = replay(lambda x, _: Size(len(x) - 1), pair=PAIR, claim=ONE)
    assert (result.verdict, result.proof) == ("REFUTED", True)


def local(count):
    @dataclass
    class Local:
        count: object

    return Local(count)


@pytest.mark.parametrize(
    "kind",
    [Quiet, Shelf, local, lambda c: Card(c, iter([1])), lambda c: (e for e in [c])],
)
def test_what_may_hold_more_is_not_followed(kind):
    def hidden(x, rng):
        return kind(x.sum() + rng.laplace())

    result = replay(hidden, pair=PAIR, claim=ONE)
    assert result.verdict == "NOT_FOLLOWED"
    assert "neither numbers nor text" in result.findings[0].message


def test_what_has_entries_by_its_own_account_is_more_than_these():
    assert read(OpenShelf(1.5)).layout == "shapes OpenShelf{count: ()}"
    layout, numbers = read(Shelf(1.5))
    assert (layout, numbers) == ("returns Shelf of (1,)", [1.5])
    assert read(Shelf("some")).layout == "returns Shelf of ['some']"
    result = audit(
        lambda x, g: Shelf(x.sum() + g.laplace(0, 0.1)), pair=PAIR, claim=ONE
    )
    assert result.refuted  # what is read is read
    assert any("entries alone (Shelf of (1,))" in each for each in result.warnings)


@pytest.mark.parametrize("scale", [0.25, 1.0])
def test_of_a_graph_the_edges_are_read_and_not_the_nodes_alone(scale):
    def bare(x, rng):
        return Graph((0, 1, 1.0), *[(1, 2, 1.0)] * (len(x) - 2)), rng.laplace()

    def weighted(x, rng):
        return Graph((0, 1, x.sum() + rng.laplace(scale=scale)), (1, 2, 0.5))

    assert replay(bare, pair=PAIR, claim=ONE).proof
    assert audit(bare, pair=PAIR, claim=ONE, budget=200).refuted
    result = replay(weighted, pair=PAIR, claim=ONE)
    assert (result.proof, result.loss) == (scale < 1, pytest.approx(1 / scale))
    assert set(read(Graph((0, 1, 2.0))).numbers) == {
        "edges.0.1.weight",
        "edges.1.0.weight",
    }


def test_an_audit_of_releases_reads_fields_as_well():
    assert read(Card(1.5, "no")).layout == "shapes Card{count: (), remark: 'no'}"
    assert read([Frozen(1.5)]).layout == "shapes [Frozen{_count: (), remark: ()}]"
    assert read(Quiet(1.5)).layout == "returns Quiet"
    endless = Card(1.0)
    endless.remark = [endless, endless]
    assert read(endless).numbers is not None
    result = audit(
        lambda x, rng: Card(x.sum() + rng.laplace(scale=0.1)), pair=PAIR, claim=ONE
    )
    assert result.refuted
