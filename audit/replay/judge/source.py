"""What the source of the code under audit says: of its lines, and of noise it keeps.

**Noise that was drawn before**, at an import or by earlier calls. An ordinary number
that was drawn when a module was imported, or a mechanism was made, is the same in every
execution. It looks like any other constant, and a claim that holds thanks to this noise
looks broken. No number of executions in this process tells the two apart; the source
does: a name that the code reads is bound to a draw, and no execution ran the line of
that draw.

Names are those of the module, of functions around the mechanism, of its defaults, of
its attributes, and those that this module imports from another one. Noise from
elsewhere (a file, an argument of ``partial``, compiled code, an installed package) is
not found.
"""

import ast
import linecache
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.util import resolve_name
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeAlias

import numpy as np

from dpaudit.audit.replay.follow.observations import Unfollowed
from dpaudit.audit.replay.follow.places import place_in
from dpaudit.audit.replay.follow.reached import (
    file_of,
    is_foreign,
    names_of,
    part_of,
    reached,
)

__all__ = ["handed", "handed_on", "kept_noise", "returns"]

Draws: TypeAlias = frozenset[tuple[str, int]]
"""The files, and lines, on which something is drawn."""

_KEPT = (
    "{} holds what was drawn before, at an import or by an earlier execution: noise "
    "that is used again cannot be judged"
)
_DRAWING = frozenset(
    name
    for kind in (np.random.RandomState, np.random.Generator)
    for name in dir(kind)
    if not name.startswith("_") and name not in ("seed", "spawn", "bit_generator")
) - {"get_state", "set_state", "bytes", "f", "power"} | {
    *("rvs", "gauss", "sample", "choices", "randrange", "urandom", "token_bytes"),
    *("getrandbits", "randbits", "randbelow", "normalvariate", "expovariate"),
}
# Of these modules, functions of the same names draw nothing.
_NOT_DRAWING = ("np", "numpy", "math", "scipy", "special")
_HANDED_ON = ("array", "asarray", "list", "tuple", "float", "int", "bool", "stack")
_KEEPING = ("append", "extend", "insert", "add")  # of lists and sets
_ADDING = ("append", "extend", "add", "insert", "setdefault", "update")
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def kept_noise(
    mechanism: Any, drawn: set[str], *, more: Sequence[tuple[Any, Any]] = ()
) -> Unfollowed | None:
    """Return where something was bound that the code reads, and that was drawn before.

    Parameters
    ----------
    mechanism : Mechanism or callable
    drawn : set of str
        The places where the executions drew.
    more : sequence of tuple
        Functions that are looked at beside, and the classes that hold them, or None.
    """
    for function, owner in reached((mechanism, None), *more):
        if not isinstance(function, FunctionType):
            continue
        for name, draws in _read(function, owner):
            places = [place_in(*each) for each in sorted(draws)]
            if places and not drawn.intersection(places):
                return Unfollowed(places[0], _KEPT.format(name))
    return None


def _read(function: FunctionType, owner: Any) -> Iterator[tuple[str, Draws]]:
    """Yield names that a function reads, and where what they are bound to is drawn."""
    code = function.__code__
    source, names = _source(code.co_filename), sorted(names_of(code))
    yield from source.around(code)
    for name in names:
        yield name, source.of_module(name)
        value = function.__globals__.get(name)
        if part_of(value, "cache_info") is not None:
            yield name, source.called(name)
        file = file_of(value)
        if isinstance(value, ModuleType) and is_foreign(file):
            for inner in names:
                yield f"{name}.{inner}", _source(file).of_module(inner)
        module, original = source.imported.get(name, ("", ""))
        if module.startswith("."):
            package = function.__globals__.get("__package__")
            module = resolve_name(module, package) if package else module
        file = file_of(sys.modules.get(module))
        if is_foreign(file):
            yield name, _source(file).of_module(original)
    for base in getattr(owner, "__mro__", ()):
        for name in names:
            yield f"{base.__name__}.{name}", source.of_class(base.__name__, name)


class _Source:
    """The bindings of a file, and the draws behind them."""

    def __init__(self, file: str) -> None:
        self.file = file
        # Of a name, or an attribute of one: the functions and the class it stands in.
        self._bound: list[tuple[str, str, tuple[_Function, ...], str, ast.AST]] = []
        self._defined: dict[str, _Function] = {}
        self._functions: list[_Function] = []
        self._modules: set[str] = set()
        self.imported: dict[str, tuple[str, str]] = {}
        self._visit(_tree(file), (), "")

    def _visit(self, node: ast.AST, within: tuple[_Function, ...], kind: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _Function):
                self._functions.append(child)
                self._defined.setdefault(getattr(child, "name", ""), child)
                self._visit(child, (*within, child), kind)
                continue
            if isinstance(child, ast.ClassDef):
                self._visit(child, (), child.name)
                continue
            if isinstance(child, ast.Import):
                names = (each.asname or each.name for each in child.names)
                self._modules.update(name.partition(".")[0] for name in names)
            if isinstance(child, ast.ImportFrom):
                for each in child.names:
                    module = "." * child.level + (child.module or "")
                    self.imported[each.asname or each.name] = module, each.name
            for target, value in _bindings(child):
                base, attribute = _named(target)
                self._bound.append((base, attribute, within, kind, value))
            self._visit(child, within, kind)

    def around(self, code: CodeType) -> Iterator[tuple[str, Draws]]:
        """Yield what functions around one bind to its free names, and its defaults."""
        line, free = code.co_firstlineno, set(code.co_freevars)
        for base, part, within, _, value in self._bound:
            if base in free and within and within[-1].lineno <= line:
                held = line <= (within[-1].end_lineno or 0)
                if held and (part or not _begins(within[-1], line)):
                    yield base, self.draws(value)
        for each in self._functions:
            if _begins(each, line):
                for default in (*each.args.defaults, *each.args.kw_defaults):
                    if default is not None:
                        yield "a default", self.draws(default)

    def of_module(self, name: str, seen: frozenset[str] = frozenset()) -> Draws:
        """Return where is drawn what a name of the module is bound to, or its parts."""
        found: Draws = frozenset()
        if name in self._modules:  # whose functions may be called as those of lists
            return found
        for base, attribute, within, kind, value in self._bound:
            if base == name and (not within or _is_global(within[-1], name, attribute)):
                if not kind or within or attribute:
                    found |= self.draws(value, seen | {name})
        return found

    def of_class(self, kind: str, name: str) -> Draws:
        """Return where is drawn what a class, or its methods, bind to an attribute."""
        found: Draws = frozenset()
        for base, attribute, within, inside, value in self._bound:
            own = base if not within else attribute
            if inside == kind and own == name:
                found |= self.draws(value)
        return found

    def called(self, name: str) -> Draws:
        """Return where a function of the file draws."""
        made = self._defined.get(name)
        return frozenset() if made is None else self.draws(made, frozenset({name}))

    def draws(self, value: ast.AST, seen: frozenset[str] = frozenset()) -> Draws:
        """Return where an expression draws, or functions and names of the module do."""
        found: Draws = frozenset()
        for node in _executed(value):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                before, _, last = name.rpartition(".")
                if last in _DRAWING and before not in _NOT_DRAWING:
                    if before or last in self.imported:
                        lines = range(node.lineno, (node.end_lineno or 0) + 1)
                        found |= {(self.file, line) for line in lines}
            if isinstance(node, ast.Name) and node.id not in seen:
                seen |= {node.id}
                made = self._defined.get(node.id)
                if made is not None:
                    found |= self.draws(made, seen)
                else:
                    found |= self.of_module(node.id, seen)
        return found


@lru_cache(maxsize=256)
def _source(file: str) -> _Source:
    return _Source(file)


def _tree(file: str) -> ast.Module:
    """Return the syntax of a file, of an empty one where it cannot be read."""
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])


def _bindings(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield what a statement binds, and to what."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _unpacked(target, node.value)
    elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value:
        yield node.target, node.value
    elif isinstance(node, ast.Call):
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr in _ADDING:
            item = ast.Subscript(called.value, ast.Constant(0), ast.Store())
            yield from ((item, each) for each in node.args)


def _unpacked(target: ast.AST, value: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield the targets within one, and what each is bound to, or is part of."""
    if not isinstance(target, ast.Tuple | ast.List):
        yield target, value
        return
    parts, whole = target.elts, getattr(value, "elts", ())
    apart = len(parts) == len(whole) and not any(
        isinstance(each, ast.Starred) for each in (*parts, *whole)
    )
    for place, part in enumerate(parts):
        bound = part.value if isinstance(part, ast.Starred) else part
        yield from _unpacked(bound, whole[place] if apart else value)


def _named(target: ast.AST) -> tuple[str, str]:
    """Return the name that is bound, or whose part is, and which ("[]" of an item)."""
    part = ""
    while isinstance(target, ast.Subscript):
        target, part = target.value, "[]"
    if isinstance(target, ast.Attribute):
        part, target = target.attr, target.value
    return (target.id if isinstance(target, ast.Name) else ""), part


def _executed(value: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of an expression, or of a function but for those that it makes.

    What a function makes and returns draws when it is called, and not before.
    """
    made = isinstance(value, ast.FunctionDef | ast.AsyncFunctionDef)
    waiting, inner = [value], set[str]()
    while waiting:
        node = waiting.pop()
        yield node
        for child in ast.iter_child_nodes(node):
            if made and isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                inner.add(child.name)
                continue
            returned = child.value if isinstance(child, ast.Return) else None
            if not (isinstance(returned, ast.Name) and returned.id in inner):
                waiting.append(child)


def _begins(function: _Function, line: int) -> bool:
    decorators = getattr(function, "decorator_list", [])
    return line in (function.lineno, *(each.lineno for each in decorators[:1]))


def _is_global(function: _Function, name: str, part: str) -> bool:
    """Say whether a name that a function binds, or a part of it, is the module's."""
    said = any(
        isinstance(node, ast.Global) and name in node.names
        for node in ast.walk(function)
    )
    own = {each.arg for each in ast.walk(function) if isinstance(each, ast.arg)} | {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return said or (bool(part) and name not in own)


# -- what lines return, and hand on


@lru_cache(maxsize=256)
def returns(file: str) -> dict[int, ast.expr | None]:
    """Return what is returned on the lines of a file."""
    return {
        line: node.value
        for node in ast.walk(_tree(file))
        if isinstance(node, ast.Return)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


@lru_cache(maxsize=256)
def handed_on(file: str) -> dict[int, str]:
    """Return the variables that lines of a file do nothing with but hand them on."""
    names = {}
    for node in ast.walk(_tree(file)):
        value: ast.expr | None = None
        if isinstance(node, ast.Assign):
            value = node.value
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            kept = isinstance(call.func, ast.Attribute) and call.func.attr in _KEEPING
            value = call.args[-1] if kept and call.args else None
        value = handed(value)
        if isinstance(node, ast.stmt) and isinstance(value, ast.Name):
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            names.update(dict.fromkeys(lines, value.id))
    return names


def handed(value: ast.expr | None) -> ast.expr | None:
    """Return what an expression hands on as it is."""
    while isinstance(value, ast.Call):
        name = ast.unparse(value.func).rpartition(".")[2]
        if len(value.args) == 1 and name in _HANDED_ON:
            value = value.args[0]
        elif name == "copy" and isinstance(value.func, ast.Attribute):
            value = value.func.value
        else:
            break
    return value
