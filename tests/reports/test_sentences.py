"""Sentences of sections: what macros are given is what they take, and harmless."""

import ast

import pytest
from jinja2 import meta, nodes

from dpaudit.reports import words

FILES = sorted(words.ROOT.rglob("sentences.j2"))


def called(folder):
    """Yield the macros that modules call, with what is given: all of it, if known."""
    for path in folder.glob("*.py"):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(call, ast.Call):
                continue
            if "sentences" in (getattr(call.func, each, "") for each in ("id", "attr")):
                starred = isinstance(call.args[0], ast.Starred)
                names = call.args[0].value.elts if starred else call.args
                section, about = (each.value for each in names)
                assert section == folder.name
                given = {each.arg for each in call.keywords if each.arg}
                stars = [each.value for each in call.keywords if not each.arg]
                for star in (each for each in stars if isinstance(each, ast.Dict)):
                    given |= {key.value for key in star.keys}
                yield about, given, all(isinstance(each, ast.Dict) for each in stars)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_macros_take_what_functions_give_and_name_nothing_else(file):
    tree = words._templates().parse(file.read_text("utf-8"))
    assert meta.find_undeclared_variables(tree) == set()
    macros = {
        each.name: {argument.name for argument in each.args}
        for each in tree.find_all(nodes.Macro)
    }
    inner = {
        each.node.name
        for each in tree.find_all(nodes.Call)
        if isinstance(each.node, nodes.Name)
    }
    found = list(called(file.parent))
    assert {about for about, *_ in found} == set(macros) - inner
    for about, given, whole in found:
        assert given == macros[about] if whole else given <= macros[about]


def test_a_name_with_breaks_is_one_line_of_a_sentence():
    (told,) = words.sentences(
        *("libraries", "library_notes"), best=[(2, 6, "two\nlines \x1b[31m", 0.5)]
    )
    assert told == (
        "With 2 of 6 components two lines \N{REPLACEMENT CHARACTER}[31m captures most, "
        "50.0 %."
    )
