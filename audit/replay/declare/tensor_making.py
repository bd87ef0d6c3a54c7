"""Functions of PyTorch that make tensors of other numbers, those with noise too.

Compiled code takes what says that it is a tensor for one: handed a `NoisyTensor`, it
would read memory that is none of a tensor's, and crash.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.audit.replay.declare.held import note_rounding
from dpaudit.audit.replay.declare.tensors import (
    NoisyTensor,
    as_tensor,
    loaded_torch,
    numbers_of,
    on_ordinary,
)
from dpaudit.audit.replay.follow.tracked import has_noise, isinstance_tracked

__all__ = ["MAKING"]


def _keeping(real: Callable[..., Any]) -> Callable[..., Any]:
    """Return what makes tensors of numbers, and of those with noise noisy ones."""
    at, ordinary = int(real.__name__ == "new_tensor"), on_ordinary(real)

    def call(*args: Any, **kwargs: Any) -> Any:
        made = NotImplemented
        if len(args) == at + 1 and not kwargs.get("requires_grad"):
            made = _kept(args[at], kwargs.get("dtype"))
        return ordinary(*args, **kwargs) if made is NotImplemented else made

    return call


def _kept(data: Any, dtype: Any) -> Any:
    """Return a noisy tensor of numbers with noise; NotImplemented of others."""
    torch = loaded_torch()
    if not has_noise(data):
        return NotImplemented
    if dtype is None:
        known = isinstance_tracked(data) and data.ndim  # by NumPy, in double precision
        dtype = torch.float64 if known else torch.get_default_dtype()
        dtype = data.dtype if type(data) is NoisyTensor else dtype
    if type(data) in (list, tuple):
        data = np.array([*map(numbers_of, data)])
    data = numbers_of(data)
    floating = isinstance(dtype, torch.dtype) and dtype.is_floating_point
    if not isinstance_tracked(data) or data.is_choice or not floating:
        return NotImplemented
    data = data.copy()
    note_rounding(data, [], torch.finfo(dtype).eps)
    return as_tensor(data, dtype)


MAKING: dict[str, Callable[[Any], Any]] = {
    **{
        f"torch.{name}": _keeping
        for name in ("tensor", "as_tensor", "asarray", "from_numpy")
    },
    "torch.Tensor.new_tensor": _keeping,
    "torch.full": on_ordinary,
    "torch.scalar_tensor": on_ordinary,
    "torch.Tensor.__new__": on_ordinary,
    "torch.nn.parameter.Parameter.__new__": on_ordinary,
}
"""By their paths, what stands for a function in an execution."""
