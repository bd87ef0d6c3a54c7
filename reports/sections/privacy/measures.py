"""What the section on privacy measures."""

from dpaudit.reports.experiment import Cell, Record
from dpaudit.reports.measures import exact, worst_case

__all__ = ["exact_privacy"]


def exact_privacy(cell: Cell) -> list[Record]:
    """Hold the claim against the exact privacy on the mechanism's worst pair.

    Returns
    -------
    list of dict
        One record: ``claimed_epsilon``, ``claimed_delta``; ``exact_epsilon`` at the
        claimed delta and ``exact_delta`` at the claimed epsilon (NaN where not known);
        ``claim``: ``"kept"``, ``"false"`` or ``"not known"``.
    """
    mechanism = cell.build()
    epsilon = cell.point["epsilon"]
    delta = float(mechanism.claim.delta(epsilon))
    return [
        {
            "claimed_epsilon": epsilon,
            "claimed_delta": delta,
            **exact(mechanism, worst_case(mechanism), epsilon, delta),
        }
    ]
