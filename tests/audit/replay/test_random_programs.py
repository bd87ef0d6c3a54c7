"""Small programs at random, whose laws are known by going through all of their draws.

A program draws integers and uniform numbers, computes with them and with the data,
looks at them, and releases some. The largest ratio of probabilities of a release is its
true epsilon. What a replay says must agree with it: no true claim is refuted, and where
all ways were executed no false one is left. So a law that is wrong, or a dependence
that is forgotten, shows wherever it is made.
"""

import math
import random
import re
from collections import Counter

import numpy as np
import pytest
from replay_cases import made

from dpaudit import Pair, PureDP
from dpaudit.audit import replay

PAIR = Pair(np.array([[0.0], [1.0], [1.0]]), np.array([[0.0], [1.0], [1.0], [1.0]]))
CELLS = 24  # of a uniform number: all steps of the programs lie between them
DRAWS = (
    "int(rng.integers(3))",
    "int(rng.integers(4))",
    "int(rng.integers(2)) + int(rng.integers(3))",
    "(int(data.sum()) + int(rng.integers(4))) % 4",
    "int(rng.random() < data.sum() / 8)",
    "int(u < 0.25)",
    "int(u < len(data) / 8)",
    "int(np.floor(u * 3))",
    "int(u * 4 + len(data) / 2)",
)
VALUES = (
    "({0} + 1) % 3",
    "({0} + int(data.sum())) % 4",
    "{0} + {1}",
    "abs({0} - 1)",
    "max({0}, {1})",
    "{0} * {1}",
    "int({0} == {1})",
    "int({0} > 1)",
    "{0} // 2",
    "int(data.sum()) % 3 + {0}",
)
LOOKS = ("{0} > 0", "{0} == 1", "{0} % 2", "{0} >= 2", "u < 0.5")
SHOWN = ("{0}", "{0}", "{0} > 1", "{0} % 2", "({0} + 1) % 3", "float({0})")
FORMS = ("[{0}]", "({0},)", "sum([{0}])", "sorted([{0}])", "np.array([{0}])")


def program(seed):
    """Return the source of a program."""
    rng = random.Random(seed)
    lines, names = [], []

    def some(kinds):
        return rng.choice(kinds).format(rng.choice(names), rng.choice(names))

    for number in range(rng.randint(2, 5)):
        name, kind = f"c{number}", rng.random()
        if not names or (kind < 0.35 and number < 4):
            lines.append(f"{name} = {rng.choice(DRAWS)}")
        elif kind < 0.65:
            lines.append(f"{name} = {some(VALUES)}")
        else:
            value = some(VALUES) if rng.random() < 0.6 else rng.choice(DRAWS)
            lines += [f"if {some(LOOKS)}:", f"    {name} = {value}"]
            lines += ["else:", f"    {name} = {some(('0', '1', *VALUES))}"]
        names.append(name)
    shown = ", ".join(some(SHOWN) for _ in range(rng.randint(1, 3)))
    lines.append(f"return {rng.choice(FORMS).format(shown)}")
    if any("u" in re.findall(r"\w+", line) for line in lines):
        lines.insert(0, "u = rng.random()")
    return "def f(data, rng):\n" + "".join(f"    {line}\n" for line in lines)


class Script:
    """A generator that draws what it is told, and notes how probable that is."""

    def __init__(self, script):
        self.script, self.sizes, self.p = script, [], 1.0

    def integers(self, count):
        place = len(self.sizes)
        self.script += [0] * (place == len(self.script))
        self.sizes.append(count)
        self.p /= count
        return self.script[place]

    def random(self):
        return (self.integers(CELLS) + 0.5) / CELLS


def law(mechanism, data):
    """Return the probabilities of all releases."""
    found, script = Counter(), []
    while True:
        rng = Script(list(script))
        release = np.ravel(mechanism(data, rng)).astype(float)
        found[tuple(release.tolist())] += rng.p
        script = rng.script
        while script and script[-1] == rng.sizes[len(script) - 1] - 1:
            script.pop()
        if not script:
            return found
        script[-1] += 1


def epsilon(first, second):
    ratios = [
        abs(math.log(first[x] / second[x])) if first[x] and second[x] else math.inf
        for x in {*first, *second}
    ]
    return max(ratios)


def agrees(seed):
    source = program(seed)
    mechanism = made(source, np=np)
    true = epsilon(*(law(mechanism, side) for side in (PAIR.data, PAIR.neighbour)))
    if true < math.inf:
        claim = PureDP(true * (1 + 1e-6) + 1e-6)
        assert replay(mechanism, pair=PAIR, claim=claim, budget=2).verdict != (
            "REFUTED"
        ), source
    if true > 0.001:
        claim = PureDP(min(0.99 * true, 20.0))
        result = replay(mechanism, pair=PAIR, claim=claim, budget=2)
        partly = result.verdict == "NOT_FOLLOWED" or result.explored is not None
        assert result.refuted or partly, source


@pytest.mark.parametrize("first", range(0, 24, 6))
def test_replays_of_random_programs_say_what_is_true(first):
    for seed in range(first, first + 6):
        agrees(seed)


@pytest.mark.hard
@pytest.mark.parametrize("first", range(24, 1524, 50))
def test_replays_of_many_random_programs_say_what_is_true(first):
    for seed in range(first, first + 50):
        agrees(seed)
