"""What is said of each mechanism of the corpus, and where a wrong one is at fault."""

import copy
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np

from dpaudit import Claim, Pair

MODULES = (
    "noise",
    "discrete",
    "generators",
    "frames",
    "estimators",
    "training",
    "models",
    "secrets",
    "branches",
    "choices",
    "aggregates",
    "tables",
    "trees",
    "shared",
    "services",
    "sketches",
    "exact",
    "local",
    "glue",
    "shown",
    "forms",
    "sources",
    "reported_sums",
    "reported_noise",
    "reported_tables",
    "reported_users",
    "reported_choices",
    "reported_training",
)
STYLES: dict[str, "Style"] = {}


@dataclass(frozen=True)
class Style:
    """A mechanism, what it claims, and what is true of it.

    Parameters
    ----------
    name : str
    mechanism : object
        A function (data, rng), or an object with a method `release`.
    what : str
        One line on the style.
    claim : Claim
    pair : Pair
        A worst one. Its relation is the claim's.
    why : str
        One line of proof, of a right one that is not obvious.
    fault : str
        What is wrong; empty for a right one.
    sees : {"release", "transcript"}
        Whom the claim is about.
    batches : {"secret", "public"}
        Whether the claim rests on batches that nobody sees.
    domain : str
        Which rows are legal, if more pairs than one are.
    source : str
        Where it is written like that.
    text : object
        Whose source has the line at fault.
    twin : str
        Which right one a wrong one was meant to be.
    """

    name: str
    mechanism: Any
    what: str
    claim: Claim
    pair: Pair
    why: str = ""
    fault: str = ""
    sees: Literal["release", "transcript"] = "release"
    batches: Literal["secret", "public"] = "secret"
    domain: str = ""
    source: str = "common practice"
    text: Any = None
    twin: str = ""

    @property
    def right(self) -> bool:
        """Whether the claim holds."""
        return not self.fault

    def lines(self, mark: str) -> list[tuple[str, int]]:
        """Return file and number of each line that ends in a mark."""
        lines, first = inspect.getsourcelines(self.text)
        file = inspect.getsourcefile(self.text) or ""
        marked = enumerate(lines, first)
        return [(file, n) for n, line in marked if line.rstrip().endswith(mark)]

    def faults(self) -> list[tuple[str, int]]:
        """Return the lines at fault; a wrong mechanism has one."""
        return self.lines("# fault")

    def parts(self) -> list[tuple[str, int]]:
        """Return further lines that may be accused as well, as they take part in it."""
        return self.lines("# part")

    def run(self, data: Any, seed: int) -> Any:
        """Return a release, as without any audit."""
        call = getattr(self.mechanism, "release", self.mechanism)
        return call(copy.deepcopy(data), rng=np.random.default_rng(seed))


def right(claim: Claim, pair: Pair, why: str = "", **more: Any) -> Callable[[Any], Any]:
    """Register a mechanism whose claim holds."""
    return _registering(claim, pair, {"why": why, **more})


def wrong(claim: Claim, pair: Pair, fault: str, **more: Any) -> Callable[[Any], Any]:
    """Register a mechanism whose claim is false on a pair."""
    return _registering(claim, pair, {"fault": fault, **more})


def reported(
    source: str, claim: Claim, pair: Pair, fault: str, twin: Any, **more: Any
) -> Callable[[Any], Any]:
    """Register a fault that was reported, and what had been meant.

    Parameters
    ----------
    source : str
        ``owner/name#number`` on GitHub, ``arXiv:number`` or an address.
    claim, pair, fault
        As of `wrong`.
    twin : callable
        The right version; its docstring says why its claim holds.
    """
    url = re.sub(r"^arXiv:", "https://arxiv.org/abs/", source)
    url = re.sub(r"^([\w.-]+/[\w.-]+)#(\d+)$", r"https://github.com/\1/issues/\2", url)
    more["source"] = url
    right(claim, pair, **more)(twin)
    return wrong(claim, pair, fault, twin=twin.__name__, **more)


def _registering(claim: Claim, pair: Pair, more: dict[str, Any]) -> Callable:
    def register(thing: Any) -> Any:
        text = more.pop("text", thing)
        name = more.pop("name", None) or thing.__name__
        what = more.pop("what", None) or (thing.__doc__ or "").splitlines()[0]
        mechanism = thing() if inspect.isclass(thing) else thing
        if name in STYLES:
            raise ValueError(f"two mechanisms have the name {name}")
        STYLES[name] = Style(name, mechanism, what, claim, pair, text=text, **more)
        return thing

    return register


def corpus() -> dict[str, Style]:
    """Return all of the corpus by name."""
    for module in MODULES:
        import_module(f"benchmarks.styles.{module}")
    return STYLES
