"""Tensors of PyTorch with noise: what is done with them is done by NumPy's functions.

A `NoisyTensor` holds numbers with noise (`dpaudit.audit.replay.follow.tracked`). What
is done with it and with ordinary tensors is done with these, as real numbers: sums,
multiples, what moves entries, comparisons. All else looks at the numbers, and gets an
ordinary tensor.

An ordinary tensor that is written into (``x += noise``) gets ordinary numbers, which
are looked at.
"""

import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import asarray  # the real one, in an execution too

from dpaudit.audit.replay.declare.held import HeldArray, note_rounding
from dpaudit.audit.replay.declare.tensor_functions import FUNCTIONS, KEYWORDS, MOVING
from dpaudit.audit.replay.follow.places import reads_by_name, spelled
from dpaudit.audit.replay.follow.tracked import Tracked, isinstance_tracked, moved_by

__all__ = [
    "NoisyTensor",
    "as_tensor",
    "dtype_of",
    "is_int",
    "loaded_torch",
    "numbers_of",
]


def loaded_torch() -> Any:
    """Return PyTorch, which the code under audit has loaded."""
    return sys.modules["torch"]


class NoisyTensor(HeldArray):
    """Numbers with noise where a tensor is expected.

    Parameters
    ----------
    held : Tracked
    dtype : torch.dtype
    """

    __slots__ = ("dtype", "held")
    __array_priority__ = 1000

    def __init__(self, held: Tracked, dtype: Any) -> None:
        self.held, self.dtype = held, dtype

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # so that it is an instance
        # Compiled code that asks would read memory that is none of a tensor's.
        frame = sys._getframe(1)
        asked = spelled(frame, "isinstance") or reads_by_name(frame, "__class__")
        return loaded_torch().Tensor if asked else NoisyTensor

    @property
    def shape(self) -> Any:
        return loaded_torch().Size(self.held.shape)

    @property
    def ndim(self) -> int:
        return self.held.ndim

    @property
    def T(self) -> Any:
        return as_tensor(self.held.T, self.dtype)

    @property
    def mT(self) -> Any:
        return self.transpose(-2, -1)

    def __pos__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self._itself()

    device = property(lambda self: loaded_torch().device("cpu"))
    requires_grad = property(lambda self: False)
    is_leaf = property(lambda self: True)
    grad = property(lambda self: None)

    def ordinary(self, how: str) -> Any:
        """Return an ordinary tensor, with a note on the tape."""
        return loaded_torch().as_tensor(
            self.held.looked_at(how).copy(), dtype=self.dtype
        )

    def like(self) -> Any:
        """Return an ordinary tensor of zeros that is like it."""
        return loaded_torch().zeros(self.held.shape, dtype=self.dtype)

    # -- out of PyTorch

    def numpy(self, *, force: bool = False) -> Any:
        return self.held

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        return getattr(ufunc, method)(*map(numbers_of, inputs), **kwargs)

    def __len__(self) -> int:
        return len(self.held)

    def __iter__(self) -> Any:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        key = tuple(map(numbers_of, key)) if type(key) is tuple else numbers_of(key)
        return as_tensor(self.held[key], self.dtype)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.held[numbers_of(key)] = numbers_of(value)

    # -- what tensors are asked for

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        return self.held.size

    def dim(self) -> int:
        return self.held.ndim

    def is_floating_point(self) -> bool:
        return True

    def _itself(self, *args: Any, **kwargs: Any) -> Any:
        return as_tensor(self.held.copy(), self.dtype)

    clone = detach = cpu = contiguous = requires_grad_ = resolve_conj = _itself

    def to(self, *args: Any, **kwargs: Any) -> Any:
        kinds = [each for each in args if isinstance(each, loaded_torch().dtype)]
        dtype = kwargs.get("dtype") or next(iter(kinds), self.dtype)
        if not dtype.is_floating_point:
            return self.ordinary("to").to(dtype)
        return as_tensor(self.held.copy(), dtype)

    type = type_as = to

    def double(self) -> Any:
        return self.to(loaded_torch().float64)

    def float(self) -> Any:
        return self.to(loaded_torch().float32)

    def reshape(self, *shape: Any) -> Any:
        shape = shape[0] if len(shape) == 1 and not is_int(shape[0]) else shape
        return as_tensor(self.held.reshape(tuple(map(int, shape))), self.dtype)

    view = reshape

    def flatten(self) -> Any:
        return self.reshape(-1)

    def unsqueeze(self, dim: int) -> Any:
        return as_tensor(np.expand_dims(self.held, dim), self.dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name.rstrip("_") in FUNCTIONS or name in MOVING:
            method = getattr(loaded_torch().Tensor, name)
            return lambda *args, **kwargs: _called(method, (self, *args), kwargs)
        return getattr(self.ordinary(name), name)

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _called(function, args, kwargs or {})


def is_int(value: Any) -> bool:
    """Say whether something is one length of a shape."""
    return isinstance(value, int | np.integer)


def as_tensor(value: Any, dtype: Any) -> Any:
    """Return numbers as a tensor, those with noise as one that keeps it."""
    if isinstance_tracked(value) and value.noisy:
        return NoisyTensor(value, dtype)
    value = value.centre if isinstance_tracked(value) else asarray(value)
    kept = value.dtype.kind not in "f"
    return loaded_torch().as_tensor(value.copy(), dtype=None if kept else dtype)


def numbers_of(value: Any) -> Any:
    """Return what NumPy knows of a tensor, in double precision; others as they are."""
    if type(value) is NoisyTensor:
        return value.held
    if not isinstance(value, loaded_torch().Tensor):
        return value
    value = value.detach().cpu()
    return value.double().numpy() if value.is_floating_point() else value.numpy()


def dtype_of(values: list[Any]) -> Any:
    """Return the type of what is made of tensors."""
    torch, found = loaded_torch(), None
    for each in values:
        if isinstance(each, torch.Tensor) and each.dtype.is_floating_point:
            found = (
                each.dtype if found is None else torch.promote_types(found, each.dtype)
            )
    return torch.get_default_dtype() if found is None else found


def _followed(by: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Return what a function of NumPy gives, as a tensor; NotImplemented if nothing."""
    if set(kwargs) - KEYWORDS.keys():
        return NotImplemented
    several = bool(args) and type(args[0]) in (list, tuple)
    flat = [*args[0], *args[1:]] if several else list(args)
    dtype = dtype_of(flat)
    try:
        numbers = [*map(numbers_of, flat)]  # a tensor in a transform has none
        given = numbers
        if several:
            given = [numbers[: len(args[0])], *numbers[len(args[0]) :]]
        result = by(*given, **{KEYWORDS[key]: each for key, each in kwargs.items()})
    except (TypeError, ValueError, RuntimeError):
        return NotImplemented
    note_rounding(result, numbers, loaded_torch().finfo(dtype).eps)
    return as_tensor(result, dtype)


def _called(function: Any, args: Any, kwargs: Any) -> Any:
    """Return what a function of PyTorch gives, some of whose arguments have noise."""
    name = str(getattr(function, "__name__", ""))
    inner = name.startswith("__")
    writes = name.endswith("_") and not inner
    plain = name.strip("_")
    if inner and plain not in FUNCTIONS and plain.startswith("i"):
        writes, plain = True, plain[1:]
    by, made = FUNCTIONS.get(plain), NotImplemented
    if by is not None:
        made = _followed(by, args, kwargs)
    elif plain in MOVING and not writes:
        made = _moved(function, args, kwargs)
    if made is not NotImplemented and not writes:
        return made
    if made is NotImplemented:
        args, kwargs = _looked_at(args, name), _looked_at(kwargs, name)
        return function(*args, **kwargs)
    target = args[0]
    if type(target) is NoisyTensor and type(made) is NoisyTensor:
        target.held = made.held
        return target
    if type(target) is NoisyTensor:
        target.held = Tracked.plain(target.held.tape, made.double().numpy())
        return target
    made = made.ordinary(name) if type(made) is NoisyTensor else made
    with loaded_torch().no_grad():
        return target.copy_(made)


def _moved(function: Any, args: Any, kwargs: Any) -> Any:
    """Return what a function gives that only moves entries, or puts zeros beside them.

    It is called on the numbers of places (`Entries`).
    """
    torch, values = loaded_torch(), list[Any]()
    joins = bool(args) and type(args[0]) in (list, tuple)

    def mapped(each: Any, change: Callable[[Any], Any]) -> Any:
        if type(each) in (list, tuple):
            return type(each)(mapped(part, change) for part in each)
        moves = isinstance(each, torch.Tensor)  # or it says where, if it is of integers
        return change(each) if moves and (joins or each.is_floating_point()) else each

    def move(*places: Any) -> Any:
        waiting = iter(places)
        given = mapped(args, lambda _: torch.as_tensor(next(waiting)))
        result = function(*given, **kwargs)
        several = isinstance(result, list | tuple)
        return [each.numpy() for each in result] if several else result.numpy()

    try:
        mapped(args, lambda each: values.append(numbers_of(each)))
        tape = next(each.tape for each in values if isinstance_tracked(each))
        made = moved_by(move, tape, values)
    except (TypeError, ValueError, RuntimeError, IndexError, StopIteration):
        return NotImplemented
    dtype = dtype_of([*args[0]] if joins else list(args))
    if type(made) is list:
        return tuple(as_tensor(each, dtype) for each in made)
    return made if made is NotImplemented else as_tensor(made, dtype)


def _operator(name: str) -> Callable[..., Any]:
    """Return what an operator does with a noisy tensor, and others."""
    by = FUNCTIONS[name]

    def operate(*args: Any) -> Any:
        made = _followed(by, args, {})
        if made is NotImplemented:
            first, *others = _looked_at(args, name)
            return getattr(first, f"__{name}__")(*others)
        return made

    return operate


def _looks(name: str) -> Callable[..., Any]:
    """Return what an operator does that looks at the numbers."""

    def operate(self: NoisyTensor, *args: Any) -> Any:
        first, *others = _looked_at((self, *args), name)
        return getattr(first, name)(*others)

    return operate


def _looked_at(value: Any, how: str) -> Any:
    if type(value) is NoisyTensor:
        return value.ordinary(how)
    if isinstance_tracked(value):
        return value.looked_at(how)[()]
    if type(value) in (list, tuple):
        return type(value)(_looked_at(each, how) for each in value)
    if type(value) in (dict, OrderedDict):
        return type(value)((key, _looked_at(each, how)) for key, each in value.items())
    return value


def on_ordinary(real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of PyTorch that gets ordinary tensors, not noisy ones."""
    real = getattr(real, "__func__", real)

    def call(*args: Any, **kwargs: Any) -> Any:
        how = real.__name__.strip("_")
        return real(*_looked_at(args, how), **_looked_at(kwargs, how))

    return call


TRANSFORMS = (
    "torch._functorch.vmap._process_batched_inputs",
    "torch._functorch.eager_transforms._wrap_tensor_for_grad",
)
"""Where `torch.func` hands tensors to compiled code, which asks nothing of them."""


_OPERATORS = """
    add sub mul truediv matmul mod pow radd rsub rmul rtruediv rmatmul
    neg abs lt le gt ge
"""
for _name in _OPERATORS.split():
    setattr(NoisyTensor, f"__{_name}__", _operator(_name))
_LOOKING = """
    format repr str eq ne and or xor invert floordiv rfloordiv rpow rmod contains
    reduce_ex
"""
for _name in _LOOKING.split():
    setattr(NoisyTensor, f"__{_name}__", _looks(f"__{_name}__"))
setattr(NoisyTensor, "__hash__", object.__hash__)  # noqa: B010
