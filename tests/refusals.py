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

    def test():
        for one, case in product(first, cases):
            print(f"not refused with these words: {case[-1]}")  # shown if it fails
            with pytest.raises(error, match=case[-1]):
                by(*one, *case[:-1])

    return test


def refuses(message, call, *arguments, error=InputError, **options):
    """Check that a call is refused with these words."""
    with pytest.raises(error, match=message):
        call(*arguments, **options)
