"""Tests of what is refused, declared as tables."""

import operator

import pytest

from dpaudit import InputError


def refused(*cases, by=operator.call, error=InputError):
    """Return a test: calls with these arguments are refused with these words.

    A case is what `by` is called with, and a pattern of the message; without `by`, a
    function that is called, and the pattern.
    """

    @pytest.mark.parametrize(
        ("arguments", "message"), [(case[:-1], case[-1]) for case in cases]
    )
    def test(arguments, message):
        with pytest.raises(error, match=message):
            by(*arguments)

    return test


def refuses(message, call, *arguments, **options):
    """Check that a call is refused with these words."""
    with pytest.raises(InputError, match=message):
        call(*arguments, **options)
