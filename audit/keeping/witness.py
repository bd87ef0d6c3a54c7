"""Witnesses: refutations that can be replayed.

A witness holds the mechanism (by import), both datasets, the claim and one event. It
proves nothing by itself: `dpaudit.audit.verify` draws fresh releases, on any machine,
and tests that one event with an error budget of its own, so that a forged or lucky
witness is confirmed with probability at most 1 - confidence. Reading one runs nothing
(`dpaudit.audit.keeping.stored_witness`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks import BITS, PORTFOLIO
from dpaudit.audit.canonical import ReleaseGrid
from dpaudit.audit.keeping.stored_witness import StoredWitness, array, text
from dpaudit.audit.layers.layer import Layer
from dpaudit.claims import ApproxDP, Claim, PureDP
from dpaudit.codec import decode, encode
from dpaudit.errors import InputError
from dpaudit.neighbours import Pair
from dpaudit.printable import printable
from dpaudit.strict_json import read_json
from dpaudit.validation import (
    check_count,
    check_fraction,
    check_nonnegative,
    check_positive,
)

__all__ = ["Witness", "grid_of"]

_LARGEST_COUNT = 2**53  # up to which doubles count exactly
_BITS, _SMALLEST = 30, -1074  # that an entry keeps; the least exponent
_STEPS = 64  # of the grid of scores
_MOST_PARAMETERS = 2**24  # entries, of the attack's arrays together


@dataclass(frozen=True)
class Witness(StoredWitness):
    """One violated event, and what it takes to draw from both sides again.

    Parameters
    ----------
    name, mechanism, claim, pair, seed
        See `StoredWitness`.
    at_epsilon, at_delta : float
        The reference point of the audit (the claim's own for (epsilon, delta) claims).
    layer : str
        Whether releases ("black-box") or transcripts ("transcript") are scored.
    layout : str
        Of the outputs whose numbers the attack scores; empty if it reads whole outputs.
    attack : str
    parameters : mapping of str to ndarray
    resolution, offset : float
        Of the grid of scores.
    canon : mapping of str to mapping of str to ndarray
        By layout the grids that releases were put on, as
        `dpaudit.audit.canonical.ReleaseGrid` names its arrays; empty if attacks saw
        doubles as they were.
    threshold : float
        The event: the rounded score is >= threshold, which may be infinite.
    counts : tuple of int
        Hits and scores seen on the data, then on the neighbour, when it was found.
    confidence : float
    samples : int
        Of the audit that found it.
    log_evidence : float
    versions : dict
        Of Python and the packages used.
    """

    form: ClassVar[str] = "dpaudit-witness"
    version: ClassVar[int] = 3
    older: ClassVar[tuple[int, ...]] = (2,)

    name: str
    mechanism: Any
    claim: Claim
    at_epsilon: float
    at_delta: float
    pair: Pair
    layer: str
    layout: str
    attack: str
    parameters: dict[str, Any]
    resolution: float
    offset: float
    canon: dict[str, dict[str, Any]]
    threshold: float
    counts: tuple[int, int, int, int]
    confidence: float
    samples: int
    seed: int
    log_evidence: float
    versions: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return the witness as JSON-ready Python."""
        hits, scored, hits_neighbour, scored_neighbour = self.counts
        return {
            "format": self.form,
            "version": self.version,
            "name": self.name,
            "mechanism": self.mechanism,
            "claim": encode(self.claim),
            "reference": {"epsilon": self.at_epsilon, "delta": self.at_delta},
            **self._stored_pair(self.pair),
            "layer": self.layer,
            "layout": self.layout,
            "event": {
                "attack": self.attack,
                "parameters": encode(self.parameters),
                "resolution": self.resolution,
                "offset": self.offset,
                "canonical": encode(self.canon),
                "score_at_least": encode(self.threshold),
            },
            "counts": {
                "data": {"hits": hits, "releases": scored},
                "neighbour": {"hits": hits_neighbour, "releases": scored_neighbour},
            },
            "found": {
                "confidence": self.confidence,
                "samples": self.samples,
                "seed": self.seed,
                "log_evidence": self.log_evidence,
            },
            "versions": self.versions,
        }

    @classmethod
    def _read(cls, stored: dict[str, Any]) -> Self:
        event, counts, found = stored["event"], stored["counts"], stored["found"]
        reference = stored["reference"]
        if stored["version"] == 2:
            event = _of_version_2(event)
        # In one go, for what all arrays together may hold is bounded.
        values = decode(
            {
                "claim": stored["claim"],
                "data": stored["data"],
                "neighbour": stored["neighbour"],
                "parameters": event["parameters"],
                "canonical": event["canonical"],
                "threshold": event["score_at_least"],
            }
        )
        witness = cls(
            **cls._accusation(stored, values),
            at_epsilon=check_positive("the reference epsilon", reference["epsilon"]),
            at_delta=check_fraction(
                "the reference delta", reference["delta"], allow_zero=True
            ),
            layer=text("layer", stored["layer"]),
            layout=text("layout", stored["layout"]),
            attack=text("attack", event["attack"]),
            parameters=_parameters(values["parameters"]),
            resolution=check_positive("the resolution", event["resolution"]),
            offset=check_fraction("the offset", event["offset"], allow_zero=True),
            canon=_canon(values["canonical"]),
            threshold=_threshold(values["threshold"]),
            counts=(*_seen(counts, "data"), *_seen(counts, "neighbour")),
            confidence=check_fraction("the confidence", found["confidence"]),
            samples=_count("samples", found["samples"], minimum=1),
            seed=check_count("the seed", found["seed"], minimum=0),
            log_evidence=check_nonnegative("log_evidence", found["log_evidence"]),
            versions={
                text("versions", key): text("versions", value)
                for key, value in stored["versions"].items()
            },
        )
        witness.check()
        return witness

    def check(self) -> None:
        """Find out whether the parts belong together: of one that others made.

        Raises
        ------
        InputError
            If they contradict each other, or there is no such attack or layer.
        """
        hits, scored, hits_neighbour, scored_neighbour = self.counts
        if not (
            0 <= hits <= scored
            and 0 <= hits_neighbour <= scored_neighbour
            and min(scored, scored_neighbour) >= 1
        ):
            raise InputError(f"the witness's counts do not add up: {self.counts}")
        stated = self.claim.parameters
        point = {"epsilon": self.at_epsilon, "delta": self.at_delta}
        if isinstance(self.claim, PureDP | ApproxDP) and point != {"delta": 0.0} | dict(
            stated
        ):
            raise InputError(
                f"the witness's reference point {point} is not that of its claim "
                f"{self.claim}"
            )
        if not isinstance(self.parameters, dict) or not all(
            isinstance(value, np.ndarray) for value in self.parameters.values()
        ):
            raise InputError(
                f"the witness's parameters must be named arrays, got {self.parameters}"
            )
        if self.layer not in (Layer.BLACK_BOX, Layer.TRANSCRIPT):
            raise InputError(f"the witness names an unknown layer {self.layer!r}")
        if self.attack not in {attack.name for attack in PORTFOLIO + BITS}:
            raise InputError(f"the witness names an unknown attack {self.attack!r}")

    @classmethod
    def load(cls, path: str | Path) -> "Witness":
        """Read a witness from a JSON file. Nothing is imported, whatever it says.

        Raises
        ------
        InputError
            As `from_dict`, and if it is no regular file that can be read, or has more
            than 128 MiB.
        """
        return cls.from_dict(read_json(Path(path)))


def _seen(counts: Any, side: str) -> tuple[int, int]:
    """Return the hits on a side, and the releases that were scored."""
    hits, scored = (
        _count(f"{count} on the {side}", counts[side][count], minimum=0)
        for count in ("hits", "releases")
    )
    return hits, scored


def _count(name: str, value: Any, *, minimum: int) -> int:
    return check_count(
        f"the witness's {name}", value, minimum=minimum, maximum=_LARGEST_COUNT
    )


def _parameters(value: Any) -> dict[str, np.ndarray[Any, Any]]:
    if not isinstance(value, dict):
        raise InputError(
            f"the witness's parameters must be named arrays, got {value!r}"
        )
    arrays = {name: array(f"parameter {name!r}", item) for name, item in value.items()}
    entries = sum(max(array.size, *array.shape, 1) for array in arrays.values())
    if entries > _MOST_PARAMETERS:
        raise InputError(
            f"the witness's parameters must have at most {_MOST_PARAMETERS:,} entries, "
            f"got {entries:,}"
        )
    return arrays


def _of_version_2(event: Any) -> Any:
    """Return an event as later versions keep it, from before there were grids.

    Raises
    ------
    InputError
        If its attack compares values, which were rounded in another way then.
    """
    parameters = event["parameters"]
    if "resolution" in parameters or any(k.endswith(":resolution") for k in parameters):
        raise InputError(
            f"the witness's attack {printable(event['attack'])} compares values, which "
            "version 2 rounded in another way: audit the mechanism again"
        )
    if "filler" in parameters:
        ones = encode(np.ones(len(decode(parameters["filler"]))))
        parameters = parameters | {"unit": ones}
    threshold, resolution = event["score_at_least"], event["resolution"]
    if type(threshold) in (int, float):
        # Releases were not on a grid: scores may be a little lower now.
        threshold = threshold - _STEPS * resolution
    return event | {
        "offset": 0.5,
        "canonical": {},
        "parameters": parameters,
        "score_at_least": threshold,
    }


def _canon(value: Any) -> dict[str, dict[str, np.ndarray[Any, Any]]]:
    if not isinstance(value, dict):
        raise InputError(f"the witness's grids must be named by layout, got {value!r}")
    grids = {text("a layout", name): _parameters(grid) for name, grid in value.items()}
    for grid in grids.values():
        grid_of(grid)
    return grids


def grid_of(parameters: Mapping[str, NDArray[Any]]) -> ReleaseGrid:
    """Return the grid with these parameters.

    Raises
    ------
    InputError
        If they are not those of a grid.
    """
    try:
        exponent, bits, reach, offset = (
            parameters[name] for name in ("exponent", "bits", "reach", "offset")
        )
        proper = (
            exponent.shape == bits.shape == reach.shape == (len(exponent),)
            and exponent.dtype.kind == bits.dtype.kind == "i"
            and {reach.dtype.kind, offset.dtype.kind} == {"f"}
            and offset.shape == (2,)
            and 0 <= offset[0] < 1
            and 0.5 <= offset[1] < 1
            and np.all((exponent >= _SMALLEST) & (exponent <= -_SMALLEST))
            and np.all((bits > 0) & (bits <= _BITS))
            and np.all(reach >= 0)
        )
    except (KeyError, TypeError, AttributeError, ValueError):
        proper = False
    if not proper:
        raise InputError(
            f"these are no parameters of a grid for releases: {parameters}"
        )
    return ReleaseGrid(exponent, bits, reach, float(offset[0]), float(offset[1]))


def _threshold(value: Any) -> float:
    """Return a threshold that some scores may reach, and others not."""
    if type(value) not in (int, float) or not value > -math.inf:
        raise InputError(
            f"the witness's threshold must be a number above -inf, got {value!r}"
        )
    return float(value)
