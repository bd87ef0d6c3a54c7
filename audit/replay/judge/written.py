"""What the source of the code under audit says of its lines."""

import ast
import linecache
from functools import lru_cache

__all__ = ["handed", "handed_on", "returns"]

_HANDED_ON = ("array", "asarray", "list", "tuple", "float", "int", "bool", "stack")
_KEEPING = ("append", "extend", "insert", "add")  # of lists and sets


@lru_cache(maxsize=256)
def returns(file: str) -> dict[int, ast.expr | None]:
    """Return what is returned on the lines of a file."""
    return {
        line: node.value
        for node in _nodes(file)
        if isinstance(node, ast.Return)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


@lru_cache(maxsize=256)
def handed_on(file: str) -> dict[int, str]:
    """Return the variables that lines of a file do nothing with but hand them on."""
    names = {}
    for node in _nodes(file):
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


def _nodes(file: str) -> list[ast.AST]:
    try:
        return [*ast.walk(ast.parse("".join(linecache.getlines(file))))]
    except (SyntaxError, ValueError):
        return []
