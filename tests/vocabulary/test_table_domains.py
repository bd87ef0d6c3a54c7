import numpy as np
import pandas as pd
import pytest
from refusals import refuses

from dpaudit import Domain, PureDP
from dpaudit.audit import audit, replay, verify
from dpaudit.audit.replay import load_witness, verify_replay
from dpaudit.neighbours import Relation

FORMS = {
    "a:0..9 b:{f,m}": pd.DataFrame({"a": [0, 9], "b": ["f", "m"]}),
    "a:0.0..9?": pd.DataFrame({"a": [0.0, 9.0]}),
    "arrays of a:0..9 b:{f,m}": {"a": np.array([0, 9]), "b": np.array(["f", "m"])},
    "records of a:0..9 b:{f,m}": [{"a": 0, "b": "f"}, {"a": 9, "b": "m"}],
    **{"list of label": ["a", "z"], "set of {1,2.5}": {1, 2.5}},
    "0.0..9": np.array([0.0, 9.0]),
    "series of 0..9": pd.Series([0, 9]),
    "series of a:{f,m}": pd.Series(["f", "m"], name="a"),
}


def handed(text, *rows, relation=Relation.ADD_REMOVE):
    domain = Domain.parse(text)
    whole = np.array(rows, dtype=float)
    return domain.pair(whole[:-1], whole, relation)


@pytest.mark.parametrize("text", FORMS)
def test_a_mechanism_is_handed_what_it_was_written_for(text):
    domain = Domain.parse(text)
    lowest, highest = ([getattr(c, e) for c in domain.columns] for e in ("low", "high"))
    pair = handed(text, lowest, highest)
    given, expected = pair.neighbour, FORMS[text]
    assert type(given) is type(expected)
    if isinstance(expected, dict):
        assert given.keys() == expected.keys()
        assert all((given[name] == expected[name]).all() for name in expected)
        kinds = [[c.dtype.kind for c in each.values()] for each in (given, expected)]
        assert kinds[0] == kinds[1]
    elif isinstance(expected, pd.DataFrame):
        pd.testing.assert_frame_equal(given, expected)
        empty = handed(text, lowest).data
        assert list(empty.dtypes) == list(expected.dtypes)
    elif isinstance(expected, pd.Series):
        pd.testing.assert_series_equal(given, expected)
    else:
        assert list(given) == list(expected)
    # What is read from it is of the same form, and allows the same.
    read = Domain.like(expected)
    assert read.form == domain.form
    assert str(Domain.parse(str(read))) == str(read)
    assert "public" in read.note


def test_neighbours_differ_in_a_user_with_all_rows():
    domain = Domain.parse("x:0..9 user:label each=2")
    one, two = [1, 4, 1, 5], [1, 7, 0, 0]
    whole = np.array([one, two, one], dtype=float)
    pair = domain.pair(whole[[0, 2]], whole, Relation.ADD_REMOVE)
    assert pair.data.user.tolist() == ["a", "a", "c", "c"]
    assert pair.neighbour.user.tolist() == ["a", "a", "b", "c", "c"]
    assert pair.neighbour.x.tolist() == [4, 5, 7, 4, 5]
    assert (pair.checked, pair.sizes) == (True, (-1, -1))
    # A user without rows would be none: the first is always there.
    assert domain.project(np.zeros(4)).tolist() == [1, 0, 0, 0]


def test_rows_of_one_element_make_no_neighbours_and_users_may_be_many():
    assert handed("set of {a,b}", [0], [0]) is None
    domain = Domain.parse("user:label x:0..1 rows=30")
    users = np.array([domain.extremes()[-1]] * 60)
    pair = domain.pair(users[:-1], users, Relation.ADD_REMOVE)
    assert pair.neighbour["user"].nunique() == 60
    assert set(pair.neighbour["user"]) - set(pair.data["user"]) == {"h2"}


REFUSED = {
    "": "domain must be columns",
    "age:0..inf": "range of column 'age' must be finite, got .*as 0..1e9",
    "age:5..5": "two values at least, got 5..5: a column that is always the same",
    **{"sex:{f,f}": "each value once", "sex:{f}": "two values"},
    "age:0..9 age:0..9": "different names",
    "age=0..9": "a column is NAME:LOW..HIGH, .*got 'age=0..9'",
    "user:label": "one column of users at most, and another one beside it",
    "frame of 0..9": "columns of frame need names, as value:0..1",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_wrong_with_a_text_is_said_with_the_remedy(text):
    refuses(REFUSED[text], Domain.parse, text)


EXAMPLES = {
    "records must have the same keys": [{"a": 1}, {"b": 2}],
    "'a' mixes numbers and texts: make its entries all": pd.DataFrame({"a": [1, "x"]}),
    "columns must be of one length": {"a": [1, 2], "b": [1]},
    "must be a frame, a dictionary of arrays": 3.5,
    "'a' must hold two values at least": [{"a": 1}, {"a": 1}],
    "'a' has no entries": pd.DataFrame({"a": []}),
}


@pytest.mark.parametrize("message", EXAMPLES)
def test_what_is_wrong_with_an_example_is_said(message):
    refuses(message, Domain.like, EXAMPLES[message])


def by_group(frame, rng):
    women = frame[frame.sex == "f"]
    return len(women) and len(frame) / 5 + rng.laplace()


def test_an_audit_of_frames_is_kept_in_a_witness(tmp_path):
    asked = {"domain": "age:0..100 sex:{f,m}", "relation": "add-remove"}
    for ask, again in ((audit, verify), (replay, verify_replay)):
        result = ask(by_group, claim=PureDP(1.0), **asked)
        assert result.refuted
        result.witness.save(tmp_path / "witness.json")
        witness = load_witness(tmp_path / "witness.json")
        pd.testing.assert_frame_equal(witness.pair.data, result.witness.pair.data)
        assert again(witness).confirmed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("list of 0..1", "0..1 has integers alone, 0.0..1.0 all numbers"),
        ("age:0..90 y:-1..1?", "y:-1..1? has integers alone, y:-1.0..1.0? all numbers"),
        ("list of 0.0..1.0", ""),
        ("array of {0,1}", ""),
        ("age:0..90", ""),
    ],
)
def test_ranges_of_a_few_integers_are_told_as_real_numbers_may_be_meant(text, said):
    assert Domain.parse(text).note == said
