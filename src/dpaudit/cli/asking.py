"""What a function says of itself, and what it leaves to be said by options.

Read are its signature, its type hints, its docstring, and under which names it reads
its first parameter. Nothing of that is taken for granted in an audit: it becomes what a
message proposes, and the form in which rows are handed over.
"""

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpaudit.claims import ApproxDP, Claim, PureDP
from dpaudit.cli.options import instance_of, look_for_modules
from dpaudit.cli.running import printing_aside
from dpaudit.codec import load_reference
from dpaudit.errors import DPAuditError, InputError
from dpaudit.mechanism import HasCanonicalPairs, HasWorstCase
from dpaudit.neighbours import Relation
from dpaudit.printable import called, printable
from dpaudit.streams import FunctionMechanism
from dpaudit.validation import parameters_of

if TYPE_CHECKING:
    from dpaudit.domains import Domain

__all__ = ["domain_of", "subject_of"]

# What a hint says of the form of the dataset, the first that fits.
_HINTS = (
    (r"polars|\bpl\.", "polars"),
    (r"DataFrame", "frame"),
    (r"^([\w.]+\.)?Series\b", "series"),
    (r"^(list|List|Sequence|Iterable|Collection)\[.*([Dd]ict|Mapping)", "records"),
    (r"^([Dd]ict|Mapping|MutableMapping)\b", "arrays"),
    (r"^(set|Set|frozenset|AbstractSet)\b", "set"),
    (r"NDArray|ndarray|ArrayLike", "array"),
    (r"^(list|List|Sequence|Iterable|Collection|tuple|Tuple)\b", "list"),
)
_RANGE = re.compile(
    r"(\w+)[^\w\n]{1,3}(?:in|within|between|from|:)?\s*"
    r"\[\s*([-+.\deE]+)\s*,\s*([-+.\deE]+)\s*\]"
)
_NAMED, _UNNAMED = ("frame", "records", "arrays"), ("list", "array", "set", "series")
_PRIVACY = ("epsilon", "eps", "delta")
_TRIES = 3  # datasets on which a form is tried


def subject_of(
    reference: str,
    *,
    epsilon: float | None,
    delta: float | None,
    relation: str | None,
    arguments: Sequence[str],
) -> tuple[Any, Any, dict[str, Any]]:
    """Return what is named, the claim that the options make, and its names.

    Parameters
    ----------
    reference : str
        Of the catalogue, or ``module:object`` or ``file.py:object``.
    epsilon, delta, relation
        Of the claim. Where a function takes them, they are handed to it too; where none
        is given, its own defaults are what it promises.
    arguments : sequence of str
        ``NAME=VALUE``: what else a function is called with.

    Returns
    -------
    mechanism : Mechanism or callable
    claim : Claim or None
    names : dict
        Fields of `dpaudit.audit.Run`.

    Raises
    ------
    InputError
        If there is no such thing, or an option does not fit it.
    """
    look_for_modules()
    if ":" not in reference:
        _check_known(reference)
        if arguments:
            raise InputError("--set is for a function of your own")
        return _of_catalogue(reference, epsilon, delta, relation)
    with printing_aside():
        found = load_reference(reference)
        made = instance_of(found)
        if epsilon is None and delta is None:
            epsilon, delta = _promised(made)
        elif epsilon is None:
            raise InputError("--delta needs --epsilon")
        subject = _with_arguments(made, arguments, epsilon, delta)
        claim: Claim | None = None
        if epsilon is not None:
            claim = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
        if relation is not None:
            stated = getattr(subject, "relation", None)
            if stated not in (None, Relation.parse(relation)):
                raise InputError(
                    f"{reference} states its claim under {stated}, not {relation}"
                )
    by_name = None if found is not subject else reference
    return subject, claim, {"name": reference, "reference": by_name}


def _of_catalogue(
    name: str, epsilon: float | None, delta: float | None, relation: str | None
) -> tuple[Any, None, dict[str, Any]]:
    from dpaudit.algorithms import entry

    chosen = entry(name)
    promise = {"epsilon": epsilon, "delta": delta, "relation": relation}
    given: dict[str, Any] = {n: v for n, v in promise.items() if v is not None}
    if "delta" in given and not chosen.approximate:
        click.echo(f"dpaudit: {name} claims pure DP; --delta is not used", err=True)
    return chosen.build(**given), None, {"name": name}


def _with_arguments(
    subject: Any, options: Sequence[str], epsilon: float | None, delta: float | None
) -> Any:
    """Return a function with what it is called with besides data and randomness.

    That is what ``--set NAME=VALUE`` says, and epsilon and delta, if it takes them.

    Raises
    ------
    InputError
        If an option has another form, or the function has no such parameter.
    """
    names = _parameters(subject)
    privacy = dict(zip(_PRIVACY, (epsilon, epsilon, delta), strict=True))
    given: dict[str, Any] = {
        name: number
        for name, number in privacy.items()
        if name in names and number is not None
    }
    for option in options:
        name, equals, value = option.partition("=")
        if not equals:
            raise InputError(f"--set must be NAME=VALUE, got {printable(option)!r}")
        if name not in names:
            raise InputError(
                f"--set must name a parameter of {_called(subject)}, got "
                f"{printable(name)!r}"
            )
        try:
            given[name] = json.loads(value)
        except ValueError:
            given[name] = value
    if not given or FunctionMechanism.lacking(
        subject, given
    ):  # which is said with all that is lacking
        return partial(subject, **given) if given else subject
    return FunctionMechanism(subject, given)


def _promised(subject: Any) -> tuple[float | None, float | None]:
    """Return the epsilon and delta that a function has as defaults."""
    parameters = _parameters(subject)
    epsilon, eps, delta = (
        default if isinstance(default := parameters.get(name), int | float) else None
        for name in _PRIVACY
    )
    epsilon = eps if epsilon is None else epsilon
    return epsilon, None if epsilon is None else delta


def _parameters(subject: Any) -> dict[str, Any]:
    """Return the parameters of a function behind the first, with their defaults."""
    if hasattr(subject, "release"):
        return {}
    try:
        found = parameters_of(subject)
    except (TypeError, ValueError):
        return {}
    return {each.name: each.default for each in found[1:]}


def _check_said(
    subject: Any, pair: Any, domain: str | None, claim: Any, relation: str | None
) -> None:
    """Raise one sentence on all that has to be said of a mechanism, and is not."""
    claimed = claim is not None or getattr(subject, "claim", None) is not None
    paired = pair is not None or isinstance(subject, HasWorstCase | HasCanonicalPairs)
    said = (getattr(each, "relation", None) for each in (subject, pair))
    stated = relation or next(filter(None, said), None)
    function: Any = subject
    if not (callable(function) or hasattr(function, "release")):
        from dpaudit.audit.sampling.draws import ways_to_draw

        ways_to_draw(function)  # which raises, but for who draws many at once alone
    missing = (
        [] if hasattr(function, "release") else FunctionMechanism.lacking(function, {})
    )
    lacks = []
    if not claimed:
        lacks.append("--epsilon, what is promised")
        missing = [name for name in missing if name not in _PRIVACY]
    if not paired and domain is None:
        lacks.append(f'--domain "{_proposed(subject)}", what its rows may be')
    if stated is None and (domain is not None or not paired):
        lacks.append(
            "--relation add-remove or --relation replace-one, which datasets are "
            "neighbours"
        )
    lacks += [f"--set {name}=VALUE" for name in missing]
    if lacks:
        raise InputError(f"{_called(subject)} needs {'; '.join(lacks)}")


def _check_known(name: str) -> None:
    """Raise if a mechanism is none of the catalogue, and say how one's own are named.

    Raises
    ------
    InputError
    """
    from dpaudit.algorithms import CATALOGUE

    if name in CATALOGUE:
        return
    file = _source_of(name)
    if file is None:
        from dpaudit.algorithms import entry

        try:
            entry(name)
        except InputError as error:
            unknown, _, known = str(error).partition(" (known:")
            raise InputError(
                f"{unknown}{'' if unknown[-1] == '?' else '.'} A function of your own "
                "is named MODULE:FUNCTION or "
                f"FILE.py:FUNCTION (known:{known}"
            ) from None
    functions = _functions_in(file)
    example = f"{name}:{functions[0] if functions else 'FUNCTION'}"
    has = f" (there are {', '.join(functions)})" if len(functions) > 1 else ""
    raise InputError(
        f"{printable(name)} is a module, not a mechanism of the catalogue: name the "
        f"function in it that is to be audited, as {printable(example)}{printable(has)}"
    )


def _source_of(name: str) -> Path | None:
    """Return the file of a module, which is not imported; None if there is none."""
    if name.endswith(".py"):
        return Path(name) if Path(name).is_file() else None
    try:
        found = find_spec(name) if name.isidentifier() else None
    except (ImportError, ValueError):
        return None
    return Path(found.origin) if found and found.origin else None


def _functions_in(file: Path | None) -> list[str]:
    try:
        tree = ast.parse(file.read_text(encoding="utf-8")) if file else None
    except (OSError, SyntaxError, ValueError):
        return []
    body = [] if tree is None else tree.body
    names = [each.name for each in body if isinstance(each, ast.FunctionDef)]
    return [name for name in names if not name.startswith("_")]


def _called(subject: Any) -> str:
    """Return the name of a function with its parameters."""
    subject = FunctionMechanism.written(subject)
    try:
        taken = inspect.Signature(parameters_of(subject))
        return printable(f"{called(subject)}{taken}", longest=200)
    except (TypeError, ValueError):
        return called(subject)


def _proposed(subject: Any) -> str:
    """Return a domain as the mechanism seems to mean it, words to be filled in."""
    told = inspect.getdoc(FunctionMechanism.written(subject)) or ""
    ranges = {name: f"{low}..{high}" for name, low, high in _RANGE.findall(told)}
    columns = [f"{n}:{ranges.get(n, 'LOW..HIGH')}" for n in _columns_read(subject)]
    form = _hinted(subject)
    if columns or form in ("frame", "polars", *_NAMED):
        return " ".join(columns) or "age:0..100 sex:{f,m}"
    only = next(iter(ranges.values()), "0.0..1.0")
    return f"{form or 'list'} of {only}"


def _columns_read(subject: Any) -> list[str]:
    """Return the texts by which a function reads its first parameter, or its parts."""
    function = FunctionMechanism.written(subject)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        first = next(iter(inspect.signature(function).parameters))
    except (OSError, TypeError, ValueError, SyntaxError, StopIteration):
        return []
    names = {first}
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.comprehension) and isinstance(
            node.target, ast.Name
        ):
            if isinstance(node.iter, ast.Name) and node.iter.id == first:
                names.add(node.target.id)
    found = [
        node.slice.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id in names
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    ]
    return list(dict.fromkeys(found))


def _hinted(subject: Any) -> str | None:
    """Return the form that the hint of the first parameter names."""
    function = getattr(subject, "release", FunctionMechanism.written(subject))
    try:
        first = next(iter(parameters_of(function)))
    except (TypeError, ValueError, StopIteration):
        return None
    if first.annotation is inspect.Parameter.empty:
        return None
    text = inspect.formatannotation(first.annotation).strip("'\"")
    text = re.sub(r"\b(typing|collections\.abc|builtins)\.", "", text)
    return next((form for sign, form in _HINTS if re.search(sign, text)), None)


def domain_of(
    subject: Any, pair: Any, text: str | None, claim: Any, relation: str | None
) -> "Domain | None":
    """Return the domain of a text, in the form that a mechanism takes; None of none.

    Where the text names no form, it is that of the hint, or else the first in which
    datasets of the domain do not make the mechanism fail.

    Parameters
    ----------
    subject : Mechanism or callable
    pair, text, claim, relation
        What the options say of it; None is nothing.

    Raises
    ------
    InputError
        One sentence on all that has to be said of a mechanism, and is not.
    """
    _check_said(subject, pair, text, claim, relation)
    if text is None:
        return None
    from dpaudit.domains import Domain, Table

    domain = Domain.parse(text)
    if not isinstance(domain, Table) or re.match(r"\s*\w+ of ", text):
        return domain
    forms = _NAMED if domain.columns[0].name else _UNNAMED
    hinted = _hinted(subject)
    if hinted is not None:
        return replace(domain, form=hinted)
    for form in forms:
        tried = replace(domain, form=form)
        if _takes(subject, tried):
            return tried
    return domain


def _takes(subject: Any, domain: "Domain") -> bool:
    """Say whether a mechanism does not fail on a few datasets of a domain."""
    import numpy as np

    from dpaudit.audit.sampling.draws import draw_one

    for seed in range(_TRIES):
        rng = np.random.default_rng(seed)
        rows = np.array([domain.random_row(rng=rng) for _ in range(domain.n_rows)])
        pair = domain.pair(rows[:-1], rows, Relation.ADD_REMOVE)
        if pair is None:
            continue
        try:
            output = draw_one(subject, pair.data, rng)
        except DPAuditError:
            return False
        if output.layout.startswith("raises "):
            return False
    return True
