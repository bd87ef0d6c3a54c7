"""The words of the field, and ours, in the order in which a newcomer meets them.

A sentence uses no word of the list before the list has said what it means. The pages
of the report and `docs/glossary.md` show the same words; pieces of code stand in
backticks.

The words stand in ``site/glossary.txt``, a paragraph each.
"""

from pathlib import Path

_TEXT = (Path(__file__).parent / "site" / "glossary.txt").read_text(encoding="utf-8")
GLOSSARY = dict(
    " ".join(each.split()).split(": ", maxsplit=1) for each in _TEXT.split("\n\n")
)
