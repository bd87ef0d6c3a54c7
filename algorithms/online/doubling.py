r"""DoublingOnlinePCA: online PCA that learns on the way how large OPT is.

Source: Dwork, Talwar, Thakurta, Zhang, *Analyze Gauss*, STOC 2014, Algorithm 4.

1. Guess OPT.
2. V_1: the first k basis vectors. Begin a tree with noise for epsilon_0, which is
   epsilon at first and falls with the guess.

4. Earn ||V_t^T x_t||^2, receive x_t.
5. Q_t: the noisy prefix of the rows of this epoch.
6. Z_t: Q_t with its noise filled up to that of ceil(log2 m) nodes.
7. V_(t+1): the k leading eigenvectors of Z_t.
8. X: the sum of the k largest eigenvalues of Q_t.

10. If X is above the guess, but for a margin: double the guess, and begin anew at 2.

The numbers are in `dpaudit.algorithms.online.doubling_rules`.

**Privacy.** Line 8 uses the *private* Q_t, so which rows an epoch has is a function of
noisy nodes; and epochs read disjoint rows. Let D and D' differ in row i. Before row i
comes, all noisy nodes have the same law on both. Given them, epoch and place of row i
are known; of the nodes of that epoch that would hold it, if it went on for ever, at
most h = floor(log2 m) + 1 end by row m, each moves by at most sqrt 2 R^2, and their
noise is independent of the past with a deviation of s_j >= s_0: all of them together
are mu-GDP with mu = sqrt(2 h) R^2/s_0. What is seen of them (an epoch may end early)
and all later nodes, which hold other rows and have fresh noise, are a randomised
function of these and of the past. So the whole is mu-GDP for the mu of *one* tree:
parallel composition with adaptive parts. Lines 6 and 7 are post-processing.

**As published**, with the noise of section 2.3.2: (epsilon, delta) is true as it is
for `dpaudit.algorithms.online.tree_aggregation`, since epsilon_0 <= epsilon. To begin
anew at line 2 takes V_1 again, however much was learned.

**Calibrated**: least proven noise in epoch 0, proven margin; no line 6 (less noise;
what is lost is that the noise has one law at all times, which the proof of Theorem 14
uses); a new epoch begins with the last subspace, which is an 'arbitrary' one as line 2
wants it, and a public one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import ApproxDP, Claim, Pair, Relation, UnsupportedError
from dpaudit.algorithms.online.doubling_rules import (
    CalibratedRule,
    EagerRule,
    EpochPlan,
    Epochs,
    PublishedRule,
)
from dpaudit.algorithms.online.noise import coordinates, pack_rows, tree_height, unpack
from dpaudit.algorithms.online.streams import RowStream, Streamed
from dpaudit.algorithms.online.subspace_sequence import BasisSequence, leading_bases
from dpaudit.algorithms.shared.bases import (
    Rng,
    Values,
    answered,
    check_rank,
    orient,
    slices,
)
from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.arrays import Array
from dpaudit.gaussian import gaussian_mu
from dpaudit.validation import Checked, Count, Norm, check_count, check_length

__all__ = ["DoublingOnlinePCA", "DoublingStream", "ExactTestDoubling"]

_WORK = 2**20  # numbers in the stacks of the trials that run side by side


@dataclass(frozen=True, kw_only=True)
class DoublingOnlinePCA(Streamed, BasisSequence, Checked):
    """Online PCA with the doubling trick; releases have shape (n, d, k).

    Parameters
    ----------
    rule : PublishedRule or CalibratedRule
        Its noise, and when it doubles.
    claim : Claim
        What is promised for the whole sequence, under REPLACE_ONE.
    n_components : int
        k, from 1 to d.
    length, row_norm
        See `PrefixSums`.
    """

    rule: PublishedRule | CalibratedRule
    claim: Claim
    n_components: Count = 1
    length: Count | None = None
    row_norm: Norm = 1.0

    @hands_on()
    @classmethod
    def calibrated(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return the mechanism at the least noise, for the promise of the sequence."""
        rule = CalibratedRule(gaussian_mu(epsilon, delta))
        return cls(rule=rule, claim=ApproxDP(epsilon, delta), **fields)

    @hands_on()
    @classmethod
    def as_published(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return Algorithm 4 to the letter, with the paper's claim."""
        rule = PublishedRule(epsilon, delta)
        return cls(rule=rule, claim=ApproxDP(epsilon, delta), **fields)

    def plan(self, dimension: int, n_rows: int | None = None) -> EpochPlan:
        """Return the numbers of the algorithm for rows of length d."""
        return self.rule.plan(
            dimension=dimension,
            n_components=self.n_components,
            length=self.length_for(n_rows),
            row_norm=self.row_norm,
        )

    def _fill(self, releases: Array, rows: Array, rng: Rng) -> None:
        n, d = rows.shape
        width = _WORK // (d * d * tree_height(self.length_for(n)))

        def node(_: int, mean: Array) -> Array:
            return answered(rng, "", None, mean)

        for some in slices(len(releases), width):
            part = releases[some]
            self._run(rows, len(part), node, rng, part)

    def transcript(self, data: ArrayLike, size: int, *, rng: Rng) -> Values:
        """Return the noisy nodes from which all follows.

        ``sums``, shape (size, n, q), are the nodes that end with each row, in
        coordinates, in units of the deviation of their noise.
        """
        return self._nodes(data, check_count("size", size, minimum=0), rng)[0]

    def step_means(self, transcript: Values, data: ArrayLike) -> Values:
        """Return the nodes without their noise, given what was seen before each."""
        return self._nodes(data, len(transcript["sums"]), transcript)[1]

    def _nodes(self, data: ArrayLike, size: int, source: Rng | Values) -> list[Values]:
        """Return noisy nodes, drawn or of a transcript, and their means."""
        rows, seen, means = self.prepared(data), [], []

        def node(step: int, mean: Array) -> Array:
            means.append(mean)
            seen.append(answered(source, "sums", (slice(None), step), mean))
            return seen[-1]

        self._run(rows, size, node, None, None)
        return [{"sums": np.stack(each, axis=1)} for each in (seen, means)]

    def start(self, dimension: int, *, rng: Rng) -> "DoublingStream":
        """Return a stream of rows of length d >= k, which gives a basis after each.

        A length must be declared.
        """
        check_rank(self.n_components, check_count("dimension", dimension))
        return DoublingStream(self, dimension, rng=rng)

    def _run(
        self,
        rows: Array,
        size: int,
        node: Callable[[int, Array], Array],
        rng: Rng | None,
        bases: Array | None,
    ) -> None:
        """Run trials side by side on given nodes, and fill in bases if there are any.

        From a row's number and the exact node, (size, q), in units of the deviation of
        its noise, `node` makes the noisy one. The generator pads the bases.
        """
        n, d = rows.shape
        plan = self.plan(d, n)
        products = pack_rows(rows, self.rule.noise.ratio)
        prefixes = np.vstack([np.zeros_like(products[:1]), products.cumsum(axis=0)])
        levels = tree_height(self.length_for(n))
        epochs = Epochs(plan, size, levels, products.shape[1])
        for step in range(n):
            rows_of_node = epochs.advance()
            mean = prefixes[step + 1] - prefixes[step + 1 - rows_of_node]
            mean /= epochs.deviation[:, np.newaxis]
            noise = epochs.noise_of_prefix(node(step, mean) - mean)
            exact = prefixes[step + 1] - prefixes[step + 1 - epochs.step]
            found, _ = self.step(plan, epochs, exact, noise, rng)
            if bases is not None:
                bases[:, step] = found

    def step(
        self,
        plan: EpochPlan,
        epochs: Epochs,
        exact: Array,
        noise: Array,
        rng: Rng | None,
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Return lines 6 to 10 of a row: bases, (size, d, k), and which epochs end.

        Given are the exact prefixes of the epochs, and their noise, (size, q).
        """
        k, ratio, private = self.n_components, self.rule.noise.ratio, exact + noise
        values, vectors = np.linalg.eigh(unpack(private, ratio))
        if plan.padded_to and rng is not None:
            found = leading_bases(unpack(epochs.padded(private, rng), ratio), k)
        else:
            found = orient(vectors[..., : -k - 1 : -1])
        ended = epochs.end(self._tested(exact, values))
        if plan.forgets:
            found[ended] = np.eye(found.shape[1], k)
        return found, ended

    def _tested(self, exact: Array, values: Array) -> Array:
        """Return X, shape (size,), given the eigenvalues of the private prefixes."""
        return np.asarray(values[:, -self.n_components :].sum(axis=1))


class DoublingStream(RowStream):
    """The subspaces of `DoublingOnlinePCA`, row by row.

    The exact eigenvectors are computed for every row, since X needs the eigenvalues. As
    of all streams, `basis` is that with which the next row is met, shape (d, k).
    """

    def __init__(
        self, mechanism: DoublingOnlinePCA, dimension: int, *, rng: Rng
    ) -> None:
        super().__init__(mechanism, dimension, rng=rng)
        self._mechanism, self._plan = mechanism, mechanism.plan(self.dimension)
        self._moment = np.zeros(coordinates(self.dimension))
        levels = tree_height(self.length)
        self._epochs = Epochs(self._plan, 1, levels, len(self._moment))
        self.basis = np.eye(self.dimension, mechanism.n_components)

    @property
    def epoch(self) -> int:
        """How often the guess has been doubled."""
        return int(self._epochs.number[0])

    def add(self, row: ArrayLike) -> Array:
        """Take a row, and return the basis for the next one, shape (d, k)."""
        ratio, rng = self._mechanism.rule.noise.ratio, self._rng
        self._moment += pack_rows(self.prepared(row), ratio)[0]
        self._epochs.advance()
        noise = self._epochs.noise_of_prefix(
            rng.standard_normal((1, len(self._moment)))
        )
        found, ended = self._mechanism.step(
            self._plan, self._epochs, self._moment[np.newaxis], noise, rng
        )
        self.basis = found[0]
        if ended[0]:
            self._moment[:] = 0
        return self.basis

    def _arrays(self) -> dict[str, Array]:
        epochs = self._epochs
        return {
            "moment": self._moment,
            "stack": epochs.stack,
            "epoch": np.array([epochs.number[0], epochs.step[0]], dtype=np.float64),
            "basis": self.basis,
        }

    def _load(self, arrays: dict[str, Array]) -> None:
        self._moment, self.basis = arrays["moment"], arrays["basis"]
        self._epochs.stack = arrays["stack"]
        number, step = arrays["epoch"].astype(np.int64)
        self._epochs.number[:], self._epochs.step[:] = number, step


@dataclass(frozen=True, kw_only=True)
class ExactTestDoubling(DoublingOnlinePCA):
    """A planted bug: online PCA in epochs whose test is not private.

    It takes X in line 8 from the exact prefix in place of the private one. Its noise is
    right, and so is all else; but at which row an epoch ends, and V_1 comes again, is
    then a function of the rows that has no noise. Where one row more in the direction
    of the leader makes X pass the guess, everybody sees it: private at no epsilon, and
    at no delta < 1. An audit must refute it: do not use it.
    """

    @hands_on()
    @classmethod
    def planted(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return the mechanism with the noise that is right, and the bug."""
        right = cls.calibrated(epsilon, delta, **fields)
        return replace(right, rule=EagerRule(gaussian_mu(epsilon, delta)))

    def start(self, dimension: int, *, rng: Rng) -> DoublingStream:
        """Raise: it must not run on rows that arrive."""
        raise UnsupportedError("a planted bug has no stream")

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return 7 rows at e_1 of which one is zero on the other side.

        X is 7 R^2 after them or 6 R^2, and the guess is 6 R^2. The default d is k + 1;
        at least that.
        """
        k = self.n_components
        d = check_length(dimension, k + 1, minimum=k + 1)
        rows = np.zeros((int(EagerRule.first_guess) + 1, d))
        rows[:, 0] = self.row_norm
        other = rows.copy()
        other[0] = 0
        return Pair(rows, other, Relation.REPLACE_ONE)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        return (self.worst_case(),)

    def _tested(self, exact: Array, values: Array) -> Array:
        matrices = unpack(exact, self.rule.noise.ratio)
        spectra: Array = np.linalg.eigvalsh(matrices).astype(np.float64)
        return super()._tested(exact, spectra)
