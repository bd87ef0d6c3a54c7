"""Random streams that do not depend on who draws from them, or in which order.

Every stream is derived from the user's seed and a key that says what the numbers are
for, so a result is the same for one worker or eight and an interrupted run resumes
with the very numbers that it would have drawn.
"""

import secrets

import numpy as np

from dpaudit.validation import check_count

__all__ = ["fresh_seed", "position", "stream"]


def stream(seed: int, *key: int) -> np.random.Generator:
    """Return the generator of the stream named by a seed and a key.

    Parameters
    ----------
    seed : int
        The user's seed, >= 0.
    *key : int
        Non-negative integers; different keys give independent streams.

    Examples
    --------
    >>> bool(stream(7, 1, 2).random() == stream(7, 1, 2).random())
    True
    >>> bool(stream(7, 1, 2).random() == stream(7, 1, 3).random())
    False
    """
    entropy = check_count("seed", seed, minimum=0)
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=key))


def position(rng: np.random.Generator) -> object:
    """Return what changes when numbers are drawn, or other generators spawned.

    Examples
    --------
    >>> rng = stream(7)
    >>> before = position(rng)
    >>> position(rng) == before
    True
    >>> _ = rng.random()
    >>> position(rng) == before
    False
    """
    spawned = getattr(rng.bit_generator.seed_seq, "n_children_spawned", 0)
    return rng.bit_generator.state, spawned


def fresh_seed() -> int:
    """Return a seed that nobody has used before (63 bits from the system)."""
    return secrets.randbits(63)
