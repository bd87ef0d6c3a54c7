"""What primitives that are not trusted were handed, on D and on D'.

The values before a call are the same on both sides: those of an execution on D, given
back. What is handed to it must follow from them and the data. So the code is executed
once more on either side, from another seed, with the same values given back: a call
that is handed something else then (a seed of its own, say) says nothing by itself.
"""

from dpaudit.audit.replay.declare.untrusted import Handed
from dpaudit.audit.replay.execute.executor import Trace
from dpaudit.audit.replay.follow.observations import Unfollowed
from dpaudit.neighbours import Pair

__all__ = ["handed"]

_SEEDS = 1_000_003  # how far the seeds lie from those of other executions
_OTHERWISE = (
    "a primitive that is not trusted is handed other arguments when the same noisy "
    "values are given back: they hold randomness, and it cannot be audited by itself"
)


def handed(pair: Pair, trace: Trace) -> tuple[list[Handed], list[Unfollowed]]:
    """Return what was handed to primitives that are not trusted, and what may not be.

    Parameters
    ----------
    pair : Pair
    trace : Trace
        An execution on D.
    """
    script, seed = trace.tape.observations, trace.tape.seed + _SEEDS
    there = trace.again(data=pair.neighbour, script=script)
    once_more = (
        trace.again(seed, script=script),
        trace.again(seed + 1, data=pair.neighbour, script=script),
    )
    found: list[Handed] = []
    unfollowed: list[Unfollowed] = []
    for number, call in trace.tape.untrusted.items():
        other = there.tape.untrusted.get(number)
        if other is None:
            continue  # the code went another way there, which is a finding
        places = (script[number].place, there.tape.observations[number].place)
        same = (
            each.is_like(again.tape.untrusted.get(number))
            for each, again in zip((call, other), once_more, strict=True)
        )
        if call.name == other.name and all(same):
            found.append(Handed(*places, (call, other)))
        else:
            unfollowed.append(Unfollowed(places[0], _OTHERWISE))
    return found, unfollowed
