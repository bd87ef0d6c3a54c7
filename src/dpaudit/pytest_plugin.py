"""The pytest plugin of dpaudit: privacy claims as assertions.

The fixture `auditor` audits mechanisms inside tests::

    def test_noisy_sum(auditor):
        auditor.assert_dp(noisy_sum, claim=PureDP(1.0), pair=PAIR)

Every pytest of an environment that has dpaudit imports this module. So it imports
nothing but pytest and the standard library; an audit imports the rest.

Results travel as user properties of the reports, and so from the workers of
pytest-xdist to the controller, and into JUnit files.
"""

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dpaudit.audit.assertions import Auditor

__all__ = ["BUDGETS", "auditor"]

BUDGETS = {"quick": 2_000, "standard": 20_000, "full": 500_000}
"""Most releases a side, by the name of the profile."""

_PROPERTY = "dp_audit"
_WORKER_FOLDER = "dpaudit_witnesses"  # what the controller tells its workers
_SETTINGS = ("budget", "confidence")
_MARKER = (
    "dp_audit(budget=..., confidence=...): audits of differential privacy, and how "
    "thorough they are; every test with the fixture auditor has it"
)


@pytest.fixture
def auditor(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> "Auditor":
    """Audit mechanisms: ``auditor.assert_dp(...)``, ``auditor.assert_refuted(...)``."""
    from dpaudit.audit.assertions import Auditor

    config, item = request.config, request.node

    def report(record: dict[str, Any]) -> None:
        text = json.dumps(record, allow_nan=False)
        item.user_properties.append((_PROPERTY, text))

    beside_report = _witness_folder(config)
    return Auditor(
        BUDGETS,
        report,
        partial(tmp_path_factory.mktemp, "dpaudit-witnesses")
        if beside_report is None
        else lambda: beside_report,
        seed=config.option.dp_seed,
        **{"budget": config.option.dp_profile, **_marked(item)},
    )


def _marked(item: pytest.Item) -> dict[str, Any]:
    """Return the settings in the markers of a test, the nearest of each kind."""
    settings: dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers("dp_audit"))):
        if marker.args or not set(marker.kwargs) <= set(_SETTINGS):
            given = [*map(repr, marker.args), *marker.kwargs]
            raise pytest.UsageError(
                f"the marker dp_audit takes {', '.join(_SETTINGS)} by name, "
                f"got {', '.join(given)}"
            )
        settings |= marker.kwargs
    return settings


class _Ledger:
    """What the session's audits said: in the terminal, and in a file if asked for."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._by_test: dict[str, list[dict[str, Any]]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # The reports of setup, call and teardown each repeat what was known by then.
        found = [
            json.loads(str(v)) for k, v in report.user_properties if k == _PROPERTY
        ]
        if found:
            self._by_test[report.nodeid] = found

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        path = _report_path(self._config)
        if path is None:
            return
        import dpaudit
        from dpaudit.atomic import replacing

        content = {
            "format": "dpaudit-pytest",
            "version": 1,
            "dpaudit": dpaudit.__version__,
            "python": ".".join(map(str, sys.version_info[:3])),
            "profile": self._config.option.dp_profile,
            "seed": self._config.option.dp_seed,
            "audits": self._audits(),
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as new:
            new.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        audits = self._audits()
        if not audits:
            return
        from dpaudit.audit.assertions import describe
        from dpaudit.printable import aligned

        terminalreporter.section("differential privacy audits")
        rows = [
            ("ok" if a["passed"] else "FAILED", a["test"], *describe(a)) for a in audits
        ]
        for audit, line in zip(audits, aligned(rows), strict=True):
            terminalreporter.write_line(line, red=not audit["passed"])
        chance = sum(1 - audit["confidence"] for audit in audits)
        count = "1 audit" if len(audits) == 1 else f"{len(audits)} audits"
        terminalreporter.write_line(
            f"{count}: that a true claim is refuted in this session has "
            f"probability <= {chance:.2g}. Not refuted is not proven private."
        )

    def _audits(self) -> list[dict[str, Any]]:
        """Return all records, in an order that no number of workers changes."""
        return [
            {"test": test, **record}
            for test, records in sorted(self._by_test.items())
            for record in records
        ]


def _report_path(config: pytest.Config) -> Path | None:
    given = config.option.dp_report
    return None if given is None else config.invocation_params.dir / given


def _witness_folder(config: pytest.Config) -> Path | None:
    """Return the folder beside the report, None if there is no report."""
    told = getattr(config, "workerinput", None)
    if told is not None:
        folder = told[_WORKER_FOLDER]
        return None if folder is None else Path(folder)
    report = _report_path(config)
    return None if report is None else report.with_suffix(".witnesses")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("dpaudit", "differential privacy audits")
    sizes = ", ".join(f"{name} {size:,}" for name, size in BUDGETS.items())
    group.addoption(
        "--dp-profile",
        choices=list(BUDGETS),
        default="standard",
        help=f"most releases a side of an audit: {sizes} [standard]",
    )
    group.addoption(
        "--dp-seed",
        type=int,
        default=0,
        metavar="N",
        help="other randomness for all audits [0]",
    )
    group.addoption(
        "--dp-report",
        metavar="FILE",
        help="write all audits of the session as one JSON object, and the witnesses of "
        "refuted claims into a folder beside it",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and the ledger of this session."""
    config.addinivalue_line("markers", _MARKER)
    if config.option.dp_seed < 0:
        raise pytest.UsageError(f"--dp-seed must be >= 0, got {config.option.dp_seed}")
    path = _report_path(config)
    if path is not None and path.is_dir():
        raise pytest.UsageError(f"--dp-report must be a file, got the folder {path}")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Ledger(config), "dpaudit-ledger")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what audits, before ``-m`` selects."""
    for item in items:
        if "auditor" in getattr(item, "fixturenames", ()):
            item.add_marker("dp_audit")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist where witnesses go."""
    folder = _witness_folder(node.config)
    node.workerinput[_WORKER_FOLDER] = None if folder is None else str(folder)
