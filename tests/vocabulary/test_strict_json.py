"""JSON from anybody: read in full, or refused in one sentence."""

import json
import os

import pytest
from refusals import refuses

from dpaudit.errors import InputError
from dpaudit.strict_json import read_json


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file.json"


def test_json_comes_back(path):
    value = {"a": [1, -2.5e-3, "\u00e9\n", None, True], "b": {}, "": 10**300}
    path.write_text(json.dumps(value))
    assert read_json(path) == value


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"{", "is not complete JSON"),
        (b"{} {}", "is not complete JSON: Extra data"),
        (b"\xef\xbb\xbf{}", "is not complete JSON: Unexpected UTF-8 BOM"),
        ("{}".encode("utf-16"), "is not complete JSON: 'utf-8' codec"),
        (b'"\xff"', "is not complete JSON: 'utf-8' codec"),
        (b"[NaN]", "NaN is no number of JSON's"),
        (b"-Infinity", "-Infinity is no number"),
        (b"1e999", "1e999 is beyond what a double holds"),
        (b"-1" + b"0" * 1000 + b".0", "is beyond what a double holds"),
        (b"9" * 5000, "integers have at most 400 digits"),
        (b'{"a": 1, "b": 2, "a": 1}', "the key 'a' occurs twice"),
        (b'{"\\u001b[31m": 1, "\\u001b[31m": 1}', r"the key '\\x1b\[31m' occurs twice"),
        (b"[" * 100_000, "is nested too deeply"),
        (b"[" * 120 + b"]" * 120, "nested at most 100 deep"),
    ],
)
def test_what_is_refused(path, content, sentence):
    path.write_bytes(content)
    with pytest.raises(InputError, match=sentence) as caught:
        read_json(path)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in (".", "pipe", "/dev/zero"):
        refuses("not a regular file", read_json, tmp_path / name)
    for name in ("missing", "x" * 5000, "missing/file"):
        refuses("cannot read", read_json, tmp_path / name)
    refuses(r"null (byte|character)", read_json, tmp_path / "a\0b")


def test_large_files_are_not_read(path):
    path.touch()
    os.truncate(path, 2**27)  # a hole: it takes no room
    refuses("is not complete JSON", read_json, path)
    os.truncate(path, 2**27 + 1)
    refuses(r"at most 134,217,728 .* and has 134,217,729", read_json, path)
