"""What is written as JSON keeps to the schemas that ship with dpaudit."""

import json
from importlib.resources import files
from pathlib import Path

from jsonschema import Draft202012Validator

SCHEMAS = json.loads(files("dpaudit").joinpath("schemas.json").read_text())


def validator(name):
    return Draft202012Validator(SCHEMAS | {"$ref": f"#/$defs/{name}"})


def check(name, found):
    """Fail unless a document is what its schema says."""
    validator(name).validate(found)


def check_printed(arguments, result):
    """Check what a command printed as JSON, and the witness that it wrote."""
    arguments = list(arguments)
    if result.exit_code in (2, 3) and not result.stdout:
        return
    if "--json" in arguments and "--help" not in arguments:
        name = "report-diff" if arguments[0] == "report" else arguments[0]
        check(name, json.loads(result.stdout))
    if arguments[:1] == ["audit"] and "--witness" in arguments:
        path = Path(arguments[arguments.index("--witness") + 1])
        if result.exit_code == 1 and path.is_file():
            check("witness", json.loads(path.read_text(encoding="utf-8")))
