"""The tests on other machines than this one: ``make portability``.

Each setting runs ``make test`` in a copy of the checkout, as a machine would that
computes, schedules or stores differently:

    python .ci/portability.py                          # all settings: an hour
    python .ci/portability.py haswell busy             # some, one after the other
    python .ci/portability.py haswell+busy             # some at once
    python .ci/portability.py haswell -- tests/audit   # some of the tests

What fails is printed, the whole output kept in build/portability/. A setting that this
machine cannot give is named with the reason, and is no failure. Other Pythons are those
on PATH; each gets an environment of its own with the newest packages allowed.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from checkout import ROOT, copied

BUILD = ROOT / "build" / "portability"
QUIET = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
HOG = "while True: pass"
WRITER = """
import os, sys
block = bytes(2**22)
while True:
    with open(sys.argv[1], "wb") as file:
        for _ in range(64):
            file.write(block)
            os.fsync(file.fileno())
"""


class CannotBeHadError(Exception):
    """A machine that this one cannot be made to look like."""


@dataclass
class Machine:
    """How the tests are run: by which Python, where, and in which surroundings."""

    python: str
    folder: Path
    environment: dict[str, str]
    prefix: tuple[str, ...] = ()
    umask: int = 0o022
    workers: str = "auto"
    options: tuple[str, ...] = ()


Setting = Callable[[Machine, ExitStack], None]


def kernel(name: str, needs: str = "") -> Setting:
    """Return a setting with the kernels of OpenBLAS for some processor."""

    def setting(machine: Machine, stack: ExitStack) -> None:
        flags = Path("/proc/cpuinfo")
        known = flags.read_text(encoding="utf-8") if flags.exists() else ""
        if needs not in known:
            raise CannotBeHadError(f"the processor has no {needs}")
        machine.environment["OPENBLAS_CORETYPE"] = name

    return setting


def numpy_baseline(machine: Machine, stack: ExitStack) -> None:
    """Keep NumPy from the instructions that it chooses at run time."""
    asked = "from numpy._core import _multiarray_umath as m; "
    asked += "print(*(x for x in m.__cpu_dispatch__ if m.__cpu_features__[x]))"
    found = _output(machine.python, "-c", asked)
    machine.environment["NPY_DISABLE_CPU_FEATURES"] = found.strip()


def one_core(machine: Machine, stack: ExitStack) -> None:
    """Leave one core, by affinity."""
    if shutil.which("taskset") is None:
        raise CannotBeHadError("there is no taskset")
    machine.prefix = ("taskset", "-c", "0")
    machine.workers = "2"  # more than there are cores


def busy(machine: Machine, stack: ExitStack) -> None:
    """Keep every core busy with something else."""
    for _ in range(os.cpu_count() or 1):
        stack.enter_context(_beside(sys.executable, "-c", HOG))


def slow_disk(machine: Machine, stack: ExitStack) -> None:
    """Put temporary files on a disk to which others write all the time."""
    _temporary(machine, BUILD / "disk")
    for number in range(2):
        file = str(BUILD / f"written-{number}")
        stack.enter_context(_beside(sys.executable, "-c", WRITER, file))
        stack.callback(Path(file).unlink, missing_ok=True)


def elsewhere(machine: Machine, stack: ExitStack) -> None:
    """Change folder, time zone, language and umask; take away home and git."""
    machine.folder = machine.folder.parent / "dpäudit, a copy"
    tools = machine.folder.parent / "tools"
    tools.mkdir()
    for folder in map(Path, os.environ["PATH"].split(os.pathsep)):
        for tool in folder.iterdir() if folder.is_dir() else ():
            if not tool.name.startswith("git") and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    _temporary(machine, machine.folder.parent / "tëmp orary")
    machine.environment |= {
        "PATH": str(tools),
        "TZ": "Pacific/Chatham",
        "LANG": "tr_TR.UTF-8",
        "LC_ALL": "tr_TR.UTF-8",
        "HOME": "/dev/null/nobody",
    }
    machine.umask = 0o077


def ascii_only(machine: Machine, stack: ExitStack) -> None:
    """Use an encoding that has ASCII alone."""
    machine.environment |= {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    }


def full_temporary(machine: Machine, stack: ExitStack) -> None:
    """Leave no room for temporary files."""
    small = machine.folder.parent / "small"
    small.mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small))
    if shutil.which("mount") is None or subprocess.run(mount, check=False).returncode:
        raise CannotBeHadError("mounting a small folder is not allowed")
    stack.callback(subprocess.run, ("umount", "--lazy", str(small)), check=True)
    _temporary(machine, small)


def shuffled(machine: Machine, stack: ExitStack) -> None:
    """Run the files in another order."""
    machine.options = ("--shuffle", "1")


def python(version: str) -> Setting:
    """Return a setting with another Python, and the newest packages for it."""

    def setting(machine: Machine, stack: ExitStack) -> None:
        name = f"python{version}"
        if shutil.which(name) is None:
            raise CannotBeHadError(f"there is no {name} on PATH")
        place = BUILD / name
        if not (place / "installed").exists():
            subprocess.run((name, "-m", "venv", "--clear", place), check=True)
            pip = (str(place / "bin" / "python"), "-m", "pip", "install", "--quiet")
            subprocess.run((*pip, "--editable", f"{ROOT}[test]"), check=True)
            (place / "installed").touch()
        machine.python = str(place / "bin" / "python")

    return setting


SETTINGS: dict[str, Setting] = {
    "haswell": kernel("Haswell", "avx2"),
    "skylakex": kernel("SkylakeX", "avx512f"),
    "nehalem": kernel("Nehalem", "sse4_2"),
    "numpy-baseline": numpy_baseline,
    "one-core": one_core,
    "busy": busy,
    "slow-disk": slow_disk,
    "elsewhere": elsewhere,
    "ascii": ascii_only,
    "full-temporary": full_temporary,
    "shuffled": shuffled,
    **{f"python{version}": python(version) for version in ("3.12", "3.13", "3.14")},
}


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _temporary(machine: Machine, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    machine.environment["TMPDIR"] = str(folder)


@contextmanager
def _beside(*command: str) -> Iterator[None]:
    """Run a process meanwhile."""
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.kill()


def tried(name: str, tests: list[str]) -> str:
    """Run the tests in one setting, or several at once; return what came of it."""
    started = time.monotonic()
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        machine = Machine(sys.executable, place / "copy", {**os.environ, **QUIET})
        try:
            for part in name.split("+"):
                SETTINGS[part](machine, stack)
        except CannotBeHadError as error:
            return f"could not be had: {error}"
        copied(machine.folder)
        machine.environment["PYTHONPATH"] = str(machine.folder / "src")
        pytest = (machine.python, "-m", "pytest", "-q", "-n", machine.workers)
        pytest += ("--dist", "worksteal")
        log = BUILD / f"{name}.log"
        with log.open("w", encoding="utf-8") as file:
            done = subprocess.run(
                (*machine.prefix, *pytest, *machine.options, *tests),
                cwd=machine.folder,
                env=machine.environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                umask=machine.umask,
                check=False,
            )
    said = log.read_text(encoding="utf-8", errors="replace")
    if done.returncode:
        print(said[max(said.find("\n==="), 0) :])
    *_, last = said.splitlines() or ["no output"]
    word = "passed" if done.returncode == 0 else "FAILED"
    return f"{word} after {time.monotonic() - started:.0f} s: {last}"


def main() -> int:
    """Run the settings that are named, or all; return 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("settings", nargs="*", help=f"of {', '.join(SETTINGS)}")
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    given = parser.parse_args(words[:split])
    parts = {part for name in given.settings for part in name.split("+")}
    if unknown := parts - set(SETTINGS):
        parser.error(
            f"no setting {', '.join(unknown)}: there are {', '.join(SETTINGS)}"
        )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    BUILD.mkdir(parents=True, exist_ok=True)
    failed = False
    for name in given.settings or SETTINGS:
        outcome = tried(name, words[split + 1 :])
        failed |= outcome.startswith("FAILED")
        print(f"{name:15} {outcome}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
