"""The schemas of what is written: whole, strict, and shown by the command line.

What the commands print in tests/cli is held to them there (`cli_cases.run`), reports of
pytest in tests/plugin, and what changed between two reports in tests/reports.
"""

import copy
import json
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator
from refusals import refuses
from schemas import SCHEMAS, validator

from dpaudit import Pair, PureDP
from dpaudit.algorithms import build
from dpaudit.audit import Verification, audit, replay
from dpaudit.audit.bounds.result import Bound
from dpaudit.audit.layers.exact import exact_verdict
from dpaudit.audit.layers.whitebox_result import WhiteBoxResult
from dpaudit.audit.one_run.result import CanaryAudit
from dpaudit.audit.planning import Plan
from dpaudit.audit.replay.judge.judgement import Finding, Step
from dpaudit.audit.replay.judge.primitive_audits import PrimitiveAudit
from dpaudit.audit.replay.result import Explored
from dpaudit.cli import main
from dpaudit.cli.list import schema_command

ROOT = Path(__file__).parents[2]
DEFS = SCHEMAS["$defs"]
PAIR = Pair([0.5], [0.5, 1.0])
# Where names are those of others.
FREE = ("arguments", "versions", "parameters", "canonical", "data", "neighbour")


def wrong(data, rng):
    return data.sum() + rng.laplace(scale=0.3)


@pytest.fixture(scope="module")
def written():
    """What an audit says in full, by the schema that it has."""
    sampled = audit(wrong, pair=PAIR, claim=PureDP(1.0), budget=300)
    played = replay(wrong, pair=PAIR, claim=PureDP(1.0))
    assert sampled.refuted
    assert played.refuted
    laplace = build("laplace")
    exact = exact_verdict(laplace, laplace.worst_case(), laplace.claim)
    found = {
        "audit": sampled.to_dict() | {"replay": played.to_dict()},
        "replay": played.to_dict(),
        "witness": sampled.witness.to_dict(),
        "exact": exact.to_dict(),
    }
    return json.loads(json.dumps(found))


def test_schemas_are_schemas_and_all_of_them_are_used():
    Draft202012Validator.check_schema(SCHEMAS)
    used = {text.partition('"')[0] for text in json.dumps(SCHEMAS).split("#/$defs/")}
    fronts = set(DEFS) - used
    assert (schema_command.callback.__doc__ or "").count("NAME") == 1
    commands = {n for n, c in main.commands.items() if "--json" in str(options(c))}
    assert fronts == commands | {"report", "report-diff", "witness", "pytest"}


def options(command):
    return [each.opts for each in command.params]


def test_every_witness_in_the_pages_keeps_to_its_schema():
    paths = [*(ROOT / "docs" / "witnesses").glob("*.json")]
    assert len(paths) > 5
    for path in paths:
        validator("witness").validate(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("name", "kind", "more"),
    [
        ("finding", Finding, ()),
        ("step", Step, ()),
        ("explored", Explored, ()),
        ("primitive", PrimitiveAudit, ()),
        ("a-bound", Bound, ("epsilon",)),
        ("canaries", CanaryAudit, ()),
        ("plan", Plan, ()),
        ("white-box", WhiteBoxResult, ("delta_low", "delta_high", "estimate")),
        ("sampling-verification", Verification, ()),
    ],
)
def test_objects_have_the_fields_of_their_classes(name, kind, more):
    schema = DEFS[name].get("items", DEFS[name])
    named = {each.name for each in fields(kind)} | set(more)
    assert set(schema["properties"]) == set(schema["required"]) == named
    assert schema["additionalProperties"] is False


def renamed(found, path):
    changed = copy.deepcopy(found)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[f"other_{path[-1]}"] = place.pop(path[-1])
    return changed


def names_in(found, path=()):
    """Yield the path of every name of ours."""
    if isinstance(found, list):
        for index, each in enumerate(found[:1]):
            yield from names_in(each, (*path, index))
    if isinstance(found, dict):
        for key, each in found.items():
            yield (*path, key)
            if key not in FREE:
                yield from names_in(each, (*path, key))


@pytest.mark.parametrize("name", ["audit", "replay", "witness", "exact"])
def test_no_name_is_another(written, name):
    found = written[name]
    against = validator(name)
    against.validate(found)
    paths = [*names_in(found)]
    assert len(paths) > 8
    for path in paths:
        assert not against.is_valid(renamed(found, path)), path


def test_values_of_other_kinds_are_seen(written):
    found = written["audit"]
    for key, value in {
        "verdict": "refuted",
        "confidence": 1.5,
        "samples": -1,
        "drawn": [1],
        "trajectory": [[1]],
        "claim": {"kind": "PureDP", "text": "?", "epsilon": 1.0, "delta": 0.1},
        "witness": {"format": "another"},
    }.items():
        assert not validator("audit").is_valid(found | {key: value}), key


def test_the_command_prints_one_or_all_of_them():
    whole = json.loads(CliRunner().invoke(main, ["schema"]).stdout)
    assert whole == SCHEMAS
    one = json.loads(CliRunner().invoke(main, ["schema", "exact"]).stdout)
    assert one == SCHEMAS | {"$ref": "#/$defs/exact"}
    nothing = Draft202012Validator(one).is_valid({})
    assert not nothing
    refuses("'audits'.* did you mean 'audit'", schema_command.callback, "audits")
