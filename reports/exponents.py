"""Measure the rates of streaming PCA alone: ``python -m dpaudit.reports.exponents``.

It prints the exponents that the report shows, and what explains those that miss their
targets. The options are ``--profile``, as for ``dpaudit report``, and ``--seed``.
"""

import argparse
import sys
from collections.abc import Sequence

from dpaudit.errors import InputError
from dpaudit.reports.experiment import run
from dpaudit.reports.experiments import Profile, plan
from dpaudit.reports.profiles import profile_named
from dpaudit.reports.rate_findings import (
    miss_notes,
    rate_rows,
    signal_notes,
    size_notes,
)
from dpaudit.reports.rates import Rate, rates, streaming_errors

__all__ = ["main", "measured"]


def measured(profile: Profile, seed: int) -> dict[str, Rate]:
    """Carry out the experiments and return the exponents by their keys."""
    chosen = [each for each in plan(profile, seed) if each.measure is streaming_errors]
    return rates({each.name: run(each) for each in chosen})


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the exponents, and return 0; 2 if an option is wrong."""
    parser = argparse.ArgumentParser(prog="python -m dpaudit.reports.exponents")
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    try:
        found = measured(profile_named(given.profile), given.seed)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{'exponent of':28} {'measured':>8}  {'95 % interval':18} {'target':12} ")
    for row in rate_rows(found):
        kept = "met" if row.met else "missed"
        print(
            f"{row.name:28} {row.exponent:>8}  {row.interval:18} {row.target:12} "
            f"{kept:8} {row.setting}"
        )
    print()
    for note in (*size_notes(found), *signal_notes(found), *miss_notes(found)):
        print(note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
