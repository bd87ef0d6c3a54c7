"""Executions in which noisy values were looked at: transcripts, and their losses."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import partial, reduce
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from dpaudit.audit.replay.execute.executor import Trace, in_any_order
from dpaudit.audit.replay.follow.observations import Observation, Shapes, Unfollowed
from dpaudit.audit.replay.judge.held import PairLosses
from dpaudit.audit.replay.judge.judgement import (
    Finding,
    Findings,
    Judgement,
    Repeat,
    Step,
)
from dpaudit.audit.replay.judge.lines import Lines
from dpaudit.audit.replay.judge.sampled import (
    NotThroughNoise,
    SecretBatches,
    Side,
    flips_by_row,
)
from dpaudit.audit.replay.judge.transcript import FLIP_HIDDEN, Transcript, handed
from dpaudit.audit.replay.judge.ways import Ways
from dpaudit.audit.replay.laws.amplification import SampledComparison
from dpaudit.audit.replay.laws.coded import Family
from dpaudit.audit.replay.laws.comparison import compare
from dpaudit.audit.replay.laws.composition import Composition, most_loss, pure_epsilon
from dpaudit.errors import UnsupportedError
from dpaudit.neighbours import Pair
from dpaudit.printable import told_apart

__all__ = ["judge_closed"]

_NOT_KNOWN = "noise of a form whose law is not known"
_BY_BATCH = (
    "the scale of the noise is {} without the row that differs, and {} with it in the "
    "batches"
)
_ALIKE = "what is looked at here is alike on D and D', and may hide what differs"
_UNIT = " (log-ratios of probabilities, in the unit of an epsilon; claimed is {})"
_SAMPLED = "a primitive that is not trusted is not audited beside secret batches"


def judge_closed(judgement: Judgement, first: Trace, second: Trace) -> None:
    """Replay the noisy values of either side on the other, and sum up their losses.

    Parameters
    ----------
    judgement : Judgement
        Takes the findings.
    first, second : Trace
        Executions on D and on D'.
    """
    judgement.executions = 3
    if judgement.fails_alike(first, second):
        return
    _confirm(judgement, first, second)
    try:
        there, here = _both_ways(judgement, first, second)
    except NotThroughNoise as error:
        _remember(judgement, first, second, error)
        return
    if first.tape.untrusted:
        _hand_on(judgement, first, there)
    claim, seen, costly = judgement.claim, judgement.sees == "transcript", None
    spent = Composition.of(there.composed), Composition.of(here.composed)
    losses, most = (there.loss, here.loss), most_loss(claim)
    held = PairLosses.of(claim, spent, losses, sampled=there.sampled and seen)
    if seen and most < np.inf and not held.over:
        costly = _may_exceed(there, most) or _may_exceed(here, most)
        if costly is not None:
            held = held._replace(over=True, stands=False)
    judgement.loss = held.loss + held.promised
    if held.unknown:
        judgement.followed = False
        unknown = (each for each in (there, here) if each.unknown_at is not None)
        for way in islice(unknown, 1):
            judgement.find("coin", way.unknown_place, _NOT_KNOWN)
    if judgement.followed and held.stands:
        judgement.delta = Composition.added(claim, spent)
        return
    judgement.exceeds, judgement.suspicious = held.exceeds, True
    judgement.bare = judgement.loss == np.inf
    if there.loss == there.loss and not here.loss > there.loss:
        judgement.again = _once_more(judgement.pair, first, second, there.loss)
    else:
        judgement.again = _once_more(judgement.pair.swapped, second, first, here.loss)
    coins = [*first.tape.coins, *second.tape.coins, *there.coins, *here.coins]
    if held.loss == np.inf:
        coins += [Unfollowed(at, _ALIKE) for at in (*there.unmoved, *here.unmoved)]
    _explain(judgement, held, (there, here), costly, coins)
    _put_in_order(judgement, (first, second), hidden=there.hidden)
    judgement.transcripts = judgement.followed and not held.promised
    judgement.proven = judgement.followed = bool(
        judgement.followed and seen and held.over
    )
    if judgement.proven:
        judgement.findings = judgement.findings.with_proof(True)


def _confirm(judgement: Judgement, first: Trace, second: Trace) -> None:
    """Execute plainly, and note where an execution that follows gave something else."""
    for trace in (first, second):
        plain = trace.plainly()
        trace.returned = plain.returned
        judgement.forms.append(plain.form)
        unfollowed = [*trace.tape.unfollowed, *plain.tape.unfollowed]
        if unfollowed or not trace.agrees(plain, rtol=1e-7, atol=1e-9):
            judgement.unconfirmed(unfollowed, trace)


def _both_ways(
    judgement: Judgement, first: Trace, second: Trace
) -> tuple[Transcript, Transcript]:
    """Give what was seen on D back on D', and the other way round."""
    pair = judgement.pair
    there = _given_back(pair, first, second, judgement.findings)
    back = Findings()
    here = _given_back(pair.swapped, second, first, back)
    if here.loss == np.inf and all(e.kind == "coin" for e in judgement.findings):
        judgement.findings.extend(back.swapped())  # what is impossible on D alone
    judgement.sampled, judgement.steps = there.sampled, there.steps
    # The other dataset one way round is the own one the other way.
    ways = zip(there.executions, reversed(here.executions), strict=True)
    judgement.executions = 2 + max(sum(way) for way in ways)
    for each in (*there.unfollowed, *here.unfollowed):
        judgement.suspect("coin", each.place, each.why)
    return there, here


def _hand_on(judgement: Judgement, first: Trace, there: Transcript) -> None:
    """Hand on primitives that are not trusted, which are audited by themselves."""
    judgement.untrusted, others = handed(judgement.pair, first)
    judgement.executions += 3
    if there.sampled:
        others += [Unfollowed(each.where, _SAMPLED) for each in judgement.untrusted]
    for each in others:
        judgement.suspect("coin", each.place, each.why)


def _explain(
    judgement: Judgement,
    held: PairLosses,
    ways: tuple[Transcript, Transcript],
    costly: tuple[Step, float] | None,
    coins: list[Unfollowed],
) -> None:
    """Say which steps cost more than the claim has, and what is not followed."""
    there, _ = ways
    if costly is not None:
        step, judgement.loss = costly
        judgement.find("distance", step.place, step.words)
    elif held.may_exceed or (held.over and (held.finite or not judgement.findings)):
        _find_costs(judgement, max(ways, key=lambda each: each.loss))
    for each in list(dict.fromkeys(coins))[:5]:
        judgement.suspect("coin", each.place, each.why)
    if coins and there.hidden and there.lines is not None:
        scales = there.lines.any_scale()
        if scales is not None:
            judgement.findings.add_scale(*scales)


def _put_in_order(
    judgement: Judgement, sides: tuple[Trace, Trace], *, hidden: bool
) -> None:
    """Put what differs before what is not followed.

    But where numbers of the release have noise that is not followed, draws that are
    used as ordinary numbers go first: they are it.
    """
    drawn = {(each.place, each.why) for side in sides for each in side.tape.coins}

    def rank(finding: Finding) -> int:
        if finding.kind == "coin":
            coin = (finding.where, finding.message) in drawn
            coin |= finding.message == FLIP_HIDDEN
            return 1 if coin and hidden else 3
        return 2 if hidden and finding.kind == "release" else 0

    judgement.findings.sort(key=rank)


def _may_exceed(transcript: Transcript, most: float) -> tuple[Step, float] | None:
    """Return a step that could have cost more than a claim allows, and how much.

    Given the values before it, of a finite loss l, a value has a known law on either
    side. If the supremum s of its loss is infinite, or symmetric, then values of loss
    above most - l have positive probability, for all values before it that are near
    those that were drawn. So the transcript up to there, which is a function of the
    whole, breaks a pure claim if l + s > most, whatever is promised of later values.
    """
    spent = 0.0
    pairs = zip(transcript.steps, transcript.by_step, strict=False)
    for number, (step, compared) in enumerate(pairs):
        if isinstance(compared, SampledComparison) or compared.bound is not None:
            return None
        supremum = compared.supremum
        choice = bool((compared.family == Family.CHOICE).any())
        symmetric = not compared.scales_differ and not (choice and spent)
        symmetric |= supremum == np.inf
        if symmetric and compared.suprema is None and spent + supremum > most:
            place = transcript.place_of_step(number)
            possible = replace(step, place=place, loss=float(supremum))
            return None if compared.singular else (possible, spent + supremum)
        spent += step.loss
        if not np.isfinite(spent):
            return None
    return None


def _given_back(
    pair: Pair, trace: Trace, other: Trace, findings: Findings
) -> Transcript:
    """Return the transcript of an execution on D, given back on D'."""
    shapes = flips_by_row(pair, trace, other)
    if shapes[0] and not trace.tape.mode.public:
        return _sampled_transcript(pair, trace, shapes, findings)
    again = trace.again(data=pair.neighbour, script=trace.tape.observations)
    return Transcript.of(trace, again, findings)


def _once_more(pair: Pair, trace: Trace, other: Trace, known: float) -> Repeat:
    """Return what gives the transcript of D back again, on D and on D'."""

    def on_its_own() -> bool:
        own = trace.again(script=trace.tape.observations)
        here = Transcript.of(trace, own, Findings())
        moved = any(
            isinstance(each, SampledComparison) or each.moved or each.scales_differ
            for each in here.by_step
        )
        return not (here.unfollowed or moved or here.loss == np.inf)

    def on_the_other() -> tuple[int, int] | None:
        try:
            there = _given_back(pair, trace, other, Findings())
        except NotThroughNoise:
            return None
        alike = bool(np.isclose(there.loss, known, rtol=1e-6, equal_nan=True))
        return there.executions if alike and not there.unfollowed else None

    def again(turn: int) -> tuple[bool, int]:
        # All executions count, in either order.
        seed = trace.tape.seed
        alike, executions = in_any_order(seed, turn, on_its_own, on_the_other)
        one, two = (0, 1) if executions is None else executions
        return alike and executions is not None, max(1 + one, two)

    return again


def _find_costs(judgement: Judgement, worst: Transcript) -> None:
    """Say which steps cost more than the claim has, or that together they do."""
    pure, losses = pure_epsilon(judgement.claim), worst.steps.losses
    if not worst.steps:
        return
    costly: Iterable[tuple[int, float]]
    if pure is not None:
        above = np.flatnonzero(losses > pure)
        costly = zip(above.tolist(), losses[above].tolist(), strict=True)
    else:
        costly = (
            (number, compared.supremum)
            for number, compared in enumerate(worst.by_step)
            if Composition.of([compared]).refutes(judgement.claim)
        )
    known = np.where(np.isnan(losses), -np.inf, losses)
    alone = [
        replace(worst.steps[at], place=worst.place_of_step(at), loss=lost)
        for at, lost in islice(costly, 5)
    ]
    judgement.find_costs(
        alone,
        worst.place_of_step(int(np.argmax(known))),
        f"{len(worst.steps)} steps add up to {judgement.loss:.6g}"
        + ("" if pure is not None else _UNIT.format(judgement.claim))
        + ", and may be more than is claimed" * judgement.exceeds,
    )


def _sampled_transcript(
    pair: Pair, trace: Trace, shapes: tuple[Shapes, Shapes], findings: Findings
) -> Transcript:
    """Return the transcript of an execution on D, held against D'.

    Given are also the shapes of the flips by row, on D and on D'. `NotThroughNoise` is
    raised where the code remembers batches.
    """
    values, bits = _of_others(pair, trace, shapes[0])
    here, there = (
        Side.of(ways, trace.tape.seed, values) for ways in _ways(pair, trace, shapes)
    )
    executions = here.executions, there.executions
    here.others.append((trace, bits))
    batched = SecretBatches(here, there)
    made = Transcript(trace, findings, executions=executions, sampled=True)
    made.unfollowed = [*here.unfollowed, *there.unfollowed]
    made.lines = Lines(here.within, there.within)
    others = there.without.tape.observations
    losses = batched.losses(values, trace.value, trace)
    batches: defaultdict[int | None, list[SampledComparison]] = defaultdict(list)
    for number, (one, other) in enumerate(zip(values, others, strict=False)):
        found = next(losses)
        if number in here.shapes:
            compared = compare(here.rest(number), there.rest(number))
            if compared.moved:  # the flips of the rows that both have
                made.add(one.place, compared, found)
                made.coin(one.place, "rows are drawn with other probabilities on D'")
        else:
            step = batched.compared(number)
            made.add_sampled(one.place, step, found)
            made.may_hide(one, *step.both, *step.rest)
            batches[batched.over[number]].append(step)
            for compared in (*step.both, *step.rest):
                made.find(compared, here.within.law_of(number), one.place, other.place)
    if made.comes_to_an_end(there.without):
        step, found = batched.compared(-1), next(losses)
        (both,), (rest,) = step.both, step.rest
        if both.singular and rest.singular:
            made.end_impossibly(rest)
        elif len(both.shift) or not both.known or found:
            made.add_sampled(made.end, step, found)
            batches[batched.over[-1]].append(step)
    made.composed += [reduce(SampledComparison.joined, e) for e in batches.values()]
    return made


def _of_others(
    pair: Pair, trace: Trace, shapes: Shapes
) -> tuple[list[Observation], NDArray[np.bool_]]:
    """Return a transcript with the flips of all rows but one, and those of this row."""
    place, _ = pair.changed
    values = list(trace.tape.observations)
    bits = np.zeros(len(shapes), dtype=bool)
    for turn, number in enumerate(shapes):
        flips = values[number].value
        if place is not None:
            bits[turn] = flips[place]
            flips = np.delete(flips, place)
        values[number] = replace(values[number], value=flips)
    return values, bits


def _ways(pair: Pair, trace: Trace, shapes: tuple[Shapes, Shapes]) -> list[Ways]:
    """Return what gives a transcript back on D, and on D'."""
    sides = zip((pair.data, pair.neighbour), pair.changed, shapes, strict=True)
    return [Ways(partial(trace.again, data=x), at, each) for x, at, each in sides]


def _remember(
    judgement: Judgement, first: Trace, second: Trace, error: NotThroughNoise
) -> None:
    """Note that the code remembers batches: losses are those over all ways, if few."""
    judgement.sampled, followed = True, judgement.followed
    judgement.remembers = True
    scales = Lines(*error.traces).any_scale(bare=False)
    if scales is not None:
        text = _BY_BATCH.format(*told_apart(*scales[1:], 6))
        judgement.find("scale", scales[0], text)
    pair, claim = judgement.pair, judgement.claim
    shapes = flips_by_row(pair, first, second)
    values, _ = _of_others(pair, first, shapes[0])
    ways = _ways(pair, first, shapes)

    def lost(turn: int) -> float:
        try:
            groups = ways[ways[0].place is None].groups(values)
            return abs(ways[0].loss(ways[1], values, first.value, groups, turn))
        except UnsupportedError:
            return np.nan

    def again(turn: int) -> tuple[bool, int]:
        alike = np.isclose(lost(turn), judgement.loss, rtol=1e-6)
        return bool(alike), judgement.executions

    judgement.loss = np.nan
    if judgement.sees == "transcript" and followed and not first.tape.coins:
        judgement.loss = lost(0)  # that way round or the other
    if np.isnan(judgement.loss):
        judgement.suspect("coin", error.place, error.why)
        return
    judgement.suspect("budget", error.place, error.why)
    judgement.transcripts, judgement.again = True, again
    judgement.executions += 2 ** min(len(shapes[0]), 5)
    judgement.proven = judgement.loss > most_loss(claim)
    judgement.bare = not np.isfinite(judgement.loss)
