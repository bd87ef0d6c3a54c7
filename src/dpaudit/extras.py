"""What to install for what dpaudit needs at times only.

dpaudit may come from a checkout, from a wheel or from an index. So what is missing is
named by its own requirements, which hold in all three cases, and not as an extra of
dpaudit: on an index where dpaudit is not, the name may be that of another package.
"""

import re
from importlib.metadata import PackageNotFoundError, requires

__all__ = ["how_to_install"]


def how_to_install(extra: str) -> str:
    """Return the command that installs what an extra of dpaudit asks for.

    Parameters
    ----------
    extra : str
        One of those that dpaudit declares. Of any other, and where dpaudit itself is
        not installed, the package of that name is asked for.

    Examples
    --------
    >>> how_to_install("diffprivlib")
    "pip install 'diffprivlib>=0.6.6' 'scikit-learn<1.8'"
    """
    try:
        declared = requires("dpaudit") or []
    except PackageNotFoundError:  # a checkout on the path
        declared = []
    wanted = re.compile(rf"""\bextra\s*==\s*["']{re.escape(extra)}["']""")
    parts = (requirement.partition(";") for requirement in declared)
    named = [what.strip() for what, _, when in parts if wanted.search(when)]
    return " ".join(["pip install", *(f"'{each}'" for each in named or [extra])])
