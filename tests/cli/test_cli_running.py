import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pandas as pd
import pytest
from cli_cases import refused, run, work_in

from dpaudit.audit import Progress
from dpaudit.cli.running import Interrupt, watch

OWN = """
import os
import signal
import time
from dpaudit import Pair

pair = Pair([0.0], [0.0, 1.0])

def good(data, rng):
    return data.sum() + rng.laplace()

def bad(data, rng):
    return data.sum() + rng.laplace(scale=0.2)

def slow(data, rng):
    time.sleep(0.002)
    deaf = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    with open(f"{__file__}.{os.getpid()}", "w") as file:
        file.write(str(int(deaf)))
    while os.path.exists(f"{__file__}.hang"):
        time.sleep(0.05)
    if os.path.exists(f"{__file__}.stop"):
        os.remove(f"{__file__}.stop")
        signal.raise_signal(signal.SIGINT)
    return data.sum() + rng.laplace()

def wandering(data, rng):
    print("drawn")
    os.chdir(os.path.sep)
    return bad(data, rng)
"""
GIVEN = ("--pair", "running_mechanism:pair", "--epsilon", "1")
SHORT = (
    "running_mechanism:good",
    *GIVEN,
    *("--layer", "black-box", "--max-samples", "20"),
)
LONG = ("running_mechanism:slow", *GIVEN, "--max-samples", "100000")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, heeds_interrupts):
    return work_in(tmp_path, monkeypatch, "running_mechanism", OWN)


def printed(*arguments):
    shown = json.loads(run("audit", *arguments, "--json").stdout)
    del shown["seconds"]
    return shown


def test_workers_change_nothing_and_what_a_mechanism_prints_is_no_part(folder, capfd):
    """What workers print goes past every stand-in of this process."""
    (folder / "talking.py").write_text(
        'print("imported")\nfrom running_mechanism import pair, wandering\n'
    )
    shown = []
    for workers in ("2", "1"):
        sys.modules.pop("talking", None)
        done = run(
            *("audit", "talking:wandering", *GIVEN, "--json", "--max-samples", "40"),
            *("--refine", "0", "--workers", workers),
        )
        shown.append(json.loads(done.stdout))
        del shown[-1]["seconds"]
        past = capfd.readouterr()
        assert past.out == ""
        assert {"imported", "drawn"} <= set((done.stderr + past.err).split())
    assert shown[0] == shown[1]


def test_files_are_where_they_were_asked_for(folder):
    files = ("--witness", "w.json", "--html", "w.html", "--store", "audits.db")
    files += ("--format", "json=w")
    asked = ("running_mechanism:wandering", *GIVEN, *files, "--refine", "0")
    done = run("audit", *asked)
    assert done.exit_code == 1, done.output
    assert os.getcwd() == os.path.sep
    assert {"w.json", "w.html", "w", "audits.db"} <= {
        path.name for path in folder.iterdir()
    }
    os.chdir(folder)
    os.remove("w.json")
    again = run("audit", *asked)
    assert again.exit_code == 1
    assert "from the store" in again.stdout
    assert (folder / "w.json").exists()


def test_a_store_brings_the_result_back_unless_it_is_damaged(folder):
    plain = printed(*SHORT)
    first = printed(*SHORT, "--store", "audits.db")
    again = printed(*SHORT, "--store", "audits.db")
    assert first == plain
    assert again == plain | {"from_store": True}
    text = run("audit", *SHORT, "--store", "audits.db").stdout
    assert "from the store: this audit was finished before" in text
    assert not printed(*SHORT, "--seed", "1", "--store", "audits.db")["from_store"]
    (folder / "audits.db").write_bytes(b"damaged")
    result = run("audit", *SHORT, "--store", "audits.db")
    assert result.exit_code == 0
    assert result.stderr.startswith("dpaudit: the store 'audits.db' is damaged")
    assert result.stderr.count("\n") == 1


ERRORS = {
    ("--workers", "0"): "workers must be an integer >= 1",
    ("--store", "no/such/a.db"): "cannot write 'no/such/a.db': no such folder",
    ("--store", "running_mechanism.py/a.db"): "no such folder",
    ("--layer", "exact", "--workers", "2"): "takes no --domain, --bits, --witness, --w",
    ("--layer", "white-box", "--store", "a.db"): "takes no",
    ("--layer", "white-box", "--max-seconds", "1"): "or --max-seconds",
    ("--layer", "replay", "--to-the-end"): "--scheduler, --refine or --to-the-end",
    (
        "--layer",
        "replay",
        "--refine",
        "0.25",
    ): "takes no --bits, --workers, --scheduler",
    ("--layer", "exact", "--refine", "0.5"): "--store, --refine or --max-seconds",
    ("--refine", "-1"): "--refine must be a finite number >= 0, got -1",
    ("--scheduler", "nowhere"): "such as tcp://HOST:8786, got 'nowhere'",
    ("--scheduler", "a:1", "--workers", "2"): "--workers and --scheduler exclude",
    ("--max-seconds", "0"): "--max-seconds must be a finite number > 0, got 0",
}


test_errors_are_one_sentence_and_exit_code_two = refused(ERRORS, "audit", *SHORT)


NOTE = "dpaudit: stopping after this round; Ctrl-C again stops at once\n"


def test_ctrl_c_ends_an_audit_with_what_it_has_shown(folder, capfd):
    def interrupted(*options):
        (folder / "running_mechanism.py.stop").touch()
        done = run("audit", *LONG, "--store", "audits.db", *options)
        assert done.exit_code == 130
        assert capfd.readouterr().err == NOTE
        return done

    shown = json.loads(interrupted("--json").stdout)
    assert shown["interrupted"] is True
    assert shown["verdict"] == "NOT_REFUTED"
    assert 0 < shown["samples"] < 100_000
    again = interrupted()
    resumed = f"dpaudit: resumed after {shown['samples']:,} releases a side\n"
    assert again.stderr == resumed
    assert "INTERRUPTED" in again.stdout


def test_a_second_ctrl_c_ends_all_processes_at_once(folder):
    """As a terminal does it: all processes of the group get the signal.

    The first is no affair of the workers, which ignore it. They are at something that
    has no end, and nobody waits for it after the second.
    """
    (folder / "running_mechanism.py.hang").touch()
    audit = subprocess.Popen(
        [sys.executable, "-m", "dpaudit", "audit", *LONG, "--workers", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        deaf = ""
        while len(deaf) < 2:
            assert audit.poll() is None
            time.sleep(0.05)
            files = folder.glob("running_mechanism.py.[0-9]*")
            deaf = "".join(each.read_text() for each in files)
        assert deaf == "11"
        os.killpg(audit.pid, signal.SIGINT)
        assert audit.stderr.readline() == NOTE
        os.killpg(audit.pid, signal.SIGINT)
        assert audit.communicate(timeout=120) == ("", "dpaudit: stopped at once\n")
        assert audit.returncode == 130
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(audit.pid, signal.SIGKILL)


def test_ctrl_c_before_and_after_the_rounds_is_no_verdict(monkeypatch):
    def interrupted(*arguments, **options):
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("dpaudit.audit.audit", interrupted)
    result = run("audit", *SHORT)
    assert result.exit_code == 130
    assert result.stderr == "dpaudit: stopped at once\n"


def test_interrupts_are_asked_for_once_and_stay_ignored_where_they_are():
    before = signal.getsignal(signal.SIGINT)
    with Interrupt() as interrupt:
        assert not interrupt.asked()
        signal.raise_signal(signal.SIGINT)
        assert interrupt.asked()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupt() as interrupt:
            signal.raise_signal(signal.SIGINT)
            assert not interrupt.asked()
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_leave_signals_alone():
    seen = []

    def enter():
        with Interrupt():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]


def at(samples, resumed_at=0):
    return Progress(samples, 100, 1, 0.5, 0.0, "identity", 3.0, 4000.0, resumed_at)


def test_one_line_on_a_terminal(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("dpaudit.cli.running.time.monotonic", lambda: now[0])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    with watch() as show:
        for samples in range(100):
            now[0] += 0.02
            show(at(samples))
    shown = capsys.readouterr().err
    lines = re.findall(r"\r\033\[2K([^\r\n]*)", shown)
    assert 8 <= len(lines) <= 12  # a second of silence, then ten lines a second
    assert lines[-1] == ""
    begin = "49 of 100 releases a side, 0.013 a second, epsilon >= 0.5"
    assert lines[0].startswith(begin)
    assert all(len(line) < 60 for line in lines)
    assert "\n" not in shown


def test_quiet_off_a_terminal(capsys, monkeypatch):
    with watch() as show:
        show(at(1))
        show(at(99))
    assert capsys.readouterr().err == ""
    with watch() as show:
        show(at(60, resumed_at=50))
        show(at(99, resumed_at=50))
    assert capsys.readouterr().err == "dpaudit: resumed after 50 releases a side\n"


def test_a_store_is_exported(folder):
    """As it was shown, in the order of the audits."""
    seeds = ("2", "1")
    shown = [printed(*SHORT, "--seed", s, "--store", "audits.db") for s in seeds]
    result = run("export", "audits.db", "--output", "audits.csv")
    assert result.exit_code == 0
    assert result.stdout == "2 audits written to audits.csv\n"
    frame = pd.read_csv("audits.csv")
    assert frame["seed"].tolist() == [2, 1]
    for name in ("name", "verdict", "samples", "log_evidence", "epsilon_lower"):
        assert frame[name].tolist() == [result[name] for result in shown]
