"""Theory of online subspaces that no mechanism runs, for the tests beside it."""

from math import log, sqrt

import numpy as np

from dpaudit.algorithms.online.regret import rewards


def nodes_of_row(row, length):
    """Return the nodes that hold a row; rows and nodes are counted from 1.

    Row i is in node t if and only if t is one of i, i + low(i), ... up to m.
    """
    nodes = []
    while row <= length:
        nodes.append(row)
        row += row & -row
    return tuple(nodes)


def stability_cost(rows, bases, *, start=None):
    """Return the sum of ||V_(t+1)^T x_t||^2 - ||V_t^T x_t||^2.

    It bounds the regret of exact leaders.
    """
    ahead = np.sum(np.einsum("td,tdk->tk", rows, bases) ** 2)
    return ahead - rewards(rows, bases, start=start).sum()


def theorem_14_bound(*, optimum, length, dimension, n_components, epsilon):
    """Return k sqrt d log m/epsilon + epsilon OPT + 1: Theorem 14 with 1 for its O."""
    first = n_components * sqrt(dimension) * log(length)
    return first / epsilon + epsilon * optimum + 1
