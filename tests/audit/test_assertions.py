import json
import shlex
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from audit_cases import CLAIM, PAIR, attacks

from dpaudit import ApproxDP, InputError, Pair, PureDP
from dpaudit.algorithms.textbook.sums import Laplace
from dpaudit.attacks import BITS
from dpaudit.audit import Budget, Run, Witness, assertions, audit, verify
from dpaudit.audit.assertions import CONFIDENCE, Auditor, describe, seed_for
from dpaudit.audit.judged import UNFOUNDED

pytestmark = pytest.mark.usefixtures("in_few_rounds")

BUDGETS = {"quick": 20, "standard": 40, "full": 400}


def noisy_sum(data, rng):
    return data.sum() + rng.laplace()


def leaking_sum(data, rng):
    return data.sum() + rng.laplace(scale=1e-3)


@dataclass(frozen=True)
class NoisySum:
    scale: float

    def release(self, data, *, rng):
        return data.sum() + rng.laplace(scale=self.scale)


def constant_sum(data, rng):
    return data.sum()


FEW = Run(attacks=attacks("identity"))
options = {"claim": CLAIM, "pair": PAIR, "run": FEW}


@pytest.fixture
def records():
    return []


@pytest.fixture
def auditor(records, tmp_path):
    return Auditor(BUDGETS, records.append, lambda: tmp_path / "new" / "folder")


@pytest.fixture
def told(monkeypatch):
    """What `audit` is told, without an audit."""
    arguments = {}
    result = audit(noisy_sum, budget=2, **options)

    def instead(mechanism, **given):
        arguments.update(given)
        return result

    monkeypatch.setattr(assertions, "audit", instead)
    return arguments


def test_a_correct_mechanism_passes(auditor, records, tmp_path):
    """A true claim is refuted with probability <= 1e-6."""
    result = auditor.assert_dp(noisy_sum, **options)
    assert not result.refuted
    assert result.samples == 40
    (record,) = records
    assert json.loads(json.dumps(record, allow_nan=False)) == {
        **json.loads(json.dumps(result.to_dict())),
        **{"assertion": "assert_dp", "passed": True, "witness": None},
    }
    assert not (tmp_path / "new").exists()


def test_a_broken_promise_fails_with_a_witness(auditor, records, tmp_path):
    with pytest.raises(AssertionError) as failure:
        auditor.assert_dp(leaking_sum, **options)
    (record,) = records
    path = Path(record["witness"])
    assert path.parent == tmp_path / "new" / "folder"
    assert record["passed"] is False
    message = str(failure.value)
    assert message.startswith("leaking_sum breaks its claim PureDP(epsilon=1.0):")
    assert "leaking_sum: REFUTED at confidence 0.999999" in message
    assert f"dpaudit verify {shlex.quote(str(path))}" in message
    assert "--mechanism" not in message
    assert verify(Witness.load(path), seed=1).confirmed


def test_a_witness_of_what_has_no_name_asks_for_the_mechanism(auditor):
    def inner(data, rng):
        return leaking_sum(data, rng)

    named = options | {"run": replace(FEW, name="a/b c")}
    with pytest.raises(AssertionError, match=r"json'? --mechanism MODULE:OBJECT"):
        auditor.assert_dp(inner, **named, budget=400)


def test_each_audit_writes_one_witness(auditor, records, tmp_path):
    """Those on two pairs share mechanism and claim, and so their seed."""
    run, pairs = replace(FEW, name="../a/b c"), [PAIR, PAIR, Pair([0.5], [0.5, 1.0])]
    for pair in pairs:
        with pytest.raises(AssertionError):
            auditor.assert_dp(leaking_sum, claim=CLAIM, pair=pair, run=run, budget=400)
    written = list((tmp_path / "new" / "folder").iterdir())
    assert len(written) == 2
    assert all(path.name.startswith("a-b-c-") for path in written)
    for record, pair in zip(records, pairs, strict=True):
        found = Witness.load(Path(record["witness"]))
        assert found.pair.neighbour.tolist() == pair.neighbour.tolist()


@pytest.mark.parametrize("assertion", ["assert_dp", "assert_refuted"])
def test_what_cannot_be_known_is_neither_kept_nor_refuted(auditor, records, assertion):
    """The one error says it all: nothing is warned of besides."""
    own = np.random.default_rng(0)

    def leaking(data, rng):
        return data.sum() + own.laplace(scale=1e-3)

    named = options | {"run": replace(FEW, name="leaking")}
    with pytest.raises(AssertionError) as failure:
        getattr(auditor, assertion)(leaking, **named)
    message = str(failure.value)
    assert message.startswith("whether leaking keeps its claim PureDP(epsilon=1.0) ")
    assert UNFOUNDED in message
    assert "draws randomness of its own" in message
    (record,) = records
    assert (record["passed"], record["witness"]) == (False, None)
    assert "no verdict" in describe(record)
    leaking.seedable = False
    with warnings.catch_warnings(record=True) as told, suppress(AssertionError):
        warnings.simplefilter("always")
        auditor.assert_dp(leaking, **options)
    assert len(told) == 2
    assert records[1]["verdict"] == "REFUTED"


def test_a_known_leak_is_refuted(auditor, records):
    assert auditor.assert_refuted(leaking_sum, **options).refuted
    (record,) = records
    assert record["passed"] is True
    assert record["assertion"] == "assert_refuted"
    assert record["witness"] is None


def test_what_is_not_refuted_says_what_would_have_been(auditor, records):
    """A true claim is refuted with probability <= 1e-6."""
    with pytest.raises(AssertionError) as failure:
        auditor.assert_refuted(noisy_sum, **options, budget=100)
    assert records[0]["passed"] is False
    seen = records[0]["detectable_epsilon"]
    assert f"would have refuted epsilon >= {seen:.4g} nine times" in str(failure.value)
    with pytest.raises(AssertionError, match="was in its reach"):
        auditor.assert_refuted(noisy_sum, **options, budget=2)


@pytest.mark.parametrize(
    ("settings", "arguments", "expected"),
    [
        *(({}, {}, 40), ({"budget": "quick"}, {}, 20)),
        ({"budget": "quick"}, {"budget": "full"}, 400),
        ({"budget": 7}, {"budget": "quick"}, 20),
        ({"budget": Budget(7, refine=2)}, {"budget": 9}, 9),
        ({"budget": 9}, {"budget": Budget(7, refine=2)}, Budget(7, refine=2)),
    ],
)
def test_the_nearest_budget_counts(auditor, told, settings, arguments, expected):
    partial(Auditor, auditor.budgets, auditor.report, auditor.folder)(
        **settings
    ).assert_dp(noisy_sum, **options, **arguments)
    assert told["budget"] == Budget.of(expected)


def test_what_should_fall_gets_the_default_budget_and_other_options_reach_it(
    auditor, told
):
    for profile, expected in {"quick": 40, "standard": 40, "full": 400}.items():
        with pytest.raises(AssertionError):
            auditor.assert_refuted(noisy_sum, **options, budget=profile)
        assert told["budget"] == Budget(expected)
    assert told["confidence"] == CONFIDENCE == 1 - 1e-6
    auditor.assert_dp(noisy_sum, **options, confidence=0.9)
    assert told["confidence"] == 0.9
    auditor.assert_dp(
        Laplace(1.0), domain="scalar:0,1", layer="transcript", run=Run(attacks=BITS)
    )
    assert told["domain"] == "scalar:0,1"
    assert told["layer"] == "transcript"
    assert told["run"].attacks == BITS
    assert told["claim"] is None
    assert told["seed"] == seed_for(Laplace(1.0), PureDP(1.0))
    auditor.assert_dp(noisy_sum, **options, seed=5)
    assert told["seed"] == 5


def test_unknown_profiles_and_signs_of_dependence_are_named(auditor):
    with pytest.raises(InputError, match="did you mean 'full'"):
        auditor.assert_dp(noisy_sum, **options, budget="ful")
    with pytest.warns(UserWarning, match="constant_sum: .* does not use its rng") as w:
        auditor.assert_refuted(constant_sum, **options)
    assert w[0].filename == __file__


def test_seeds_are_the_same_everywhere_for_what_is_audited():
    def inner(data, rng):
        return 0.0

    seeds = [
        *(seed_for(noisy_sum, CLAIM), seed_for(noisy_sum, CLAIM, seed=1)),
        seed_for(noisy_sum, CLAIM, name="noisy_sum"),
        *(seed_for(noisy_sum, PureDP(2.0)), seed_for(noisy_sum, ApproxDP(1.0, 1e-5))),
        *(seed_for(leaking_sum, CLAIM), seed_for(Laplace(1.0), CLAIM)),
        *(seed_for(Laplace(2.0), CLAIM), seed_for(inner, CLAIM)),
        seed_for(partial(noisy_sum), CLAIM),
    ]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds)
    # Written down on 2026-11-21: whoever changes them changes everybody's audits.
    assert seed_for(noisy_sum, CLAIM) == 3768497005894971450
    assert seed_for(NoisySum(2.0), None) == 2589952433842204172


def test_one_line_says_it_all():
    result = audit(noisy_sum, budget=60, **options)
    name, claim, verdict, lower, releases, limit = describe(result.to_dict())
    assert (name, claim) == ("noisy_sum", "PureDP(epsilon=1.0)")
    assert verdict == "not refuted"
    assert lower == f"epsilon >= {result.epsilon_lower:.3g} at delta 0"
    assert releases == "60 releases a side"
    seen = result.detectable_epsilon
    assert limit == f"would see epsilon >= {seen:.3g} at delta 0"
    near = {**result.to_dict(), "epsilon_lower": 1.0003, "detectable_epsilon": 1.0004}
    *_, lower, _, limit = describe(near)
    assert lower == "epsilon >= 1.0003 at delta 0"
    assert limit == "would see epsilon >= 1.0004 at delta 0"
