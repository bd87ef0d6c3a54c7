"""`dpaudit audit --format`: results in the forms that other tools read."""

import json
from xml.etree import ElementTree

import pytest
from cli_cases import assert_refused, run, work_in

from dpaudit.cli.formats import _RULES, _escaped

CODE = '''
import os
from dpaudit import Pair
pair = Pair([0.5], [0.5, 1.0])


def mean(data, rng):
    """Say how many rows there are by the scale."""
    total = data.sum() + rng.laplace()
    return total / max(len(data), 1)


def sum_(data, rng):
    return data.sum() + rng.laplace()


def unseen(data, rng):
    return data.sum() + int.from_bytes(os.urandom(3), "big") / 2**20


def leaking(data, rng):
    return len(data) + float(rng.laplace() > 0)
'''
OPTIONS = ("--epsilon", "1", "--pair", "formats:pair", "--max-samples", "200")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    return work_in(tmp_path, monkeypatch, "formats", CODE)


def audited(name, form, *more):
    return run("audit", f"formats.py:{name}", *OPTIONS, "--format", form, *more)


def test_github_marks_the_line_of_a_pull_request(folder):
    found = audited("mean", "github", "--witness", "100%: a,b.json")
    assert found.exit_code == 1
    (line,) = found.stdout.splitlines()
    assert line.startswith("::error file=formats.py,line=10,title=dpaudit%3A scale::")
    assert "REFUTED: the scale of the noise is 1 on D" in line
    assert (folder / "100%: a,b.json").is_file()


def test_github_notes_what_was_not_refuted_within_its_message():
    found = audited("sum_", "github")
    assert found.exit_code == 0
    lines = found.stdout.splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["::notice"] * 2
    assert all("file=formats.py,line=13," in line for line in lines)
    assert _escaped("50%\r\na:b,c") == "50%25%0D%0Aa:b,c"
    assert _escaped("50%\na:b,c", field=True) == "50%25%0Aa%3Ab%2Cc"


def test_sarif_says_what_would_settle_it_and_junit_passes_nothing_without_a_verdict():
    found = audited("unseen", "sarif", "--layer", "replay")
    log = json.loads(found.stdout)
    assert log["version"] == "2.1.0"
    (told,) = log["runs"]
    assert told["properties"] == {"verdict": "NOT_FOLLOWED"}
    (result,) = told["results"]
    assert result["level"] == "warning"
    assert "To settle it: at formats.py:18: draw noise" in result["message"]["text"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "formats.py"}
    assert place["region"] == {"startLine": 18}
    rule = told["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert rule["id"] == result["ruleId"] == "coin"
    suite = ElementTree.fromstring(audited("unseen", "junit").stdout).find("testsuite")
    assert suite is not None
    assert [suite.attrib[key] for key in ("tests", "failures", "skipped")] == list(
        "202"
    )
    assert [[part.tag for part in case] for case in suite] == [["skipped"]] * 2
    names = [case.attrib["name"] for case in suite]
    assert names == [f"PureDP(epsilon=1.0) ({by})" for by in ("replay", "black-box")]


def test_findings_stand_where_the_code_begins_each_kind_by_its_rule():
    log = json.loads(audited("leaking", "sarif", "--layer", "black-box").stdout)
    (result,) = log["runs"][0]["results"]
    assert (result["level"], result["ruleId"]) == ("error", "event")
    place = result["locations"][0]["physicalLocation"]
    assert place["region"] == {"startLine": 21}
    from dpaudit.audit.replay.judge.judgement import Finding

    kinds = (Finding.__doc__ or "").partition("kind : {")[2].partition("}")[0]
    assert {kind.strip(' "') for kind in kinds.split(",")} < set(_RULES)


@pytest.mark.parametrize("name", ["mean", "sum_"])
def test_junit_fails_what_is_refuted_alone(name):
    text = audited(name, "junit", "--layer", "replay").stdout
    case = ElementTree.fromstring(text).find(".//testcase")
    assert case is not None
    assert [part.tag for part in case] == ["failure"] * (name == "mean")
    assert "formats.py:10: scale" in "".join(case.itertext()) or name == "sum_"


def test_one_audit_writes_all_forms_and_a_page(folder):
    files = ("junit=j.xml", "sarif=s.json", "json=100%=a.json")
    more = [word for each in files for word in ("--format", each)]
    found = audited("sum_", "github", *more, "--html", "page.html")
    assert found.stdout.startswith("::notice")
    assert b"testsuite" in (folder / "j.xml").read_bytes()
    assert json.loads((folder / "s.json").read_text())["runs"]
    told = json.loads((folder / "100%=a.json").read_text())
    layers = [each["layer"] for each in (told, told["replay"])]
    assert layers == ["black-box", "replay"]
    page = (folder / "page.html").read_text()
    assert page.count('<p class="lead">') == 2
    assert page.count("<figure") == 1
    assert page.index("epsilon_lower") < page.index("executions")
    proven = audited("mean", "github=lines", "--html", "page.html")
    assert proven.stdout.splitlines()[0].startswith("formats.py:mean: REFUTED by proof")
    assert (folder / "lines").read_text().startswith("::error file=formats.py")
    assert "formats.py:10: scale" in (folder / "page.html").read_text()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--json"], "sarif and json are for standard output, which takes one"),
        (["--layer", "exact"], "--html and --format are not for --layer exact"),
        (["--format", "json=one", "--html", "./one"], "must have a file of its own"),
        (["--format", "junit=no/where.xml"], "cannot write 'no/where.xml'"),
        (["--format", "junit="], "Error: Invalid value for '--format': 'junit=' is"),
    ],
)
def test_forms_have_places(more, said):
    assert_refused(audited("mean", "sarif", *more), said)
