"""Check a written site: every address in it leads to a file of its folder.

    python .ci/pages.py build/docs

Of a report ``dpaudit report check`` says more.
"""

import sys
from pathlib import Path

from dpaudit.reports.checking import Site

if __name__ == "__main__":
    site = Site(Path(sys.argv[1]))
    found = site.faults()
    print(*found or [f"{len(site.pages)} pages, all well"], sep="\n")
    sys.exit(bool(found) or not site.pages)
