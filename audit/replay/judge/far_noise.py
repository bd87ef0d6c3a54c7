"""Noise that is farther out than what was drawn, and what the code does with it.

Code that draws again until something holds, or cuts at an exact number, does so for
some noise alone, and a few executions may have seen none of it. So values that have a
density everywhere are given to the code three scales away from where they would lie
without noise. What comes out proves nothing: where the two sides part, or values that
were drawn again cost more than is claimed, releases have to decide.

Nor does a typical value tell what one far out costs, where the loss has no bound: that
of noise whose scale depends on the data, or of Gaussian noise under a pure claim. Code
that prints such a value shows the tail. So each of them is placed where its loss is
above the claim, and twice as far out. If that shows in the release, the claim is
suspicious, as no rounding hides a tail (`dpaudit.audit.replay.laws.rounded`); what the
code does between is not known, so that it is no proof. If the release stays what it is
(the value is clipped, or compared with a number), nothing is said.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.execute.executor import Trace
from dpaudit.audit.replay.follow.observations import Observation, Observations
from dpaudit.audit.replay.judge.judgement import Findings, Judgement
from dpaudit.audit.replay.judge.lines import Lines
from dpaudit.audit.replay.judge.transcript import Transcript
from dpaudit.audit.replay.laws.affine import AffineLaw
from dpaudit.audit.replay.laws.coded import Family
from dpaudit.audit.replay.laws.comparison import compare, losses
from dpaudit.audit.replay.laws.composition import most_loss

__all__ = ["look_at_tails", "look_far"]

_FAR, _FARTHEST = 3.0, 1e6
_EVERYWHERE = (Family.LAPLACE, Family.GAUSSIAN)
_TAILED = (*_EVERYWHERE, Family.LOGISTIC, Family.GUMBEL)
_MOST_TRIED = 8  # noisy values, either way round
_AGAIN = "noise decides whether another value is drawn, and {} of them lose {:.4g}"
_TAIL = (
    "the loss has no bound, and is {:.4g} of noise that is {:.4g} scales out, which "
    "the release shows"
)


def look_far(judgement: Judgement, first: Trace, second: Trace) -> None:
    """Give noisy values of D, farther out, to both sides, and note what differs.

    Parameters
    ----------
    judgement : Judgement
        Of a pure claim about the release. Takes the findings.
    first, second : Trace
        Executions on D and on D'.
    """
    seen = first.tape.observations
    for sign in (1.0, -1.0):
        given = [_moved(each, sign) for each in seen[:1]]
        if not given or any(each is None for each in given):
            return
        script = Observations(each for each in given if each is not None)
        far = first.again(script=script, goes_on=True)
        found = Findings()
        again = second.again(script=far.tape.observations)
        judgement.executions += 1
        made = Transcript.of(far, again, found)
        stays = not (made.coins or made.unfollowed or far.tape.script.diverged)
        drawn = len(far.tape.observations)
        if stays and made.loss == np.inf:
            judgement.followed, judgement.suspicious = False, True
            judgement.findings.extend(found)
        elif stays and drawn > len(seen) and made.loss > most_loss(judgement.claim):
            where, _ = Lines(first, far).structure() or (made.steps[0].place, "")
            judgement.suspect("budget", where, _AGAIN.format(drawn, made.loss))


def look_at_tails(judgement: Judgement, first: Trace, second: Trace) -> None:
    """Give noisy values whose loss has no bound to the code where it is too large.

    Parameters
    ----------
    judgement : Judgement
        Of a pure claim about the release. Takes the findings.
    first, second : Trace
        Executions on D and on D'.
    """
    for one, other in ((first, second), (second, first)):
        again = other.again(script=one.tape.observations)
        judgement.executions += 1
        if _released_too_far(judgement, one, again):
            return
        pairs = zip(one.tape.observations, again.tape.observations, strict=False)
        tried = 0
        for number, (here, there) in enumerate(pairs):
            if tried == _MOST_TRIED:
                break
            for far, lost, out in _too_far(here, there, most_loss(judgement.claim)):
                tried += 1
                if not _shows(judgement, one, number, far):
                    continue
                found = Findings()
                made = Transcript.of(one, again, found)
                scales = (each.where for each in found if each.kind == "scale")
                where = next(scales, "") or made.place_of_step(number)
                judgement.loss = max(judgement.loss, lost)
                judgement.suspect("distance", where, _TAIL.format(lost, out))
                return


def _released_too_far(judgement: Judgement, trace: Trace, again: Trace) -> bool:
    """Say, and note, whether numbers of the release may lose more than is claimed.

    Not where secret batches amplify: the law is that of rows in them.
    """
    made = Transcript.of(trace, again, Findings())
    if judgement.sampled or len(made.steps) != len(trace.tape.observations) + 1:
        return False
    lost = compare(trace.law, again.law).supremum
    if not lost > most_loss(judgement.claim):
        return False
    step = replace(made.steps[-1], place=made.place_of_step(-1), loss=lost)
    judgement.loss = max(judgement.loss, lost)
    judgement.suspect("distance", step.place, step.words)
    return True


def _too_far(
    here: Observation, there: Observation, most: float
) -> Iterator[tuple[list[Array], float, float]]:
    """Yield a value whose loss is above a bound, and another that is twice as far out.

    With the loss, and how many scales out that is, for each unit and either side.
    """
    law, other = here.law, there.law
    if type(law) is not AffineLaw or type(other) is not AffineLaw:
        return
    if not (law.known and other.known):
        return
    compared = compare(law, other)
    if compared.singular or not compared.known or compared.suprema is not None:
        return
    tailed = np.isin(law.family, _TAILED) & np.isin(other.family, _TAILED)
    spent = float(losses(law, other, here.value))
    for unit in np.flatnonzero(tailed & (compared.by_unit == np.inf)).tolist():
        entries = law.unit == unit
        for sign in (1.0, -1.0):
            out = _FAR
            while out < _FARTHEST:
                far = [
                    np.where(entries, law.mean + times * sign * law.ratio, here.value)
                    for times in (out, 2 * out)
                ]
                lost = [float(losses(law, other, each)) for each in far]
                if min(lost) > most and max(lost) > spent:
                    yield far, lost[0], out
                    break
                out *= 2


def _shows(judgement: Judgement, trace: Trace, number: int, far: list[Array]) -> bool:
    """Say whether the release goes on with a noisy value that is far out."""
    shown = [(trace.layout, trace.value)]
    for value in far:
        seen = list(trace.tape.observations[: number + 1])
        seen[number] = replace(seen[number], value=value)
        given = trace.again(script=Observations(seen), goes_on=True)
        judgement.executions += 1
        if given.tape.unfollowed or given.tape.script.diverged:
            return False
        shown.append((given.layout, given.value))
    return all(
        one[0] != two[0] or not np.array_equal(one[1], two[1], equal_nan=True)
        for one, two in pairwise(shown)
    )


def _moved(made: Observation, sign: float) -> Observation | None:
    """Return a noisy value that is far out, None where that is not possible."""
    law = made.law
    if type(law) is not AffineLaw or not law.known or not len(law.first):
        return None
    if not np.isin(law.family, _EVERYWHERE).all():
        return None
    noise = np.where(law.unit >= 0, np.abs(law.ratio), 0.0)
    value = law.mean + sign * _FAR * noise
    return Observation(made.place, made.how, law, value, made.shape)
