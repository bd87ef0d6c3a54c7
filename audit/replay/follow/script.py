"""The script of an execution that is repeated: the noisy values that are given back."""

from dataclasses import dataclass

from dpaudit.arrays import Array
from dpaudit.audit.replay.follow.observations import Observations
from dpaudit.audit.replay.follow.places import Unfollowed
from dpaudit.audit.replay.laws.choices import ChoiceLaw
from dpaudit.audit.replay.laws.comparison import AnyLaw

__all__ = ["Script"]


@dataclass
class Script:
    """What an execution is given for its noisy values, and where it left that.

    Parameters
    ----------
    values : Observations, optional
        Of the execution that is repeated. If there are none, nothing is given.
    goes_on : bool
        Whether the execution may go on by itself where these end.
    diverged : Unfollowed, optional
        Where the execution came to another noisy value, or to one more.
    left_at_choice : bool
        Whether that was at a choice, which may be hidden.
    """

    values: Observations | None = None
    goes_on: bool = False
    diverged: Unfollowed | None = None
    left_at_choice: bool = False

    def output(
        self, number: int, law: AnyLaw, shape: tuple[int, ...], place: str
    ) -> Array | None:
        """Return the value that is given for a noisy value, if there is one."""
        if self.values is None or self.diverged is not None:
            return None
        if number >= len(self.values):
            if not self.goes_on:
                self.diverged = Unfollowed(place, "one noisy value more than on D")
                self.left_at_choice = type(law) is ChoiceLaw
            return None
        given_shape, given = self.values.output(number)
        there = self.values.law_of(number)
        why = ""
        if there is not None and type(law) is not there[0]:
            why = f"{there[1]} on D is {law.kind} on D'"
        elif given_shape != shape:
            why = f"a noisy value has shape {given_shape} on D and {shape} on D'"
        if why:
            self.diverged = Unfollowed(place, why)
            self.left_at_choice = ChoiceLaw in (type(law), there and there[0])
            return None
        if type(law) is ChoiceLaw and given.size and given.max() >= law.outcomes:
            self.diverged = Unfollowed(place, "an outcome on D is none on D'")
            return None
        return given.copy()
