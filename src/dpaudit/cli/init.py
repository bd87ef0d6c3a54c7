"""``dpaudit init``: a first audit to start from."""

from pathlib import Path

import click

from dpaudit.cli.exits import Command
from dpaudit.errors import InputError
from dpaudit.printable import printable

__all__ = ["EXAMPLE", "init_command"]

_NAME = "test_my_mechanism.py"

EXAMPLE = '''\
"""Audits of a mechanism: change what is marked with (1) to (4), and run pytest.

The fixture `auditor` comes with dpaudit. A test that passes says "not refuted", which
is not "private": the summary at the end of the session says what each audit could have
seen. If a claim is refuted, the test fails, and names a witness that
`dpaudit verify` replays on fresh randomness.
"""

import numpy as np
import pytest

from dpaudit import Pair, PureDP

# (1) The promise. Others: ApproxDP(epsilon, delta), GaussianDP(mu),
#     ZeroConcentratedDP(rho).
CLAIM = PureDP(1.0)

# (2) Two datasets that differ in one person, whose privacy is at its worst as far as
#     you know: here somebody joins whose number is as large as numbers get.
PAIR = Pair([[0.2], [0.7]], [[0.2], [0.7], [1.0]])


# (3) The mechanism: a function of (data, rng) that returns numbers. Data are the rows
#     of one of the datasets, and rng is the only randomness that it may use. For an
#     estimator or a program in any language see dpaudit.adapters.
def noisy_sum(data, rng):
    """Sum numbers in [0, 1]: one person changes the sum by 1 at most."""
    return np.clip(data, 0.0, 1.0).sum() + rng.laplace(scale=1.0)


def test_noisy_sum_keeps_its_claim(auditor):
    auditor.assert_dp(noisy_sum, claim=CLAIM, pair=PAIR)


# Rows of one number in [0, 1]: the audit looks for the neighbours that tell the most.
# That takes longer, so that it gets fewer releases here.
@pytest.mark.dp_audit(budget=500)
def test_noisy_sum_keeps_its_claim_on_pairs_that_are_searched_for(auditor):
    auditor.assert_dp(noisy_sum, claim=CLAIM, domain="box:0,1:1", relation="add-remove")


# (4) A mistake on purpose. If the audit cannot see it, it could not have seen it above
#     either: give it more releases, or a worse pair.
def noisy_sum_with_half_the_noise(data, rng):
    return np.clip(data, 0.0, 1.0).sum() + rng.laplace(scale=0.5)


def test_the_audit_sees_that_noise_is_missing(auditor):
    auditor.assert_refuted(noisy_sum_with_half_the_noise, claim=CLAIM, pair=PAIR)
'''


@click.command(
    "init",
    cls=Command,
    examples=("dpaudit init && pytest test_my_mechanism.py",),
)
@click.argument(
    "path", default=Path(_NAME), metavar="[PATH]", type=click.Path(path_type=Path)
)
def init_command(path: Path) -> None:
    """Write an example of a test that audits a mechanism.

    PATH is a file or a folder [test_my_mechanism.py]; no file is overwritten.
    """
    if path.is_dir():
        path /= _NAME
    if path.suffix != ".py":
        raise InputError(f"the name of the test must end in .py, got {str(path)!r}")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(EXAMPLE)
    except FileExistsError:
        raise InputError(f"{str(path)!r} exists, and is not overwritten") from None
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from error
    shown = printable(path)
    click.echo(f"wrote {shown}: run pytest {shown}")
