"""What is missing is named by requirements that hold wherever dpaudit came from."""

import tomllib
from importlib import metadata
from pathlib import Path
from unittest.mock import Mock

import pytest
from packaging.requirements import Requirement

from dpaudit import extras
from dpaudit.algorithms import CATALOGUE
from dpaudit.extras import how_to_install

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
ASKED_FOR = sorted({each.extra for each in CATALOGUE.values() if each.extra})


@pytest.fixture
def declared(monkeypatch):
    """Let the installed metadata be what pyproject.toml makes of them."""
    lines = ["numpy>=2.0"]
    for name, requirements in EXTRAS.items():
        lines += [f'{each}; extra == "{name}"' for each in requirements]
    monkeypatch.setattr(extras, "requires", lambda name: lines)


@pytest.mark.parametrize("extra", ASKED_FOR)
def test_the_requirements_of_an_extra_are_named_and_no_others(declared, extra):
    command = how_to_install(extra)
    assert command.startswith("pip install '")
    named = command.removeprefix("pip install '").removesuffix("'").split("' '")
    wanted = [str(Requirement(each)) for each in EXTRAS[extra]]
    assert [str(Requirement(each)) for each in named] == wanted
    assert "dpaudit" not in command
    assert how_to_install("some-library") == "pip install 'some-library'"


def test_a_checkout_on_the_path_names_the_package(monkeypatch):
    nowhere = Mock(side_effect=metadata.PackageNotFoundError("dpaudit"))
    monkeypatch.setattr(extras, "requires", nowhere)
    assert how_to_install("opendp") == "pip install 'opendp'"
