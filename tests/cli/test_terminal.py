"""What a terminal is shown, through one of the system's, by a fork of this process.

That the installed command starts is seen elsewhere.
"""

import os
import re
import sys

import pytest
from cli_cases import run

from dpaudit.cli import main

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]

LIST = ("list", "--search", "wishart", "--columns", "name,claim,source")


def seen(*arguments, columns=60, **environment):
    """Return what the terminal got: of standard output and standard error."""
    import fcntl
    import pty
    import struct
    import termios

    child, ours = pty.fork()
    if child == 0:
        try:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
            for name in {"COLUMNS", "LINES", "NO_COLOR"}:
                os.environ.pop(name, None)
            os.environ.update({"TERM": "xterm", **environment})
            sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")
            main(arguments)
        finally:
            sys.stdout.flush()
            os._exit(0)
    parts = []
    try:
        while part := os.read(ours, 1 << 16):
            parts.append(part)
    except OSError:  # Linux's word for the end
        pass
    os.close(ours)
    os.waitpid(child, 0)
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
    assert seen(*LIST, columns=50, NO_COLOR="1").splitlines() == shown


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
