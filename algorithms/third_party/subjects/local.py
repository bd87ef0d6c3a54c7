"""Local differential privacy by multi-freq-ldpy (0.2.5).

``README.md``: "under local differential privacy (LDP) guarantees", "epsilon: privacy
guarantee". What one person hands in is a dataset of one row.
"""

from importlib import import_module
from typing import Any

import numpy as np

from dpaudit.algorithms.third_party.subjects.shelf import Shelf

__all__ = ["SUBJECTS"]

_of = Shelf(__name__, "multi_freq_ldpy", "multi-freq-ldpy")
_VALUES = 4


def _oracle(module: str, name: str, shown: str, line: int, *more: Any) -> None:
    """List what one person with one of four values sends."""

    @_of(
        f"{module}.{shown}",
        f"codes:{_VALUES}:rows=1",
        relation="replace-one",
        sized=True,
        stated=f"pure_frequency_oracles/{module}.py:{line}",
    )
    def send(data: Any, rng: Any) -> Any:
        library = import_module(f"multi_freq_ldpy.pure_frequency_oracles.{module}")
        sent = getattr(library, name)(int(data[0]), _VALUES, 1.0, *more)
        return np.atleast_1d(np.asarray(sent, dtype=np.float64))


_oracle("GRR", "GRR_Client", "GRR_Client", 17)
_oracle("UE", "UE_Client", "UE_Client(optimal)", 17, True)
_oracle("UE", "UE_Client", "UE_Client(symmetric)", 17, False)
_oracle("HE", "HE_Client", "HE_Client", 18)
_oracle("SS", "SS_Client", "SS_Client", 17)
_oracle("LH", "LH_Client", "LH_Client", 21)
_oracle("ADP", "ADP_Client", "ADP_Client", 17)


def _tuple_of(module: str, name: str, line: int, *more: Any) -> None:
    """List what one person with two binary attributes sends."""

    @_of(
        f"{module}.{name}",
        "binary:2:rows=1",
        relation="replace-one",
        sized=True,
        stated=f"mdim_freq_est/{module}.py:{line}",
    )
    def send(data: Any, rng: Any) -> Any:
        library = import_module(f"multi_freq_ldpy.mdim_freq_est.{module}")
        sent = getattr(library, name)(
            [int(each) for each in data[0]], [2, 2], 2, 1.0, *more
        )
        return np.concatenate(
            [np.atleast_1d(np.asarray(part, dtype=np.float64)) for part in sent]
        )


_tuple_of("SPL_solution", "SPL_GRR_Client", 14)
_tuple_of("SMP_solution", "SMP_GRR_Client", 14)
_tuple_of("RSpFD_solution", "RSpFD_GRR_Client", 9)
_tuple_of("RSpFD_solution", "RSpFD_UE_zero_Client", 41)

SUBJECTS = tuple(_of.subjects)
"""What is audited."""
