import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.printable import printable


@given(st.text(), st.integers(10, 600))
def test_whatever_comes_is_one_printable_line(text, longest):
    shown = printable(text, longest=longest)
    assert shown.isprintable()
    assert len(shown) <= 10 * longest
    shown.encode("utf-8")


@given(st.text(st.characters(categories=["L", "N", "P", "S"]), max_size=500))
def test_printable_text_stays_as_it_is(text):
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\x1b[31mred\x1b]0;title\x07", r"\x1b[31mred\x1b]0;title\x07"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("line\u2028 paragraph\u2029 next\x85", r"line\u2028 paragraph\u2029 next\x85"),
        *(("half \ud800", r"half \ud800"), (ValueError("two\nlines"), r"two\nlines")),
        *((None, "None"), ("x" * 600, "x" * 247 + "[...]" + "x" * 247)),
    ],
)
def test_what_is_escaped(text, shown):
    assert printable(text) == shown
