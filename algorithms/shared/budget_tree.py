r"""Who spent what: the privacy budget of a mechanism as a tree.

Every node has a name, what it costs as (epsilon, delta), and how its cost follows from
those of its parts:

- sequential: they read the same rows, one after the other, each knowing the outputs
  before. Epsilons add, and deltas (Dwork, Roth 2014, Theorem 3.16, which holds for
  adaptive composition too).
- parallel: under REPLACE_ONE, they read disjoint parts of the rows, and which part a
  row is in depends on its place only. One row is in one part, so the cost is that of
  the dearest. The parts may be adaptive: given all outputs before it, a part without
  the row has the same law on both datasets, and hiding it behind the others changes no
  likelihood ratio.
- accountant: the parts are composed by more than their (epsilon, delta), as a proof in
  the module of the mechanism says. The cost is stated, and it is not their sum.
"""

from dataclasses import dataclass, field
from typing import Literal, Self, TypeAlias

from dpaudit import Claim, InputError
from dpaudit.validation import Checked, Nonnegative, check_fraction

__all__ = ["BudgetTree"]

Rule: TypeAlias = Literal["leaf", "sequential", "parallel", "accountant"]


@dataclass(frozen=True)
class BudgetTree(Checked):
    """A node of the tree, and all below.

    Parameters
    ----------
    name : str
        Who spends.
    epsilon, delta : float
        What is spent, >= 0.
    rule : {"leaf", "sequential", "parallel", "accountant"}
        How it follows from the parts.
    parts : tuple of BudgetTree
    note : str
        What else there is to say, for the reader.

    Examples
    --------
    >>> halves = BudgetTree.parallel(
    ...     "a batch", BudgetTree("scale", 1.0, 1e-6), BudgetTree("mean", 0.5, 1e-5)
    ... )
    >>> print(BudgetTree.sequential("two looks", halves, BudgetTree("count", 0.25)))
    two looks: (1.25, 1e-05), the sum of its parts
      a batch: (1, 1e-05), parts read disjoint rows
        scale: (1, 1e-06)
        mean: (0.5, 1e-05)
      count: (0.25, 0)
    """

    name: str
    epsilon: Nonnegative
    delta: float = 0.0
    rule: Rule = "leaf"
    parts: tuple["BudgetTree", ...] = field(default=())
    note: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction("delta", self.delta, allow_zero=True)
        if (self.rule == "leaf") == bool(self.parts):
            raise InputError(
                f"parts must be given unless the rule is 'leaf', got {len(self.parts)} "
                f"with the rule {self.rule!r}"
            )

    @classmethod
    def of_claim(cls, name: str, claim: Claim, note: str = "") -> Self:
        """Return a leaf that costs what an (epsilon, delta) claim says."""
        epsilon, delta = claim.parameters["epsilon"], claim.parameters.get("delta", 0.0)
        return cls(name, epsilon, delta, note=note)

    @classmethod
    def sequential(cls, name: str, *parts: "BudgetTree", note: str = "") -> Self:
        """Return a node whose parts read the same rows."""
        epsilon = sum(part.epsilon for part in parts)
        delta = sum(part.delta for part in parts)
        return cls(name, epsilon, delta, "sequential", parts, note)

    @classmethod
    def parallel(cls, name: str, *parts: "BudgetTree", note: str = "") -> Self:
        """Return a node whose parts read disjoint rows."""
        epsilon = max((part.epsilon for part in parts), default=0.0)
        delta = max((part.delta for part in parts), default=0.0)
        return cls(name, epsilon, delta, "parallel", parts, note)

    @classmethod
    def accounted(
        cls, name: str, epsilon: float, delta: float, *parts: "BudgetTree", note: str
    ) -> Self:
        """Return a node whose cost is known to an accountant."""
        return cls(name, epsilon, delta, "accountant", parts, note)

    @property
    def leaves(self) -> tuple["BudgetTree", ...]:
        """The nodes without parts, in order."""
        if not self.parts:
            return (self,)
        return tuple(leaf for part in self.parts for leaf in part.leaves)

    def __str__(self) -> str:
        return "\n".join(self._lines(""))

    def _lines(self, indent: str) -> list[str]:
        how = {
            "leaf": "",
            "sequential": ", the sum of its parts",
            "parallel": ", parts read disjoint rows",
            "accountant": ", its parts composed by an accountant",
        }[self.rule]
        note = f"; {self.note}" if self.note else ""
        own = f"{indent}{self.name}: ({self.epsilon:.4g}, {self.delta:.4g}){how}{note}"
        below = [line for part in self.parts for line in part._lines(indent + "  ")]
        return [own, *below]
