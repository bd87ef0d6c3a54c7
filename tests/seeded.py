"""What the tests of several rooms draw, compute by hand, or make shorter."""

import numpy as np

from dpaudit import Pair, Relation


def rng(seed=0):
    return np.random.default_rng(seed)


def set_few_rounds(patch):
    """Let each round of an audit draw as much as all before it: see conftest.py."""
    rounds = "dpaudit.audit.game.state"
    patch.setattr(f"{rounds}.AuditState._growth", lambda _, past: max(8, past))
    patch.setattr(f"{rounds}._FINEST", 8)


def in_ball(count, dimension, seed=1):
    rows = rng(seed).standard_normal((count, dimension))
    return rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))


def random_pair(seed, relation, n, d):
    rows = rng(seed).standard_normal((n + 1, d))
    if relation is Relation.ADD_REMOVE:
        return Pair(rows, rows[:-1])
    return Pair(rows[:-1], np.vstack([rows[:-2], rows[-1:]]))


def gram_schmidt(matrix):
    columns = []
    for column in matrix.T:
        for earlier in columns:
            column = column - (earlier @ column) * earlier
        columns.append(column / np.sqrt(column @ column))
    return np.array(columns).T


def prepared(mechanism, rows):
    """Return rows as a mechanism with a row norm, or none, sees them."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    norm = np.inf if mechanism.row_norm is None else mechanism.row_norm
    return rows * np.minimum(1.0, norm / lengths)
