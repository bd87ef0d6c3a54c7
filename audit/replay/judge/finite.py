r"""Executions with few choices, and noise that is not looked at: exact laws as well.

What is drawn and looked at are choices, each with probabilities that are known once
those before it are made. So the ways in which they can turn out are the leaves of a
tree. The probability of such an outcome is the product of those along its branch. What
is released for it is found by executing the code with these very choices: given them,
the code looks at nothing random, so that one execution has the law of the release. If
there are few outcomes, all are executed (`dpaudit.audit.replay.judge.trees`), and the
release has an exactly known law on D, and so on D': a mixture
(`dpaudit.audit.replay.laws.mixtures`). The two trees may be of different shapes;
nothing but the releases is compared.

Releases whose numbers agree up to rounding are taken for one. That is a function of the
release, which can only bring the two laws nearer. So a claim that is refuted then is
false.

Every branch is executed a second time from another seed: if the law of the release is
another one then, there is randomness that was not seen. What refutes a claim is
executed again with fresh choices and noise, followed and as it is.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpaudit.audit.replay.execute.executor import Trace, both_again
from dpaudit.audit.replay.judge.judgement import Judgement, Step, StepTable
from dpaudit.audit.replay.judge.lines import Lines
from dpaudit.audit.replay.judge.trees import Tree, draws_choices, tree_of
from dpaudit.audit.replay.laws.coded import lattice_of, law_of
from dpaudit.audit.replay.laws.comparison import compare, equal
from dpaudit.audit.replay.laws.composition import DeltaAt, most_loss, pure_epsilon
from dpaudit.audit.replay.laws.cuts import Cut
from dpaudit.audit.replay.laws.lattices import is_open_ended
from dpaudit.audit.replay.laws.loss_law import LossLaw
from dpaudit.audit.replay.laws.mixture_losses import Worst, deltas, no_more, worst_of
from dpaudit.audit.replay.laws.mixtures import (
    CommonSupport,
    MixtureTerms,
    ReleaseLaw,
    parts_of,
)
from dpaudit.audit.replay.laws.points import with_points
from dpaudit.claims import Claim, polygon_delta
from dpaudit.printable import told_apart

__all__ = ["judge_finite"]

_ROOM = 1e-6  # relative, of losses
_EPSILONS = np.linspace(0.0, 60.0, 601)
_NOT_SETTLED = (
    "the release has {} numbers whose noise goes by hidden choices: no loss above "
    "{:.4g} was found, and none above {:.4g} is possible, which does not settle the "
    "claim"
)
_TAILS = (
    "the release is a whole number whose noise goes by hidden choices: no loss above "
    "{1:.4g} was found, and far out, where little is known of its laws, may be any"
)


def judge_finite(judgement: Judgement, first: Trace, second: Trace) -> bool:
    """Say whether all outcomes could be executed, and hold their laws to the claim.

    Only for claims about the release.

    Parameters
    ----------
    judgement : Judgement
        Takes the findings.
    first, second : Trace
        Executions on D and on D'.
    """
    claim, sides = judgement.claim, (first, second)
    if judgement.sees != "release" or not all(map(draws_choices, sides)):
        return False
    if not any(len(trace.tape.observations) for trace in sides):
        return False
    if (here := tree_of(first)) is None or (there := tree_of(second)) is None:
        return False
    every = [*here.traces, *there.traces]
    if all(trace.raises for trace in every):
        return False
    noisy = any(len(trace.law.first) for trace in every)
    if noisy and first.tape.mode.public:
        return False
    if not (here.really_fails and there.really_fails):
        return False
    leaves = _alike([here.leaves, there.leaves])
    if leaves is None:
        return False
    parts = parts_of(*leaves, lost=here.lost, other_lost=there.lost)
    worst = worst_of(parts)
    pure = pure_epsilon(claim) is not None
    wide = [
        part
        for part in parts
        if part.dimensions
        and not (part.in_cells and not (pure and is_open_ended(part)))
    ]
    judgement.executions = max(here.executions, there.executions) + 1
    judgement.loss = max(0.0, worst.loss - 1e-12)
    _take_steps(judgement, first, second)
    if pure:
        judgement.proven = judgement.loss > most_loss(claim)
    else:
        named = claim.parameters.get("epsilon")
        epsilons = _EPSILONS if named is None else np.append(_EPSILONS, float(named))
        found = deltas(parts, epsilons)
        judgement.delta = DeltaAt.beyond(claim, epsilons, found, slack=1e-9)
        judgement.proven = judgement.delta is not None
    judgement.suspicious = judgement.proven
    part = parts[worst.part]
    judgement.bare = judgement.loss == math.inf and not part.dimensions

    def again(turn: int) -> tuple[bool, int]:
        # The choices are fresh: what was released for them is in the tree.
        trees = here, there
        return all(both_again(first.tape.seed + 1, turn, trees, Tree.has)), 1 + noisy

    judgement.again = again
    if judgement.proven:
        _find(judgement, worst, part, (here, there))
    elif wide:
        most = max(judgement.loss, *map(no_more, wide))
        if (
            polygon_delta(_EPSILONS, most, 0.0) <= claim.delta_at(_EPSILONS) + 1e-12
        ).all():
            return True
        judgement.suspicious = True
        if not pure:
            judgement.laws = LossLaw(parts), LossLaw(parts, back=True)
        else:
            size = max(each.dimensions for each in wide)
            why = _TAILS if size == 1 and math.isinf(most) else _NOT_SETTLED
            why = why.format(size, judgement.loss, most)
            judgement.suspect("budget", first.returned_at, why)
    return True


def _alike(sides: Sequence[list[ReleaseLaw]]) -> list[list[ReleaseLaw]] | None:
    """Return leaves in which numbers have laws of one form, where they may be compared.

    A number may have noise on a lattice in some, and none in others: then it is one on
    the lattice in these, too. None where such laws are not of one form.
    """
    every = [leaf for side in sides for leaf in side]
    alike: dict[tuple[str, int], list[int]] = {}
    for number, leaf in enumerate(every):
        alike.setdefault((leaf.layout, len(leaf.law.mean)), []).append(number)
    for numbers in alike.values():
        laws = with_points([every[number].law for number in numbers])
        bare = np.any([law.unit < 0 for law in laws], axis=0)
        whole = [
            np.append([lattice_of(int(e)) is not None for e in law.family], False)
            for law in laws
        ]
        on = [w[law.unit] for w, law in zip(whole, laws, strict=True)]
        if (bare & np.any(on, axis=0)).any():
            return None
        for number, law in zip(numbers, laws, strict=True):
            every[number] = replace(every[number], law=law)
    return [every[: len(sides[0])], every[len(sides[0]) :]]


def _take_steps(judgement: Judgement, first: Trace, second: Trace) -> None:
    """Note how the choices and the noise of two executions lie to each other."""
    pairs = zip(first.tape.observations, second.tape.observations, strict=False)
    compared = [(one.place, compare(one.law, two.law)) for one, two in pairs]
    if first.layout == second.layout and len(first.law.first):
        step = compare(first.law, second.law)
        if step.known and len(step.shift):
            compared.append((first.place_of(first.law.draw[0]), step))
    judgement.steps = StepTable(
        Step.of(at, step, step.supremum) for at, step in compared
    )


def _find(
    judgement: Judgement, worst: Worst, part: CommonSupport, trees: tuple[Tree, Tree]
) -> None:
    """Say where the probabilities, or the noise, of the worst release come from."""
    if not part.dimensions:
        _find_outcome(judgement, part, trees)
        return
    here, there = trees
    looks = min(len(tree.trace.tape.observations) for tree in trees)
    seen = list(judgement.steps)[:looks]
    choices = [step for step in seen if step.loss > 0]
    if worst.loss == math.inf:  # where a number is cut may depend on the data alone
        choices = choices or seen
    at = worst.at[np.newaxis]
    sides = [
        (tree.traces[terms.leaf[term]], terms, term)
        for tree, terms in ((here, part.one), (there, part.other))
        for term in [int(np.argmax(terms.logs(at)[0] + np.log(terms.at_most)))]
    ]
    (one, terms, term), (other, terms2, term2) = sides
    with np.errstate(all="ignore"):
        choice = math.log(terms.p[term] / terms2.p[term2])
        noise = terms.logs(at)[0, term] - terms2.logs(at)[0, term2]
    places = [
        trace.place_of(trace.law.draw[0]) if len(trace.law.draw) else trace.returned_at
        for trace in (one, other)
    ]
    way = ("D'", "D") if worst.back else ("D", "D'")
    loss = f"e^{worst.loss:.6g}" if math.isfinite(worst.loss) else "any number of"
    text = f"a release is {loss} times as probable on {way[0]} as on {way[1]}"
    kind = "distance"
    costly = max(seen, key=lambda step: step.loss, default=None)
    if costly is not None and costly.loss > 0 and abs(choice) > abs(noise):
        places = [costly.place] * 2
    elif choices and _alone(noise, one, terms, terms2, term, term2) <= (
        most_loss(judgement.claim) * (1 + _ROOM)
    ):
        # The noise alone keeps the promise: what is chosen by data breaks it.
        places = [max(choices, key=lambda step: step.loss).place] * 2
    else:
        both = (part.one, terms, term), (part.other, terms2, term2)
        scales = [set(np.abs(side.ratio).ravel().tolist()) for side, _, _ in both]
        kind = "distance" if scales[0] == scales[1] else "scale"
        draws, lines = one.law.draw, Lines(one, other)
        met = lines.noise(draws) if kind == "distance" else lines.scale(int(draws[0]))
        if met is None and kind == "distance":
            met = lines.met() or _chosen_otherwise(one, other)
        places = [met or each for each in places]
        shift = np.abs(terms.mean[term] - terms2.mean[term2])
        number = int(np.argmax(shift))
        words = [_words(each, row, number) for _, each, row in both]
        text += ": where choices turn out so, it is {} on D, and {} on D'".format(
            *words
        )
    judgement.find(kind, places[0], text, neighbour=places[1], proof=True)


def _find_outcome(
    judgement: Judgement, part: CommonSupport, trees: tuple[Tree, Tree]
) -> None:
    """Say where the probabilities of a release without noise come from."""
    costly = max(judgement.steps, key=lambda step: step.loss, default=None)
    p, _, q, _ = (float(each[0]) for each in part.masses)
    tree, terms = (trees[0], part.one) if p else (trees[1], part.other)
    rest = len(tree.traces[terms.leaf[0]].law.first)  # numbers alike on both sides
    text = "one {} has probability {} on D and {} on D'".format(
        "kind of release" if rest else "release", *told_apart(p, q, 6)
    )
    apart = _apart(part, trees, judgement.claim)
    if apart is not None:
        kind, (where, neighbour) = "release", apart
    elif costly is not None and costly.loss > 0 and costly.place:
        kind, where, neighbour = "distance", costly.place, costly.place
    else:
        kind, (where, neighbour) = "release", _made(part, trees)
    judgement.find(kind, where, text, neighbour=neighbour, proof=True)


def _made(part: CommonSupport, trees: tuple[Tree, Tree]) -> tuple[str, str]:
    """Return where a release is made whose choices have the same laws on both sides.

    So it is what data do with them that differs: in the line that makes a number which
    the same choices make another one, or where the release is returned.
    """
    own, other = trees
    leaf = own.traces[part.one.leaf[int(np.argmax(part.one.p))]]
    twin = other.like(leaf)
    lines = Lines(leaf, twin or other.traces[0])
    found = lines.ends()
    if twin is not None and leaf.layout == twin.layout:
        differ = ~equal(leaf.value, twin.value)
        found = lines.number(int(np.argmax(differ))) if differ.any() else found
    return found or (own.trace.returned_at, other.trace.returned_at)


def _chosen_otherwise(one: Trace, other: Trace) -> str | None:
    """Return the first choice that turns out otherwise in another execution."""
    pairs = zip(one.tape.observations, other.tape.observations, strict=False)
    differ = (a for a, b in pairs if not np.array_equal(a.value, b.value))
    return next((each.place for each in differ), None)


def _alone(
    noise: float,
    trace: Trace,
    terms: MixtureTerms,
    terms2: MixtureTerms,
    term: int,
    term2: int,
) -> float:
    """Return the loss that noise has were nothing chosen: uncut, its distances."""
    families = trace.law.family.tolist()
    if not any(isinstance(law_of(family), Cut) for family in families):
        return abs(noise)
    shift = np.abs(terms.mean[term] - terms2.mean[term2])
    with np.errstate(all="ignore"):
        return float(np.nansum(shift / np.abs(terms.ratio[term])))


def _apart(
    part: CommonSupport, trees: tuple[Tree, Tree], claim: Claim
) -> tuple[str, str] | None:
    """Return where releases part that are possible on one side alone.

    None if the release has other probabilities, and where the choices that lead to it
    cannot turn out so on the other side: then it is they that differ.
    """
    p, _, q, _ = (float(each[0]) for each in part.masses)
    if p and q:
        return None
    terms, (own, other) = (part.one, trees) if p else (part.other, trees[::-1])
    leaf = own.traces[terms.leaf[int(np.argmax(terms.p))]]
    made, twin = leaf.tape.observations, other.like(leaf)
    beside = twin or other.traces[0]
    lines = Lines(leaf, beside) if p else Lines(beside, leaf)
    if twin is None:
        counts = [len(each.tape.observations) for each in other.traces]
        if len(made) > max(counts):
            last = made[len(made) - 1].place
            # A threshold may let pass what is rare: then it is too low.
            return lines.structure() if pure_epsilon(claim) is not None else (last,) * 2
        shapes = [each.shape for each in made]
        alike = [each.tape.observations for each in other.traces]
        if any([each.shape for each in several] == shapes for several in alike):
            return None
        return lines.ends()
    if leaf.layout != twin.layout:
        return lines.structure()
    values = leaf.value, twin.value
    return lines.number(int(np.argmax(~np.isclose(*values, equal_nan=True))))


def _words(terms: MixtureTerms, term: int, number: int) -> str:
    """Return one coordinate of a term of a mixture, for people."""
    mean, scale = terms.mean[term, number], abs(terms.ratio[term, number])
    steps = lattice_of(int(terms.family[term, number]))
    if steps is not None and steps.finite and len(steps.log) == 1:
        return f"{mean + terms.ratio[term, number] * steps.start:.6g} without noise"
    kind = "of scale" if steps is None else "in steps of"
    return f"{mean:.6g} with noise {kind} {scale:.6g}"
