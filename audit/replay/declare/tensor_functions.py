"""Functions of PyTorch by their names, and what NumPy's do instead with numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["FUNCTIONS", "KEYWORDS", "MOVING"]


def _over(function: Any) -> Callable[..., Any]:
    """Return a function over an axis, called as PyTorch does."""

    def call(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return function(x, axis=axis, keepdims=keepdims)

    return call


def _joining(function: Any) -> Callable[..., Any]:
    return lambda several, axis=0: function(list(several), axis=axis)


def _swapped(function: Any) -> Callable[..., Any]:
    return lambda x, y: function(y, x)


def _clamp(x: Any, low: Any = None, high: Any = None) -> Any:
    return np.clip(x, low, high)


KEYWORDS = {
    **{"dim": "axis", "axis": "axis", "keepdim": "keepdims", "keepdims": "keepdims"},
    **{"min": "low", "max": "high"},
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide},
    **{"truediv": np.true_divide, "true_divide": np.true_divide, "matmul": np.matmul},
    **{"subtract": np.subtract, "multiply": np.multiply, "divide": np.true_divide},
    **{"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal},
    **{
        "remainder": np.remainder,
        "mod": np.remainder,
        "pow": np.power,
        "mm": np.matmul,
    },
    **{"radd": np.add, "rsub": _swapped(np.subtract), "rmul": np.multiply},
    **{"rdiv": _swapped(np.true_divide), "rtruediv": _swapped(np.true_divide)},
    **{"rmatmul": _swapped(np.matmul), "neg": np.negative, "exp": np.exp},
    **{"log": np.log, "log1p": np.log1p, "abs": np.abs, "sqrt": np.sqrt},
    **{"sign": np.sign, "cos": np.cos, "sin": np.sin, "square": np.square},
    **{"floor": np.floor, "round": np.rint, "squeeze": np.squeeze, "mv": np.matmul},
    **{"clamp": _clamp, "clip": _clamp, "sum": _over(np.sum), "mean": _over(np.mean)},
    **{"stack": _joining(np.stack), "cat": _joining(np.concatenate), "dot": np.matmul},
    **{"argmax": np.argmax, "cumsum": np.cumsum, "t": np.transpose},
    **{"trace": np.trace, "ger": np.outer, "outer": np.outer},
}
"""By their names in PyTorch, what functions do with numbers."""
MOVING = frozenset(
    """
    triu tril diag diagonal diag_embed transpose swapaxes swapdims movedim permute
    expand expand_as broadcast_to repeat tile flip fliplr flipud roll rot90 unbind split
    chunk hstack vstack concat concatenate column_stack block_diag index_select narrow
    ravel atleast_1d atleast_2d
    """.split()
)
"""Those that only move entries, or put zeros beside them."""
