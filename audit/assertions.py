"""Privacy claims as assertions, for whichever framework runs the tests.

`dpaudit.pytest_plugin` is the one for pytest; what it adds is where an `Auditor` gets
its settings from, and where its records go.

A suite of m assertions, each at error probability a, fails for no reason with
probability at most m a (Boole's inequality; the audits need not be independent). At
`CONFIDENCE`, a thousand assertions do so with probability at most 1/1000, once, when
they are written: a seed depends on what is audited and on nothing else, so a suite that
passes goes on passing until a mechanism or a claim is changed. That is not so for
mechanisms that draw randomness of their own; every run of theirs is a new one.
"""

import hashlib
import json
import re
import shlex
import sys
import sysconfig
import warnings
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpaudit.audit.harness import audit
from dpaudit.audit.judged import Judged, Verdict
from dpaudit.audit.layers.layer import Layer
from dpaudit.audit.result import AuditResult
from dpaudit.audit.settings import Budget, Run
from dpaudit.claims import Claim
from dpaudit.codec import encode
from dpaudit.domains import Domain
from dpaudit.errors import InputError
from dpaudit.mechanism import Mechanism
from dpaudit.neighbours import Pair, Relation
from dpaudit.printable import printable, told_apart
from dpaudit.validation import check_name

if TYPE_CHECKING:
    from dpaudit.audit.replay import ReplayResult

__all__ = ["CONFIDENCE", "Auditor", "describe"]

CONFIDENCE = 1 - 1e-6
"""Of one assertion, unless it says otherwise."""


@dataclass(frozen=True)
class Auditor:
    """Audits for one test.

    Parameters
    ----------
    budgets : mapping
        Most releases a side, by the name of a profile; rising.
    report : callable
        Takes the record of an assertion: `AuditResult.to_dict`, with ``assertion``,
        ``passed`` and, as ``witness``, the file that holds it or None.
    folder : callable
        Returns where witnesses go; called when there is one.
    budget, confidence
        Of an audit that is given none.
    seed : int
        Of the whole suite.
    """

    budgets: Mapping[str, int]
    report: Callable[[dict[str, Any]], None]
    folder: Callable[[], Path]
    _: KW_ONLY
    budget: Budget | int | str = "standard"
    confidence: float = CONFIDENCE
    seed: int = 0

    def assert_dp(
        self,
        mechanism: Mechanism | Callable[..., Any],
        *,
        claim: Claim | None = None,
        pair: Pair | tuple[Any, Any] | None = None,
        domain: Domain | str | None = None,
        relation: Relation | str | None = None,
        confidence: float | None = None,
        seed: int | None = None,
        layer: Layer | str = Layer.BLACK_BOX,
        budget: Budget | int | str | None = None,
        run: Run = Run(),
    ) -> "AuditResult | ReplayResult":
        """Fail if the audit refutes the claim, or can come to no verdict.

        **Passing means 'not refuted', and not 'private'**: this many releases, on
        these neighbours, with these attacks, did not show a violation. What they could
        have shown is in the result, and in the summary of the session:
        ``detectable_epsilon`` is the smallest epsilon that such an audit refutes nine
        times in ten on the best event that it found, and ``rarest_event`` says how
        rare an event it could see at all.

        A mechanism that keeps its claim fails with probability at most 1 - confidence:
        1e-6, unless you say otherwise.

        Parameters
        ----------
        mechanism : Mechanism or callable
            An object with the protocol, or any function ``(data, rng) -> array``.
        claim, pair, domain, relation, run
            As for `dpaudit.audit.audit`.
        confidence, seed : optional
            Of this audit. The seed is by default `seed_for` what is audited, and
            depends on the name in `run`, too.
        layer : {"black-box", "transcript", "replay"}
            What the attacker sees. With "replay" the mechanism is recorded and replayed
            (`dpaudit.audit.replay`), and the result is a `ReplayResult`; one that
            cannot be followed passes with a warning that names the place.
        budget : Budget, int or {"quick", "standard", "full"}, optional
            How much the audit may do; a name or a number is that of its releases.

        Returns
        -------
        AuditResult or ReplayResult
            What both have in common is `dpaudit.audit.Judged`.

        Raises
        ------
        AssertionError
            With the result, and with the file that holds the witness; or with what was
            seen of releases that are no independent draws.
        InputError, MechanismError
            As `dpaudit.audit.audit`.

        Warns
        -----
        UserWarning
            Of signs that releases are not independent draws of one law, which
            everything here assumes.
        """
        __tracebackhide__ = True
        subject = {"claim": claim, "pair": pair, "domain": domain, "relation": relation}
        how = {"confidence": confidence, "seed": seed, "layer": layer, "run": run}
        result = self._audit(mechanism, subject, how, self._budget(budget))
        witness = None
        if result.witness is not None:
            witness = _save(result.witness, self.folder())
        passed = not result.refuted and not _is_unfounded(result)
        self._report(result, "assert_dp", passed, witness)
        if _is_unfounded(result):
            raise AssertionError(_why_no_verdict(result))
        if result.refuted:
            raise AssertionError(_why_refuted(result, witness))
        return result

    def assert_refuted(
        self,
        mechanism: Mechanism | Callable[..., Any],
        *,
        claim: Claim | None = None,
        pair: Pair | tuple[Any, Any] | None = None,
        domain: Domain | str | None = None,
        relation: Relation | str | None = None,
        confidence: float | None = None,
        seed: int | None = None,
        layer: Layer | str = Layer.BLACK_BOX,
        budget: Budget | int | str | None = None,
        run: Run = Run(),
    ) -> "AuditResult | ReplayResult":
        """Fail unless the audit refutes the claim; the arguments are `assert_dp`'s.

        For mechanisms that are known to be wrong: a test that the audit sees what it
        is there to see. It ends with the refutation, so that a large budget costs
        nothing where the assertion holds; the budget ``quick`` counts as ``standard``.

        Raises
        ------
        AssertionError
            With the smallest violation that the audit would have refuted, or with why
            it came to no verdict.
        """
        __tracebackhide__ = True
        subject = {"claim": claim, "pair": pair, "domain": domain, "relation": relation}
        how = {"confidence": confidence, "seed": seed, "layer": layer, "run": run}
        result = self._audit(
            mechanism, subject, how, self._budget(budget, at_least="standard")
        )
        self._report(result, "assert_refuted", result.refuted, None)
        if _is_unfounded(result):
            raise AssertionError(_why_no_verdict(result))
        if not result.refuted:
            raise AssertionError(_why_not_refuted(result))
        return result

    def _budget(
        self, given: Budget | int | str | None, *, at_least: str = "quick"
    ) -> Budget:
        """Return the budget of the argument, else of the settings."""
        budget = self.budget if given is None else given
        if isinstance(budget, str):
            name = check_name("budget", budget, list(self.budgets))
            budget = max(self.budgets[name], self.budgets[at_least])
        return Budget.of(budget)

    def _audit(
        self,
        mechanism: Any,
        subject: dict[str, Any],
        how: dict[str, Any],
        budget: Budget,
    ) -> "AuditResult | ReplayResult":
        claim = subject["claim"]
        if claim is None:
            claim = getattr(mechanism, "claim", None)
        if how["seed"] is None:
            name = how["run"].name
            how["seed"] = seed_for(mechanism, claim, seed=self.seed, name=name)
        if how["confidence"] is None:
            how["confidence"] = self.confidence
        if how["layer"] == Layer.REPLAY:
            from dpaudit.audit.replay import EXECUTIONS, replay

            budget = replace(budget, releases=min(budget.releases, EXECUTIONS))
            del how["layer"]
            result: Any = replay(mechanism, budget=budget, **subject, **how)
            found = _not_followed(result)
        else:
            result = audit(mechanism, budget=budget, **subject, **how)
            found = [] if _is_unfounded(result) else [*result.warnings]
        for warning in found:
            warnings.warn(f"{result.name}: {warning}", stacklevel=3)
        return result

    def _report(
        self, result: Judged, assertion: str, passed: bool, witness: Path | None
    ) -> None:
        file = None if witness is None else str(witness)
        judged = {"assertion": assertion, "passed": passed, "witness": file}
        self.report({**result.to_dict(), **judged})


def seed_for(
    mechanism: Any, claim: Claim | None, *, seed: int = 0, name: str | None = None
) -> int:
    """Return the seed of an audit, from what is audited.

    The same on every machine and in every process; it does not depend on where the
    test stands, or on which tests run before it.

    Parameters
    ----------
    mechanism : Mechanism or callable
        Its module and name count; the arguments too where it is a dataclass of parts
        that have names (`dpaudit.codec.encode`).
    claim : Claim or None
    seed : int
        Of the whole suite.
    name : str, optional
        Another name for the mechanism, which counts too.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> seed_for(sum, PureDP(1.0)) == seed_for(sum, PureDP(1.0), seed=1)
    False
    """
    try:
        identity = encode(mechanism)
    except InputError:
        kind = mechanism if hasattr(mechanism, "__qualname__") else type(mechanism)
        identity = f"{kind.__module__}:{kind.__qualname__}"
    text = json.dumps([identity, name, repr(claim), seed], sort_keys=True)
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def describe(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of one line about an assertion, from its record.

    Name, claim, verdict, lower bound, releases, and what the audit could see.
    """
    if record["layer"] == Layer.REPLAY:
        found = len(record["findings"])
        return (
            printable(record["name"], longest=80),
            printable(record["claim"]["text"]),
            record["verdict"].replace("_", " ").lower(),
            f"{found} finding{'' if found == 1 else 's'}",
            f"{record['executions']} executions a side",
            "",
        )
    seen, at = record["detectable_epsilon"], f"at delta {record['at_delta']:.3g}"
    lower, allowed = float(record["epsilon_lower"]), float(record["allowed_epsilon"])
    return (
        printable(record["name"], longest=80),
        printable(record["claim"]["text"]),
        record["verdict"].replace("_", " ").lower(),
        f"epsilon >= {told_apart(lower, allowed, 3)[0]} {at}",
        f"{record['samples']:,} releases a side",
        ""
        if seen is None
        else f"would see epsilon >= {told_apart(seen, allowed, 3)[0]} {at}",
    )


def _is_unfounded(result: Any) -> bool:
    """Say whether an audit came to no verdict; that of a replay is another matter."""
    return isinstance(result, AuditResult) and result.verdict is Verdict.NO_VERDICT


def _not_followed(result: Any) -> list[str]:
    """Return what a replay could not follow, if that left it without a verdict."""
    if result.verdict != "NOT_FOLLOWED":
        return []
    return [f"not followed: {finding}" for finding in result.findings]


def _save(witness: Any, folder: Path) -> Path:
    """Write a witness; the same audit writes the same file, and no other does.

    The seed is that of all audits of one mechanism and claim, on whichever pair.
    """
    folder.mkdir(parents=True, exist_ok=True)
    word = re.sub(r"[^\w.-]+", "-", witness.name).strip("-.") or "mechanism"
    content = json.dumps(witness.to_dict(), sort_keys=True).encode()
    digest = hashlib.sha256(content).hexdigest()
    path = folder / f"{word[:40]}-{digest[:24]}.json"
    witness.save(path)
    return path


def _why_refuted(result: Any, witness: Path | None) -> str:
    name = printable(result.name)
    lines = [f"{name} breaks its claim {result.claim}:", str(result)]
    if witness is not None:
        assert result.witness is not None
        lines += [
            f"  witness        {witness}",
            f"  replay it      {_replay(result.witness, witness)}",
        ]
    return "\n".join(lines)


def _why_no_verdict(result: Any) -> str:
    name = printable(result.name)
    return f"whether {name} keeps its claim {result.claim} cannot be known:\n{result}"


def _replay(witness: Any, path: Path) -> str:
    """Return the command that replays a witness, from any folder."""
    stored = witness.mechanism
    command = ["dpaudit", "verify", str(path)]
    if stored is None:  # what is defined inside a function cannot be imported
        return f"{shlex.join(command)} --mechanism MODULE:OBJECT"
    module = str(stored.get("$object", stored.get("$reference"))).partition(":")[0]
    folder = _import_folder(module)
    if folder is not None:
        command += ["--import-from", str(folder)]
    return shlex.join(command)


def _import_folder(module: str) -> Path | None:
    """Return the folder that a module was imported from, None if it is installed.

    pytest imports test files from folders that are not on the path of others.
    """
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or module.split(".")[0] == "dpaudit":
        return None
    path = Path(file).resolve()
    parts = module.split(".") + (["__init__"] if path.stem == "__init__" else [])
    folder = path.parents[len(parts) - 1]
    if path.with_suffix("") != folder.joinpath(*parts):
        return None  # its name does not say where it is
    installed = {sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")}
    return None if folder in {Path(p).resolve() for p in installed} else folder


def _why_not_refuted(result: Any) -> str:
    if not isinstance(result, AuditResult):
        name = printable(result.name)
        return f"{name} was expected to break its claim, and no replay did:\n{result}"
    seen = result.detectable_epsilon
    limit = (
        "no violation of the events that it ended with was in its reach"
        if seen is None
        else f"it would have refuted epsilon >= {seen:.4g} nine times in ten, where "
        f"the claim allows {result.allowed_epsilon:.4g}"
    )
    return (
        f"{printable(result.name)} was expected to break its claim {result.claim}, and "
        f"the audit did not show it:\n  reach          {limit} (at delta = "
        f"{result.at_delta:.3g}, {result.samples:,} releases a side)\n"
        "  more of it     budget='full' or a number, or a worse pair\n"
        f"{result}"
    )
