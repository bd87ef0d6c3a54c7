"""The density of transcripts over secret batches, and their losses.

Given the flips of the rows that both datasets have, what is shown over one batch has a
mixture of two densities: `dpaudit.audit.replay.judge.sampled` says why, and whom that
is about.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.execute.executor import Trace
from dpaudit.audit.replay.follow.observations import Observation, Observations
from dpaudit.audit.replay.follow.places import Unfollowed
from dpaudit.audit.replay.judge.judgement import Findings
from dpaudit.audit.replay.judge.sampled import Shapes, Side, owners
from dpaudit.audit.replay.judge.transcript import Transcript
from dpaudit.audit.replay.laws.amplification import SampledComparison
from dpaudit.audit.replay.laws.comparison import AnyLaw, compare, loss
from dpaudit.neighbours import Pair

__all__ = ["mixed_losses", "sampled_transcript"]


@dataclass(eq=False)
class Mixture:
    """The density of what was shown over one batch, as a mixture of two.

    In units of a law of reference for each value, logarithms of densities are
    0 without noise that differs, and -inf where a law is singular to it.
    """

    weights: Array
    logs: Array = field(default_factory=lambda: np.zeros(2))

    def add(
        self,
        laws: tuple[AnyLaw, AnyLaw],
        of: AnyLaw,
        value: Array,
    ) -> None:
        """Add a value, given its laws and the one of reference."""
        self.logs = self.logs + [_relative(law, of, value) for law in laws]

    @property
    def log(self) -> float:
        """The logarithm of the density."""
        possible = self.weights > -np.inf
        return float(np.logaddexp.reduce((self.weights + self.logs)[possible]))


def _relative(law: AnyLaw, of: AnyLaw, value: Array) -> float:
    # The value was drawn from the latter, so the law may lack it, and not that one.
    return -loss(of, law, value)


def mixed_losses(
    here: Side,
    there: Side,
    values: list[Observation],
    over: Mapping[int, int | None],
    release: Array,
    of: Trace,
) -> Iterator[float]:
    """Yield the losses of values, of flips, and of the release, as far as both go.

    Parameters
    ----------
    here, there : Side
    values : list of Observation
        Of the transcript; the flips being those of the common rows, flat.
    over : Mapping
        The flips that each value depends on.
    release : ndarray
    of : Trace
        Whose laws the values were drawn from.
    """
    mixtures: dict[int | None, tuple[Mixture, Mixture]] = {}
    before: dict[int | None, float] = {}
    for number in (*range(len(values)), -1):
        value = release if number < 0 else values[number].value
        if number in here.shapes:
            rest = [each.rest(number).log_probability(value) for each in (here, there)]
            yield rest[0] - rest[1]
            continue
        batch = over[number]
        if batch not in mixtures:
            first, second = (Mixture(each.weights(batch)) for each in (here, there))
            mixtures[batch] = first, second
        for mixture, side in zip(mixtures[batch], (here, there), strict=True):
            mixture.add(side.laws(number), of.law_of(number), value)
        first, second = mixtures[batch]
        after, past = first.log - second.log, before.get(batch, 0.0)
        yield 0.0 if after == past else after - past
        before[batch] = after


def sampled_transcript(
    pair: Pair, trace: Trace, shapes: tuple[Shapes, Shapes], findings: Findings
) -> Transcript:
    """Return the transcript of an execution on D, held against D'.

    Parameters
    ----------
    pair : Pair
    trace : Trace
    shapes : tuple of Shapes
        Of the flips by row on D, and on D'.
    findings : Findings
        Takes what is found.

    Raises
    ------
    NotThroughNoise
    """
    place, _ = pair.changed
    values = list(trace.tape.observations)
    bits = np.zeros(len(shapes[0]), dtype=bool)
    for turn, number in enumerate(shapes[0]):
        flips = values[number].value
        if place is not None:
            bits[turn] = flips[place]
            flips = np.delete(flips, place)
        values[number] = replace(values[number], value=flips)
    here, there = (
        Side.of(partial(_again, trace, data), trace.tape.seed, values, at, each)
        for data, at, each in zip(
            (pair.data, pair.neighbour), pair.changed, shapes, strict=True
        )
    )
    executions = here.executions, there.executions
    here.others.append((trace, bits))
    over = owners(here, there)
    made = Transcript(trace, findings, executions=executions, sampled=True)
    made.unfollowed = [*here.unfollowed, *there.unfollowed]
    others = there.without.tape.observations
    losses = mixed_losses(here, there, values, over, trace.value, trace)
    groups: dict[int | None, SampledComparison] = {}
    for number, (one, other) in enumerate(zip(values, others, strict=False)):
        found = next(losses)
        if number in here.shapes:
            _add_flips(made, here, there, number, found)
        else:
            step = _compared(here, there, number, over[number])
            _add_value(made, one.place, step, found)
            made.may_hide(one, *step.both, *step.rest)
            groups[over[number]] = _joined(groups.get(over[number]), step)
            for compared in (*step.both, *step.rest):
                made.find(compared, one.place, other.place)
    if made.comes_to_an_end(there.without):
        step, found = _compared(here, there, -1, over[-1]), next(losses)
        (both,), (rest,) = step.both, step.rest
        if both.singular and rest.singular:
            made.end_otherwise(rest)
        elif len(both.shift) or not both.known or found:
            _add_value(made, made.end, step, found)
            groups[over[-1]] = _joined(groups.get(over[-1]), step)
    made.composed.extend(groups.values())
    return made


def _again(trace: Trace, data: Array, script: Observations) -> Trace:
    return trace.again(data=data, script=script)


def _compared(
    here: Side, there: Side, number: int, batch: int | None
) -> SampledComparison:
    """Compare the laws of a value on the two sides."""
    sides = [each for each in (here, there) if each.place is not None]
    rates = tuple(float(np.exp(each.weights(batch)[1])) for each in sides)
    (out, within), (out2, within2) = here.laws(number), there.laws(number)
    moves = tuple((compare(*side.laws(number)),) for side in sides)
    return SampledComparison(
        rates, (compare(out, out2),), (compare(within, within2),), moves
    )


def _joined(
    batch: SampledComparison | None, step: SampledComparison
) -> SampledComparison:
    return step if batch is None else batch.joined(step)


def _add_flips(
    made: Transcript, here: Side, there: Side, number: int, found: float
) -> None:
    """Add flips by row; those of the common rows are to have the same law."""
    compared = compare(here.rest(number), there.rest(number))
    if compared.moved:
        place = made.trace.tape.observations[number].place
        made.add(place, compared, found)
        made.coins.append(
            Unfollowed(place, "rows are drawn with other probabilities on D'")
        )


def _add_value(
    made: Transcript, place: str, step: SampledComparison, found: float
) -> None:
    (both,), (rest,) = step.both, step.rest
    made.add_part(place, both, found, of=step)
    moves = [each for side in step.moves for each in side]
    if any(each.singular for each in moves):
        made.coins.append(
            Unfollowed(place, "a number without noise depends on the batch")
        )
    if not any(each.moved for each in (both, rest, *moves)):
        made.unmoved[place] = None
