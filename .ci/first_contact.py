"""First contact: what a stranger does with the wheel alone, and how long it takes.

The wheel is built from a copy of this checkout and installed into a fresh environment,
in a folder of its own where nothing of the checkout is on the path. There the ten lines
of README.md are run, everything in docs/tutorial.md and docs/yours.md, and the test
that `dpaudit init` writes. Whatever does not end as it should ends this program; so
does machine time (processor seconds, over all processes) above the target.
"""

import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from checkout import ROOT, copied

TARGET = 180.0  # seconds of machine time
HIDDEN = ("PYTHONPATH", "PYTHONHOME", "PYTHONWARNINGS", "VIRTUAL_ENV")


def machine_time() -> float:
    """Return the processor seconds of this process and of those that have ended."""
    return sum(os.times()[:4])


def run(*command: str | Path, folder: Path, code: int = 0) -> str:
    """Run a command in a folder, print what it took, and return its output."""
    words = [str(word) for word in command]
    environment = {k: v for k, v in os.environ.items() if k not in HIDDEN}
    start, used = time.perf_counter(), machine_time()
    done = subprocess.run(
        words,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    took, used = time.perf_counter() - start, machine_time() - used
    shown = " ".join(word.rpartition("/")[2] for word in words)
    print(f"{took:6.1f} s, of the machine {used:5.1f} s: {shown}", flush=True)
    if done.returncode != code:
        sys.exit(f"ended with {done.returncode}, not {code}:\n{done.stdout}")
    return done.stdout


def build(folder: Path) -> Path:
    """Return a wheel of the checkout, built where nothing older can get into it."""
    sources = copied(folder / "sources")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "wheel", "-q", "--no-deps", "-w", folder, ".", folder=sources)
    (wheel,) = folder.glob("dpaudit-*.whl")
    return wheel


def install(wheel: Path, folder: Path) -> Path:
    """Return the programs' folder of a fresh environment with the wheel, and pytest."""
    environment = folder / "environment"
    run(sys.executable, "-m", "venv", environment, folder=folder)
    paths = {"base": str(environment), "platbase": str(environment)}
    programs = Path(sysconfig.get_path("scripts", "venv", vars=paths))
    pip = (programs / "python", "-m", "pip", "--disable-pip-version-check")
    pins = ("-c", ROOT / "constraints.txt")
    run(*pip, "install", "-q", *pins, wheel, "pytest", folder=folder)
    return programs


def ten_lines(programs: Path, folder: Path) -> None:
    """Run the first audit of README.md, which has to print what stands below it."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    code, shown = (
        re.search(rf"```{kind}\n(.*?)```", page, re.DOTALL)
        for kind in ("python", "text")
    )
    assert code is not None
    assert shown is not None
    (folder / "ten_lines.py").write_text(code[1], encoding="utf-8")
    printed = run(programs / "python", "ten_lines.py", folder=folder)
    # The bounds depend on for how long the machine went on; verdict and claim do not.
    for line in (r".* \(after \d+ of ", r"  claim .*", r"  layer .*"):
        if re.findall(line, printed) != re.findall(line, shown[1]):
            sys.exit(f"README.md shows another output than\n{printed}")


def follow(name: str, programs: Path, folder: Path) -> None:
    """Do what a page says; commands must end with the codes that it names."""
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    for kind, text in re.findall(r"```(\w+)\n(.*?)```", page, re.DOTALL):
        if kind == "python":
            name = text.partition("\n")[0].removeprefix("# ")
            (folder / name).write_text(text, encoding="utf-8")
        elif kind == "sh":
            for line in text.splitlines():
                command, _, code = line.partition("   # exit code ")
                program, *words = shlex.split(command)
                run(programs / program, *words, folder=folder, code=int(code or 0))


def main() -> None:
    """Do it all, print what it took, and end with 1 if that is too much."""
    start = machine_time()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        programs = install(build(folder), folder)
        elsewhere = folder / "elsewhere"
        elsewhere.mkdir()
        where = "import dpaudit; print(dpaudit.__file__)"
        home = run(programs / "python", "-c", where, folder=elsewhere).strip()
        if not Path(home).is_relative_to(programs.parent):
            sys.exit(f"this is not the wheel: {home}")
        ten_lines(programs, elsewhere)
        follow("tutorial.md", programs, elsewhere)
        follow("yours.md", programs, elsewhere)
        pytest = (programs / "pytest", "-q", "test_my_mechanism.py")
        said = run(*pytest, folder=elsewhere)
        if "3 passed" not in said:
            sys.exit(said)
    used = machine_time() - start
    print(f"first contact: {used:.0f} s of machine time, target {TARGET:.0f} s")
    sys.exit(used > TARGET)


if __name__ == "__main__":
    main()
