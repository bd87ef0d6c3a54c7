"""Executions in which nothing was looked at before the release.

One of them has the law of the release, so that what is said of it is a proof.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.execute.executor import Trace, both_again
from dpaudit.audit.replay.follow.foreign import foreign_draws_allowed
from dpaudit.audit.replay.judge.judgement import Judgement, Step, StepTable
from dpaudit.audit.replay.judge.lines import Lines, find_singular
from dpaudit.audit.replay.laws.affine import AffineLaw
from dpaudit.audit.replay.laws.coded import Family
from dpaudit.audit.replay.laws.comparison import LawComparison, compare
from dpaudit.audit.replay.laws.composition import (
    Composition,
    DeltaAt,
    epsilons_of,
    pure_epsilon,
)
from dpaudit.audit.replay.laws.points import with_points
from dpaudit.audit.replay.laws.rounded import as_noise, least_delta
from dpaudit.audit.replay.laws.whitening import whitened
from dpaudit.audit.sampling.draws import draw_one

__all__ = ["judge_open"]

_MOST_TRIED = 16  # draws whose line is looked for
_FARTHEST, _LEAST = 20.0, 1e-11  # epsilon; delta that no rounding makes up


def judge_open(judgement: Judgement, first: Trace, second: Trace) -> None:
    """Compare the laws of the release on both sides, and hold them to the claim.

    Parameters
    ----------
    judgement : Judgement
        Takes the findings.
    first, second : Trace
        Open executions on D and on D'.
    """
    other_seed = first.tape.seed + 1
    judgement.executions = 2
    steady = _steadier_than(first, second)
    for trace in (first, second):
        plain = trace.again(other_seed, follows=False)
        trace.returned = plain.returned
        judgement.forms.append(plain.form)
        unfollowed = plain.tape.unfollowed
        confirmed = not unfollowed and _confirms(plain, trace, steady)
        if not (confirmed and _really_raises(trace)):
            judgement.unconfirmed(unfollowed, trace)
            return
    if first.raises or second.raises:
        judgement.executions += 1  # to see whether it does so without us
    if judgement.fails_alike(first, second):
        return
    judgement.laws = first.law, second.law
    judgement.formal = True

    def repeats(trace: Trace, seed: int) -> bool:
        return _confirms(trace.again(seed, follows=False), trace, steady)

    def again(turn: int) -> tuple[bool, int]:
        return all(both_again(other_seed, turn, (first, second), repeats)), 1

    judgement.again, lines = again, Lines(first, second)
    if first.layout != second.layout:
        judgement.loss = np.inf
        _find_layouts(judgement, first, second, lines)
        return
    first.law, second.law = with_points([first.law, second.law])
    compared = as_noise(compare(first.law, second.law))
    judgement.loss = compared.supremum
    if compared.singular:
        judgement.proven = judgement.suspicious = judgement.bare = True
        find_singular(judgement.findings, compared, lines, proof=True)
    elif not compared.known:
        judgement.laws = None
        used = np.unique(first.release.index)[-_MOST_TRIED:]
        found = filter(None, map(lines.scale, used[used >= 0].tolist()))
        where = next(found, first.place_of(used[-1]))
        judgement.suspect("scale", where, "the noise of one side has another form")
    else:
        _hold(judgement, first, second, compared, lines)


def _find_layouts(
    judgement: Judgement, first: Trace, second: Trace, lines: Lines
) -> None:
    """Say where the releases of either side become what the other's never are."""
    judgement.proven = judgement.suspicious = judgement.bare = True
    _find_scales_by_place(judgement, first, second)
    where, there = lines.structure() or (first.returned_at, second.returned_at)
    judgement.find(
        "structure",
        where,
        f"the release is {first.told_beside(second)}, whatever the noise is",
        neighbour=there,
        proof=True,
    )


def _hold(
    judgement: Judgement,
    first: Trace,
    second: Trace,
    compared: LawComparison,
    lines: Lines,
) -> None:
    """Hold to the claim how the laws of the release compare, and say what costs."""
    claim, law, law2 = judgement.claim, first.law, second.law
    white = None if law.known and law2.known else whitened(law, law2)
    if isinstance(white, tuple):
        law, law2, _ = white
    places = _units_by_place(first, law)
    parts = {place: compared.part(units) for place, units in places.items()}
    if len(places) == 1:
        parts = dict.fromkeys(places, compared)
    judgement.steps = StepTable(
        Step.of(place, part, part.supremum) for place, part in parts.items()
    )
    spent = Composition.of([compared])
    # Of what has no composition by dp-accounting, draws are tested.
    composed = np.isin(compared.family, (Family.LAPLACE, Family.GAUSSIAN))
    odd = compared.scales_differ or compared.suprema is not None
    odd |= bool(((compared.shift != 0) & ~composed).any())
    judgement.proven = spent.refutes(claim)
    if (judgement.proven or spent.mu is not None) and pure_epsilon(claim) is None:
        judgement.delta = spent.delta(claim)
    if odd:  # or one number alone has more delta than is claimed
        epsilons = epsilons_of(claim)
        epsilons = epsilons[epsilons <= _FARTHEST]
        delta = least_delta(law, law2, compared, epsilons)
        broken = DeltaAt.beyond(claim, epsilons, delta, slack=_LEAST)
        if broken is not None:
            judgement.proven, judgement.delta = True, judgement.delta or broken
    judgement.suspicious = judgement.proven or (odd and not spent.holds(claim))
    if compared.scales_differ:
        unit = compared.other_unit
        draws = [int(each.draw[unit]) for each in (law, law2)]
        at = lines.scale(draws[0]) if first.law.known else None
        judgement.findings.add_scale(
            at or first.place_of(draws[0]),
            compared.scale[unit],
            compared.other_scale[unit],
            neighbour=at or second.place_of(draws[1]),
            proof=judgement.proven,
        )
    elif judgement.proven:
        _find_costs(judgement, first, parts, compared.supremum, lines)


def _find_costs(
    judgement: Judgement,
    first: Trace,
    parts: dict[str, LawComparison],
    supremum: float,
    lines: Lines,
) -> None:
    """Say which places cost more than the claim has, or that together they do."""
    alone = [
        replace(step, place=lines.noise(_draws_at(first, step.place)) or step.place)
        for step, part in zip(judgement.steps, parts.values(), strict=True)
        if len(parts) == 1 or Composition.of([part]).refutes(judgement.claim)
    ]
    costly = [each for each in judgement.steps if each.l1] or [*judgement.steps]
    losses = ", ".join(f"{step.loss:.4g} at {step.place}" for step in costly)
    total = f"{len(costly)} steps add up to {supremum:.6g}: {losses}"
    most = max(costly, key=lambda step: step.loss)
    place = lines.noise(_draws_at(first, most.place)) or most.place
    judgement.find_costs(alone, place, total, proof=True)


def _draws_at(trace: Trace, place: str) -> NDArray[np.intp]:
    """Return the draws behind the release that were made at a place."""
    used = np.unique(trace.release.index[trace.release.index >= 0])
    blocks = trace.tape.draws.blocks_of(used)
    _, some, block = np.unique(blocks, return_index=True, return_inverse=True)
    here = np.array([trace.place_of(draw) == place for draw in used[some]], dtype=bool)
    return used[here[block]]


def _really_raises(trace: Trace) -> bool:
    """Say whether a failure is one without us too; true where there is none."""
    if not trace.raises:
        return True
    rng = np.random.default_rng(trace.tape.seed)
    with foreign_draws_allowed():  # it is nobody's who records
        return draw_one(trace.mechanism, trace.data, rng).layout == trace.layout


def _steadier_than(first: Trace, second: Trace) -> Array:
    """Return by how much each number of a release may move between two executions.

    A number without noise, such as the time, moves by less than the two sides differ
    by: else no difference is the data's.
    """
    one, two = first.release, second.release
    if len(one.centre) != len(two.centre):
        return np.full(len(one.centre), np.inf)
    bare = [np.all((each.index < 0) | (each.coef == 0), axis=1) for each in (one, two)]
    with np.errstate(all="ignore"):
        apart = np.abs(one.centre - two.centre) / 4
    return np.where(bare[0] & bare[1] & (apart > 0), apart, np.inf)


def _confirms(plain: Trace, trace: Trace, steady: Array) -> bool:
    """Say whether an ordinary execution gives the release that the trace says."""
    whole, draws = trace.release, trace.tape.draws
    if plain.layout != trace.layout or len(plain.value) != len(whole.centre):
        return False
    if not draws.redrawn(plain.tape.seed):
        return False
    wanted = draws.value(whole.centre, whole.index, whole.coef)
    with np.errstate(all="ignore"):
        size = np.where(whole.index >= 0, np.abs(whole.coef), 0.0).sum(axis=1)
        off = np.abs(plain.value - wanted)
        near = off <= 1e-9 * np.abs(wanted) + 1e-7 * size + draws.rough
        if len(off) == len(steady):
            near &= off <= steady
    same = (plain.value == wanted) | (np.isnan(plain.value) & np.isnan(wanted))
    return bool((near | same).all())


def _units_by_place(trace: Trace, law: AffineLaw) -> dict[str, NDArray[np.intp]]:
    """Return the units of the release, by the place where their noise was drawn."""
    places: dict[str, list[NDArray[np.intp]]] = {}
    blocks = trace.tape.draws.blocks_of(law.draw)
    order = np.argsort(blocks, kind="stable")
    ends = np.flatnonzero(np.diff(blocks[order], append=-1)) + 1
    for units in np.split(order, ends[:-1]) if len(order) else []:
        place = trace.place_of(law.draw[units[0]])
        places.setdefault(place, []).append(units)
    joined = {place: np.sort(np.concatenate(each)) for place, each in places.items()}
    return dict(sorted(joined.items(), key=lambda item: int(item[1][0])))


def _find_scales_by_place(judgement: Judgement, first: Trace, second: Trace) -> None:
    """Note places whose first noise has another scale on the other side."""
    scales = [
        {at: float(trace.law.scale[units[0]]) for at, units in places.items()}
        for trace, places in (
            (each, _units_by_place(each, each.law)) for each in (first, second)
        )
    ]
    for place, scale in scales[0].items():
        other = scales[1].get(place, scale)
        if abs(other - scale) > 1e-9 * abs(scale):
            judgement.findings.add_scale(place, scale, other)
