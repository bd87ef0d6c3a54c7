"""How large the house is, and how it hangs together: what a reader has to hold.

    python .ci/house.py

Lines, modules and public names by room; the longest chain of imports and the circles
among them, imports inside functions and those for types included; and what an audit of
one pair enters. `tests/project/test_house.py` holds the limits.
"""

import ast
import io
import signal
import subprocess
import sys
import tokenize
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = {
    "src": "src/dpaudit",
    "audit": "audit",
    "algorithms": "algorithms",
    "attacks": "attacks",
    "reports": "reports",
}


def sources(room: str) -> list[Path]:
    """Return the modules of a room; tests that stand in it are none."""
    found = (ROOT / ROOMS[room]).rglob("*.py")
    return sorted(
        path
        for path in found
        if path.resolve() == path.absolute() and "checks" not in path.parts
    )


def dotted(path: Path) -> str:
    """Return the name under which a module is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[2:] if parts[0] == "src" else parts
    return ".".join(("dpaudit", *(part for part in parts if part != "__init__")))


def all_sources() -> dict[str, Path]:
    """Return every module of the package by its name."""
    return {dotted(path): path for room in ROOMS for path in sources(room)}


def tree(path: Path) -> ast.Module:
    """Return the syntax of a module."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> list[tuple[str, list[str] | None]]:
    """Return the modules that a module imports, anywhere, and what of each."""
    found: list[tuple[str, list[str] | None]] = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found += [(each.name, None) for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.append((node.module, [each.name for each in node.names]))
    return found


def code_lines(path: Path) -> int:
    """Return the lines that hold code: no docstrings, comments or blanks."""
    text = path.read_text(encoding="utf-8")
    kept: set[int] = set()
    skipped = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            kept.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree(path)):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            if (
                isinstance(statement, ast.Expr)
                and isinstance(statement.value, ast.Constant)
                and isinstance(statement.value.value, str)
            ):
                assert statement.end_lineno is not None
                kept -= set(range(statement.lineno, statement.end_lineno + 1))
    return len(kept)


def public_names(path: Path) -> list[str]:
    """Return what a module says is public, and defines itself."""
    listed: list[str] = []
    defined: set[str] = set()
    for node in tree(path).body:
        if isinstance(node, ast.Assign):
            targets = [each.id for each in node.targets if isinstance(each, ast.Name)]
            defined.update(targets)
            if targets == ["__all__"] and isinstance(node.value, ast.List | ast.Tuple):
                listed = [ast.literal_eval(each) for each in node.value.elts]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            defined.add(node.target.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.add(node.name)
    return [name for name in listed if name in defined]


def handed_on(path: Path) -> dict[str, str]:
    """Return the names that a package's face hands on, and from which module."""
    return {
        each.asname or each.name: node.module
        for node in tree(path).body
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
        for each in node.names
    }


def graph() -> dict[str, set[str]]:
    """Return which modules each module imports, anywhere in it.

    A package's face is passed through: who imports a name from it imports the module
    that the name is from. A face itself has no arrows.
    """
    modules = all_sources()
    faces = {
        name: handed_on(path)
        for name, path in modules.items()
        if path.name == "__init__.py"
    }

    def origin(module: str, name: str) -> str:
        if f"{module}.{name}" in modules:
            return f"{module}.{name}"
        handed = faces.get(module, {}).get(name)
        return module if handed is None else origin(handed, name)

    arrows: dict[str, set[str]] = {}
    for name, path in modules.items():
        found = {
            module if each is None else origin(module, each)
            for module, names in imports(path)
            for each in (names or [None])
        }
        defines = name not in faces or public_names(path)
        arrows[name] = (found & set(modules)) - {name} if defines else set()
    arrows["dpaudit.algorithms.catalogue"] |= declared()
    return arrows


def declared() -> set[str]:
    """Return the modules that the catalogue imports by names in its files."""
    return {
        f"{dotted(path.parent)}.{table['made_by'].partition(':')[0]}"
        for path in (ROOT / "algorithms").glob("*/entries.toml")
        for name, table in tomllib.loads(path.read_text(encoding="utf-8")).items()
        if name not in ("about", "all")
    }


def circles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other (Tarjan's algorithm)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for other in sorted(arrows[name]):
            if other not in order:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == order[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    sys.setrecursionlimit(10_000)
    for name in sorted(arrows):
        if name not in order:
            visit(name)
    return found


def longest_chain(arrows: dict[str, set[str]]) -> list[str]:
    """Return the longest chain of imports of a house without circles."""
    best: dict[str, list[str]] = {}

    def chain(name: str) -> list[str]:
        if name not in best:
            best[name] = []  # a circle is passed once
            below = max((chain(other) for other in arrows[name]), key=len, default=[])
            best[name] = [name, *below]
        return best[name]

    return max((chain(name) for name in sorted(arrows)), key=len)


ENTERED = """
import sys
from pathlib import Path
import numpy as np
import dpaudit
from dpaudit import Pair, PureDP
from dpaudit.audit import audit

root = Path(dpaudit.__file__).resolve().parents[2]
seen, chain, known = set(), [], set()

def noisy_sum(data, rng):
    frame = sys._getframe(1)
    if not chain:
        while frame is not None and frame.f_code.co_name != "<module>":
            chain.append(frame.f_code.co_name)
            frame = frame.f_back
    return float(np.sum(data)) + rng.laplace() / 2  # falls soon: calls are watched

def enter(frame, event, argument):
    name = frame.f_code.co_filename
    if event == "call" and name not in known:
        known.add(name)
        path = Path(name)
        if "site-packages" not in path.parts and path.is_file():
            path = path.resolve()
            if path.is_relative_to(root):
                seen.add(path.relative_to(root).as_posix())

pair = Pair(np.zeros(3), np.append(np.zeros(3), 1.0))
sys.setprofile(enter)
audit(noisy_sum, pair=pair, claim=PureDP(0.5))
sys.setprofile(None)
print(len(chain), *sorted(seen))
"""


def entered() -> tuple[int, list[str]]:
    """Return how many frames lie above the draw, and the modules that an audit enters.

    In a process of its own, with a function, a pair and a claim, and nothing else.
    """
    told = subprocess.run(
        [sys.executable, "-c", ENTERED], capture_output=True, text=True, check=True
    )
    depth, *files = told.stdout.split()
    return int(depth), files


def main() -> None:
    """Print all of it."""
    print(f"{'room':12}{'modules':>9}{'lines':>9}{'code':>9}{'public':>9}")
    total = [0, 0, 0, 0]
    for room in ROOMS:
        paths = sources(room)
        figures = [
            len(paths),
            sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths),
            sum(map(code_lines, paths)),
            sum(len(public_names(path)) for path in paths),
        ]
        total = [a + b for a, b in zip(total, figures, strict=True)]
        print(f"{room:12}" + "".join(f"{figure:9,}" for figure in figures))
    print(f"{'all':12}" + "".join(f"{figure:9,}" for figure in total))
    lengths = {
        name: len(path.read_text(encoding="utf-8").splitlines())
        for name, path in all_sources().items()
    }
    for name in sorted(lengths, key=lengths.__getitem__, reverse=True):
        if lengths[name] > 400:
            print(f"above 400 lines: {name}, {lengths[name]}")
    arrows = graph()
    for group in circles(arrows):
        print(f"circle: {', '.join(group)}")
    chain = longest_chain(arrows)
    print(f"longest chain of imports: {len(chain)}: {' > '.join(chain)}")
    depth, files = entered()
    print(f"a minimal audit enters {len(files)} modules; {depth} frames above the draw")
    for file in files:
        print(f"  {file}")


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # readers may stop, as head
    main()
