"""Numbers and lists as a reader wants them, and the sentences that they stand in.

Few digits, real minus signs, no exponents in E. What a section concludes from tables is
written in its ``sentences.j2``: a macro of Jinja for each function that concludes, a
sentence a line. The function finds the values, the macro chooses the sentences, by the
filters `FORMS`, which are functions of this module.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dpaudit.printable import told_apart
from dpaudit.reports import escaping

__all__ = ["duration", "percent", "setting", "verdict"]

ROOT = Path(__file__).parent
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_UNKNOWN = "not known"


def number(value: float) -> str:
    """Return an epsilon or a ratio with three digits at most.

    >>> number(8.628), number(0.42956), number(0.9999999), number(float("inf"))
    ('8.63', '0.43', '1', '∞')
    >>> number(0.9), number(12.34), number(0.0123)
    ('0.90', '12.3', '0.012')
    """
    if math.isnan(value):
        return _UNKNOWN
    value = float(value)
    if math.isinf(value):
        return "∞"
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    if 0 < abs(value) < 0.1:
        return f"{value:.2g}"
    rounded = round(value, digits)
    return f"{rounded:,.0f}" if rounded.is_integer() else f"{rounded:,.{digits}f}"


def signed(value: float) -> str:
    """Return a number of either sign with two decimals.

    >>> signed(-0.954), signed(1.0), signed(-0.001), signed(float("nan"))
    ('−0.95', '1.00', '0.00', 'not known')
    """
    if math.isnan(value):
        return _UNKNOWN
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def fraction(exponent: float) -> str:
    """Return an exponent, the usual ones as fractions.

    >>> fraction(0.25), fraction(-0.5), fraction(-1.0)
    ('1/4', '−1/2', '−1')
    """
    named = {0.25: "1/4", 0.5: "1/2", -0.5: "−1/2"}
    return named.get(exponent, f"{exponent:g}".replace("-", "−"))


def setting(value: float) -> str:
    """Return a number that was chosen, with no more digits than it needs.

    >>> setting(0.1), setting(1.7782794), setting(64.0)
    ('0.1', '1.78', '64')
    """
    return f"{value:.3g}"


def plain(value: float) -> str:
    """Return a place on an axis: a large one as a count, a small one as a setting."""
    return count(value) if value >= 1000 else setting(value)


def decimal(value: float) -> str:
    """Return a place on an axis with up to four digits, but no exponent."""
    if value >= 1000:
        return count(value)
    return np.format_float_positional(value, precision=4, fractional=False, trim="-")


def delta(value: float) -> str:
    """Return a probability: plain if it is large, a power of ten if it is small.

    >>> delta(0.6321), delta(4.11e-8), delta(1e-5), delta(0.0)
    ('0.632', '4.1 × 10⁻⁸', '10⁻⁵', '0')
    """
    if math.isnan(value):
        return _UNKNOWN
    if value == 0 or value >= 0.01:
        return f"{abs(value):.3g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    power = _power(exponent)
    return power.removeprefix(" × ") if mantissa == "1.0" else mantissa + power


def _power(exponent: str) -> str:
    return " × 10" + str(int(exponent)).translate(_SUPERSCRIPTS)


def beyond(
    value: float, claimed: float, text: Callable[[float], str], *, refuted: bool
) -> str:
    """Return a lower bound as it stands beside what is claimed, with its sign.

    With as many digits as it takes to see that it is more. Where it is not, and the
    claim was refuted all the same, there is what the refutation says.

    >>> beyond(1.94, 1.0, number, refuted=True)
    '≥ 1.94'
    >>> beyond(1.0004, 1.0, number, refuted=True)
    '≥ 1.0004'
    >>> beyond(1.0001e-5, 1e-5, delta, refuted=True)
    '≥ 1.0001 × 10⁻⁵'
    >>> beyond(0.0, 0.0, delta, refuted=True), beyond(0.9, 1.0, number, refuted=False)
    ('> 0', '≥ 0.90')
    """
    if refuted and value <= claimed:
        return f"> {text(claimed)}"
    if value <= claimed or text(value) != text(claimed):
        return f"≥ {text(value)}"
    shown, _ = told_apart(value, claimed)
    mantissa, _, exponent = shown.partition("e")
    return f"≥ {mantissa}{_power(exponent) if exponent else ''}"


def percent(share: float) -> str:
    """Return a share with one decimal, more where it is close to all.

    Only what is all of it up to rounding is 100 %.

    >>> percent(0.9444), percent(0.99999), percent(1.0)
    ('94.4 %', '99.999 %', '100 %')
    >>> percent(0.999998), percent(1 - 1e-15)
    ('> 99.999 %', '100 %')
    """
    value = 100 * round(share, 9)
    if value == 100:
        return "100 %"
    if 99.9995 <= value < 100:
        return "> 99.999 %"
    digits = 1
    while digits < 3 and round(value, digits) == 100:
        digits += 1
    return f"{value:.{digits}f} %"


def count(value: float) -> str:
    """Return a whole number with separated thousands, three digits from 10^5 on.

    >>> count(100_000), count(12_345_678)
    ('100,000', '12,300,000')
    """
    if value >= 100_000:
        step = 10 ** (int(math.log10(value)) - 2)
        value = round(value / step) * step
    return f"{value:,.0f}"


def speed(per_second: float) -> str:
    """Return how many there are in a second, with three digits.

    >>> speed(12345.6), speed(201.4), speed(5.4637)
    ('12,300', '201', '5.46')
    """
    return (
        count(float(f"{per_second:.3g}")) if per_second >= 100 else number(per_second)
    )


def duration(seconds: float) -> str:
    """Return a time with three digits, in the unit that suits it.

    >>> duration(0.00513), duration(0.000042), duration(2.5)
    ('5.13 ms', '42.0 µs', '2.50 s')
    """
    value, unit = 1e6 * seconds, "µs"
    if seconds >= 1:
        value, unit = seconds, "s"
    elif seconds >= 1e-3:
        value, unit = 1e3 * seconds, "ms"
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{digits}f} {unit}"


def times(ratio: float) -> str:
    """Return how many times one thing is another."""
    return f"{number(ratio) if ratio >= 10 else f'{ratio:.2f}'} ×"


def nines(share: Any) -> Any:
    """Return where a share stands on a scale on which 90 %, 99 %, ... are even."""
    return -np.log10(np.maximum(1 - np.asarray(share, dtype=float), 1e-6))


def listed(items: Iterable[str]) -> str:
    """Return a list in words.

    >>> listed(["a"]), listed("ab"), listed("abc")
    ('a', 'a and b', 'a, b and c')
    """
    *most, last = items
    return f"{', '.join(most)} and {last}" if most else last


def spelt(n: int) -> str:
    """Return a small number as a word.

    >>> spelt(2), spelt(12)
    ('two', '12')
    """
    return _WORDS[n] if n < len(_WORDS) else str(n)


def spread(
    three: Sequence[float], text: Callable[[float], str], around: str = "middle half"
) -> str:
    """Return a median, and the quartiles around it; or what else is around something.

    >>> spread((1.0, 2.0, 4.0), number), spread((0.5, 0.5, 0.5), percent)
    ('2 (middle half 1 to 4)', '50.0 %')
    """
    low, middle, high = map(text, three)
    return middle if low == high else f"{middle} ({around} {low} to {high})"


def short(name: str) -> str:
    """Return the name of a mechanism, where it is known to be as published."""
    return name.removesuffix("-published")


def verdict(name: str) -> str:
    """Return a verdict as it is printed.

    >>> verdict("NOT_REFUTED")
    'NOT REFUTED'
    """
    return name.replace("_", " ")


FORMS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        *(number, signed, fraction, setting, plain, decimal, delta, percent, count),
        *(speed, duration, times, listed, spelt, short, verdict),
    )
}


class _Form(Formatter):
    def format_field(self, value: Any, form: str) -> str:
        return str(FORMS[form](value) if form in FORMS else format(value, form))


def phrased(items: Iterable[Any], form: str) -> list[str]:
    """Return a phrase for each item, or tuple of several, in which `FORMS` are forms.

    >>> phrased([("x", 1e6), ("y", 2.0)], "{} after {:count}")
    ['x after 1,000,000', 'y after 2']
    """
    several = (each if isinstance(each, tuple) else (each,) for each in items)
    return [_Form().format(form, *each) for each in several]


@cache
def _templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader((ROOT / "sections", ROOT)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda each: escaping.plain(each) if isinstance(each, str) else each,
    )
    made.filters |= {**FORMS, "phrased": phrased, "lines": _lines}
    return made


def sentences(section: str, about: str, /, **values: Any) -> list[str]:
    """Return what a macro of the ``sentences.j2`` of a section says of values."""
    chosen = _templates().get_template(f"{section}/sentences.j2")
    return _lines(str(getattr(chosen.module, about)(**values)))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]
