"""Experiments and sizes as they are declared, in ``experiments.toml`` of a section.

``[sizes]`` says how much a section runs, a list of one value for each of `PROFILES`. An
``[[experiment]]`` has the fields of `Experiment`:

- ``measure``: a module below `dpaudit.reports`, and a function of it;
- ``mechanisms``: names, and families of the catalogue (``"@covariance"``), but those in
  ``without``;
- ``grid``: axes, each a list, or so many ``points`` from a number to another, evenly in
  logs; what an axis varies is no option.

``"$streams"`` is the size of that name, ``"$stream_rows[-2]"`` a part of it. With
``like`` it has all that the table of that name below ``[like]`` has and it does not say
otherwise; options are put together. ``audits`` is one such table, of all sections.
"""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np

from dpaudit.algorithms import names_of
from dpaudit.reports.experiment import CONFIDENCE, DELTA, Experiment

_AUDITS = {
    "measure": "measures:audited_privacy",
    "options": {"delta": DELTA, "confidence": CONFIDENCE},
}
_SIZE = re.compile(r"\$(\w+)(?:\[(-?\d+)\])?")


@cache
def declarations(path: Path) -> dict[str, Any]:
    """Return what a file declares, with what each of its tables is like."""
    if not path.is_file():
        return {}
    found = tomllib.loads(path.read_text(encoding="utf-8"))
    likes = {"audits": _AUDITS, **found.pop("like", {})}

    def whole(declared: Mapping[str, Any]) -> dict[str, Any]:
        same = whole(likes[declared["like"]]) if "like" in declared else {}
        found = {**same, **declared}
        found.pop("like", None)
        if "options" in found:
            own = declared.get("options", {})
            found["options"] = {**same.get("options", {}), **own}
        return found

    return {
        name: [whole(each) for each in value] if isinstance(value, list) else value
        for name, value in found.items()
    }


def measure_named(name: str) -> Any:
    """Return a function of a module below `dpaudit.reports`."""
    return resolve_name(f"dpaudit.reports.{name}")


def experiment_of(declared: Mapping[str, Any], size: object) -> Experiment:
    """Return a declared experiment at a size."""
    told = _filled(declared, size)
    without = told.pop("without", ())
    names = [
        name
        for each in told["mechanisms"]
        for name in (names_of(each[1:]) if each.startswith("@") else (each,))
    ]
    grid = {name: _axis(values) for name, values in told.get("grid", {}).items()}
    options = {k: v for k, v in told.get("options", {}).items() if k not in grid}
    told |= {"measure": measure_named(told["measure"]), "grid": grid}
    told |= {"mechanisms": tuple(n for n in names if n not in without)}
    return Experiment(**{"source": "dpaudit", **told, "options": options})


def _filled(value: Any, size: object) -> Any:
    """Return a declaration with the sizes that it names."""
    if isinstance(value, Mapping):
        return {key: _filled(each, size) for key, each in value.items()}
    if isinstance(value, str) and (named := _SIZE.fullmatch(value)):
        found = getattr(size, named[1])
        return found if named[2] is None else found[int(named[2])]
    return value


def _axis(values: Any) -> tuple[float, ...]:
    if isinstance(values, Mapping):
        values = np.geomspace(values["from"], values["to"], values["points"])
    return tuple(map(float, values))
