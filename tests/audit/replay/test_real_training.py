"""DP-SGD of jax_privacy and Opacus, replayed, where they are installed.

Each trains a mean by its own clipping, noise and batches: rightly, and with a fault.
"""

import re
import warnings
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from replay_cases import line_of

from dpaudit import ApproxDP, Pair
from dpaudit.algorithms.shared.subsampling import noise_multiplier
from dpaudit.audit.replay import replay
from dpaudit.audit.replay.execute.executor import execute

RATE, SIZE, STEPS, NORM = 0.2, 4.0, 3, 4.0
CLAIM = ApproxDP(1.0, 1e-5)
SIGMA = float(noise_multiplier(1.0, 1e-5, rate=RATE, steps=STEPS))
ROWS = np.random.default_rng(0).standard_normal((3, 2))
FAR = np.array([[30.0, 30.0]])
PAIR = Pair(np.vstack([ROWS[:2], FAR, ROWS[2:]]), ROWS)

# Of a fault: what is done otherwise, the kind that is found, and the line.
FAULTS = {
    **{"right": ({}, None, ""), "right and compiled": ({"compiled": True}, None, "")},
    "divides by the rows": ({"private": True}, "release", "# release"),
    "noise without the norm": ({"deviation": SIGMA}, "distance", "# noise"),
    "fixed batches": ({"fixed": True}, "distance", "# noise"),
}


def in_turn(count):
    return [np.arange(count)[step % 2 :: 2] for step in range(STEPS)]


def by_jax(x, rng, *, private=False, deviation=SIGMA * NORM, fixed=False, **more):
    import jax
    import jax.numpy as jnp
    from jax_privacy import batch_selection, clipping, noise_addition

    def loss(w, rows):
        return 0.5 * jnp.sum((rows - w) ** 2)

    gradient = clipping.clipped_grad(loss, l2_clip_norm=NORM)
    privatizer = noise_addition.gaussian_privatizer(stddev=deviation, prng_key=0)

    def step(w, rows, padding, state):
        total = gradient(w, rows, is_padding_example=padding)
        return privatizer.update(total, state)  # noise

    step = jax.jit(step) if more.get("compiled") else step
    w = jnp.zeros(x.shape[1])
    state = privatizer.init(w)
    sampler = batch_selection.CyclicPoissonSampling(
        sampling_prob=RATE, iterations=STEPS
    )
    batches = in_turn(len(x)) if fixed else sampler.batch_iterator(len(x), rng)
    for places in batches:
        (padded,) = batch_selection.split_and_pad_global_batch(places, 4)
        rows = jnp.asarray(x[padded], dtype=jnp.float32)
        noisy, after = step(w, rows, jnp.asarray(padded < 0), state)
        state = state if more.get("one_key") else after
        size = RATE * len(x) if private else SIZE
        w = w - 0.5 * noisy / size
    return np.asarray(w)  # release


def descend(model, optimizer, rows, reduction):
    """Take a step on the rows of a batch, of which there may be none."""
    import torch

    optimizer.zero_grad()
    if len(rows):
        errors = (rows - model(torch.ones(len(rows), 1))) ** 2
        reduction(0.5 * errors.sum(dim=1)).backward()
    else:
        for p in optimizer.params:
            p.grad_sample = torch.zeros(0, *p.shape)
    optimizer.step()  # noise


def by_opacus(x, rng, *, private=False, deviation=SIGMA * NORM, fixed=False):
    import torch
    from opacus.grad_sample import GradSampleModule
    from opacus.optimizers import DPOptimizer
    from opacus.utils.uniform_sampler import UniformWithReplacementSampler

    model = torch.nn.Linear(1, x.shape[1], bias=False)
    torch.nn.init.zeros_(model.weight)
    model = GradSampleModule(model, loss_reduction="sum")

    optimizer = DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.5),
        noise_multiplier=deviation / NORM,
        max_grad_norm=NORM,
        expected_batch_size=RATE * len(x) if private else SIZE,
        loss_reduction="mean",
    )
    sampler = UniformWithReplacementSampler(
        num_samples=len(x), sample_rate=RATE, steps=STEPS
    )
    data = torch.tensor(x, dtype=torch.float32)
    for places in in_turn(len(x)) if fixed else sampler:
        rows = data[torch.as_tensor(places, dtype=torch.long)]
        descend(model, optimizer, rows, torch.sum)
    return model._module.weight.detach().numpy().ravel()  # release


LIBRARIES = {"jax_privacy": by_jax, "opacus": by_opacus}


@pytest.fixture(params=LIBRARIES)
def train(request):
    if find_spec(request.param) is None:
        pytest.skip(f"pip install {request.param.replace('_', '-')}")
    return LIBRARIES[request.param]


def judged(mechanism, **options):
    options = {"pair": PAIR, "claim": CLAIM, "sees": "transcript"} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return replay(mechanism, **options)


@pytest.mark.parametrize("name", FAULTS)
def test_training_is_followed_and_its_faults_are_refuted(train, name):
    # Null: the claim is true of transcripts. False-alarm probability 1e-3 each; seeded.
    options, kind, piece = FAULTS[name]
    if "compiled" in options and train is by_opacus:
        pytest.skip("jax only")
    result = judged(partial(train, **options))
    if kind is None:
        assert (result.verdict, result.findings) == ("NOT_REFUTED", ())
        assert [step.family for step in result.steps] == ["gaussian"] * STEPS
        assert {step.scale for step in result.steps} == {SIGMA * NORM}
        assert [step.l2 for step in result.steps] == pytest.approx([NORM] * STEPS)
        return
    assert (result.verdict, result.samples <= 60) == ("REFUTED", True)
    (finding,) = [each for each in result.findings if each.kind == kind]
    assert piece in line_of(finding)


def test_a_key_that_is_used_twice_is_not_followed():
    pytest.importorskip("jax_privacy")
    result = judged(partial(by_jax, one_key=True), budget=2)
    assert result.verdict == "NOT_FOLLOWED"
    assert any("noise before" in finding.message for finding in result.findings)


def test_the_loop_of_the_page_is_followed():
    pytest.importorskip("jax_privacy")
    page = Path(__file__).parents[3] / "docs" / "training.md"
    section = page.read_text(encoding="utf-8").split("## Of a library")[1]
    code = re.search(r"```text\n(.*?)```", section, re.DOTALL)[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library, about libraries of its own
        exec(compile(code, "training.md", "exec"), {})


def test_batches_of_a_data_loader_of_opacus_are_flips():
    torch = pytest.importorskip("torch")
    data_loader = pytest.importorskip("opacus.data_loader")

    def sums(x, rng):
        data = torch.utils.data.TensorDataset(torch.tensor(x))
        loader = data_loader.DPDataLoader(data, sample_rate=0.5)
        return [float(rows.sum() + rng.normal(0, 9.0)) for (rows,) in loader]

    trace = execute(sums, ROWS, 0)
    flips = [each for each in trace.tape.observations if each.how == "chosen"]
    assert [each.shape for each in flips] == [(3,), (3,)]
    assert (trace.tape.coins, trace.tape.unfollowed) == ([], [])


def test_noise_of_opacus_that_is_used_otherwise_is_not_followed():
    torch = pytest.importorskip("torch")
    optimizer = pytest.importorskip("opacus.optimizers.optimizer")
    uses = (
        lambda x, noise: torch.stack([x, noise]).sum(dim=0),
        lambda x, noise: torch.add(x, noise, alpha=2),
        *(lambda x, noise: x + noise.sum(), lambda x, noise: x.add_(noise)),
    )
    for use in (*uses, torch.add):

        def mechanism(x, rng, use=use):
            total = torch.tensor(x).sum(dim=0)
            return use(total, optimizer._generate_noise(1.0, total)).numpy()

        trace = execute(mechanism, ROWS, 0)
        assert (trace.layout, np.isfinite(trace.value).all()) == ("(2,)", True)
        assert bool(trace.tape.unfollowed) == (use is not torch.add)


def test_correlated_noise_and_other_batches_are_not_followed():
    pytest.importorskip("jax_privacy")
    import jax.numpy as jnp
    from jax_privacy import batch_selection, noise_addition
    from jax_privacy.matrix_factorization import streaming_matrix

    def correlated(x, rng, matrix):
        privatizer = noise_addition.matrix_factorization_privatizer(
            matrix, stddev=1.0, prng_key=0
        )
        total = jnp.asarray(x.sum(axis=0))
        return np.asarray(privatizer.update(total, privatizer.init(total))[0])

    def chosen(x, rng, sampler):
        return [len(places) for places in sampler.batch_iterator(len(x), 0)]

    matrices = (np.eye(2), streaming_matrix.prefix_sum())
    samplers = (
        batch_selection.BallsInBinsSampling(iterations=2, cycle_length=2),
        batch_selection.FixedBatchSampling(batch_size=2, iterations=2),
        batch_selection.BMinSepSampling(sampling_prob=0.5, iterations=2, min_sep=2),
        batch_selection.CyclicPoissonSampling(0.5, 2, cycle_length=2),
    )
    for mechanism in (
        *(partial(correlated, matrix=each) for each in matrices),
        *(partial(chosen, sampler=each) for each in samplers),
    ):
        trace = execute(mechanism, ROWS, 0)
        assert trace.tape.unfollowed
        assert not trace.layout.startswith("raises")


def by_make_private(x, rng):
    import torch
    from opacus import PrivacyEngine

    data = torch.utils.data.TensorDataset(torch.tensor(x, dtype=torch.float32))
    model = torch.nn.Linear(1, x.shape[1], bias=False)
    torch.nn.init.zeros_(model.weight)
    model, optimizer, loader = PrivacyEngine(accountant="rdp").make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
        data_loader=torch.utils.data.DataLoader(data, batch_size=4),
        noise_multiplier=4.0,
        max_grad_norm=NORM,
    )
    for (rows,) in loader:
        descend(model, optimizer, rows, torch.mean)
    return model._module.weight.detach().numpy()


def test_make_private_takes_the_number_of_rows_for_public():
    # The divisor is int(rate * n), 4 of 8 rows and 3 of 7, at a rate of 1/2.
    pytest.importorskip("opacus")
    x = np.vstack([ROWS, ROWS, ROWS])[:7]
    joined, replaced = (
        judged(by_make_private, pair=pair, claim=ApproxDP(2.0, 1e-5), budget=2)
        for pair in (
            Pair(x, np.vstack([x, FAR])),
            Pair(x, np.vstack([x[:-1], -x[-1:]]), "replace-one"),
        )
    )
    assert joined.verdict == "REFUTED"
    assert "release" in {finding.kind for finding in joined.findings}
    assert (replaced.verdict, replaced.findings) == ("NOT_REFUTED", ())
