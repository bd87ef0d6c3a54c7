"""What a mechanism returns: its layout, and the numbers in it.

All that comes back is an output: an array, a dictionary of arrays, nested and ragged
lists, a text, an exception. Its *layout* is what is left when every number is taken
out: keys in their order, lengths, shapes, the types of numbers, words. Two outputs of
one layout differ in their numbers alone, so these are stacked, and attacks have one
model of them per layout; an output without numbers is told by its layout.

    array([1.5, 2.0])                       shape (2,)
    7                                       int64, shape ()
    {"a": 1.0, "b": {"c": [1.0, 2.0]}}      shapes {a: (), b: {c: (2,)}}
    [[1.0], [1.0, 2.0]]                     shapes [(1,), (2,)]
    "the sum is 17.2"                       value 'the sum is {}'
    None                                    value None
    Counts(total=1.0), a dataclass          shapes Counts{total: ()}
    ValueError("no rows")                   raises ValueError

Numbers are read as doubles, those in a text too (JSON, CSV); a text is never cut: a
layout that would be long ends in a digest of all of it. What is told apart by its type
alone is called ``returns TYPE``, and what may show more than its entries ``returns TYPE
of ENTRIES``; of an exception, too, the type counts and not the message.

Telling Ctrl-C from what the interrupted code raises by itself
--------------------------------------------------------------
What a mechanism raises is an output. But an exception may also come out of it that is
not its own: Python runs the handlers of signals in the midst of other code, and what
these raise (KeyboardInterrupt for Ctrl-C, what ends a test that takes too long) goes
through that code. Its traceback leads through the handler, which gives it away.
Python's own handler of Ctrl-C alone has no place in tracebacks; `telling_interrupts`
puts one there that has.
"""

import hashlib
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Number, Real
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from dpaudit.arrays import Array, Release
from dpaudit.attributes import array_of_tensor, attributes_of, check_awaited
from dpaudit.errors import MechanismError
from dpaudit.printable import ADDRESS

__all__ = [
    "UNREAD",
    "Output",
    "arrays_of",
    "map_arrays",
    "raised",
    "raised_by_signal",
    "read",
    "read_stack",
    "telling_interrupts",
]

UNREAD = "returns "
"""How the layout of an output begins of which not all was read, or its type alone."""

_LONGEST = 80  # characters of a layout; beyond, a digest stands for the rest
_KEPT, _DIGEST = 44, 24
_DEEPEST = 30
_MOST_DIGITS = 17  # significant ones, that a double can hold; more are a word
_NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?(?![\w.])"
    r"|(?<![\w.])[-+]?(?:nan|NaN|inf|Infinity)(?![\w.])"
)
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_ -]*")


class Output(NamedTuple):
    """One output: its layout, and its numbers if it has any."""

    layout: str
    numbers: Release | None


def read(output: Any) -> Output:
    """Return the layout of one output of a mechanism, and its numbers.

    Parameters
    ----------
    output : object
        Anything. Numbers are copied: it may be the mechanism's own buffer.

    Examples
    --------
    >>> read({"a": 1.5, "b": "high"})
    Output(layout="shapes {a: (), b: 'high'}", numbers={'a': array(1.5)})
    >>> read("17.2, 3")
    Output(layout="value '{}, {}'", numbers=array([17.2,  3. ]))
    """
    # What most mechanisms return, one release at a time, should cost next to nothing.
    if type(output) is float or type(output) is np.float64:
        return Output("shape ()", np.array(output))
    return _read(output, 0, leading=0).output


def read_stack(outputs: Any) -> Output | list[Output]:
    """Return what a batched draw returned: outputs of one layout stacked, or a list.

    Parameters
    ----------
    outputs : object
        An array, or a dictionary of arrays, whose first axis runs over the outputs; or
        a sequence of single ones.

    Returns
    -------
    Output or list of Output
        The numbers of a single `Output` have the leading axis; the layout is that of
        one of them.
    """
    mapped = isinstance(outputs, Mapping)
    tree = _read(outputs, 0, 1) if mapped else _array(outputs, leading=1)
    if tree is not None and (tree.output.numbers is not None or not mapped):
        return tree.output
    singles = outputs.tolist() if isinstance(outputs, np.ndarray) else outputs
    if isinstance(singles, list | tuple):
        return [read(single) for single in singles]
    check_awaited(outputs)
    told = "the mechanism's draw must return numbers, or a list of outputs, got"
    raise MechanismError(f"{told} {type(outputs).__name__}")


def raised(error: BaseException) -> Output:
    """Return the output that an exception is."""
    return Output(_shortened(f"raises {type(error).__name__}"), None)


def arrays_of(numbers: Release | None) -> list[Array]:
    """Return the arrays that releases consist of."""
    if numbers is None:
        return []
    return list(numbers.values()) if isinstance(numbers, Mapping) else [numbers]


def map_arrays(numbers: Release, change: Callable[[Array], Array]) -> Release:
    """Return releases with every array changed."""
    if isinstance(numbers, Mapping):
        return {key: change(value) for key, value in numbers.items()}
    return change(numbers)


@dataclass(frozen=True)
class _Tree:
    """An output, read.

    `layout` is what the output is called by itself, `text` what inside another; `leaf`
    is set where it is one array, `numbers` are those of a branch by their paths.
    """

    layout: str
    text: str
    numbers: Mapping[str, Array]
    leaf: Array | None = None

    @property
    def output(self) -> Output:
        layout = _shortened(self.layout)
        return Output(layout, self.numbers or None if self.leaf is None else self.leaf)


def _read(output: Any, depth: int, leading: int) -> _Tree:
    """Read an output, or the first one of stacked ones where `leading` is 1."""
    if depth > _DEEPEST:
        return _unread(output)
    if type(output) is np.ndarray:
        return _array(output, leading) or _read(output.tolist(), depth + 1, leading)
    if isinstance(output, str | bytes | bytearray):
        return _text(output)
    if output is None:
        return _Tree("value None", "None", {})
    if isinstance(output, Mapping):
        items = [(_key(key), value) for key, value in output.items()]
        return _branch("{}", items, depth, leading)
    if isinstance(output, AbstractSet):
        output = _ordered(output)
    whole = isinstance(output, Sequence | Number) or hasattr(type(output), "__array__")
    held = None if whole else attributes_of(output)
    if held is None and (tree := _entries(output, depth, leading)) is not None:
        more = f"{UNREAD}{type(output).__name__} of {tree.text}"
        return tree if whole else replace(tree, layout=more)
    if held is None and (held := attributes_of(output)) is None:
        return _number(output)
    inner = depth + _DEEPEST // 5  # objects that hold each other have no end
    return _branch(type(output).__name__ + "{}", [*held.items()], inner, leading)


def _branch(
    brackets: str,
    items: Sequence[tuple[str, Any]],
    depth: int,
    leading: int,
    word: str = "shapes ",
) -> _Tree:
    texts, numbers = [], {}
    for place, (key, value) in enumerate(items):
        tree = _read(value, depth + 1, leading)
        texts.append(f"{key}: {tree.text}" if brackets[-1] == "}" else tree.text)
        key = f"{key}#{place}" if key in numbers else key  # unlike keys may look alike
        if tree.leaf is not None:
            numbers[key] = tree.leaf
        for path, array in tree.numbers.items():
            numbers[f"{key}.{path}"] = array
    text = brackets[:-1] + ", ".join(texts) + brackets[-1]
    return _Tree(word + text, text, numbers)


def _array(value: Any, leading: int) -> _Tree | None:
    """Return what can be read as one array of numbers, or None."""
    if isinstance(value, np.ma.MaskedArray):
        parts = [("data", value.data), ("mask", np.ma.getmaskarray(value))]
        return _branch("{}", parts, 0, leading, "masked ")
    try:
        array = np.asarray(value)
    except Exception:  # ragged, or its __array__ raises
        array = array_of_tensor(value)
    match array.dtype.kind:
        case "b" | "i" | "u" | "f":
            # A copy in one order: BLAS rounds by it, and no other process keeps it.
            numbers = np.array(array, dtype=np.float64, order="C")
        case "c":
            both = [np.real(array), np.imag(array)]
            numbers = np.stack(both, axis=-1).astype(np.float64)
        case "m" | "M":
            numbers = np.where(np.isnat(array), np.nan, array.astype(np.int64))
        case "V" if array.dtype.names:
            fields = [(_key(name), array[name]) for name in array.dtype.names]
            return _branch("{}", fields, 0, leading)
        case "V" if array.dtype.name == "bfloat16":  # of JAX
            return _array(array.astype(np.float32), leading)
        case _:
            return None
    shape = str(array.shape[leading:])
    if array.dtype.kind == "f":  # of any precision: they are the same numbers
        return _Tree(f"shape {shape}", shape, {}, numbers)
    kind = str(array.dtype)  # which takes NumPy long to say
    return _Tree(f"{kind}, shape {shape}", f"{kind} {shape}", {}, numbers)


def _entries(value: Any, depth: int, leading: int) -> _Tree | None:
    """Return what has entries, a table with words in it too; None of anything else."""
    if (tree := _array(value, leading)) is not None:
        return tree
    if isinstance(value, list | tuple):
        items = [(str(place), each) for place, each in enumerate(value)]
        return _branch("[]", items, depth, leading)
    try:
        array = np.asarray(value)
    except Exception:
        return None
    return _read(array.tolist(), depth + 1, leading) if array.ndim else None


def _number(value: Any) -> _Tree:
    """Return a number that NumPy has no type for, or what cannot be read."""
    kind = type(value).__name__
    if not isinstance(value, Real | Decimal):
        return _unread(value)
    try:
        number = np.array(float(value))
    except OverflowError:
        return _text(hex(value)) if isinstance(value, int) else _unread(value)
    except Exception:
        return _unread(value)
    return _Tree(f"{kind}, shape ()", f"{kind} ()", {}, number)


def _text(value: str | bytes | bytearray) -> _Tree:
    """Take the numbers out of a text; a pair of braces stands for each."""
    text = value if isinstance(value, str) else value.decode("latin-1")
    numbers: list[float] = []
    pieces, end = [], 0
    for found in _NUMBER.finditer(text):
        digits = found.group().lower().partition("e")[0].lstrip("+-0.").replace(".", "")
        if len(digits) > _MOST_DIGITS:
            continue
        numbers.append(float(found.group()))
        pieces += [_escaped(text[end : found.start()]), "{}"]
        end = found.end()
    bare = "".join([*pieces, _escaped(text[end:])])
    quoted = repr(bare if isinstance(value, str) else bare.encode("latin-1"))
    leaf = np.array(numbers if len(numbers) > 1 else numbers[0]) if numbers else None
    return _Tree(f"value {quoted}", quoted, {}, leaf)


def _escaped(text: str) -> str:
    """Double the braces of a text, so that none of it looks like a number."""
    return text.replace("{", "{{").replace("}", "}}")


def _unread(value: Any) -> _Tree:
    return _Tree(UNREAD + (kind := type(value).__name__), kind, {})


def _key(key: Any) -> str:
    if isinstance(key, str) and _PLAIN_KEY.fullmatch(key):
        return key
    try:
        text = repr(key)
    except Exception:
        return f"<{type(key).__name__}>"
    # Where something lies in memory is no part of it.
    return ADDRESS.sub(" at 0x...", text) if not isinstance(key, str | bytes) else text


def _ordered(members: AbstractSet[Any]) -> list[Any]:
    """Return the members of a set, in an order that does not depend on its memory."""
    try:
        if all(isinstance(member, Real) for member in members):
            return sorted(members, key=lambda member: (member != member, member))
        if not any(isinstance(member, AbstractSet) for member in members):
            return sorted(members)
    except Exception:  # unlike members, or of which one cannot be compared
        pass
    return sorted(members, key=_place)


def _place(member: Any) -> str:
    if isinstance(member, AbstractSet):
        return "{" + ", ".join(map(_place, _ordered(member))) + "}"
    return _key(member)


def _shortened(layout: str) -> str:
    if len(layout) <= _LONGEST:
        return layout
    digest = hashlib.sha256(layout.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{layout[:_KEPT]}... sha256:{digest[:_DIGEST]}"


def _interrupt(*_: object) -> None:
    """Do what Python does at Ctrl-C, in a frame of its own."""
    raise KeyboardInterrupt


@contextmanager
def telling_interrupts() -> Iterator[None]:
    """Let `raised_by_signal` tell Ctrl-C from a KeyboardInterrupt of other code.

    Other handlers of the signal than Python's own stay as they are, and so do other
    threads: only in the main thread signals are handled.
    """
    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if ours:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        if ours and signal.getsignal(signal.SIGINT) is _interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def raised_by_signal(error: BaseException) -> bool:
    """Say whether the handler of a signal raised it, and not the code that it left.

    That is known of the handlers that are in place now. Where Python's own handles
    Ctrl-C, each KeyboardInterrupt is taken for one.

    Examples
    --------
    >>> with telling_interrupts():
    ...     try:
    ...         raise KeyboardInterrupt
    ...     except KeyboardInterrupt as error:
    ...         raised_by_signal(error)
    False
    """
    if threading.current_thread() is not threading.main_thread():
        return False
    if (
        isinstance(error, KeyboardInterrupt)
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ):
        return True
    handlers = {_code(signal.getsignal(number)) for number in signal.valid_signals()}
    handlers = {_interrupt.__code__, *handlers} - {None}
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return True
        trace = trace.tb_next
    return False


def _code(handler: Any) -> CodeType | None:
    """Return the code of a handler that is a function or a method, None of others."""
    return getattr(getattr(handler, "__func__", handler), "__code__", None)
