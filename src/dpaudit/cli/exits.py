"""How a command ends: its exit code, and one sentence where something went wrong.

The code is what a command *returns*, and never follows from an exception: what is
audited may raise anything, `SystemExit` and click's own exceptions among it, and must
not be able to say that it was refuted, or that it was not. All exceptions end as 2, 3
or 130. So does a verdict that could not be printed, which the user has not read.
"""

import errno
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import IntEnum
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import click

from dpaudit.errors import DPAuditError
from dpaudit.outputs import raised_by_signal, telling_interrupts
from dpaudit.printable import printable, said

__all__ = ["Command", "Exit", "Group", "ended", "failed"]


_LONGEST = 5000  # characters of a sentence
_UNWRITTEN = "cannot write to standard output"
_REPORT = (
    "this is an error of dpaudit itself, and no verdict: please report it with the "
    "output of dpaudit --debug"
)


class Exit(IntEnum):
    """What a command ends with, where that is not 0."""

    REFUTED = 1
    INPUT_ERROR = 2
    OWN_ERROR = 3
    INTERRUPTED = 130  # after Ctrl-C, as shells have it: 128 + SIGINT


def ended(ctx: click.Context, action: Callable[[], int | None]) -> int:
    """Carry out an action, and return its exit code, or that of what it raised."""
    with telling_interrupts():
        try:
            return action() or 0
        except BaseException as error:
            return _reported(error, debug=ctx.find_root().params["debug"])


def failed(
    errors: Mapping[str, Exception], sentence: Callable[[str, Exception], str]
) -> int:
    """Say on standard error which parts failed beside others; return the exit code."""
    for name, error in errors.items():
        click.echo(f"dpaudit: {sentence(name, error)}", err=True)
    if not errors:
        return 0
    ours = any(not isinstance(error, DPAuditError) for error in errors.values())
    return Exit.OWN_ERROR if ours else Exit.INPUT_ERROR


class _Helped(click.Command):
    """A command whose help has defaults and ends with examples, and comes by -h too."""

    def __init__(
        self, *arguments: Any, examples: Sequence[str] = (), **options: Any
    ) -> None:
        settings = {"help_option_names": ["-h", "--help"], "show_default": True}
        super().__init__(*arguments, **{"context_settings": settings, **options})
        self.examples = tuple(examples)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, each on a line of its own, however long it is."""
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"  {example}\n")


class Command(_Helped):
    """A command whose function returns its exit code; None is 0."""

    def invoke(self, ctx: click.Context) -> int:
        return ended(ctx, partial(super().invoke, ctx))


class Group(_Helped, click.Group):
    """The program: it ends with the code of its command."""

    def main(self, *args: Any, standalone_mode: bool = True, **options: Any) -> Any:
        run: Any = super().main
        if "_DPAUDIT_COMPLETE" in os.environ:  # a shell asks what can follow
            return run(*args, standalone_mode=standalone_mode, **options)
        try:
            if sys.stdout is None:  # as >&- leaves it
                raise OSError(errno.EBADF, f"{_UNWRITTEN}: it is closed")
            code = run(*args, standalone_mode=False, **options)
        except click.ClickException as error:  # wrong usage
            error.show()
            code = Exit.INPUT_ERROR
        except click.Abort:  # click's word for Ctrl-C, here outside of any command
            code = _reported(KeyboardInterrupt(), debug=False)
        except SystemExit:  # its word for a closed pipe, from a command's --help
            code = Exit.INPUT_ERROR
        except BaseException as error:
            code = _reported(error, debug=False)
        code = _flushed(code)
        if standalone_mode:
            sys.exit(code)
        return code

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            from dpaudit.validation import check_name

            check_name("command", args[0], self.list_commands(ctx))
            raise


def _reported(error: BaseException, *, debug: bool) -> int:
    """Say what went wrong on standard error; return the exit code."""
    code, sentence = _meaning(error)
    with suppress(OSError, ValueError):  # nor can this be said
        if debug:
            traceback.print_exception(error)
        click.echo(f"dpaudit: {printable(sentence, longest=_LONGEST)}", err=True)
    return code


def _meaning(error: BaseException) -> tuple[int, str]:
    """Return the exit code that an exception means, and a sentence."""
    if isinstance(error, KeyboardInterrupt) and raised_by_signal(error):
        return Exit.INTERRUPTED, "stopped at once"
    if isinstance(error, DPAuditError):
        return Exit.INPUT_ERROR, str(error)
    if sys.stdout is None or sys.stdout.closed:
        return Exit.INPUT_ERROR, f"{_UNWRITTEN}: it is closed"
    if (frame := _foreign_frame(error)) is not None:
        name, line = Path(frame.f_code.co_filename).name, frame.f_lineno
        where = f"{name}, line {line}, in {frame.f_code.co_name}"
        return Exit.INPUT_ERROR, f"code under audit raised {said(error)} ({where})"
    if isinstance(error, OSError):
        if error.errno in (errno.EPIPE, errno.ENOSPC) and error.filename is None:
            return Exit.INPUT_ERROR, f"{_UNWRITTEN}: {error.strerror}"
        of = "" if error.filename is None else f"{str(error.filename)!r}: "
        return Exit.INPUT_ERROR, f"{of}{error.strerror or said(error)}"
    if isinstance(error, MemoryError):
        return Exit.INPUT_ERROR, f"there is not enough memory for this ({said(error)})"
    return Exit.OWN_ERROR, f"{said(error)}; {_REPORT}"


def _foreign_frame(error: BaseException) -> FrameType | None:
    """Return where the traceback was last in code that is neither ours nor installed.

    Such code is the user's: the mechanism, or what it is made of.
    """
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    installed = {Path(sysconfig.get_path(kind)) for kind in kinds}
    found = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
        path = Path(frame.f_code.co_filename)
        if not (
            module.split(".")[0] == "dpaudit"
            or path.name.startswith("<")  # made by Python itself
            or {"site-packages", "dist-packages"} & set(path.parts)
            or any(path.is_relative_to(folder) for folder in installed)
        ):
            found = frame
    return found


def _flushed(code: int) -> int:
    """Return the code if all that was printed has left, else that of an error."""
    try:
        if sys.stdout is None or sys.stdout.closed:
            raise OSError(errno.EBADF, "it is closed")
        sys.stdout.flush()  # what the code under audit has printed, too
    except OSError as error:
        # The rest must not be tried again at the end, which would change the code.
        if sys.stdout is not None:
            with suppress(OSError, ValueError):  # a closed one has no number
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if code != Exit.INPUT_ERROR:  # in which case that was said, or something else
            with suppress(OSError, ValueError):
                click.echo(f"dpaudit: {_UNWRITTEN}: {error.strerror}", err=True)
        return Exit.INPUT_ERROR
    return code
