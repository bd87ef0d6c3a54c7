"""The description of the package is README.md, as it can be read outside its folder.

All else that is built is declared in pyproject.toml.
"""

import re
from pathlib import Path

from setuptools import setup

_FILE = r"\[([^]]*)\]\((?!https?://)([^)]*)\)"  # a link to a file beside the page


def described(page: str) -> str:
    """Return a page without pictures, whose links to other files are text."""

    def text(link: re.Match[str]) -> str:
        words, file = link.groups()
        return file if words == file else f"{words} ({file})"

    return re.sub(_FILE, text, re.sub(rf"!{_FILE}\n*", "", page))


setup(
    long_description=described(Path("README.md").read_text(encoding="utf-8")),
    long_description_content_type="text/markdown",
)
