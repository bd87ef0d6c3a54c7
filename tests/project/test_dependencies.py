"""Hold the arrows between the folders: vocabulary <- algorithms, attacks <- audit
<- reports.

`ROOMS` says what each folder may import. The checker reads the source, so it sees
imports inside functions, conditions and strings given to `importlib.import_module`
too, and it imports nothing.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

import dpaudit

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

# Import names that differ from the name of the distribution.
DISTRIBUTIONS = {
    **{"dp_accounting": "dp-accounting", "jax_privacy": "jax-privacy"},
    **{"pipeline_dp": "pipeline-dp", "pydp": "python-dp", "sklearn": "scikit-learn"},
}


def declared(requirements: Iterable[str]) -> frozenset[str]:
    """Return the normalised distribution names of requirements."""
    names = (re.match(r"[\w.-]+", requirement) for requirement in requirements)
    return frozenset(re.sub(r"[-_.]+", "-", name[0]).lower() for name in names if name)


CORE = declared(PROJECT["project"]["dependencies"])
EXTRAS = PROJECT["project"]["optional-dependencies"]
# Optional at run time, therefore imported only inside functions.
OPTIONAL = declared(
    requirement
    for extra, requirements in EXTRAS.items()
    if extra not in {"test", "lint", "bench"}
    for requirement in requirements
)
TEST = declared(EXTRAS["test"])
NUMERICAL = frozenset({"numpy", "scipy", "dp-accounting"})


@dataclass(frozen=True)
class Room:
    """What the files of one folder may import.

    `rooms` and `packages` are allowed anywhere, `lazy_rooms` and `lazy_packages` only
    inside functions. Packages go by the name of their distribution.
    """

    rooms: Set[str]
    packages: Set[str] = CORE - {"click"}
    lazy_rooms: Set[str] = frozenset()
    lazy_packages: Set[str] = OPTIONAL


VOCABULARY, DATASETS, CLI = "src/dpaudit", "src/dpaudit/datasets", "src/dpaudit/cli"
# Of replays, each room imports those before it; the last is what others import.
REPLAY = [
    f"audit/replay/{room}" for room in "laws follow declare execute judge".split()
]
REPLAY.append("audit/replay")
BELOW = {VOCABULARY, DATASETS, "attacks", "audit"}
EVERYTHING = {*BELOW, *REPLAY, "algorithms", "reports"}

# A file belongs to the entry with the longest path above it.
ROOMS = {
    VOCABULARY: Room(
        rooms={VOCABULARY, DATASETS}, packages=NUMERICAL, lazy_packages=set()
    ),
    DATASETS: Room(
        rooms={VOCABULARY, DATASETS}, packages=NUMERICAL, lazy_packages={"scikit-learn"}
    ),
    "algorithms": Room(rooms={VOCABULARY, DATASETS, "algorithms"}),
    "attacks": Room(rooms={VOCABULARY, DATASETS, "attacks"}),
    "audit": Room(rooms=BELOW | {"audit/replay"}),
    **{room: Room(rooms=BELOW | {*REPLAY[: n + 1]}) for n, room in enumerate(REPLAY)},
    "audit/checks": Room(rooms=BELOW | {"algorithms"}, packages=CORE | TEST),
    # The user's own things are compared, too, whatever they are.
    "reports": Room(rooms=EVERYTHING | {"src/dpaudit/adapters"}, packages=CORE),
    # The single exception: the command line stands on top of the house. It may import
    # everything, but late, so that `dpaudit --help` answers at once.
    CLI: Room(
        rooms={VOCABULARY, CLI},
        packages={"click"},
        lazy_rooms=EVERYTHING,
        lazy_packages=CORE | OPTIONAL,
    ),
    # The package itself hands out the estimator, late: see
    # test_the_package_hands_out_one_name_from_above.
    "src/dpaudit/__init__.py": Room(
        rooms={VOCABULARY},
        packages=set(),
        lazy_rooms={"algorithms"},
        lazy_packages=set(),
    ),
    # Reads files of rows; what for is imported when there is one.
    "src/dpaudit/blocks.py": Room(
        rooms={VOCABULARY}, packages=NUMERICAL, lazy_packages={"pyarrow", "zarr"}
    ),
    # Hands out frames, of whichever library is asked for.
    "src/dpaudit/domains/tables.py": Room(
        rooms={VOCABULARY}, packages=NUMERICAL, lazy_packages={"pandas", "polars"}
    ),
    # The user's own things as mechanisms.
    "src/dpaudit/adapters": Room(
        rooms={VOCABULARY, "src/dpaudit/adapters"},
        packages=NUMERICAL,
        lazy_packages={"scikit-learn"},
    ),
    # Every pytest of an environment that has dpaudit imports it.
    "src/dpaudit/pytest_plugin.py": Room(
        rooms=set(),
        packages={"pytest"},
        lazy_rooms={VOCABULARY, "audit"},
        lazy_packages=set(),
    ),
    # python -m dpaudit: starts the command line and does nothing else.
    "src/dpaudit/__main__.py": Room(rooms={CLI}, packages=set()),
}


def room_of_file(path: PurePosixPath) -> str:
    """Return the entry of `ROOMS` for a file, given relative to the repository."""
    above = [str(path), *map(str, path.parents)]
    return next(entry for entry in above if entry in ROOMS)


def room_of_module(name: str) -> str:
    """Return the entry of `ROOMS` for a dotted name that starts with `dpaudit`.

    The name may go on with an attribute: ``dpaudit.attacks.learned.Atoms``.
    """
    inside = PurePosixPath(*name.split(".")[1:])
    if inside.parts[:1] == ("cli",):
        return CLI
    if inside.parts[:1] and inside.parts[0] in ROOMS:
        return room_of_file(inside)
    return room_of_file(PurePosixPath(VOCABULARY) / inside)


@dataclass(frozen=True)
class Import:
    """One imported name; `lazy` inside a function; `relative` written with dots."""

    name: str
    line: int
    lazy: bool
    relative: bool = False


def absolute_name(node: ast.ImportFrom, path: PurePosixPath) -> str:
    """Return the module of a ``from ... import``, with leading dots resolved."""
    if not node.level:
        return node.module or ""
    inside = path.parts[2:] if path.parts[0] == "src" else path.parts
    package = ["dpaudit", *inside[:-1]]
    kept = package[: max(len(package) - node.level + 1, 0)]
    return ".".join([*kept, *filter(None, [node.module])])


def imports(tree: ast.AST, path: PurePosixPath, lazy: bool = False) -> Iterator[Import]:
    """Yield every import below a node of a file's syntax tree."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Import():
                for alias in node.names:
                    yield Import(alias.name, node.lineno, lazy)
            case ast.ImportFrom():
                module = absolute_name(node, path)
                # The alias may be a sub-package: from dpaudit import reports.
                for alias in node.names:
                    name = f"{module}.{alias.name}"
                    yield Import(name, node.lineno, lazy, relative=bool(node.level))
            case ast.Call(
                func=ast.Attribute(attr="import_module") | ast.Name(id="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield Import(name, node.lineno, lazy)
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from imports(node, path, lazy or function or for_type_checkers(node))


def for_type_checkers(node: ast.AST) -> bool:
    """Say whether nothing below a node is ever run."""
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=[]):
            return True
    return False


def complaint(found: Import, path: PurePosixPath) -> str | None:
    """Say what is wrong with an import, or return None if it is allowed."""
    home = room_of_file(path)
    room = ROOMS[home]
    top = found.name.split(".")[0]
    if top in sys.stdlib_module_names:
        return None
    if top == "dpaudit":
        target = room_of_module(found.name)
        always, late = room.rooms, room.lazy_rooms
        # audit/checks is no package: its files see each other by their bare names.
        if found.relative and target != home:
            return f"imports {target} with leading dots"
    else:
        if home == "audit/checks" and (ROOT / path).with_name(f"{top}.py").exists():
            return None
        target = DISTRIBUTIONS.get(top, top)
        always, late = room.packages, room.lazy_packages
    if target in always or (found.lazy and target in late):
        return None
    if target in late:
        return f"imports {target} at the top, not inside a function"
    return f"imports {target}"


def violations(source: str, path: str) -> list[str]:
    """Return one line per import in a file that its folder may not have."""
    where = PurePosixPath(path)
    return [
        f"{path}:{found.line}: {room_of_file(where)} {problem} ({found.name})"
        for found in imports(ast.parse(source), where)
        if (problem := complaint(found, where))
    ]


def source_files() -> list[str]:
    """Return every Python file of the package, each under its real folder."""
    folders = ["src/dpaudit", "algorithms", "attacks", "audit", "reports"]
    files = (file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    unlinked = {file.resolve().relative_to(ROOT.resolve()) for file in files}
    return sorted(path.as_posix() for path in unlinked)


def test_imports_follow_the_arrows_and_slow_ones_are_left_out():
    paths = source_files()
    assert len(paths) > 300
    for path in paths:
        assert violations((ROOT / path).read_text(encoding="utf-8"), path) == []
    # The package alone imports nothing from above; audits and lists nothing slow.
    command = [sys.executable, "-c", LOADED]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    first, *_, last = done.stdout.splitlines()
    assert not set(first.split()) & {"dpaudit.algorithms", "dpaudit.gram"}
    assert "dpaudit.algorithms" in last.split()
    slow = {"scipy.stats", "scipy.optimize", "sklearn", "pandas", "matplotlib"}
    slow |= {"statsmodels", "dpaudit.audit.replay"}
    assert not set(last.split()) & slow


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("src/dpaudit/claims.py", "from dpaudit.algorithms import noise"),
        ("src/dpaudit/claims.py", "def f():\n    from dpaudit.attacks import base"),
        ("src/dpaudit/claims.py", "import_module('dpaudit.algorithms.noise')"),
        ("src/dpaudit/claims.py", "from .algorithms import noise"),
        ("src/dpaudit/claims.py", "def f():\n    import sklearn"),
        ("src/dpaudit/claims.py", "if TYPE_CHECKING:\n    import dpaudit.attacks"),
        (
            "src/dpaudit/__init__.py",
            "if TYPE_CHECKING:\n    pass\nelse:\n    import dpaudit.algorithms",
        ),
        ("src/dpaudit/datasets/real.py", "from sklearn.datasets import load_digits"),
        ("src/dpaudit/pytest_plugin.py", "def f():\n    import numpy"),
        ("algorithms/noise.py", "import pytest"),
        ("audit/engine.py", "def f():\n    import dpaudit.algorithms"),
        ("audit/checks/test_noise.py", "from dpaudit.reports import page"),
        ("audit/replay/judge/judge.py", "from dpaudit.audit.replay import result"),
    ],
)
def test_checker_finds_a_planted_violation(path, source):
    assert len(violations(source, path)) == 1


def test_the_package_hands_out_one_name_from_above():
    """`ROOMS` lets ``dpaudit/__init__.py`` into all of algorithms: this does not."""
    path = "src/dpaudit/__init__.py"
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    imported = {
        found.name
        for found in imports(tree, PurePosixPath(path))
        if found.name.startswith("dpaudit.algorithms")
    }
    looked_up = {
        name: home
        for name, home in dpaudit._HOMES.items()
        if room_of_module(home) != VOCABULARY
    }
    assert imported == {"dpaudit.algorithms.estimators.private_pca.PrivatePCA"}
    assert looked_up == {"PrivatePCA": "dpaudit.algorithms.estimators.private_pca"}


LOADED = """
import sys, dpaudit
print(*sys.modules)
import dpaudit.audit, dpaudit.datasets
from dpaudit.cli import main
main(["list", "--columns", "name"], "dpaudit", standalone_mode=False)
print(*sys.modules)
"""
