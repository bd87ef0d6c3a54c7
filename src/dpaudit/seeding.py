"""Generators that code draws from and is not handed: found, seeded and put back.

These are NumPy's, Python's and PyTorch's own, those that code makes without a seed, and
those that it made so before and comes to by a name.
"""

import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from types import FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from numpy.random import Generator

__all__ = ["generators_of", "seeded", "torch_kept"]

_NAMED = (FunctionType, ModuleType, type)
_OTHERS = {*sys.stdlib_module_names, "dpaudit"}  # whose code is not the user's
_ONCE = {"<frozen importlib._bootstrap>", tempfile.__file__}
_LARGE = 2**64  # a seed that the system gives is larger


def generators_of(function: Any) -> list[Any]:
    """Return generators that a function's code comes to by its names, of no own seed.

    The system gave their seeds when the code made them, before this call. Names are
    those of a module, of what is around a function, of defaults and of attributes.
    Code of libraries is not looked into, and none runs.
    """
    found, seen, waiting = list[Any](), set[int](), [function]
    for thing in waiting:  # which grows
        kind = type(thing)
        if kind is Generator:
            seed = getattr(thing.bit_generator.seed_seq, "entropy", None)
            found += [thing] if isinstance(seed, int) and seed >= _LARGE else []
        elif kind is MethodType:
            waiting += thing.__self__, thing.__func__
        elif isinstance(thing, partial):
            waiting += thing.func, *thing.args, *thing.keywords.values()
        elif id(thing) not in seen and (thing is function or _is_users(thing)):
            with suppress(AttributeError):  # it has slots
                waiting += object.__getattribute__(thing, "__dict__").values()
            waiting += [] if kind in _NAMED else [kind]
            if kind is FunctionType:
                waiting += (*thing.__globals__.values(), *(thing.__defaults__ or ()))
                for cell in thing.__closure__ or ():
                    with suppress(ValueError):  # it is empty yet
                        waiting.append(cell.cell_contents)
        seen.add(id(thing))
    return [*{id(each): each for each in found}.values()]


def _is_users(thing: Any) -> bool:
    kind = thing if type(thing) in _NAMED else type(thing)
    name = str(kind.__name__ if type(kind) is ModuleType else kind.__module__)
    file = str(getattr(sys.modules.get(name), "__file__", ""))
    return "-packages" not in file and name.partition(".")[0] not in _OTHERS


@contextmanager
def seeded(
    rng: Any,
    draw: Callable[[], int],
    own: Callable[[], list[Any]],
    before: dict[Any, Callable[[], Any]],
) -> Iterator[None]:
    """Seed whatever code draws from that is handed no generator, for the block.

    Parameters
    ----------
    rng : Generator
        Of the audit, or a recorder: that stands for such generators itself, or tells of
        what it does not follow by its draws, which have no seed then.
    draw : callable
        Draws a seed from it.
    own : callable
        Returns the generators of the code: in an ordinary execution only, as recorders
        stand for them in others.
    before : dict
        To which is added what puts these back.
    """
    outer = sys._getframe(2)  # which is in the block
    source: Any = np.random.bit_generator  # where generators without a seed take one
    ordinary = not hasattr(rng, "of_seed")
    with ExitStack() as stack:
        for each in own() if ordinary else ():
            bits = each.bit_generator
            before.setdefault(bits, partial(setattr, bits, "state", bits.state))
            bits.state = type(bits)(draw()).state
        np.random.seed(draw())  # noqa: NPY002
        random.seed(drawn := draw())
        if ordinary:
            # NumPy's own would draw the same from the same seed, and Python's does not.
            stack.enter_context(torch_kept(drawn))
        kept = source.randbits, random.Random.seed, random.seed

        def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
            ours = a is None and not _is_made_once(outer)
            kept[1](self, draw() if ours else a, version)

        def randbits(bits: int) -> int:
            once = _is_made_once(outer)
            return kept[0](bits) if once else int.from_bytes(rng.bytes(bits // 8))

        if ordinary:
            source.randbits = randbits
            random.Random.seed, random.seed = seed, partial(seed, random._inst)  # type: ignore
        try:
            yield
        finally:
            source.randbits, random.Random.seed, random.seed = kept  # type: ignore


def _is_made_once(outer: FrameType) -> bool:
    """Say whether a generator is made for the process: by an import, or for files."""
    frame = sys._getframe(2)
    while frame is not None and frame is not outer:
        if frame.f_code.co_filename in _ONCE:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


@contextmanager
def torch_kept(seed: int | None = None) -> Iterator[None]:
    """Put PyTorch's own generators back after the block; perhaps seed them in it."""
    torch: Any = sys.modules.get("torch")
    if not hasattr(torch, "default_generator"):  # not loaded, or not yet
        yield
        return
    cuda = torch.cuda.is_initialized()
    with torch.random.fork_rng(range(torch.cuda.device_count()) if cuda else ()):
        if seed is not None:  # those on devices too, or what takes next to no time
            (torch if cuda else torch.default_generator).manual_seed(seed)
        yield
