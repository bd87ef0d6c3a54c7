"""Check the written documentation: links lead somewhere, and nothing is fetched.

``make docs`` does so. The rest of a page, such as its icons, is the theme's business.
"""

import sys
from pathlib import Path

from dpaudit.reports.check import Site, strays, strays_in_styles


def problems(folder: Path) -> list[str]:
    """Return one sentence for each link that leads nowhere, and what is fetched."""
    site = Site(folder)
    found = [
        f"{page}:{line}: {wrong}"
        for page in site.pages
        for line, wrong in strays(site, page)
    ]
    return found + strays_in_styles(site)


if __name__ == "__main__":
    found = problems(Path(sys.argv[1]))
    for each in found:
        print(each)
    sys.exit(bool(found))
