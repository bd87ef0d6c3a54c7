"""Tests of what is refused, declared as tables."""

import operator
from itertools import product

import pytest

from dpaudit import InputError


def refused(*cases, by=operator.call, each=None, error=InputError):
    """Return a test: calls with these arguments are refused with these words.

    A case is what `by` is called with, and a pattern of the message; without `by`, a
    function that is called, and the pattern. `by` is first handed one of `each`, if
    there are such, and all cases hold for each.
    """
    first = [()] if each is None else [(one,) for one in each]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [(one + case[:-1], case[-1]) for one, case in product(first, cases)],
    )
    def test(arguments, message):
        with pytest.raises(error, match=message):
            by(*arguments)

    return test


def refuses(message, call, *arguments, **options):
    """Check that a call is refused with these words."""
    with pytest.raises(InputError, match=message):
        call(*arguments, **options)
