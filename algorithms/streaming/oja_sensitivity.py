r"""How far one row moves the sum of a batch, and step sizes in the unit of that.

For the sensitivities see the proof in `dpaudit.algorithms.streaming.noisy_oja`.
"""

from math import inf, sqrt

from dpaudit.algorithms.shared.step_sizes import HarmonicSteps
from dpaudit.errors import InputError
from dpaudit.validation import check_count, check_positive

__all__ = [
    "DEFAULT_NUMERATOR",
    "DEFAULT_OFFSET",
    "batch_sensitivity",
    "check_one_component",
    "default_steps",
    "unit_of",
]

DEFAULT_NUMERATOR, DEFAULT_OFFSET = 60.0, 1.0


def batch_sensitivity(
    n_components: int, *, row_norm: float | None = None, clip: float | None = None
) -> float:
    """Return how far the sum of a batch's clipped products moves, in Frobenius norm.

    Parameters
    ----------
    n_components : int
        k.
    row_norm : float, optional
        R, for rows; without it the A_i may be any matrices.
    clip : float, optional
        beta. One of the two must be given.

    Examples
    --------
    >>> batch_sensitivity(1, row_norm=1.0), batch_sensitivity(1, clip=1.0)
    (1.0, 2.0)
    """
    unit_of(row_norm, clip)
    of_clip = inf if clip is None else 2 * clip
    several = check_count("n_components", n_components) > 1
    of_rows = inf if row_norm is None else row_norm**2 * (sqrt(2) if several else 1)
    return min(of_clip, of_rows)


def unit_of(row_norm: float | None, clip: float | None) -> float:
    """Return the largest norm of a product A_i w, the inverse unit of step sizes."""
    if row_norm is None and clip is None:
        raise InputError("clip must be given where there is no row_norm, got None")
    of_rows = inf if row_norm is None else check_positive("row_norm", row_norm) ** 2
    return min(of_rows, inf if clip is None else check_positive("clip", clip))


def check_one_component(name: str, n_components: int) -> None:
    """Raise unless the number of components is 1.

    Parameters
    ----------
    name : str
        Of the mechanism, which releases no more.
    n_components : int
    """
    if n_components != 1 or isinstance(n_components, bool):
        raise InputError(
            f"n_components of {name} must be 1, got {n_components!r}; for more see "
            "block-oja"
        )


def default_steps(row_norm: float | None, clip: float | None) -> HarmonicSteps:
    """Return c1/(c2 + t) with c1 = 60 over the largest ||A_i w||, and c2 = 1.

    A compromise: for Gaussian rows with one spike, d = 20 and a gap lambda_1 - lambda_2
    of 0.07 to 0.22 R^2, the error of minibatch-oja at (1, 1e-5) is within a factor of
    about two of the best among T from 5 to 50, c1 from 2 to 100 and c2 from 0 to 5.
    Smaller gaps ask for larger steps: too small a step leaves the start as it was, too
    large a one only averages over fewer batches.
    """
    return HarmonicSteps(DEFAULT_NUMERATOR / unit_of(row_norm, clip), DEFAULT_OFFSET)
