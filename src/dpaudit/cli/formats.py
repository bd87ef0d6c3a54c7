"""What an audit leaves: text, a page, a witness, and what other tools read.

- ``github``: workflow commands, which GitHub Actions shows beside the lines of a pull
  request (GitHub Docs, *Workflow commands for GitHub Actions*).
- ``sarif``: the Static Analysis Results Interchange Format, version 2.1.0 (OASIS
  Standard, 2020), which code scanning and editors read.
- ``junit``: the XML of JUnit, which systems for continuous integration read. What came
  to no verdict is skipped there, and not passed.
- ``json``: what ``--json`` prints (docs/schemas.md).
"""

import inspect
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import click

from dpaudit import __version__
from dpaudit.atomic import check_writable, replacing
from dpaudit.cli.options import print_result
from dpaudit.errors import InputError
from dpaudit.printable import printable

__all__ = ["WantedOutput", "asked"]

_FORMATS = ("github", "sarif", "junit", "json")
_LONGEST = 2000
_OPEN = ("NOT_FOLLOWED", "NO_VERDICT")
_GITHUB = {"error": "error", "warning": "warning", "note": "notice"}
_RULES = {
    "structure": "Noisy values, or the layout of the release, depend on the data.",
    "release": "A number of the release has no noise, or too little that it shares.",
    "distance": "An input of noise moves further than the claim allows.",
    "scale": "The law of the noise depends on the data.",
    "budget": "The steps together cost more than the claim allows.",
    "primitive": "A primitive costs more than it declares.",
    "coin": "Randomness or code could not be followed.",
    "event": "An event has probabilities that the claim does not allow.",
    "verdict": "What an audit says of a claim.",
}


@dataclass(frozen=True)
class _Remark:
    level: str  # of SARIF: error, warning or note
    rule: str
    path: str
    line: int
    message: str


def asked(
    ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> list[tuple[str, Path | None]]:
    """Return forms, each with the file it is for, None for standard output."""
    found = []
    for each in given:
        form, to_file, file = each.partition("=")
        if form not in _FORMATS or (to_file and not file):
            raise click.BadParameter(
                f"{each!r} is not {', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}, nor "
                "one of them with =FILE"
            )
        found.append((form, Path(file) if to_file else None))
    return found


@dataclass
class WantedOutput:
    """What is wanted of an audit, and where.

    Files are found out to be writable at once, and stay where they are if the code
    under audit makes another folder the current one.
    """

    witness: Path | None
    page: Path | None
    as_json: bool
    forms: list[tuple[str, Path | None]]

    def __post_init__(self) -> None:
        self._printed = [form for form, file in self.forms if file is None]
        self._printed += ["json"] * self.as_json
        if len(self._printed) > 1:
            raise InputError(
                f"{' and '.join(self._printed)} are for standard output, which takes "
                "one: give the others files, as in --format sarif=FILE"
            )
        taken = set()
        for path in (self.witness, self.page, *(file for _, file in self.forms)):
            if path is not None:
                check_writable(path)
                if (place := path.resolve()) in taken:
                    raise InputError(
                        f"each output must have a file of its own, got {str(path)!r} "
                        "for two"
                    )
                taken |= {place} if place.is_file() or not place.exists() else set()
        self._name = self.witness
        self.witness, self.page = (
            path and path.absolute() for path in (self.witness, self.page)
        )
        self.forms = [(form, file and file.absolute()) for form, file in self.forms]

    def tell(self, results: Sequence[Any], subject: Any) -> None:
        """Print what was said of one claim, and keep what is to be kept.

        Parameters
        ----------
        results : sequence of ReplayResult or AuditResult
            In the order in which it was said; the last decides.
        subject : object
            What was audited: where it begins is the place of what no line explains.

        Raises
        ------
        InputError
            If something cannot be kept, as on a full disk: after all is printed.
        """
        unwritten = None
        try:
            self._keep(results, subject)
        except InputError as error:
            unwritten = error
        if self._printed:
            click.echo(_formatted(self._printed[0], results, subject))
        else:
            for each in results:
                print_result(each, as_json=False, refuted=each.refuted)
        if unwritten is not None:
            raise unwritten
        told = not self._printed and hasattr(results[-1], "trajectory")
        if self.witness is not None and told:
            wrote = f"witness written to {printable(self._name)}"
            nothing = "nothing refuted: no witness written"
            click.echo(f"  {wrote if results[-1].witness is not None else nothing}")

    def _keep(self, results: Sequence[Any], subject: Any) -> None:
        """Write what is to be kept."""
        if (found := results[-1].witness) is not None and self.witness is not None:
            found.save(self.witness)
        if self.page is not None:
            from dpaudit.reports.page import write_page

            write_page(results, self.page)
        for form, file in self.forms:
            if file is not None:
                with replacing(file) as new:
                    text = _formatted(form, results, subject)
                    new.write_text(text + "\n" * bool(text), encoding="utf-8")


def _formatted(form: str, results: Sequence[Any], subject: Any) -> str:
    """Return results in a form, in ASCII but for ``github``, without a last newline."""
    if form == "json":
        told = results[-1].to_dict()
        told |= {"replay": results[0].to_dict()} if len(results) > 1 else {}
        return json.dumps(told, indent=2, allow_nan=False)
    if form == "junit":
        return _junit(results)
    begins = _beginning(subject)
    remarks = [each for result in results for each in _remarks(result, begins)]
    if form == "github":
        return "\n".join(map(_github, remarks))
    return _sarif(remarks, results[-1].verdict)


def _remarks(result: Any, begins: tuple[str, int]) -> list[_Remark]:
    """Return what is said of a claim that fell, or was not settled, line by line."""
    if result.verdict == "NOT_REFUTED":
        return [_Remark("note", "verdict", *begins, _head(result))]
    level = "error" if result.refuted else "warning"
    found = []
    for each in result.findings:
        if isinstance(each, str):  # an event
            found.append(_Remark(level, "event", *begins, f"{_head(result)}: {each}"))
        else:
            path, _, line = each.where.rpartition(":")
            place = (path, int(line)) if path and line.isdecimal() else begins
            text = f"{_head(result)}: {printable(each.message, longest=_LONGEST)}"
            found.append(_Remark(level, each.kind, place[0], place[1], text))
    remedy = getattr(result, "remedy", "")
    if found and remedy and not result.refuted:
        settled = f"To settle it: {printable(remedy, longest=_LONGEST)}"
        found[0] = replace(found[0], message=f"{found[0].message}. {settled}")
    return found or [_Remark(level, "verdict", *begins, _head(result))]


def _head(result: Any) -> str:
    """Return the verdict in one line."""
    claim = f"{result.claim} under {result.relation.value}"
    return printable(f"{result.name}: {claim}: {result.verdict}", longest=_LONGEST)


def _beginning(subject: Any) -> tuple[str, int]:
    """Return the file and line where code begins; no file where that is not known."""
    code = getattr(subject, "function", getattr(subject, "func", subject))
    try:
        code = inspect.unwrap(code)
        code = code if inspect.isroutine(code) else type(code)
        path, line = inspect.getsourcefile(code), inspect.getsourcelines(code)[1]
    except (TypeError, OSError, ValueError):
        return "", 1
    if path is None:
        return "", 1
    inside = os.path.relpath(path)
    return (path if inside.startswith(os.pardir) else inside), max(line, 1)


def _escaped(text: str, *, field: bool = False) -> str:
    """Escape what ends a message of GitHub's, or one of its fields."""
    for character in "%\r\n" + (":," if field else ""):
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def _github(remark: _Remark) -> str:
    fields = {"title": f"dpaudit: {remark.rule}"}
    if remark.path:
        fields = {"file": remark.path, "line": str(remark.line)} | fields
    told = ",".join(f"{k}={_escaped(v, field=True)}" for k, v in fields.items())
    return f"::{_GITHUB[remark.level]} {told}::{_escaped(remark.message)}"


def _sarif(remarks: Sequence[_Remark], verdict: str) -> str:
    ids = sorted({each.rule for each in remarks})
    rules = [{"id": id_, "shortDescription": {"text": _RULES[id_]}} for id_ in ids]
    driver = {"name": "dpaudit", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "results": [_sarif_result(each, ids) for each in remarks],
        "properties": {"verdict": str(verdict)},
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=2)


def _sarif_result(remark: _Remark, ids: list[str]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "ruleId": remark.rule,
        "ruleIndex": ids.index(remark.rule),
        "level": remark.level,
        "message": {"text": remark.message},
    }
    if remark.path:
        absolute = os.path.isabs(remark.path)
        uri = quote(remark.path.replace(os.sep, "/"))
        place = {
            "artifactLocation": {"uri": f"file://{uri}" if absolute else uri},
            "region": {"startLine": remark.line},
        }
        told["locations"] = [{"physicalLocation": place}]
    return told


def _junit(results: Sequence[Any]) -> str:
    """Return a test for each result: it fails if that refutes the claim."""
    counts = {
        "tests": len(results),
        "failures": sum(each.refuted for each in results),
        "skipped": sum(each.verdict in _OPEN for each in results),
    }
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "dpaudit"})
    suite.attrib |= {name: str(count) for name, count in counts.items()}
    for each in results:
        layer = getattr(each, "layer", "replay")
        case = ElementTree.SubElement(suite, "testcase")
        case.attrib["classname"] = printable(each.name, longest=_LONGEST)
        case.attrib["name"] = f"{printable(each.claim)} ({layer})"
        case.attrib["time"] = f"{each.seconds:.3f}"
        if each.verdict == "NOT_REFUTED":
            continue
        kind = "failure" if each.refuted else "skipped"
        said = ElementTree.SubElement(case, kind, {"message": _head(each)})
        said.text = "\n".join(
            printable(line, longest=_LONGEST) for line in str(each).splitlines()
        )
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="us-ascii").decode("ascii")
