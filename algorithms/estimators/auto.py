"""Which mechanism ``PrivatePCA(mechanism="auto")`` stands for.

It is what `dpaudit.algorithms.estimators.recommendation` recommends where neither the
number of rows nor an eigengap is known: of the mechanisms that release a second moment
(of others some release nothing where the signal is too weak), the one whose measured
error is never much above the least, and of which a draw is quick. Where
``goe-gaussian`` errs no more than the least (of ten columns and more no more than 1.25
times the least), and the data can be read more than once, it is ``residual-step-pca``,
which begins with that noise and goes on with more of it unless something else promises
less: by how much hangs on the eigenvalues, which are private (docs/choosing.md has what
was measured). Nothing but d, k, epsilon, delta, the relation and the type of the data
decides, and those are public.
"""

from typing import TypeVar

from dpaudit.algorithms.catalogue import names_of
from dpaudit.algorithms.covariance.k_norm import BY_REJECTION
from dpaudit.algorithms.estimators.measured import GRID
from dpaudit.algorithms.estimators.recommendation import recommend
from dpaudit.neighbours import Relation

_GAIN = 1.25  # what residual steps are worth: their gain hangs on private eigenvalues
_MANY = 10  # columns: of fewer, a bias of steps is hardly seen
_Number = TypeVar("_Number", int, float)


def recommended(
    epsilon: float,
    delta: float,
    relation: Relation,
    dimension: int,
    k: int = 1,
    *,
    restarts: bool = False,
) -> str:
    """Return the name of the mechanism that ``"auto"`` stands for.

    Off the grid of measurements it is the one at its end. Whether the data can be read
    more than once decides if residual steps may begin where GOE noise is good enough.
    """
    dimension = _on_grid("d", dimension)
    quick = [
        name
        for name in names_of("covariance")
        if name != "k-norm-covariance" or dimension <= BY_REJECTION
    ]
    found = recommend(
        d=dimension,
        k=min(_on_grid("k", k), dimension - 1),
        epsilon=_on_grid("epsilon", epsilon),
        delta=_on_grid("delta", delta) if delta > 0 else 0.0,
        relation=relation,
        among=quick,
    )
    ratios = {each.mechanism: each.at_worst for each in found.choices}
    begun = ratios.get("goe-gaussian")  # which steps begin with, and err like at worst
    most = _GAIN if dimension >= _MANY else 1.0
    steps = restarts and begun is not None and begun <= most
    return "residual-step-pca" if steps else found.choices[0].mechanism


def _on_grid(axis: str, value: _Number) -> _Number:
    """Return the number of an axis that is nearest, among those that were measured."""
    ends = [type(value)(each) for each in GRID[axis] if each > 0]
    return min(max(value, ends[0]), ends[-1])
