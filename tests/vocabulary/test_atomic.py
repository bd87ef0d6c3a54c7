"""Files are written whole or not at all, and nothing beside them is touched."""

import os
import stat
from pathlib import Path

import pytest

from dpaudit import InputError
from dpaudit.atomic import check_writable, replacing


@pytest.fixture
def path(tmp_path):
    """A file, beside one whose name looks like that of unfinished work."""
    (tmp_path / "keep.json.part").write_text("precious")
    yield tmp_path / "keep.json"
    assert (tmp_path / "keep.json.part").read_text() == "precious"
    assert {each.name for each in tmp_path.iterdir()} <= {"keep.json", "keep.json.part"}


def test_the_old_content_is_there_until_the_end(path):
    """New files have the usual permissions; only checking changes nothing."""
    check_writable(path)
    assert not path.exists()
    with replacing(path) as new:
        new.write_text("old")
    assert path.stat().st_mode == path.with_name("keep.json.part").stat().st_mode
    check_writable(path)
    with replacing(path) as new:
        assert new.parent == path.parent
        new.write_text("half")
        assert path.read_text() == "old"
    assert path.read_text() == "half"
    longest = path.with_name("x" * 255)
    with replacing(longest) as new:
        new.write_text("new")
    longest.unlink()


@pytest.mark.parametrize("error", [KeyboardInterrupt, InputError])
def test_a_failure_leaves_the_old_content(path, error):
    path.write_text("old")
    with pytest.raises(error), replacing(path) as new:
        raise error(new.write_text("half"))
    assert path.read_text() == "old"


def test_a_full_disk_is_said_and_leaves_the_old_content(path):
    path.write_text("old")
    with (
        pytest.raises(InputError, match=r"cannot write '.*keep\.json': No space left"),
        replacing(path),
        open("/dev/full", "w") as full,
    ):
        full.write("x")
    assert path.read_text() == "old"


def test_links_are_followed(path, tmp_path_factory):
    target = tmp_path_factory.mktemp("elsewhere") / "target.json"
    target.write_text("old")
    path.symlink_to(target)
    with replacing(path) as new:
        new.write_text("new")
    assert path.is_symlink()
    assert target.read_text() == "new"
    assert [each.name for each in target.parent.iterdir()] == ["target.json"]


def test_what_is_no_ordinary_file_is_written_to_and_stays(path):
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        check_writable(path)
        with replacing(path) as new:
            new.write_text("through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.parametrize("name", ["no/such/file", ".", "file/below"])
def test_impossible_places_are_said(tmp_path, name):
    (tmp_path / "file").write_text("")
    path = Path(f"{tmp_path}/{name}")
    with pytest.raises(InputError, match="cannot write"):
        check_writable(path)
    with pytest.raises(InputError, match="cannot write"), replacing(path) as new:
        new.write_text("")
