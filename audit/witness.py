"""Witnesses: a refutation that anybody can replay.

A witness holds the mechanism (by import), both datasets, the claim and one event. It
proves nothing by itself: `dpaudit.audit.verify` draws fresh releases, on any machine,
and tests that one event with an error budget of its own, so that a forged or lucky
witness is confirmed with probability at most 1 - confidence.
"""

import json
import math
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from dpaudit import __version__
from dpaudit.atomic import replacing
from dpaudit.attacks import BITS, PORTFOLIO
from dpaudit.audit.layers.layer import Layer
from dpaudit.claims import ApproxDP, Claim, PureDP
from dpaudit.codec import decode, encode
from dpaudit.errors import InputError
from dpaudit.neighbours import Pair, Relation

__all__ = ["Witness", "current_versions"]

_FORMAT, _VERSION = "dpaudit-witness", 2


@dataclass(frozen=True)
class Witness:
    """One violated event, and what it takes to draw from both sides again.

    Parameters
    ----------
    name : str
    mechanism : object
        As `dpaudit.codec.encode` stores it, or None if it cannot be imported by name.
    claim : Claim
    at_epsilon, at_delta : float
        The reference point of the audit (the claim's own for (epsilon, delta) claims).
    pair : Pair
    layer : str
        Whether releases ("black-box") or transcripts ("transcript") are scored.
    layout : str
        What counts as an ordinary release.
    attack : str
    parameters : mapping of str to ndarray
    resolution : float
    threshold : float
        The event: the rounded score is >= threshold.
    counts : tuple of int
        Hits and scores seen on the data, then on the neighbour, when it was found.
    confidence : float
    samples, seed : int
        Of the audit that found it.
    log_evidence : float
    versions : dict
        Of Python and the packages used.
    """

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
            "format": _FORMAT,
            "version": _VERSION,
            "name": self.name,
            "mechanism": self.mechanism,
            "claim": encode(self.claim),
            "reference": {"epsilon": self.at_epsilon, "delta": self.at_delta},
            "relation": self.pair.relation.value,
            "layer": self.layer,
            "layout": self.layout,
            "data": encode(self.pair.data),
            "neighbour": encode(self.pair.neighbour),
            "event": {
                "attack": self.attack,
                "parameters": encode(self.parameters),
                "resolution": self.resolution,
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
    def from_dict(cls, stored: Any) -> "Witness":
        """Rebuild a witness; the mechanism itself is not imported yet.

        Raises
        ------
        InputError
            If it is not a witness, is truncated, or is of a newer version.
        """
        if not isinstance(stored, dict) or stored.get("format") != _FORMAT:
            raise InputError(f"not a witness: its format must be {_FORMAT!r}")
        if stored.get("version") != _VERSION:
            raise InputError(
                f"witness version {stored.get('version')!r} is not supported: this is "
                f"dpaudit {__version__}, which reads version {_VERSION}"
            )
        try:
            event, counts, found = stored["event"], stored["counts"], stored["found"]
            witness = cls(
                name=str(stored["name"]),
                mechanism=stored["mechanism"],
                claim=decode(stored["claim"]),
                at_epsilon=float(stored["reference"]["epsilon"]),
                at_delta=float(stored["reference"]["delta"]),
                pair=Pair(
                    decode(stored["data"]),
                    decode(stored["neighbour"]),
                    Relation.parse(stored["relation"]),
                    allow_nonfinite=True,
                ),
                layer=str(stored["layer"]),
                layout=str(stored["layout"]),
                attack=str(event["attack"]),
                parameters=decode(event["parameters"]),
                resolution=float(event["resolution"]),
                threshold=float(decode(event["score_at_least"])),
                counts=(
                    int(counts["data"]["hits"]),
                    int(counts["data"]["releases"]),
                    int(counts["neighbour"]["hits"]),
                    int(counts["neighbour"]["releases"]),
                ),
                confidence=float(found["confidence"]),
                samples=int(found["samples"]),
                seed=int(found["seed"]),
                log_evidence=float(found["log_evidence"]),
                versions=dict(stored["versions"]),
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"the witness is truncated or malformed: {error}"
            ) from None
        witness._check()
        return witness

    def _check(self) -> None:
        hits, scored, hits_neighbour, scored_neighbour = self.counts
        if not (
            0 <= hits <= scored
            and 0 <= hits_neighbour <= scored_neighbour
            and min(scored, scored_neighbour) >= 1
        ):
            raise InputError(f"the witness's counts do not add up: {self.counts}")
        if not isinstance(self.claim, Claim):
            raise InputError(f"the witness's claim is no claim: {self.claim!r}")
        stated = self.claim.parameters
        point = {"epsilon": self.at_epsilon, "delta": self.at_delta}
        if isinstance(self.claim, PureDP | ApproxDP) and point != {"delta": 0.0} | dict(
            stated
        ):
            raise InputError(
                f"the witness's reference point {point} is not that of its claim "
                f"{self.claim}"
            )
        if not isinstance(self.parameters, dict):
            raise InputError(
                f"the witness's parameters must be named arrays, got {self.parameters}"
            )
        if not (math.isfinite(self.resolution) and self.resolution > 0):
            raise InputError(
                f"the witness's resolution must be > 0, got {self.resolution!r}"
            )
        if self.layer not in (Layer.BLACK_BOX, Layer.TRANSCRIPT):
            raise InputError(f"the witness names an unknown layer {self.layer!r}")
        if self.attack not in {attack.name for attack in PORTFOLIO + BITS}:
            raise InputError(f"the witness names an unknown attack {self.attack!r}")

    def save(self, path: Path) -> None:
        """Write the witness as JSON, all of it or nothing."""
        text = json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"
        with replacing(path) as new:
            new.write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Witness":
        """Read a witness from a JSON file."""
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"cannot read {str(path)!r}: {error.strerror}") from error
        except ValueError as error:
            raise InputError(f"{str(path)!r} is not complete JSON: {error}") from error
        return cls.from_dict(stored)


def current_versions() -> dict[str, str]:
    """Return the versions that a witness records."""
    return {
        "python": platform.python_version(),
        "dpaudit": __version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }
