"""Where modules of one's own are looked for."""

import sys
from pathlib import Path

__all__ = ["look_for_modules"]


def look_for_modules(folder: Path | None = None) -> None:
    """Make the modules in a folder importable: as for ``python -m``, the current one.

    The script that is installed as ``dpaudit`` would not find them otherwise. Installed
    packages of the same name come later.
    """
    place = "" if folder is None else str(folder.absolute())
    if place not in sys.path[:1]:
        sys.path.insert(0, place)
