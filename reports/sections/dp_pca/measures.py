r"""How far the component of each mechanism is from the truth: what is measured.

Source: Liu, Kong, Jain, Oh, *DP-PCA: statistically optimal and differentially private
PCA*, NeurIPS 2022: Sections 2.3 to 5, Example 4.1.

The error is the sine of the angle between a release and v. Every repetition has rows of
its own, the same for all mechanisms, and one release on them. All mechanisms promise
(epsilon, delta) for a **replaced row**, so that curves can be compared;
`analyze-gauss-published` does so to the letter of its paper, which asks for no more
noise there. (A claim for added or removed rows is weaker: a replaced row is two of
them.) Those that need a bound R on the length of a row have R^2 = the mean squared
length, as if that were public; longer rows are scaled down, which turns no first
eigenvector of these laws, as they are symmetric about their axes.

**Steps.** `DEFAULT` are those of each mechanism's own constructor. `oja` has none: its
steps are those of Theorem 2.2, with alpha = 2 and 2 d for xi. `TUNED` knows the law:
few and equal batches and steps of `~dpaudit.reports.sections.streaming.measures.STEP`,
each of which is one of the power method (after 8 for Gaussian rows and 4 in Example
4.1, nothing is left of the start; half of that with the larger noise of
`dp-pca-published`); `private-oja` has Theorem 2.2's steps with alpha = 2 and xi = 1000.
`two-stage-pca` has no steps to choose, and is the same with both.

A `RowSource` is n rows in blocks, each from a random stream of its own: whoever reads a
block, and however often, finds the same rows. Of long streams a few blocks are held,
so memory does not grow with n.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from math import nan, sqrt
from typing import Any

import numpy as np

from dpaudit.algorithms import entry
from dpaudit.algorithms.covariance.second_moment import SecondMomentMechanism
from dpaudit.algorithms.shared.step_sizes import HarmonicSteps
from dpaudit.algorithms.streaming.dp_pca import DPPCA
from dpaudit.algorithms.streaming.minibatch_oja import DEFAULT_ITERATIONS, MinibatchOja
from dpaudit.algorithms.streaming.moment_products import Where
from dpaudit.algorithms.streaming.moments import StreamedMoments
from dpaudit.algorithms.streaming.oja import Oja, PrivateOja
from dpaudit.algorithms.streaming.two_stage_pca import TwoStagePCA
from dpaudit.arrays import Array
from dpaudit.datasets import spiked_gaussian
from dpaudit.datasets.streaming_models import signal_in_noise
from dpaudit.errors import InputError
from dpaudit.gram import gram
from dpaudit.neighbours import Relation
from dpaudit.reports.experiment import Cell, Record, exact, repeated
from dpaudit.reports.measures import audited, worst_case
from dpaudit.reports.sections.streaming.measures import BY_BATCHES, FIRST, REST, STEP
from dpaudit.streams import stream
from dpaudit.subspace import largest_principal_angle_sine, top_components
from dpaudit.validation import check_count, check_positive

_BLOCK = 2**15  # rows
_HELD = 2**25  # numbers, of the blocks that are held


@dataclass(eq=False)
class RowSource:
    """Rows of one law, and the direction that is looked for."""

    count: int  # n
    truth: Array  # v, of length 1
    square: float  # the mean squared length of a row, which is public
    # takes a number of rows and a generator
    draw: Callable[[int, np.random.Generator], Array]
    seed: int
    key: tuple[int, ...]  # names the streams of the blocks
    _kept: dict[int, Array] = field(default_factory=dict, repr=False)

    @property
    def dimension(self) -> int:
        return len(self.truth)

    @property
    def row_norm(self) -> float:
        """R: to which mechanisms that need a bound scale longer rows down."""
        return sqrt(self.square)

    def blocks(self) -> Iterator[Array]:
        """Yield all rows in order, shape (some, d)."""
        for i in range(-(-self.count // _BLOCK)):
            yield self._block(i)

    def moments(self, row_norm: float | None) -> StreamedMoments:
        """Return the stream of x x^T that the algorithms of the family read."""
        return StreamedMoments(
            self._read, count=self.count, dimension=self.dimension, row_norm=row_norm
        )

    def second_moment(self) -> Array:
        """Return the sum of x x^T over rows that are scaled down to R."""
        return gram(self.blocks(), row_norm=self.row_norm).moment

    def _read(self, where: Where) -> Array:
        if not isinstance(where, slice):
            return self._all()[where]
        first, last = where.start // _BLOCK, (where.stop - 1) // _BLOCK
        parts = []
        for i in range(first, last + 1):
            begin = max(where.start - i * _BLOCK, 0)
            parts.append(self._block(i)[begin : where.stop - i * _BLOCK])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _all(self) -> Array:
        """Return all rows, for what reads them in an order of its own."""
        if -1 not in self._kept:
            self._kept = {-1: np.concatenate(list(self.blocks()))}
        return self._kept[-1]

    def _block(self, i: int) -> Array:
        if i not in self._kept:
            if len(self._kept) >= max(2, _HELD // (_BLOCK * self.dimension)):
                del self._kept[next(iter(self._kept))]
            size = min(_BLOCK, self.count - i * _BLOCK)
            self._kept[i] = self.draw(size, stream(self.seed, *self.key, i))
        return self._kept[i]


def gaussian(
    count: int,
    d: int,
    seed: int,
    key: tuple[int, ...],
    *,
    first: float = FIRST,
    rest: float = REST,
) -> RowSource:
    """Return Gaussian rows with the eigenvalues first, rest, ..., rest."""
    v = _direction(d, seed, key)
    law: dict[str, Any] = {
        "spikes": [first - rest],
        "noise": sqrt(rest),
        "basis": v[:, np.newaxis],
    }

    def draw(size: int, rng: np.random.Generator) -> Array:
        return spiked_gaussian(size, d, rng=rng, **law).rows

    return RowSource(count, v, first + (d - 1) * rest, draw, seed, key)


def example(
    count: int, d: int, seed: int, key: tuple[int, ...], *, noise: float
) -> RowSource:
    """Return rows of Example 4.1: v or -v, with a deviation in every entry."""
    v = _direction(d, seed, key)

    def draw(size: int, rng: np.random.Generator) -> Array:
        return signal_in_noise(size, d, noise=noise, direction=v, rng=rng).rows

    return RowSource(count, v, 1 + d * noise**2, draw, seed, key)


def _direction(d: int, seed: int, key: tuple[int, ...]) -> Array:
    """Return a uniformly random unit vector, shape (d,)."""
    vector = stream(seed, *key).standard_normal(d)
    return np.asarray(vector / np.linalg.norm(vector))


OJA, PRIVATE_OJA, MINIBATCH_OJA = "oja", "private-oja", "minibatch-oja"
AG_PUBLISHED, AG = "analyze-gauss-published", "analyze-gauss"
GOE = "goe-gaussian"
PUBLISHED, DP_PCA = "dp-pca-published", "dp-pca"
OWN_PARTS, TWO_STAGE = "dp-pca-tuned", "two-stage-pca"
STREAMING = (PRIVATE_OJA, MINIBATCH_OJA, PUBLISHED, DP_PCA, OWN_PARTS, TWO_STAGE)
MECHANISMS = (OJA, *STREAMING, AG_PUBLISHED, AG, GOE)
DEFAULT, TUNED = "default", "tuned"

_BATCHES = {"gaussian": 8, "example": 4}
_BY_BATCHES = {**BY_BATCHES, OWN_PARTS: DPPCA.tuned}
_DELAY = 1000.0  # xi of private-oja
_ALPHA = 2.0
ORDERED = 1_000_000  # rows that are held, where they are read in a random order


def component_errors(cell: Cell) -> list[Record]:
    """Return the error of a release on rows of its own, in each repetition.

    The point and the options give ``n``, ``d``, ``epsilon``, ``delta``, ``steps``
    (`DEFAULT` or `TUNED`), and ``noise`` if rows are those of Example 4.1; with
    ``normal``, v has a normal number before it, in place of a sign.

    Columns: ``repetition``, ``error`` (NaN for bottom).
    """
    setting = {**cell.options, **cell.point}
    rows: Callable[..., RowSource] = gaussian
    if setting.get("normal"):
        rest = setting["noise"] ** 2
        rows = partial(gaussian, first=1 + rest, rest=rest)
    elif "noise" in setting:
        rows = partial(example, noise=setting["noise"])
    return repeated(cell, error=errors_on(rows, cell, setting))


def errors_on(
    rows: Callable[..., RowSource], cell: Cell, setting: dict[str, Any]
) -> list[float]:
    """Return the sine of the angle from each release to the truth; NaN is bottom.

    ``rows``: from n, d, a seed and a key to the rows of a repetition.
    """
    check_range(cell.mechanism, setting)
    n, d, rng, errors = int(setting["n"]), int(setting["d"]), cell.rng(), []
    for i in range(cell.first, cell.first + cell.size):
        source = rows(n, d, cell.seed, (n, d, i))
        vector = released(cell.mechanism, setting, source, rng)
        errors.append(nan)
        if np.isfinite(vector).all():
            pair = vector[:, None], source.truth[:, None]
            errors[-1] = float(largest_principal_angle_sine(*pair))
    return errors


def released(
    name: str, setting: dict[str, Any], source: RowSource, rng: np.random.Generator
) -> Array:
    """Return one component, shape (d,); NaN is bottom."""
    made = _made(name, setting, source)
    if isinstance(made, SecondMomentMechanism):
        matrix = made.draw_from(source.second_moment(), 1, rng=rng)[0]
        return top_components(matrix, 1)[:, 0]
    bounded = isinstance(made, PrivateOja | MinibatchOja | TwoStagePCA)
    moments = source.moments(source.row_norm if bounded else None)
    return np.asarray(made.release(moments, rng=rng)).reshape(source.dimension)


def check_range(name: str, setting: dict[str, Any]) -> None:
    """Raise `InputError` if a point is outside what is proven of a mechanism.

    Or beyond what can be run: `PRIVATE_OJA` reads its rows in a random order, so all
    are in memory.
    """
    most = {PUBLISHED: 0.9, AG_PUBLISHED: 1.0}.get(name)
    check_positive("epsilon", setting["epsilon"], largest=most or 1e6)
    check_positive("delta", setting["delta"], largest=1.0)
    for variable, least in (("n", 100), ("d", 2)):
        value = check_positive(variable, setting[variable], largest=1e12)
        if not value.is_integer():
            raise InputError(f"{variable} must be a whole number, got {value!r}")
        check_count(variable, int(value), minimum=least)
    if name == PRIVATE_OJA:
        check_positive("n", setting["n"], largest=ORDERED)
    if "noise" in setting:
        check_positive("noise", setting["noise"], largest=1.0)
    if name not in MECHANISMS:
        raise InputError(f"no such mechanism here: {name!r}")


def claims(cell: Cell) -> list[Record]:
    """Hold the claim for a replaced row to the exact loss, where known, and audit it.

    One record: the columns of `dpaudit.reports.measures.exact`, ``verdict``,
    ``samples`` and ``confidence``. A claim that is false by the exact loss is refuted,
    whatever sampling sees.
    """
    epsilon = cell.point["epsilon"]
    chosen = entry(cell.mechanism)
    several = {"relation": Relation.REPLACE_ONE} if len(chosen.relations) > 1 else {}
    mechanism = cell.build(**several)
    pair = worst_case(mechanism)
    found = exact(mechanism, pair, epsilon, float(mechanism.claim.delta_at(epsilon)))
    if found["claim"] == "not known":
        result = audited(cell, mechanism, pair)
        told, samples = result.verdict.value, result.samples
    else:
        told = "REFUTED" if found["claim"] == "false" else "NOT_REFUTED"
        samples = 0
    return [
        {
            **found,
            "verdict": told,
            "samples": samples,
            "confidence": cell.options["confidence"],
        }
    ]


def _made(name: str, setting: dict[str, Any], source: RowSource) -> Any:
    epsilon, delta = float(setting["epsilon"]), float(setting["delta"])
    d, norm, n = source.dimension, source.row_norm, source.count
    gap = 1.0 if "noise" in setting else FIRST - REST
    batches = _BATCHES["example" if "noise" in setting else "gaussian"]
    tuned = setting["steps"] == TUNED
    if name == OJA:
        return Oja(HarmonicSteps(_ALPHA / gap, 2.0 * d))
    if name == PRIVATE_OJA:
        harmonic = HarmonicSteps(_ALPHA / gap, _DELAY) if tuned else None
        return PrivateOja.calibrated(epsilon, delta, row_norm=norm, step_sizes=harmonic)
    steps = STEP if tuned else None
    if name == MINIBATCH_OJA:
        several = batches if tuned else DEFAULT_ITERATIONS
        return MinibatchOja.calibrated(
            epsilon, delta, row_norm=norm, iterations=several, step_sizes=steps
        )
    if name in _BY_BATCHES:
        each = (2 if name == PUBLISHED else 1) * n // batches
        return _BY_BATCHES[name](
            epsilon, delta, batch_size=each if tuned else None, step_sizes=steps
        )
    if name == TWO_STAGE:
        return TwoStagePCA.calibrated(epsilon, delta, row_norm=norm)
    return entry(name).build(
        epsilon=epsilon, delta=delta, relation=Relation.REPLACE_ONE, row_norm=norm
    )
