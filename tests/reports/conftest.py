"""A profile whose reports take seconds, and one report of it, for who asks for them."""

import fcntl
import json
import os
import shutil
from pathlib import Path

import pytest
from tiny_profile import RUN, install_tiny, mostly_wide

from dpaudit.reports import write_report, writer


@pytest.fixture(scope="module", autouse=True)
def audits_in_few_rounds(in_few_rounds):
    """What is written of audits, and not what they find, is looked at here."""


@pytest.fixture(scope="module")
def tiny():
    with pytest.MonkeyPatch.context() as patch:
        install_tiny(patch)
        yield


@pytest.fixture(scope="session")
def tiny_report(tmp_path_factory) -> Path:
    """The folder of a tiny report of `RUN`, written once for all workers of a session.

    Nobody may write there. Beside it lies what was told on the way, and whether a
    section failed.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder /= "tiny-report"
    folder.mkdir(exist_ok=True)
    report, told = folder / "deep" / "report", []
    with (folder / "lock").open("w") as lock, pytest.MonkeyPatch.context() as patch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "told.json").exists():
            shutil.rmtree(report, ignore_errors=True)
            install_tiny(patch)
            patch.setattr(writer, "draw_figures", mostly_wide)
            written = write_report(
                report, profile="tiny", seed=1, sections=RUN, progress=told.append
            )
            assert (written.index, written.failed) == (report / "index.html", {})
            steps = [
                [each.label, each.done, each.total, each.fraction] for each in told
            ]
            (folder / "told.json").write_text(json.dumps(steps))
    return report
