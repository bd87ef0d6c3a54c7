"""What makes two audits the same: the key under which a store keeps one.

An audit is determined by the mechanism, the pairs, its settings, the code that carries
it out, and the libraries that do the arithmetic. `key_of` makes one digest of all that.
Objects that behave differently may share a key where they look alike
(`dpaudit.audit.keeping.description`); so a key finds an audit, and what the mechanism
does now says whether it is its own (`dpaudit.audit.keeping.checkpoint`).
"""

import hashlib
import json
import platform
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

from dpaudit import __version__
from dpaudit.audit.keeping.description import describe

__all__ = ["code_version", "key_of"]

_ROOMS = ("", ".algorithms", ".attacks", ".audit")
_BESIDE = {"algorithms", "attacks", "audit", "reports", "cli", "checks"}
_LIBRARIES = ("numpy", "scipy", "scikit-learn")
_AUDITED = ("opendp", "randomgen", "diffprivlib")  # if installed


@cache
def code_version() -> str:
    """Return dpaudit's version and a hash of the sources that results depend on.

    These are all modules but the reports and the command line.
    """
    rooms = {room: Path(str(files(f"dpaudit{room}"))) for room in _ROOMS}
    sources = (
        (f"{room}/{inside.as_posix()}", path.read_bytes())
        for room, root in rooms.items()
        for path in sorted(root.rglob("*.py"))
        if (inside := path.relative_to(root)).parts[0] not in _BESIDE
    )
    return f"{__version__}+{_digest_of_sources(sources)[:12]}"


def _digest_of_sources(sources: Iterable[tuple[str, bytes]]) -> str:
    """Return a digest of named files: of their names, contents and order."""
    digests = [[name, hashlib.sha256(text).hexdigest()] for name, text in sources]
    return hashlib.sha256(json.dumps(digests).encode()).hexdigest()


def key_of(**parts: Any) -> str:
    """Return the key of the audit with these parts, under this code.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> key_of(claim=PureDP(1.0)) == key_of(claim=PureDP(1.0))
    True
    >>> key_of(claim=PureDP(1.0)) == key_of(claim=PureDP(2.0))
    False
    """
    whole = {
        "code": code_version(),
        "python": platform.python_version(),
        "libraries": [version(name) for name in _LIBRARIES],
        "audited": [_version_if_any(name) for name in _AUDITED],
        "parts": {name: describe(part) for name, part in parts.items()},
    }
    return hashlib.sha256(json.dumps(whole).encode()).hexdigest()


def _version_if_any(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
