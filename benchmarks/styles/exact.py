"""Exact numbers, and what is hidden by a mask: fractions, decimals, masked arrays."""

from decimal import Decimal
from fractions import Fraction

import numpy as np

from benchmarks.styles.pairs import CODES, NUMBERS, ONE, TWO
from benchmarks.styles.registry import right, wrong

CENT = Decimal("0.01")


@right(ONE, NUMBERS)
def fraction_of_noise(data, rng):
    """A sum and its noise as fractions, and a float of these."""
    total = sum((Fraction(str(x)) for x in np.clip(data, 0, 1)), Fraction(0))
    return float(total + Fraction(rng.laplace(scale=1.0)))


@wrong(ONE, NUMBERS, "the number of rows is private")
def fraction_by_rows(data, rng):
    """A mean as a fraction, over the rows that there are."""
    noise = Fraction(rng.laplace(scale=1.0))
    total = sum((Fraction(str(x)) for x in np.clip(data, 0, 1)), Fraction(0))
    return float((total + noise) / len(data))  # fault


@right(ONE, NUMBERS)
def decimal_of_text(data, rng):
    """A count as a decimal number, with noise by its text."""
    return Decimal(len(data)) + Decimal(str(rng.laplace(scale=1.0)))


@wrong(ONE, NUMBERS, "the scale is for half a row")
def decimal_of_text_of_half(data, rng):
    """A count as a decimal number, with noise that is too small."""
    return Decimal(len(data)) + Decimal(str(rng.laplace(scale=0.5)))  # fault


@right(ONE, NUMBERS)
def rounded_to_cents(data, rng):
    """A noisy count to two digits, by quantize."""
    return (Decimal(len(data)) + Decimal(rng.laplace(scale=1.0))).quantize(CENT)


@right(ONE, CODES, "the mask is the same for all data")
def public_mask(data, rng):
    """Noisy counts, of which a fixed group is masked."""
    counts = np.bincount(data.astype(int), minlength=4)
    return np.ma.masked_array(counts + rng.laplace(0, 1, 4), [False, True, False, True])


@wrong(TWO, CODES, "what is masked goes by the true counts")
def mask_of_small_counts(data, rng):
    """Noisy counts, masked where the true ones are small."""
    counts = np.bincount(data.astype(int), minlength=4)
    return np.ma.masked_array(counts + rng.laplace(0, 1, 4), counts < 3)  # fault
