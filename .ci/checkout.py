"""A copy of this checkout, without what was built in it."""

import shutil
from pathlib import Path

__all__ = ["ROOT", "copied"]

ROOT = Path(__file__).parents[1]
BUILT = ("build", "dist", "*.egg-info", "__pycache__", ".git", ".venv*", ".*_cache")


def copied(folder: Path) -> Path:
    """Copy the checkout to a folder that is not there yet, and return that."""
    ignored = shutil.ignore_patterns(*BUILT, ".asv", ".hypothesis")
    return shutil.copytree(ROOT, folder, symlinks=True, ignore=ignored)
