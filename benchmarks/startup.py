"""How long a user waits before anything happens."""

import subprocess
import sys


class Startup:
    """Targets: import under 1.5 s, ``dpaudit list`` under 2 s."""

    def timeraw_import(self) -> str:
        """Time ``import dpaudit`` in a fresh interpreter."""
        return "import dpaudit"

    def time_list(self) -> None:
        """Time ``dpaudit list`` as a whole process."""
        command = [sys.executable, "-m", "dpaudit", "list"]
        subprocess.run(command, check=True, capture_output=True)
