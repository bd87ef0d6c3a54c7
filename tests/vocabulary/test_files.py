import json
import os
import stat
from pathlib import Path

import pytest
from refusals import refuses

from dpaudit import InputError
from dpaudit.atomic import check_writable, replacing
from dpaudit.strict_json import read_json


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file.json"


def test_json_comes_back_unless_it_is_large(path):
    value = {"a": [1, -2.5e-3, "\u00e9\n", None, True], "b": {}, "": 10**300}
    path.write_text(json.dumps(value))
    assert read_json(path) == value
    path.touch()
    os.truncate(path, 2**27)  # a hole: it takes no room
    refuses("is not complete JSON", read_json, path)
    os.truncate(path, 2**27 + 1)
    refuses(r"at most 134,217,728 .* and has 134,217,729", read_json, path)


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


@pytest.fixture
def path_2(tmp_path):
    """A file, beside one whose name looks like that of unfinished work."""
    (tmp_path / "keep.json.part").write_text("precious")
    yield tmp_path / "keep.json"
    assert (tmp_path / "keep.json.part").read_text() == "precious"
    assert {each.name for each in tmp_path.iterdir()} <= {"keep.json", "keep.json.part"}


def test_the_old_content_is_there_until_the_end(path_2):
    """New files have the usual permissions; only checking changes nothing."""
    check_writable(path_2)
    assert not path_2.exists()
    with replacing(path_2) as new:
        new.write_text("old")
    assert path_2.stat().st_mode == path_2.with_name("keep.json.part").stat().st_mode
    check_writable(path_2)
    with replacing(path_2) as new:
        assert new.parent == path_2.parent
        new.write_text("half")
        assert path_2.read_text() == "old"
    assert path_2.read_text() == "half"
    longest = path_2.with_name("x" * 255)
    with replacing(longest) as new:
        new.write_text("new")
    longest.unlink()


@pytest.mark.parametrize("error", [KeyboardInterrupt, InputError])
def test_a_failure_leaves_the_old_content(path_2, error):
    path_2.write_text("old")
    with pytest.raises(error), replacing(path_2) as new:
        raise error(new.write_text("half"))
    assert path_2.read_text() == "old"


def test_a_full_disk_is_said_and_leaves_the_old_content(path_2):
    path_2.write_text("old")
    with (
        pytest.raises(InputError, match=r"cannot write '.*keep\.json': No space left"),
        replacing(path_2),
        open("/dev/full", "w") as full,
    ):
        full.write("x")
    assert path_2.read_text() == "old"


def test_links_are_followed(path_2, tmp_path_factory):
    target = tmp_path_factory.mktemp("elsewhere") / "target.json"
    target.write_text("old")
    path_2.symlink_to(target)
    with replacing(path_2) as new:
        new.write_text("new")
    assert path_2.is_symlink()
    assert target.read_text() == "new"
    assert [each.name for each in target.parent.iterdir()] == ["target.json"]


def test_what_is_no_ordinary_file_is_written_to_and_stays(path_2):
    os.mkfifo(path_2)
    reader = os.open(path_2, os.O_RDONLY | os.O_NONBLOCK)
    try:
        check_writable(path_2)
        with replacing(path_2) as new:
            new.write_text("through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(path_2.stat().st_mode)


@pytest.mark.parametrize("name", ["no/such/file", ".", "file/below"])
def test_impossible_places_are_said(tmp_path, name):
    (tmp_path / "file").write_text("")
    path_2 = Path(f"{tmp_path}/{name}")
    refuses("cannot write", check_writable, path_2)
    with pytest.raises(InputError, match="cannot write"), replacing(path_2) as new:
        new.write_text("")
