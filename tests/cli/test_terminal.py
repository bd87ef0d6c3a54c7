"""What a terminal is shown, through one of the system's: the installed command."""

import os
import re
import subprocess
import sys

import pytest
from cli_cases import run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")

LIST = ("list", "--search", "wishart", "--columns", "name,claim,source")


def seen(*arguments, columns=60, **environment):
    """Return what the terminal got: of standard output and standard error."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    known = {**os.environ, "TERM": "xterm", **environment}
    for name in {"COLUMNS", "LINES", "NO_COLOR"} - {*environment}:
        known.pop(name, None)
    command = [sys.executable, "-m", "dpaudit", *arguments]
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=known
    ):
        os.close(theirs)
        parts = []
        try:
            while part := os.read(ours, 1 << 16):
                parts.append(part)
        except OSError:  # Linux's word for the end
            pass
    os.close(ours)
    return b"".join(parts).decode().replace("\r\n", "\n")


def test_a_table_fits_a_terminal_and_names_stay_whole():
    shown = re.sub(r"\x1b\[[0-9;]*m", "", seen(*LIST, columns=50)).splitlines()
    assert max(map(len, shown)) <= 50
    plain = run(*LIST).stdout.splitlines()
    names = [line.split()[0] for line in plain]
    assert [line.split()[0] for line in shown if line[:1].isalpha()] == names
    # All words are there, the long ones in several lines.
    words = " ".join(shown).split()
    assert len(shown) > len(plain) + 1
    assert {"Imtiaz,", "Algorithm", "accountant"} <= {*words}


def test_a_dumb_terminal_is_shown_what_a_pipe_is():
    assert seen(*LIST, columns=50, TERM="dumb") == run(*LIST).stdout


def test_a_fall_is_red_where_colours_are_wanted():
    """And nothing is left of the line of progress before it."""
    command = ("audit", "symmetric-noise", "--refine", "0")
    red = "\x1b[31m\x1b[1mREFUTED\x1b[0m"
    shown = seen(*command)
    assert shown.startswith(f"\r\x1b[2Ksymmetric-noise: {red} at")
    assert red not in seen(*command, NO_COLOR="1")
    assert "\x1b" not in seen(*command, TERM="dumb")
    assert "\x1b" not in run(*command).stdout
