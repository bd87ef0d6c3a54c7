"""Replay the corpus, and say how much of it is followed and found at its line.

python -m benchmarks.styles.run [--wrong | --right] [--reported] [NAME ...]
    [--seeds N | --seeds A:B] [--one-in K] [--kept FILE]
    [--domains | --black-box {pair,domain,both} [--releases N]]
python -m benchmarks.styles.run --cost

A black box is attacked on the pair, or on a pair that is found in the domain, within a
minute of processor time. What is kept is a line of JSON for each outcome. Those that
are there are not measured again: so a run goes on where it ended, and processes that
share the seeds (0:10, 10:20) may write to one file. With --one-in K, a seed replays
each K-th mechanism, K seeds in a row all of them. --cost
measures what a release costs in a search: ten of the right versions of reported faults,
20,000 releases a side each; exit code 1 if their median is above twice that with the
pair.
"""

import argparse
import itertools
import json
import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.styles.registry import Style, corpus
from dpaudit.audit import Budget, Run, audit
from dpaudit.audit.replay import replay

SECONDS = 120
ATTACKED = 60
COST, AMONG = 2.0, 10  # of a release in a search, over one with the pair
BYTES = 6 * 2**30


class OutOfTime(BaseException):
    """A replay took too long; no mechanism catches this."""


@dataclass(frozen=True)
class Outcome:
    """What a replay says of one mechanism, from one seed.

    Parameters
    ----------
    name : str
    right : bool
        Whether the claim is true.
    seed : int
    verdict : str
        A verdict of a replay, ``ERROR`` or ``TIME``.
    proof : bool
    first : str
        Whether the first finding is at the line at fault: "yes", "part" for a line that
        takes part, "no", or empty without a finding.
    found : str
        The same of all findings.
    seconds : float
        Processor time.
    findings : tuple of str
        What was found, or the error.
    by : {"replay", "replay-domain", "pair", "domain"}
        The judge: a replay of the pair or of the domain, or a black box given these.
    releases : int
        A side, of a black box.
    """

    name: str
    right: bool
    seed: int
    verdict: str
    proof: bool
    first: str
    found: str
    seconds: float
    findings: tuple[str, ...]
    by: str = "replay"
    releases: int = 0


@contextmanager
def _limited(seconds: int, timer: int = signal.ITIMER_REAL) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise OutOfTime

    signals = {signal.ITIMER_REAL: signal.SIGALRM, signal.ITIMER_PROF: signal.SIGPROF}
    before = signal.signal(signals[timer], stop)
    signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        signal.setitimer(timer, 0)
        signal.signal(signals[timer], before)


def _places(finding: Any) -> list[tuple[str, int]]:
    """Return file and line of a finding on either side."""
    out = []
    for where in (finding.where, finding.where_neighbour):
        file, _, line = str(where).rpartition(":")
        if line.isdigit():
            out.append((os.path.realpath(file), int(line)))
    return out


def _line(style: Style, places: Sequence[tuple[str, int]]) -> str:
    """Return whether places are at fault."""
    if not places:
        return ""
    for word, lines in (("yes", style.faults()), ("part", style.parts())):
        if {(os.path.realpath(file), line) for file, line in lines} & set(places):
            return word
    return "no"


def measure(style: Style, seed: int = 0, *, domains: bool = False) -> Outcome:
    """Replay a mechanism on its pair, or on the domain that it names."""
    where: dict[str, Any] = {"pair": style.pair}
    if domains and style.domain:
        where = {"domain": style.domain, "relation": style.pair.relation}
    began = time.process_time()
    verdict, proof, first, found, said = "ERROR", False, "", "", ()
    try:
        with (
            _limited(SECONDS, signal.ITIMER_PROF),
            _limited(10 * SECONDS),
            warnings.catch_warnings(),
            threadpool_limits(1),
        ):
            warnings.simplefilter("ignore")
            result = replay(
                style.mechanism,
                **where,
                claim=style.claim,
                seed=seed,
                sees=style.sees,
                batches=style.batches,
                budget=Budget(200, seconds=SECONDS / 2),
            )
        verdict, proof = result.verdict.value, result.proof
        said = tuple(str(each) for each in result.findings)
        said += (f"to settle it: {result.remedy}",) if result.remedy else ()
        if not style.right and result.findings:
            places = [_places(each) for each in result.findings]
            first = _line(style, places[0])
            found = _line(style, [place for each in places for place in each])
    except OutOfTime:
        verdict = "TIME"
    except Exception as error:  # whatever it is, the table says so
        said = (f"{type(error).__name__}: {error}",)
    spent = time.process_time() - began
    name, right, by = style.name, style.right, "replay-domain" if domains else "replay"
    return Outcome(name, right, seed, verdict, proof, first, found, spent, said, by)


def attack(
    style: Style, seed: int = 0, *, by: str = "pair", releases: int = 200_000
) -> Outcome:
    """Attack a mechanism as a black box, with its pair or with its domain alone."""
    where: dict[str, Any] = {"pair": style.pair}
    if by == "domain":
        where = {"domain": style.domain, "relation": style.pair.relation}
    began = time.process_time()
    verdict, said, samples = "ERROR", "", 0

    def late() -> bool:
        return time.process_time() - began > ATTACKED

    try:
        with _limited(2 * ATTACKED, signal.ITIMER_PROF), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = audit(
                getattr(style.mechanism, "release", style.mechanism),
                **where,
                claim=style.claim,
                seed=seed,
                budget=releases,
                run=Run(should_stop=late),
            )
        verdict, samples = result.verdict.value, result.samples
        said = f"{result.pairs} pairs, {samples} releases: {result.attack}"
    except OutOfTime:
        verdict = "TIME"
    except Exception as error:  # whatever it is, the table says so
        said = f"{type(error).__name__}: {error}"
    spent = time.process_time() - began
    named, found = (style.name, style.right, seed), (said,)
    return Outcome(*named, verdict, False, "", "", spent, found, by, samples)


def ratios(outcomes: Sequence[Outcome]) -> list[float]:
    """Return what a release costs in a search over one with the pair, in order."""
    costs = {
        by: {
            (each.name, each.seed): each.seconds / each.releases
            for each in outcomes
            if each.by == by and each.releases >= 1_000
        }
        for by in ("pair", "domain")
    }
    both = costs["domain"].keys() & costs["pair"].keys()
    return sorted(costs["domain"][key] / costs["pair"][key] for key in both)


def compared(outcomes: Sequence[Outcome]) -> list[str]:
    """Return how many a black box refutes, and what a release costs in a search."""
    lines = []
    for by in ("pair", "domain"):
        for kind, is_right in (("wrong", False), ("right", True)):
            chosen = [o for o in outcomes if (o.by, o.right) == (by, is_right)]
            n = sum(each.verdict == "REFUTED" for each in chosen)
            spent = sum(each.seconds for each in chosen)
            if chosen:
                share = n / len(chosen)
                lines.append(
                    f"{kind} by {by}: {n} of {len(chosen)} refuted ({share:.1%}), "
                    f"{spent:.1f} processor seconds"
                )
    if both := ratios(outcomes):
        lines.append(
            f"a release by domain costs {median(both):.2f} of one by pair (median of "
            f"{len(both)}; {both[0]:.2f} to {both[-1]:.2f})"
        )
    return lines


def totals(outcomes: Sequence[Outcome]) -> list[str]:
    """Return how many are followed, and how many are found at their line."""
    lines = []

    def say(kind: str, chosen: Sequence[Outcome], words: dict[str, Any]) -> None:
        lines.append(f"{kind}: {len(chosen)}")
        for word, test in words.items():
            n = sum(map(test, chosen))
            lines.append(f"  {word:<52}{n:>5}{n / max(1, len(chosen)):>8.1%}")

    def at(each: Outcome, verdict: str, *words: str) -> bool:
        return each.verdict == verdict and each.first in words

    verdicts = ("NOT_REFUTED", "NOT_FOLLOWED", "REFUTED", "ERROR", "TIME")
    right = [each for each in outcomes if each.right]
    wrong = [each for each in outcomes if not each.right]
    if right:
        say("right", right, {v: lambda o, v=v: o.verdict == v for v in verdicts})
    if wrong:
        found = ("yes", "part")
        words = {
            "REFUTED, first at the line at fault": lambda o: at(o, "REFUTED", "yes"),
            "REFUTED, first at a part of it": lambda o: at(o, "REFUTED", "part"),
            "REFUTED, first at another line": lambda o: at(o, "REFUTED", "no", ""),
            "NOT_FOLLOWED, with a finding at the line or a part": lambda o: (
                o.verdict == "NOT_FOLLOWED" and o.found in found
            ),
            "NOT_FOLLOWED, without": lambda o: (
                o.verdict == "NOT_FOLLOWED" and o.found not in found
            ),
            **{v: lambda o, v=v: o.verdict == v for v in verdicts if "T_F" not in v},
        }
        say("wrong", wrong, words)
    spent = sum(each.seconds for each in outcomes)
    return [*lines, f"processor seconds: {spent:.1f}"]


def seeds(text: str) -> range:
    """Return the seeds 0, ..., N - 1 of N, or A, ..., B - 1 of A:B."""
    first, colon, end = text.partition(":")
    return range(int(first), int(end)) if colon else range(int(text))


def kept_in(file: Path | None) -> list[dict[str, Any]]:
    """Return what a file keeps, one line of JSON for each."""
    if file is None or not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines()]


def keep(file: Path | None, outcome: dict[str, Any]) -> None:
    """Add a line to a file, in one piece."""
    if file is not None:
        with file.open("a") as lines:
            lines.write(json.dumps(outcome) + "\n")


def parser_of_arguments() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--right", action="store_true", help="right mechanisms alone")
    which.add_argument("--wrong", action="store_true", help="wrong mechanisms alone")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seeds", type=seeds, default=range(1), metavar="N|A:B")
    parser.add_argument("--one-in", type=int, default=1, metavar="K")
    parser.add_argument(
        "--domains", action="store_true", help="search in domains where there are any"
    )
    parser.add_argument(
        "--black-box", choices=("pair", "domain", "both"), help="attack, not replay"
    )
    parser.add_argument(
        "--releases", type=int, default=200_000, help="a side, of a black box"
    )
    parser.add_argument("--reported", action="store_true", help="reported faults alone")
    parser.add_argument("--kept", type=Path, metavar="FILE")
    parser.add_argument(
        "--cost", action="store_true", help="measure what a release costs in a search"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="all findings")
    return parser


def tell(style: Style, outcome: Outcome, by: str, *, verbose: bool) -> None:
    """Print a row, and below it what was found where the verdict is another one."""
    expected = "right" if style.right else "wrong"
    print(
        f"{style.name:<37}{expected:<9}{outcome.verdict:<14}"
        f"{outcome.first or by:<6}{outcome.seconds:>8.2f}",
        flush=True,
    )
    if verbose or outcome.verdict != ("NOT_REFUTED" if style.right else "REFUTED"):
        for said in outcome.findings:
            print(f"    {said}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay what is asked for, and print a table."""
    parser = parser_of_arguments()
    options = parser.parse_args(arguments)
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    styles = corpus()
    unknown = set(options.names) - set(styles)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    known = {(e["name"], e["seed"], e["by"]): e for e in kept_in(options.kept)}
    outcomes = []
    twins = {style.twin: None for style in styles.values() if style.twin}
    if options.cost:
        options.names = [*twins][:: len(twins) // AMONG][:AMONG]
        options.black_box, options.releases = "both", 20_000
    places = ("pair", "domain") if options.black_box == "both" else (options.black_box,)
    print(f"{'name':<37}{'expected':<9}{'verdict':<14}{'line':<6}{'seconds':>8}")
    for place, style in enumerate(styles.values()):
        if options.names and style.name not in options.names:
            continue
        if (options.right and not style.right) or (options.wrong and style.right):
            continue
        if options.reported and not style.twin and style.name not in twins:
            continue
        of_it = [s for s in options.seeds if (place + s) % options.one_in == 0]
        for seed, by in itertools.product(of_it, places):
            judge = by or ("replay-domain" if options.domains else "replay")
            if (found := known.get((style.name, seed, judge))) is not None:
                found["findings"] = tuple(found["findings"])
                outcomes.append(Outcome(**found))
                continue
            if by is None:
                outcome = measure(style, seed, domains=options.domains)
            else:
                outcome = attack(style, seed, by=by, releases=options.releases)
            outcomes.append(outcome)
            keep(options.kept, asdict(outcome))
            tell(style, outcome, by or "", verbose=options.verbose)
    said_of = totals if options.black_box is None else compared
    print(*said_of(outcomes), sep="\n")
    return int(options.cost and median(ratios(outcomes)) > COST)


if __name__ == "__main__":
    sys.exit(main())
