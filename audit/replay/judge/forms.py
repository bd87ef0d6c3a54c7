r"""What the form of a release tells: types, order, names, and how numbers are written.

The recorder's numbers are all of one type, so that the form is read off executions
with ordinary numbers (`dpaudit.audit.replay.follow.forms`). Where one on D and one on
D' have the same form, nothing more is done. Else some more of either side, from seeds
of their own, and without a recorder, choose a part of the form: what stands there is
always t on one side, and never on the other. Let S be the releases in which t stands
there.

**Where nothing was looked at** before the release, the code did not depend on any draw,
and neither do types, texts and names, as numbers move none of these without a look (but
for the sign of a zero, and how many digits a `Decimal` has). They are functions of the
dataset; S has probability 1 on one side and 0 on the other, and the two laws are
mutually singular: a proof, as of other layouts, which repeated executions confirm.

**Else** noise may decide the form: the number that is shown only if it is positive, the
digits of a text. Then S is an event like others, chosen before the executions that
test it. If the claim is true, a pair of them has S on the one side and not on the other
with probability at most ((e^epsilon + delta)/(e^epsilon + 1))^2, whatever S has to do
with noise (`dpaudit.audit.replay.judge.repeated`). So it is refuted, at half of the
error that is left, if too many pairs of a number that is fixed come out so; and if not,
what else was found decides.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from dpaudit.audit.replay.execute.executor import both_again, execute
from dpaudit.audit.replay.follow.forms import LIBRARY, Form, form_of
from dpaudit.audit.replay.follow.trail import Trail, parted
from dpaudit.audit.replay.judge.source import handed, returns
from dpaudit.audit.sampling.draws import ways_to_draw
from dpaudit.errors import DPAuditError
from dpaudit.neighbours import fresh
from dpaudit.outputs import raised_by_signal, telling_interrupts
from dpaudit.printable import printable

__all__ = ["FormDifference"]

_CHOOSING = 8  # executions a side
_KEPT = 5  # executions a side in which variables are looked at
_MOST_LINES = 300  # of which variables are kept
_PLAIN = int, float, str
_Places: TypeAlias = tuple[str, str]
_Seen: TypeAlias = list[tuple[Form, Form]]
_History: TypeAlias = list[tuple[int, str | None, Form]]
"""After how many lines a variable had which form, and what it was if plain."""


@dataclass
class FormDifference:
    """A part of the form of releases that is another on D'.

    Parameters
    ----------
    mechanism : Mechanism or callable
    pair : Pair or ObjectPair
    seed : int
        Of these executions.
    seen : list of (Form, Form)
        On D and on D'.
    executions : int
        On either side.
    part : str
        Where in the release it stands.
    shown : tuple of (str or None)
        What stood there on D and on D'.
    steady : int
        The side on which that is always so: 0 for D.
    otherwise : bool
        Whether an execution came out otherwise.
    unsure : str
        A number that is Python's on one side and NumPy's on the other, if there is any
        and there are rows on either.
    """

    mechanism: Any
    pair: Any
    seed: int
    seen: _Seen = field(init=False, default_factory=list)
    executions: int = field(init=False, default=0)
    part: str = field(init=False, default="")
    shown: tuple[str | None, str | None] = field(init=False, default=(None, None))
    steady: int = field(init=False, default=0)
    otherwise: bool = field(init=False, default=False)
    unsure: str = field(init=False, default="")

    def is_chosen(self, forms: Sequence[Form] = ()) -> bool:
        """Choose a part that differs each time, and say whether there is one.

        `forms` are those of a release on D and one on D', if they are known.
        """
        seen = self.seen
        try:
            if len(forms) == 2:
                seen.append((forms[0], forms[1]))
            elif not seen:
                self._execute()
            parts = _that_differ(seen, [*seen[0][0], *seen[0][1]])
            while parts and len(seen) < _CHOOSING:
                self._execute()
                parts = _that_differ(seen, parts)
        except DPAuditError:
            return False
        # Whose a number is hangs on how many rows are summed, and shows in few texts.
        parts, whose = (
            [part for part in parts if part.endswith(LIBRARY) == of_library]
            for of_library in (False, True)
        )
        both = [part for part in whose if all(part in form for form in seen[0])]
        rows = all(map(_has_rows, (self.pair.data, self.pair.neighbour)))
        self.unsure = "".join(both[:1] if rows else [])
        if not parts:
            return False
        # What is one thing on either side goes first; then as a form is read.
        self.part = min(parts, key=lambda part: not all(_steady(seen, part)))
        self.shown = seen[0][0].get(self.part), seen[0][1].get(self.part)
        self.otherwise = False
        self.steady = _steady(seen, self.part).index(True)
        return True

    def again(self, turn: int) -> tuple[bool, int]:
        """Execute both sides for the n-th time; say whether they differ as before."""
        try:
            both = self._execute()
        except DPAuditError:
            both = {}, {}
        found = [form.get(self.part) == self.shown[self.steady] for form in both]
        alike = found[self.steady] and not found[1 - self.steady]
        self.otherwise |= not alike
        return alike, 1

    def _execute(self) -> tuple[Form, Form]:
        """Execute both sides from seeds of their own, and keep the forms."""
        self.executions += 1
        sides = self.pair.data, self.pair.neighbour
        self.seen.append(both_again(self.seed, self.executions, sides, self._form))
        return self.seen[-1]

    @telling_interrupts()
    def _form(self, data: Any, seed: int) -> Form:
        """Return the form of a release that no recorder had to do with."""
        one, _ = ways_to_draw(self.mechanism)
        try:
            released = one(fresh(data), np.random.default_rng(seed))
        except BaseException as error:
            if isinstance(error, DPAuditError) or raised_by_signal(error):
                raise
            return form_of(error)
        return form_of(released)

    @property
    def of_numbers(self) -> bool:
        """Whether it is a form that numbers have: the sign of a zero, an exponent."""
        words = " of sign", " of exponent"
        return any(word in (each or "") for each in self.shown for word in words)

    def __str__(self) -> str:
        part = self.part.removeprefix(".")
        what = f"at {printable(part)} " if part else ""
        here, there = (
            "nothing" if each is None else printable(each, longest=80)
            for each in self.shown
        )
        return (
            f"the form of the release is another: {what}it is {here} on D and {there} "
            "on D'"
        )

    # -- where it was made

    def places(self) -> _Places | None:
        """Return the lines that made the part what it is, on D and on D'."""
        sides = self.pair.data, self.pair.neighbour
        runs = [[self._kept(data, turn) for turn in range(_KEPT)] for data in sides]
        one, other = (run[0] for run in runs)
        if not (one.end and other.end and one.whole and other.whole):
            return None
        (call, *_), (call2, *_) = one.end, other.end
        if one.stack((call,)) != other.stack((call2,)):
            return parted(one, other, (call,), (call2,))
        code = one.frames[call[0]].code
        line = one.frames[call[0]].lines[call[1] - 1]
        value, part = _within(returns(code.co_filename).get(line), self.part)
        own = code.co_varnames[code.co_argcount :]
        value = handed(value)
        if isinstance(value, ast.Name):
            return self._bound((one, other), value.id, part)
        for name in _names(value):
            here, there = ({_in_the_end(run, name) for run in side} for side in runs)
            if name in own and len(here) == len(there) == 1 and here != there:
                return self._bound((one, other), name, "")
        return one.place(call), other.place(call2)

    def _kept(self, data: Any, turn: int) -> "_Variables":
        trail = _Variables("*")
        execute(self.mechanism, data, self.seed - turn, follows=False, trail=trail)
        return trail

    def _bound(
        self, trails: "tuple[_Variables, _Variables]", name: str, part: str
    ) -> _Places:
        """Return the lines after which a variable was as it is in the end."""
        calls = [(trail.end[0][0], trail.since(name, part)) for trail in trails]
        one, other = (t.place(call) for t, call in zip(trails, calls, strict=True))
        if one != other:  # the last line on both ways
            ways = (t.frames[t.end[0][0]].lines for t in trails)
            pairs = enumerate(zip(*ways, strict=False))
            first = next((n for n, (here, there) in pairs if here != there), 0)
            one = other = trails[0].place((calls[0][0], first)) if first else one
        return one, other


@dataclass(eq=False)
class _Variables(Trail):
    """The variables of the outermost function, whenever they change."""

    variables: dict[str, _History] = field(default_factory=dict)

    def _watch(self, frame: Any, variables: Mapping[str, Any]) -> None:
        if len(frame.lines) > _MOST_LINES:
            self.whole = False
            return
        for name, value in variables.items():
            plain = repr(value) if isinstance(value, _PLAIN) else None
            now = plain, form_of(value)
            history = self.variables.setdefault(name, [])
            if not history or history[-1][1:] != now:
                history.append((len(frame.lines), *now))

    def since(self, name: str, part: str) -> int:
        """Return after how many lines a part of a variable was as it is in the end."""
        history = self.variables.get(name, [])
        ours = [(c, f[part] if part in f else (p, f)) for c, p, f in history]
        number = len(ours) - 1
        while number > 0 and ours[number - 1][1] == ours[-1][1]:
            number -= 1
        return ours[number][0] if ours else self.end[0][1]


def _has_rows(data: Any) -> bool:
    try:
        return len(data) > 0
    except TypeError:
        return True


def _that_differ(seen: _Seen, among: list[str]) -> list[str]:
    """Return parts that are one thing on a side, and never that on the other."""
    return [part for part in dict.fromkeys(among) if any(_steady(seen, part))]


def _steady(seen: _Seen, part: str) -> list[bool]:
    """Say on which sides a part is one thing, and never that on the other."""
    here, there = (
        [form.get(part) for form in side] for side in zip(*seen, strict=True)
    )
    return [
        len(set(one)) == 1 and one[0] not in other
        for one, other in ((here, there), (there, here))
    ]


def _in_the_end(trail: _Variables, name: str) -> str | None:
    """Return a number or word that a variable is in the end, None if it is neither."""
    history = trail.variables.get(name)
    return history[-1][1] if history else None


def _names(value: ast.AST | None) -> list[str]:
    """Return the variables in an expression."""
    names: dict[str, None] = {}
    waiting = [value]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Name):
            names[node.id] = None
        elif isinstance(node, ast.IfExp):  # what it is made of, not what chooses
            waiting += [node.body, node.orelse]
        elif node is not None:
            waiting += ast.iter_child_nodes(node)
    return list(names)


def _within(value: ast.expr | None, part: str) -> tuple[ast.expr | None, str]:
    """Return the expression of a part of what one makes, and where in that it is."""
    while part:
        if isinstance(value, ast.Tuple | ast.List):
            named = {f"[{number}]": each for number, each in enumerate(value.elts)}
        elif isinstance(value, ast.Dict):
            pairs = zip(value.keys, value.values, strict=True)
            named = {f"[{ast.unparse(key)}]": each for key, each in pairs if key}
        else:
            break
        step = next((each for each in named if part.startswith(each)), None)
        if step is None:
            break
        value, part = named[step], part[len(step) :]
    return value, part
