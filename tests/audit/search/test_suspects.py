from functools import partial

from dpaudit import Domain
from dpaudit.audit.search.suspects import suspects
from dpaudit.neighbours import Relation

VAST, EVIL = 10**400, None  # the latter is replaced
DOMAIN = Domain.parse("list of 0..100")


def executed(*_):
    raise RuntimeError("executed")


class Kind(type):
    __eq__, __hash__ = executed, type.__hash__


class Evil(metaclass=Kind):
    __eq__ = __getattr__ = executed
    __hash__ = None


class Mechanism:
    """With attributes of names that functions with settings have."""

    keywords, given = ("a", "b"), 3

    def release(self, rows, *, rng):
        return len(rows) == 7


class Computed(Mechanism):
    keywords = given = func = property(executed)


def compares(rows, rng, limit=7, vast=0):
    return len(rows) == limit or sum(rows) == VAST or rng == EVIL


def strange(**attributes):
    def function(rows, rng):
        return len(rows) == 7

    for name, value in attributes.items():
        setattr(function, f"__{name}__", value)
    return function


def made(mechanism, domain=DOMAIN):
    return list(suspects(mechanism, domain, Relation.ADD_REMOVE))


def test_sizes_are_read_of_whatever_has_code_and_nothing_is_executed(monkeypatch):
    evil = Evil()
    monkeypatch.setitem(compares.__globals__, "EVIL", evil)
    plain = [compares, lambda d, r: len(d) == 7, Mechanism(), Mechanism().release]
    bound = partial(partial(compares, limit=3), limit=7, vast=evil)
    names = strange(module=3), strange(signature=evil), strange(wrapped=evil)
    around = strange(code=executed.__code__, wrapped=compares)
    for mechanism in (*plain, Computed(), bound, *names, around):
        assert {6, 7} <= {len(cut.common) for cut in made(mechanism)}
    unread = {}
    exec("def unread(rows, rng): return len(rows) == 7", unread)
    for mechanism in (evil, Evil, Mechanism, len, unread["unread"]):
        assert made(mechanism) == []


def test_of_wide_rows_a_dozen_is_made():
    def tells(rows, rng):
        return rows[0][0] in (0.1, 0.2, 0.3, 0.4)

    assert len(made(tells, Domain.parse("box:0,1:3000"))) == 12
