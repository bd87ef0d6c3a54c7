"""What the tables say, in words; nothing here is known beforehand.

Every function takes tables of the runner and returns plain text, which the templates
escape. The sentences are chosen by the data: a mechanism is called refuted because its
row says so.
"""

import math
from collections.abc import Iterable

import pandas as pd

from dpaudit.reports.formats import count, delta, number, percent, setting
from dpaudit.reports.measures import BASELINE, FIRST_COMPONENT, RANDOM_SUBSPACE
from dpaudit.reports.tables import Row, captured, point, quartiles, records

__all__ = [
    "answer",
    "headline",
    "refuted_mechanisms",
    "standing_mechanisms",
    "suite_notes",
    "variance_notes",
    "wall_notes",
]

_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def refuted_mechanisms(wall: pd.DataFrame) -> list[str]:
    """Return the names of the refuted mechanisms, in the order of the table."""
    return [row["mechanism"] for row in records(wall) if row["verdict"] == "REFUTED"]


def standing_mechanisms(table: pd.DataFrame) -> list[str]:
    """Return the names of what was audited and not refuted."""
    return [r["mechanism"] for r in records(table) if r["verdict"] == "NOT_REFUTED"]


def headline(wall: pd.DataFrame) -> str:
    """Return the title of the page: the verdicts in one line."""
    refuted, total = len(refuted_mechanisms(wall)), len(wall)
    if refuted == 0:
        return f"No privacy promise of {_word(total)} was refuted"
    breaks = "breaks its privacy promise"
    if refuted > 1:
        breaks = "break their privacy promises"
    return f"{_word(refuted).capitalize()} of {_word(total)} mechanisms {breaks}"


def answer(
    wall: pd.DataFrame, exact: pd.DataFrame, variance: pd.DataFrame
) -> list[str]:
    """Return what the report says, the most important first: one item per finding."""
    audited = records(wall)
    return [
        *(_refutation(row) for row in audited if row["verdict"] == "REFUTED"),
        *_survivors([row for row in audited if row["verdict"] != "REFUTED"]),
        *_false_elsewhere(audited, records(exact)),
        *_utility(audited, records(exact), variance),
    ]


def wall_notes(wall: pd.DataFrame) -> list[str]:
    """Return what a large delta means, for every mechanism that has one."""
    notes = []
    for row in records(wall):
        proven = row["exact_delta"] if row["claim"] == "false" else row["delta_lower"]
        if row["verdict"] == "REFUTED" and proven >= 0.1:
            notes.append(
                f"While {row['mechanism']} promises δ = {delta(row['claimed_delta'])}, "
                f"in truth about {100 * proven:.0f} of 100 releases can give away for "
                "certain from which of the two datasets they come."
            )
    return notes


def variance_notes(
    variance: pd.DataFrame, exact: pd.DataFrame, references: pd.DataFrame
) -> list[str]:
    """Return what to know when looking at the captured variance."""
    known = captured(references)
    notes = [
        f"Without noise, PCA of the clipped rows captures {percent(known[BASELINE])}, "
        f"its first component alone {percent(known[FIRST_COMPONENT])}, a random "
        f"subspace {percent(known[RANDOM_SUBSPACE])} on average."
    ]
    below: dict[str, float] = {}
    for (name, epsilon), share in _medians(variance).items():
        if share < known[FIRST_COMPONENT]:
            below[name] = max(epsilon, below.get(name, 0.0))
    if below:
        verb = "captures" if len(below) == 1 else "capture"
        who = _list(f"{name} (ε ≤ {setting(e)})" for name, e in below.items())
        notes.append(
            f"Noise can cost more than the other components are worth: {who} {verb} "
            "less than the first component alone would."
        )
    if any(row["claim"] == "false" for row in records(exact)):
        notes.append(
            "Dashed stretches with crosses are bought with a false claim: there the "
            "exact privacy loss exceeds the claimed one, so those points are no "
            "competition for the others."
        )
    return notes


def suite_notes(suite: pd.DataFrame) -> list[str]:
    """Return how the audit did where the truth is known."""
    rows = records(suite)
    false = [r for r in rows if r["true_epsilon"] > _bound(r["claimed_epsilon"])]
    fallen = [row for row in false if row["verdict"] == "REFUTED"]
    unseen = [row for row in false if row["verdict"] != "REFUTED"]
    notes = []
    if false:
        share = f"{_word(len(fallen)).capitalize()} of {_word(len(false))}"
        notes.append(f"{share} false claims fell.")
    if unseen:
        most = count(max(row["samples"] for row in unseen))
        notes.append(
            f"{most} releases a side were too few to see through {_names(unseen)}."
        )
    wrong = [row for row in rows if row["verdict"] == "REFUTED" and row not in false]
    beyond = [r for r in rows if r["epsilon_lower"] > _bound(r["true_epsilon"])]
    if wrong:
        notes.append(f"Wrongly refuted: the true claim of {_names(wrong)}.")
    if beyond:
        notes.append(f"Wrong bounds, above the truth: {_names(beyond)}.")
    if not wrong and not beyond:
        notes.append("No true claim was refuted, and no bound lies above the truth.")
    return notes


def _bound(epsilon: float) -> float:
    """Return an epsilon up to which a difference is one of rounding."""
    return epsilon * (1 + 1e-9)


def _refutation(row: Row) -> str:
    text = (
        f"The claim of {row['mechanism']}, {' and '.join(point(row, 'claimed_{}'))}, "
        f"falls after {count(row['samples_to_refute'])} releases a side, at "
        f"{100 * row['confidence']:g} % confidence."
    )
    if row["claim"] == "false":
        text += (
            f" In truth ε is {number(row['exact_epsilon'])} at the claimed δ, and δ is "
            f"{delta(row['exact_delta'])} at the claimed ε, instead of "
            f"{delta(row['claimed_delta'])}."
        )
    return text


def _survivors(standing: list[Row]) -> list[str]:
    if not standing:
        return []
    most = count(max(row["samples"] for row in standing))
    text = (
        f"The audit did not refute {_names(standing)} with up to {most} releases a "
        "side. That is no proof of privacy."
    )
    kept = [row for row in standing if row["claim"] == "kept"]
    if kept:
        who = _names(kept)
        if len(kept) == len(standing):
            who = "each of them" if len(kept) > 1 else "it"
        text += (
            f" For {who} the exact loss on the worst pair is known as well, and it is "
            "within the claim."
        )
    false = [row for row in standing if row["claim"] == "false"]
    if false:
        text += (
            f" Yet the exact loss shows the claim of {_names(false)} to be false: "
            "sampling was too weak to see it."
        )
    return [text]


def _false_elsewhere(audited: list[Row], exact: list[Row]) -> list[str]:
    """Report claims that fall at some other epsilon than the audited one."""
    broken = {
        row["mechanism"]
        for row in audited
        if row["verdict"] == "REFUTED" or row["claim"] == "false"
    }
    false: dict[str, list[Row]] = {}
    for row in exact:
        if row["claim"] == "false" and row["mechanism"] not in broken:
            false.setdefault(row["mechanism"], []).append(row)
    sentences = []
    for name, rows in false.items():
        least = min(rows, key=lambda row: row["epsilon"])
        places = "at ε =" if len(rows) == 1 else "from ε ="
        sentences.append(
            f"The claim of {name} holds at the audited ε but is false {places} "
            f"{setting(least['claimed_epsilon'])}: the exact ε there is "
            f"{number(least['exact_epsilon'])}."
        )
    return sentences


def _utility(audited: list[Row], exact: list[Row], variance: pd.DataFrame) -> list[str]:
    """Name the best mechanism whose claim stands, pure and approximate apart."""
    medians = _medians(variance)
    wanted = math.log(audited[0]["claimed_epsilon"])
    at = min((e for _, e in medians), key=lambda e: abs(math.log(e) - wanted))
    shares = {name: share for (name, e), share in medians.items() if e == at}
    ranking = sorted(shares, key=lambda name: -shares[name])
    broken = {row["mechanism"] for row in audited if row["verdict"] == "REFUTED"}
    broken |= {
        row["mechanism"]
        for row in exact
        if row["claim"] == "false" and row["epsilon"] == at
    }
    deltas = {row["mechanism"]: row["claimed_delta"] for row in audited}
    standing = [name for name in ranking if name not in broken and name in deltas]
    pure = [name for name in standing if deltas[name] == 0]
    approximate = [name for name in standing if deltas[name] > 0]
    best = []
    if approximate:
        name = approximate[0]
        kind = f"δ = {delta(deltas[name])}"
        best.append(f"{name} keeps {percent(shares[name])} of the variance with {kind}")
    if pure:
        name = pure[0]
        kind = "pure privacy (δ = 0)"
        best.append(f"{name} keeps {percent(shares[name])} with {kind}")
    bought = [
        f"{name} keeps {percent(shares[name])}" for name in ranking if name in broken
    ]
    sentences = []
    if best:
        sentences.append(
            f"Among the claims that stand at ε = {setting(at)}, {_list(best)}."
        )
    if bought:
        sentences.append(f"Under a false claim, {_list(bought)}.")
    return [" ".join(sentences)] if sentences else []


def _medians(variance: pd.DataFrame) -> dict[tuple[str, float], float]:
    found = quartiles(variance, ("mechanism", "epsilon"), "captured_share")
    return {key: middle for key, (_, middle, _) in found.items()}


def _names(rows: list[Row]) -> str:
    return _list(row["mechanism"] for row in rows)


def _list(items: Iterable[str]) -> str:
    *most, last = items
    return f"{', '.join(most)} and {last}" if most else last


def _word(n: int) -> str:
    return _WORDS[n] if n < len(_WORDS) else str(n)
