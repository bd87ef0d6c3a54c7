"""Gaussian laws in coordinates in which their entries are independent.

Laws are those of `dpaudit.audit.replay.laws.affine`.
"""

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from dpaudit.arrays import Array

__all__ = ["rough_of", "whitened"]

_Law = TypeVar("_Law", bound=Any)

_SAME = 1e-9  # relative: what differs by less is one covariance
_CONDITION = 1e-6  # of covariances that are turned, least over largest eigenvalue


def whitened(law: _Law, other: _Law) -> "tuple[_Law, _Law, Array] | str | None":
    """Return two Gaussian laws in coordinates that make both covariances diagonal.

    That of the first law becomes 1. The third is the matrix that leads there. A text
    says why they are singular; None that the covariances differ, and are not well
    conditioned.
    """
    if law.factor is None or other.factor is None:
        return None
    covariances = [factor @ factor.T for factor in (law.factor, other.factor)]
    largest = np.abs(covariances[0]).max(initial=0.0)
    if np.abs(covariances[0] - covariances[1]).max(initial=0.0) > _SAME * largest:
        return _both_diagonal(law, other, *covariances)
    left, scales, _ = np.linalg.svd(law.factor, full_matrices=False)
    rank = int((scales > 1e-10 * scales.max(initial=0.0)).sum())
    basis = left[:, :rank]
    shift = law.mean - other.mean
    across = shift - basis @ (basis.T @ shift)
    size = np.abs(law.mean) + np.abs(other.mean)
    rough = rough_of(law, other)
    most = _SAME * max(1.0, size.max(initial=0.0)) + rough.max(initial=0.0)
    if np.abs(across).max(initial=0.0) > most:
        return "a combination of numbers has no noise, and differs"
    into = basis / scales[:rank]
    return (
        *(_diagonal(each, into, np.ones(rank), rough) for each in (law, other)),
        into,
    )


def _both_diagonal(
    law: _Law, other: _Law, covariance: Array, there: Array
) -> "tuple[_Law, _Law, Array] | None":
    """Return two laws of unlike covariances as `whitened` does.

    With C = B B^T the eigenvectors U of B^-1 C' B^-T are such coordinates: (U^T B^-1) C
    (U^T B^-1)^T = 1, and the eigenvalues are the variances of the other law.
    """
    scales, left = np.linalg.eigh(covariance)
    if len(scales) < 1 or scales[0] < _CONDITION * scales[-1]:
        return None
    white = left / np.sqrt(scales)
    variances, turn = np.linalg.eigh(white.T @ there @ white)
    if variances[0] < _CONDITION * variances[-1]:
        return None
    into, rough = white @ turn, rough_of(law, other)
    ratios = np.where(np.abs(variances - 1) < _SAME, 1.0, np.sqrt(variances))
    ones = np.ones(len(ratios))
    sides = (law, ones), (other, ratios)
    return (*(_diagonal(each, into, ratio, rough) for each, ratio in sides), into)


def _diagonal(law: _Law, into: Array, ratio: Array, rough: Array) -> _Law:
    """Return a Gaussian law in coordinates in which its entries are independent."""
    units = np.arange(len(ratio))
    made: _Law = replace(
        law,
        mean=law.mean @ into,
        unit=units,
        ratio=ratio,
        first=units,
        draw=units,
        family=0 * units,
        alone=ratio < 0,
        known=True,
        factor=None,
        rough=rough @ np.abs(into) if rough.any() else None,
    )
    return made


def rough_of(law: _Law, other: _Law) -> Array:
    """Return by how much the means of two laws may be off."""
    rough = np.zeros(len(law.mean))
    for each in (law, other):
        if each.rough is not None:
            rough = rough + each.rough
    return rough
