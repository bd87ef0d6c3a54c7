"""Noise that code draws with PyTorch, where it is installed, in tensors of data."""

from collections import OrderedDict
from copy import deepcopy
from functools import partial
from io import BytesIO

import numpy as np
import pytest
from replay_cases import line_of

from dpaudit import GaussianDP, Pair, PureDP
from dpaudit.audit import audit
from dpaudit.audit.replay import replay
from dpaudit.audit.replay.execute.executor import execute

torch = pytest.importorskip("torch")

noise = torch.randn
ROWS = Pair([[0.6, 0.8]], [[0.6, 0.8], [0.0, 1.0]])
MANY = Pair([0.7] * 800, [0.7] * 800 + [1.0])
NORMAL, PURE = (ROWS, GaussianDP(1.0)), (MANY, PureDP(1.0))
Laplace, Gumbel = torch.distributions.Laplace, torch.distributions.Gumbel
grad, vmap = torch.func.grad, torch.func.vmap


def total(x):
    return torch.tensor(x, dtype=torch.float32).sum(dim=0)


def halves(x):
    return torch.stack([total(x) / 2, 280.5 - total(x) / 2])


def seeded(rng):
    return torch.Generator().manual_seed(int(rng.integers(2**31)))


def fill(z):
    return z.normal_(0, 1.0)


def again_by_seed(x, rng):
    seed = int(rng.integers(2**31))
    torch.manual_seed(seed)
    first = total(x) + torch.randn(2)
    torch.manual_seed(seed)
    return first, total(x) + torch.randn(2)


def again_by_state(x, rng):
    state = torch.get_rng_state()
    first = total(x) + 2 * torch.randn(2)
    torch.set_rng_state(state)
    return first - torch.randn(2)


def filled_by_name(x, rng, fills=fill):
    z = torch.zeros(2)
    fills(z)
    return (total(x) + z).numpy()


def into_an_alias(x, rng):
    sums = total(x)
    other = sums
    sums += torch.randn(2)
    return other


def by_gradient(x, rng):
    w = torch.nn.Parameter(torch.zeros(2))
    w.grad = total(x) + torch.randn(2)
    return (w.detach() - 0.1 * w.grad).numpy()


def loss(w, row):
    return ((w - row) ** 2).sum() / 2


def held_loss(held, row):
    return loss(held["w"], row)


BY_ROWS = (
    lambda w, data: vmap(grad(loss), in_dims=(None, 0))(w, data),
    lambda w, data: vmap(grad(loss))(w.expand(data.shape), data),
    lambda w, data: -vmap(grad(lambda row: loss(w, row)))(data),
    lambda w, data: vmap(grad(held_loss), in_dims=(None, 0))(OrderedDict(w=w), data)[
        "w"
    ],
)


def by_rows(x, rng, gradients, scale=2**0.5):
    """Two steps of descent: gradients of all rows at once, by `torch.func`."""
    data, w = torch.tensor(x, dtype=torch.float32), torch.zeros(2)
    for _ in range(2):
        each = gradients(w, data)
        each = each / each.norm(dim=1, keepdim=True).clamp(min=1.0)
        w = w - 0.1 * (each.sum(0) + scale * torch.randn(2))  # fault
    return w


def by_manual_seed(x, rng):
    torch.manual_seed(int(rng.integers(2**31)))
    return total(x) + torch.randn(2)


def by_fixed_seed(x, rng):
    noise = torch.randn(2, generator=torch.Generator().manual_seed(0))
    return total(x) + noise  # fault


def scaled_in_place(x, rng, by=2.0):
    z = torch.randn(2)
    z.mul_(0.5)
    return total(x) + z * by


def symmetric(x, rng, scale=1.0):
    rows, e = torch.tensor(x, dtype=torch.float32), scale * torch.randn(2, 2)
    return rows.T @ rows + e.triu() + e.triu(1).mT  # fault


EXPONENTIAL = torch.distributions.Exponential(1.0)
RIGHT = {
    "by name": (lambda x, rng: total(x) + noise(2), *NORMAL),
    "handed none": (lambda x: total(x) + torch.randn(2), *NORMAL),
    "like": (lambda x, rng: (s := total(x)) + torch.randn_like(s), *NORMAL),
    "generator": (
        lambda x, rng: total(x) + torch.randn(2, generator=seeded(rng)),
        *NORMAL,
    ),
    "seeded": (by_manual_seed, *NORMAL),
    "normal": (lambda x, rng: torch.normal(total(x), 1.0).numpy(), *NORMAL),
    "sized": (lambda x, rng: torch.normal(0.0, 1.0, size=(2,)) + total(x), *NORMAL),
    "array": (lambda x, rng: x.sum(axis=0) + torch.randn(2).numpy(), *NORMAL),
    "filled": (lambda x, rng: total(x) - torch.empty(2).normal_(0, 1.0), *NORMAL),
    "stacked": (
        lambda x, rng: torch.stack([each + torch.randn(()) for each in total(x)]),
        *NORMAL,
    ),
    "scaled": (
        lambda x, rng: (2 * (torch.randn(2) + total(x)) - 1).view(1, 2),
        *NORMAL,
    ),
    "laplace": (lambda x, rng: (total(x) + Laplace(0.0, 1.0).sample()).item(), *PURE),
    "located": (lambda x, rng: Laplace(total(x), 1.0).sample(), *PURE),
    "difference": (
        lambda x, rng: total(x) + EXPONENTIAL.sample() - EXPONENTIAL.sample(),
        *PURE,
    ),
    "largest": (
        lambda x, rng: torch.argmax(halves(x) + Gumbel(0.0, 1.0).sample((2,))),
        *PURE,
    ),
    "triangle": (symmetric, *NORMAL),
    "parameter": (
        lambda x, rng: torch.nn.Parameter(total(x) + torch.randn(2)).detach(),
        *NORMAL,
    ),
    "NumPy's": (lambda x, rng: total(x) + rng.normal(size=2), *NORMAL),
    "NumPy's, each": (
        lambda x, rng: torch.stack([each + rng.normal() for each in total(x)]),
        *NORMAL,
    ),
    "NumPy's, as tensor": (
        lambda x, rng: total(x) + torch.as_tensor(rng.normal(size=2)).float(),
        *NORMAL,
    ),
    "NumPy's, listed": (
        lambda x, rng: torch.tensor([each + rng.normal() for each in x.sum(axis=0)]),
        *NORMAL,
    ),
    "in place": (scaled_in_place, *NORMAL),
    "of NumPy": (lambda x, rng: np.asarray(total(x) + torch.randn(2)), *NORMAL),
    "gradient": (by_gradient, *NORMAL),
    "alias": (into_an_alias, *NORMAL),
    **{
        f"by rows, {i}": (partial(by_rows, gradients=way), *NORMAL)
        for i, way in enumerate(BY_ROWS)
    },
    "looked at": (lambda x, rng: torch.relu(total(x) + torch.randn(2)), *NORMAL),
    "compared": (
        lambda x, rng: float(total(x) + Laplace(0.0, 1.0).sample() > 560.0),
        *PURE,
    ),
}
WRONG = {
    "scale": (
        lambda x, rng: (torch.normal(0.0, 0.5, size=(2,)) + total(x)).numpy(),  # fault
        *NORMAL,
    ),
    "laplace": (
        lambda x, rng: total(x) + Laplace(0.0, 0.5).sample(),  # fault
        *PURE,
    ),
    "divisor": (
        lambda x, rng: (total(x) + torch.randn(2)) / len(x),  # fault
        *NORMAL,
    ),
    "fixed seed": (by_fixed_seed, *NORMAL),
    "triangle": (partial(symmetric, scale=0.9), *NORMAL),
}
NOTED = {
    "multinomial": lambda x: torch.multinomial(torch.softmax(total(x), 0), 1),
    "cauchy_": lambda x: total(x) + torch.empty(2).cauchy_(),
    "randint": lambda x: total(x) + torch.randint(0, 9, (2,)),
    "bernoulli_": lambda x: total(x) * torch.empty(2).bernoulli_(0.5),
}
HIDDEN = {
    "state": again_by_state,
    "seed": again_by_seed,
    "named": filled_by_name,
    "view": lambda x, rng: filled_by_name(x, rng, lambda z: z.view(-1).normal_(0, 1.0)),
    "data": lambda x, rng: filled_by_name(x, rng, lambda z: z.data.normal_(0, 1.0)),
    "other law": lambda x, rng: (
        total(x) + torch.distributions.StudentT(3.0).sample((2,))
    ),
}


@pytest.mark.filterwarnings("ignore:__array_wrap__ must")
@pytest.mark.parametrize("name", RIGHT)
def test_noise_of_tensors_is_followed(name):
    # Null: the claim is true. False-alarm probability 1e-3 each; seeded.
    mechanism, pair, claim = RIGHT[name]
    result = replay(mechanism, pair=pair, claim=claim)
    assert (result.verdict, result.findings) == ("NOT_REFUTED", ())
    if claim == PureDP(1.0):
        least = replay(mechanism, pair=pair, claim=PureDP(0.9), sees="transcript")
        assert least.verdict == "REFUTED"


@pytest.mark.parametrize("name", WRONG)
def test_faults_beside_tensors_are_refuted_at_their_line(name):
    mechanism, pair, claim = WRONG[name]
    result = replay(mechanism, pair=pair, claim=claim)
    assert result.verdict == "REFUTED"
    assert "# fault" in line_of(result.findings[0])


def test_a_fault_beside_gradients_of_rows_is_refuted_at_its_line():
    half = partial(by_rows, gradients=BY_ROWS[0], scale=0.7)
    result = replay(half, pair=ROWS, claim=GaussianDP(1.0), sees="transcript")
    assert result.verdict == "REFUTED"
    assert "# fault" in line_of(result.findings[0])


@pytest.mark.parametrize("name", HIDDEN)
def test_noise_that_may_be_elsewhere_is_not_followed(name):
    result = replay(HIDDEN[name], pair=ROWS, claim=GaussianDP(9.0), budget=2)
    assert result.verdict == "NOT_FOLLOWED"


SAID = {
    # Compiled code that took what says that it is a tensor for one would crash.
    "tensor": lambda z: torch.tensor(z),
    "class": lambda z: torch.Tensor(z),
    "new": lambda z: torch.zeros(1).new_tensor(z),
    "full": lambda z: torch.full((2,), z[0]),
    "text": lambda z: f"{z[0]:.3f} {z}",
    "float": lambda z: float(z[:1]),
    "item": lambda z: z[:1].item(),
    "equal": lambda z: ((z == z), z != 0, 2**z, z // 2, +z),
    "joined": lambda z: torch.hstack([z, torch.tensor([3, 1])]),
    "parts": lambda z: [each.roll(1) for each in z.split(1)],
    "places": lambda z: z.index_select(0, torch.tensor([1, 1, 0])),
    "zeros": lambda z: torch.block_diag(torch.diag(z), z.expand(2, 2).tril()),
    "copied": deepcopy,
    "saved": lambda z: torch.save(z, BytesIO()),
    "model": lambda z: torch.nn.utils.parameters_to_vector([torch.nn.Parameter(z)]),
}


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.parametrize("name", SAID)
def test_tensors_with_noise_go_where_ordinary_ones_do(name):
    def mechanism(x, rng):
        return SAID[name](total(x) + torch.randn(2))

    trace = execute(mechanism, ROWS.data, 0)
    assert not trace.raises
    assert trace.agrees(trace.plainly(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("make", [torch.tensor, torch.Tensor, torch.scalar_tensor])
def test_compiled_code_is_told_that_a_noisy_tensor_is_none(make):
    """As it would read memory, under a name that nothing replaces."""
    hidden = [make]
    trace = execute(lambda x, rng: hidden[0](total(x) + torch.randn(2)), ROWS.data, 0)
    assert trace.raises or trace.tape.observations


def kept_by(x, scale, made_of):
    layer = torch.nn.Linear(2, 1)
    with torch.no_grad():
        layer.weight.copy_(total(x) + scale * torch.randn(2))
        layer.bias.zero_()
    return made_of(layer)


@pytest.mark.parametrize(
    "made_of",
    [
        lambda layer: layer.weight,
        lambda layer: [*layer.parameters()],
        lambda layer: dict(layer.named_parameters()),
        lambda layer: torch.nn.utils.parameters_to_vector(layer.parameters()),
        lambda layer: layer.weight.bfloat16(),
    ],
)
def test_released_tensors_may_have_gradients_and_any_precision(made_of):
    # Null: the claim is true at scale 1. False-alarm probability 1e-3 each; seeded.
    for ask in (audit, replay):
        for scale, verdict in ((1.0, "NOT_REFUTED"), (0.1, "REFUTED")):
            mechanism = partial(kept_by, scale=scale, made_of=made_of)
            result = ask(mechanism, pair=ROWS, claim=GaussianDP(1.01), budget=200)
            assert result.verdict == verdict


@pytest.mark.parametrize("name", NOTED)
def test_what_draws_and_is_not_followed_is_named(name):
    (note, *_) = execute(NOTED[name], ROWS.data, 0).tape.outside
    assert note.why.endswith(f".{name} draws, which is not followed")


def test_pytorch_is_after_an_execution_what_it_was():
    before = {
        name: vars(torch.Tensor).get(name) for name in ("normal_", "cauchy_", "grad")
    }
    state, draw = torch.get_rng_state(), torch.randn
    replay(RIGHT["seeded"][0], pair=ROWS, claim=GaussianDP(1.0))
    now = {name: vars(torch.Tensor).get(name) for name in before}
    assert (now, torch.randn is draw) == (before, True)
    assert torch.equal(torch.get_rng_state(), state)
