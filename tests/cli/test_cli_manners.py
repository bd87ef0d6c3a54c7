import json
import os

import click
import pytest
from cli_cases import assert_refused, run
from click.testing import CliRunner

from dpaudit.algorithms import CATALOGUE
from dpaudit.cli import main

NOISE = ("audit", "symmetric-noise", "--max-samples", "60", "--refine", "0")


def commands(group=main, path=()):
    for name, command in group.commands.items():
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


@pytest.mark.parametrize("path", [path for path, _ in commands()], ids=" ".join)
def test_help_is_also_h(path):
    short, long = run(*path, "-h"), run(*path, "--help")
    assert short.exit_code == long.exit_code == 0
    assert short.stdout == long.stdout


def test_every_help_has_examples_with_options_that_exist():
    """Each is parsed by the command that it calls, which is not run."""
    for path, command in [((), main), *commands()]:
        assert command.examples, f"dpaudit {' '.join(path)}"
        for example in command.examples:
            words = example.partition("&&")[0].split()
            assert words[0] == "dpaudit"
            assert example in run(*path, "-h").stdout
            group, rest = main, words[1:]
            while isinstance(group, click.Group) and rest and rest[0] in group.commands:
                group, rest = group.commands[rest[0]], rest[1:]
            group.make_context(group.name, rest, resilient_parsing=True)
            known = {o for p in group.params for o in p.opts}
            assert {word for word in rest if word.startswith("--")} <= known


def test_lists_are_narrowed_and_shells_complete_names():
    def names(*options):
        return [
            each["name"] for each in json.loads(run("list", "--json", *options).stdout)
        ]

    refuted = [name for name, entry in CATALOGUE.items() if entry.expected_refuted]
    assert names("--refuted") == refuted
    assert names("--not-refuted") == [name for name in CATALOGUE if name not in refuted]
    some = names("--search", "WiShArT")
    assert "symmetrised-wishart" in some
    assert "laplace" not in some
    assert set(names("--refuted", "--family", "textbook")) < set(refuted)
    assert names("--search", "nothing has this") == []
    assert "goe-gaussian" in names("--search", "replace-one")  # of every column
    assert "opendp-laplace" in names("--search", "OpenDP")
    for options in ((), ("--json",), ("--markdown",)):
        empty = run("list", "--family", "covariance", "--search", "oja", *options)
        assert (empty.exit_code, "see all with" in empty.stderr) == (0, True)
        assert ("name" in empty.stdout) == (options == ("--markdown",))
    asked = {"_DPAUDIT_COMPLETE": "bash_complete", "COMP_CWORD": "2"}
    runner = CliRunner(env=asked | {"COMP_WORDS": "dpaudit audit symmetr"})
    done = runner.invoke(main, prog_name="dpaudit")
    assert done.exit_code == 0
    found = {line.partition(",")[2] for line in done.stdout.splitlines()}
    assert found == {name for name in CATALOGUE if name.startswith("symmetr")}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full disk")
@pytest.mark.parametrize("option", ["--witness", "--html", "--format"])
def test_a_verdict_is_told_although_the_disk_is_full(option):
    """It may have taken hours; what cannot be written is an error all the same."""
    done = run(*NOISE, option, f"{'sarif=' * (option == '--format')}/dev/full")
    assert "REFUTED" in done.stdout
    assert "witness written" not in done.stdout
    assert done.exit_code == 2
    assert done.stderr == "dpaudit: cannot write '/dev/full': No space left on device\n"


def test_a_page_of_one_audit(tmp_path):
    page = tmp_path / "one.html"
    done = run(*NOISE, "--html", str(page))
    assert done.exit_code == 1
    text = page.read_text(encoding="utf-8")
    for line in done.stdout.splitlines():
        assert line.split("  ")[-1].strip().replace("'", "&#39;") in text
    nowhere = str(tmp_path / "no" / "one.html")
    assert_refused(run(*NOISE, "--html", nowhere), "cannot write")
    exact = run("audit", "laplace", "--layer", "exact", "--html", str(page))
    assert_refused(exact, "--html and --format are not for --layer exact")
