"""Noise that is farther out than what was drawn, and what the code does with it.

Code that draws again until something holds, or cuts at an exact number, does so for
some noise alone, and a few executions may have seen none of it. So values that have a
density everywhere are given to the code three scales away from where they would lie
without noise. What comes out proves nothing: where the two sides part, or values that
were drawn again cost more than is claimed, releases have to decide.
"""

import numpy as np

from dpaudit.audit.replay.execute.executor import Trace
from dpaudit.audit.replay.follow.observations import Observation, Observations
from dpaudit.audit.replay.judge.judgement import Findings, Judgement
from dpaudit.audit.replay.judge.lines import Lines
from dpaudit.audit.replay.judge.transcript import Transcript
from dpaudit.audit.replay.laws.affine import AffineLaw, Family
from dpaudit.audit.replay.laws.composition import most_loss

__all__ = ["look_far"]

_FAR = 3.0
_EVERYWHERE = (Family.LAPLACE, Family.GAUSSIAN)
_AGAIN = (
    "noise decides whether another value is drawn, and {} of them lose {:.4g}: to be "
    "followed, draw as often as is public"
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
