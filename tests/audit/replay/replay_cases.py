"""Mechanisms with and without bugs, as people write them, for the tests of replay."""

import linecache
import sys
from types import ModuleType

import numpy as np

from dpaudit import Pair


def rows(*values):
    return np.array(values, dtype=float).reshape(-1, 1)


def line_of(finding):
    file, _, number = finding.where.rpartition(":")
    return linecache.getline(file, int(number))


WRONG = {}


def wrong(kind, piece, data, neighbour):
    """Keep a mechanism with its pair, the kind of finding, a piece of its line."""

    def keep(mechanism):
        pair = Pair(data, neighbour, allow_nonfinite=True)
        WRONG[mechanism.__name__] = mechanism, pair, kind, piece
        return mechanism

    return keep


@wrong("scale", "/ len(x)", rows(0.5, 0.5, 0.5), rows(0.5, 0.5))
def private_divisor(x, rng):
    return (np.clip(x, -1, 1).sum() + rng.laplace(0, 1.0)) / len(x)


@wrong("structure", "for k in classes", rows(0, 1, 2, 0), rows(0, 1, 0))
def classes_from_data(x, rng):
    classes = np.unique(x)
    return np.array([np.sum(x == k) + rng.laplace(0, len(classes)) for k in classes])


@wrong("distance", "x.sum() + rng", rows(*[0] * 100), rows(*[0] * 100, 1))
def two_queries(x, rng):
    return np.array([x.sum() + rng.laplace(0, 1.0), len(x) + rng.laplace(0, 1.0)])


@wrong("release", "np.clip(x, -5, 5)", rows(1, 2), rows(1, np.nan))
def nan_survives(x, rng):
    return np.clip(x, -5, 5).sum() + rng.laplace(0, 5.0)


@wrong("scale", "rng.laplace(0, 0.0)", rows(1, 1), rows(1))
def no_noise(x, rng):
    return x.sum() + rng.laplace(0, 0.0)


@wrong("distance", "rng.laplace(0, 5.0)", rows(1, -2, 3), rows(1, -2, 100))
def unclipped(x, rng):
    return x.sum() + rng.laplace(0, 5.0)


@wrong("scale", "rng.normal(0, largest)", rows(1, 2), rows(1, 3))
def scale_from_data(x, rng):
    largest = np.abs(x).max()
    return x.sum() + rng.normal(0, largest)


@wrong("release", "return x.sum() + noise", rows(1, 1), rows(1, 1, 0))
def one_draw_twice(x, rng):
    noise = rng.laplace(0, 2.0)
    return x.sum() + noise, len(x) + noise


@wrong("release", "return moment + noise", np.eye(2), np.eye(2)[:1])
def off_diagonal(x, rng):
    moment = x.T @ x
    noise = np.zeros(moment.shape)
    noise[np.triu_indices(len(moment), 1)] = rng.normal(0, 50.0, 1)
    return moment + noise + noise.T


def right_count(x, rng):
    return np.sum(x == 1) + rng.laplace(0, 1.0)


def right_float(x, rng):
    return float(np.clip(x, 0, 1).sum() + rng.laplace(0, 1.0))


def right_late_sum(x, rng):
    noisy = np.clip(x[::2], 0, 1).sum() + rng.laplace(0, 1.0)
    return noisy + np.clip(x[1::2], 0, 1).sum()


def dp_sgd(x, rng, *, clips_the_batch=False):
    w = np.zeros(x.shape[1])
    for _ in range(20):
        gradients = w - x
        norms = np.linalg.norm(gradients, axis=1, keepdims=True)
        total = (gradients * np.minimum(1, 1 / np.maximum(norms, 1e-12))).sum(0)
        if clips_the_batch:
            total = np.clip(gradients.sum(0), -10, 10)
        w = w - 0.1 * (total + 4.8 * rng.standard_normal(len(w))) / 10
    return w


SGD_ROWS = np.random.default_rng(0).standard_normal((10, 3))
SGD = Pair(SGD_ROWS[:-1], SGD_ROWS)

RIGHT = {
    "count": (right_count, Pair(rows(0, 1, 1, 0), rows(0, 1, 0))),
    "float": (right_float, Pair(rows(0, 1), rows(0, 1, 1))),
    "late sum": (right_late_sum, Pair(rows(0.3, 1), rows(0.3, 1, 1, 0)[:3])),
}


def made(source, **names):
    """Return the function f of a module of that source, as if it were a file's."""
    module = ModuleType("made")
    vars(module).update(names)
    sys.modules["made"] = module  # replays give it names of their own
    exec(compile(source, "made.py", "exec"), vars(module))
    return module.f
