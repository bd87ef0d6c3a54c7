r"""How far the principal subspace of A can move when one row changes.

Let A and A' = A + S be second-moment matrices of neighbours with rows in the unit ball
of R^d, P and P' their projectors onto the top k eigenvectors, k < d, and gamma, gamma'
their eigengaps lambda_k - lambda_(k+1). Write x for the row added, or put in place of
y, and m for the sensitivity of the eigengap.

Eigengap. ADD_REMOVE: 0 <= S <= x x^T in the Loewner order, so by Weyl's inequalities
each eigenvalue grows by between 0 and 1, and the gap changes by at most m = 1.
REPLACE_ONE: -y y^T <= S <= x x^T, each eigenvalue moves by at most 1 and the gap by at
most m = 2. Both are attained, by rows along the k-th and the (k+1)-st eigenvector.

Projector. **If the larger of the two gaps is at least alpha > m, then**

.. math:: \|P - P'\|_F \le \sqrt{1 - \sqrt{1 - (m/\alpha)^2}}
          = \sqrt{2} \, \sin(\tfrac{1}{2} \arcsin(m/\alpha)),

and no smaller bound holds, for any k < d. It is 1 at alpha = m and falls like
m/(sqrt 2 alpha). Nothing is said for alpha <= m, where a row can exchange the k-th
direction for another, a distance of sqrt 2.

Proof. By symmetry let gamma >= alpha. Let theta_1, ..., theta_k be the principal
angles between the two subspaces, so that ||P - P'||_F^2 = 2 sum sin^2 theta_i.

1. Reflect at the second subspace, J = 2 P' - I. J A' J = A', so that
   J A J - A = S - J S J. J A J has the spectrum of A and the top projector J P J, at
   the angles 2 theta_i from P. Let V be a basis of the range of P. Multiplying by the
   complement P_ = I - P from the left and by J V from the right,

       (P_ J V) Lambda - A (P_ J V) = P_ (S - J S J) J V = P_ K V,   K = S J - J S,

   for a Lambda with eigenvalues >= lambda_k, while A is at most lambda_(k+1) on the
   range of P_. In eigenbases of both, each entry on the left is that of P_ J V times at
   least gamma, so gamma ||P_ J V||_F <= ||P_ K V||_F; and ||P_ J V||_F^2 =
   ||P_ (J P J)||_F^2 = sum sin^2 2 theta_i.
2. K is antisymmetric, so ||P_ K P||_F = ||P K P_||_F and 2 ||P_ K P||_F^2 <= ||K||_F^2.
   In the blocks of P' only the off-diagonal ones S_12, S_21 of S do not commute with J,
   hence ||K||_F^2 = 8 ||S_12||_F^2, and ||P_ K V||_F <= 2 ||S_12||_F.
3. ADD_REMOVE: S_12 = (P' x) ((I - P') x)^T has the norm ||P' x|| ||(I - P') x|| <= 1/2.
   REPLACE_ONE: 2 ||S_12||_F^2 <= ||S||_F^2 <= 2. Either way 2 ||S_12||_F <= m, and
   sum sin^2 2 theta_i <= (m/alpha)^2.
4. The same holds for A + t S, 0 <= t <= 1, in place of A', with t m for m. Its gap is
   at least gamma - t m > 0, so its projector, and theta_max, are continuous in t;
   theta_max is 0 at t = 0 and sin 2 theta_max < 1 throughout, so theta_max < pi/4.
5. Below pi/4, sin^2 theta is a convex function, (1 - sqrt(1 - u))/2, of
   u = sin^2 2 theta that is 0 at 0. Its sum, for a given sum of the u_i, is largest if
   only one is not 0. QED. (This is the sin 2 Theta theorem of Davis and Kahan, *The
   rotation of eigenvectors by a perturbation III*, SIAM J. Numer. Anal. 1970, with the
   constant that rank one and rank two perturbations allow.)

It is attained where only the k-th and the (k+1)-st direction matter: for
A = diag(alpha, 0) in their plane and x at the angle t/2, tan 2 theta =
sin t/(alpha + cos t), which is largest at cos t = -1/alpha: sin 2 theta = 1/alpha. For
REPLACE_ONE likewise with x and y orthogonal and cos t = -2/alpha (on top of rows that
add the same to both eigenvalues).

The usual bounds follow from the sin Theta theorem: sqrt 2/alpha under ADD_REMOVE,
2/(alpha - 1) under REPLACE_ONE. They are true, and for large gaps twice, respectively
sqrt 2 times what is needed.

**Pairs** that show what a mechanism for subspaces does to rare directions are here too.
All are made of rows along basis vectors, so that A is diagonal.
"""

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.shared.bases import enough_rows
from dpaudit.arrays import Array
from dpaudit.neighbours import Pair, Relation

__all__ = ["gap_sensitivity", "projector_sensitivity", "turned_pair"]


def gap_sensitivity(relation: Relation | str) -> float:
    """Return by how much one unit row changes an eigengap: 1, or 2 if replaced."""
    return 1.0 if Relation.parse(relation) is Relation.ADD_REMOVE else 2.0


def projector_sensitivity(gap: ArrayLike, relation: Relation | str) -> Array:
    """Return how far a top-k projector moves at most if its eigengap is `gap`.

    That is a lower bound for one of two neighbours whose rows are in the unit ball. In
    Frobenius norm; NaN where the gap is not greater than its own sensitivity.

    Examples
    --------
    >>> projector_sensitivity([1.0, 1.25, 100.0], "add-remove").round(4)
    array([   nan, 0.6325, 0.0071])
    """
    gaps = np.asarray(gap, dtype=np.float64)
    unit = gap_sensitivity(relation)
    # NaN where the bound does not hold; elsewhere sqrt(1 - sqrt(1 - ratio^2)) without
    # its cancellation.
    ratio = np.divide(unit, gaps, out=np.full(gaps.shape, np.nan), where=gaps > unit)
    return np.asarray(ratio / np.sqrt(1 + np.sqrt(1 - ratio**2)))


def turned_pair(
    n_components: int,
    dimension: int,
    gap: float,
    relation: Relation,
    row_norm: float = 1.0,
) -> Pair:
    """Return a pair on which one row turns the principal subspace far for its eigengap.

    Rows at each of the first k basis vectors, as many as give at least that eigengap;
    the row that is added is half-way between the k-th basis vector and the next, and
    what it replaces under REPLACE_ONE is orthogonal to it in their plane. For large
    gaps no rows turn the subspace further. k < d, and all rows have the same length.

    Examples
    --------
    >>> turned_pair(1, 2, 2.0, Relation.ADD_REMOVE).neighbour.round(2)
    array([[1.  , 0.  ],
           [1.  , 0.  ],
           [0.71, 0.71]])
    """
    basis = row_norm * np.eye(dimension)
    last, following = basis[n_components - 1 : n_components + 1]
    copies = enough_rows(np.ceil(gap / row_norm**2) * n_components) // n_components
    common = np.repeat(basis[:n_components], copies, axis=0)
    changed = np.vstack([common, (last + following) / np.sqrt(2)])
    if relation is Relation.ADD_REMOVE:
        return Pair(common, changed, relation)
    return Pair(np.vstack([common, (last - following) / np.sqrt(2)]), changed, relation)


_MOST_ROWS = 10_000


def new_direction_pair(
    n_components: int,
    dimension: int,
    copies: int,
    relation: Relation,
    row_norm: float = 1.0,
) -> Pair:
    """Return a pair on which one row points where the others do not.

    `copies` rows at each of the first k basis vectors, but at most 10,000 in all.
    ADD_REMOVE: a row at the next basis vector joins them. REPLACE_ONE: another row at
    the first basis vector takes the place of that row. For k = d there is no next one:
    then it is the last again, with the opposite sign.
    """
    basis = row_norm * np.eye(dimension)
    copies = max(1, min(copies, _MOST_ROWS // n_components))
    common = np.repeat(basis[:n_components], copies, axis=0)
    new = -basis[[-1]] if n_components == dimension else basis[[n_components]]
    extended = np.vstack([common, new])
    if relation is Relation.ADD_REMOVE:
        return Pair(common, extended, relation)
    return Pair(extended, np.vstack([common, basis[:1]]), relation)


def repeated_direction_pair(
    dimension: int, copies: int, relation: Relation, row_norm: float = 1.0
) -> Pair:
    """Return a pair on which all rows point in one direction, and then one more.

    `copies` rows at the first basis vector, but at most 10,000. ADD_REMOVE: another one
    joins them. REPLACE_ONE: it takes the place of a row at the last basis vector, or of
    one with the opposite sign where d = 1.
    """
    basis = row_norm * np.eye(dimension)
    common = np.repeat(basis[:1], max(1, min(copies, _MOST_ROWS)), axis=0)
    extended = np.vstack([common, basis[:1]])
    if relation is Relation.ADD_REMOVE:
        return Pair(common, extended, relation)
    last = -basis if dimension == 1 else basis[[-1]]
    return Pair(np.vstack([common, last]), extended, relation)


def tied_directions_pair(
    n_components: int,
    dimension: int,
    copies: int,
    relation: Relation,
    row_norm: float = 1.0,
    *,
    most_rows: int = _MOST_ROWS,
) -> Pair:
    """Return a pair on which one row says which of k + 1 directions is not left out.

    `copies` rows at each of the first k + 1 basis vectors, but at most `most_rows` in
    all. ADD_REMOVE: another one at the first basis vector joins them. REPLACE_ONE: it
    takes the place of one at the last of the k + 1; k < d.
    """
    basis = row_norm * np.eye(dimension)
    count = n_components + 1
    copies = max(1, min(copies, most_rows // count))
    rows = np.repeat(basis[:count], copies, axis=0)
    if relation is Relation.ADD_REMOVE:
        return Pair(rows, np.vstack([rows, basis[:1]]), relation)
    return Pair(rows, np.vstack([rows[:-1], basis[:1]]), relation)
