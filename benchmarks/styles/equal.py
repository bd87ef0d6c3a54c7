"""Replay mechanisms whose true loss is their claim: how often they are refuted.

python -m benchmarks.styles.equal [--seeds N | --seeds A:B] [--confidence C]
    [--kept FILE]

Each is right, and would be wrong with any smaller epsilon. Where the noise is followed,
the law decides, and none may fall. Where it is not, releases decide, and at most a
share of 1 - confidence may: these mechanisms hide their noise from the recorder, each
in another way, so that nothing but a test stands between them and a refutation.
"""

import argparse
import math
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

from benchmarks.styles.run import keep, kept_in, seeds
from dpaudit import Claim, Pair, PureDP, ZeroConcentratedDP
from dpaudit.arrays import Array
from dpaudit.audit.replay import replay

ONE = PureDP(1.0)
PAIR = Pair([0.2, 0.7], [0.2, 0.7, 1.0])
BIT = Pair([0.0], [1.0], "replace-one")
Mechanism = Callable[[Array, np.random.Generator], Any]


def _of_bytes(eight: bytes) -> float:
    """Return a standard Laplace number of eight uniform bytes."""
    u = ((int.from_bytes(eight, "big") >> 11) + 0.5) / 2**53 - 0.5
    return -math.copysign(math.log1p(-2 * abs(u)), u)


def followed(data: Array, rng: np.random.Generator) -> Any:
    """Return a number with Laplace noise, with its exact law."""
    return data.sum() + rng.laplace()


def followed_gaussian(data: Array, rng: np.random.Generator) -> Any:
    """Return a number with Gaussian noise, with its exact law."""
    return data.sum() + rng.normal()


def looked_at(data: Array, rng: np.random.Generator) -> Any:
    """Return a number with Laplace noise on a number that is looked at."""
    noisy = data.sum() + rng.laplace()
    return noisy if noisy > 1 else 2 * noisy


def bytes_of_the_generator(data: Array, rng: np.random.Generator) -> Any:
    """Return a number with Laplace noise from bytes."""
    return data.sum() + _of_bytes(rng.bytes(8))


def entropy(data: Array, rng: np.random.Generator) -> Any:
    """Return a number with Laplace noise from entropy of the system."""
    return data.sum() + _of_bytes(os.urandom(8))


def pieces_of_gamma(data: Array, rng: np.random.Generator) -> Any:
    """Return a number with Laplace noise as a sum of differences of gamma numbers."""
    parts = rng.gamma(0.1, 1.0, 10) - rng.gamma(0.1, 1.0, 10)
    return data.sum() + parts.sum()


def another_thread(data: Array, rng: np.random.Generator) -> Any:
    """Return a number with Laplace noise of another thread."""
    drawn: list[float] = []
    thread = threading.Thread(target=lambda: drawn.append(rng.laplace()))
    thread.start()
    thread.join()
    return data.sum() + drawn[0]


def system_random(data: Array, rng: np.random.Generator) -> Any:
    """Return a bit after randomised response by entropy of the system."""
    stays = random.SystemRandom().random() < math.e / (1 + math.e)
    return float(data[0] if stays else 1 - data[0])


STYLES: dict[Mechanism, tuple[Claim, Pair]] = {
    followed: (ONE, PAIR),
    followed_gaussian: (ZeroConcentratedDP(0.5), PAIR),
    looked_at: (ONE, PAIR),
    bytes_of_the_generator: (ONE, PAIR),
    entropy: (ONE, PAIR),
    pieces_of_gamma: (ONE, PAIR),
    another_thread: (ONE, PAIR),
    system_random: (ONE, BIT),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay each from so many seeds, and say how many fell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=seeds, default=range(300), metavar="N|A:B")
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--kept", type=Path, metavar="FILE", help="as of styles.run")
    options = parser.parse_args(arguments)
    known = {
        (each["name"], each["seed"], each["confidence"]): each
        for each in kept_in(options.kept)
    }
    found: dict[str, Counter[str]] = {}
    for mechanism, (claim, pair) in STYLES.items():
        name, more = mechanism.__name__, {"confidence": options.confidence}
        found[name], began = Counter(), time.process_time()
        for seed in options.seeds:
            key = name, seed, options.confidence
            if key not in known:
                result = replay(mechanism, pair=pair, claim=claim, seed=seed, **more)
                made = {"name": name, "seed": seed, "verdict": str(result.verdict)}
                known[key] = made | more
                keep(options.kept, known[key])
            found[name][known[key]["verdict"]] += 1
        spent = time.process_time() - began
        print(f"{name:<25}{spent:>8.1f} s  {dict(found[name])}", flush=True)
    fell = sum(each["REFUTED"] for each in found.values())
    every = len(found) * len(options.seeds)
    high = binomtest(fell, every).proportion_ci(0.95, "exact").high
    print(f"refuted: {fell} of {every}, at most {high:.2%} with confidence 95 %")
    return int(fell > (1 - options.confidence) * every)


if __name__ == "__main__":
    sys.exit(main())
