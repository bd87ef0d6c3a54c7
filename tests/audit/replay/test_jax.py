"""Noise that code draws with JAX, where it is installed, in arrays of data."""

import secrets
from functools import partial

import numpy as np
import pytest
from replay_cases import line_of

from dpaudit import GaussianDP, Pair, PureDP, outputs
from dpaudit.audit import audit
from dpaudit.audit.replay import replay

jax = pytest.importorskip("jax")
jnp = jax.numpy
random = jax.random

ROWS = Pair([[0.6, 0.8]], [[0.6, 0.8], [0.0, 1.0]])
MANY = Pair([0.7] * 800, [0.7] * 800 + [1.0])
NORMAL, PURE = (ROWS, GaussianDP(1.0)), (MANY, PureDP(1.0))
STANDING = random.key(7)


def key_of(rng):
    return random.PRNGKey(rng.integers(2**31))


def total(x):
    return jnp.asarray(x, dtype=jnp.float32).sum(axis=0)


def plain(x, rng):
    return total(x) + random.normal(key_of(rng), (2,))


def clipped_rows(x, rng):
    rows = jnp.asarray(x)
    norms = jnp.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows * jnp.minimum(1.0, 1.0 / jnp.maximum(norms, 1e-12))
    return np.asarray(rows.sum(axis=0) + random.normal(key_of(rng), shape=(2,)))


def split_by_step(x, rng):
    key, sums = random.key(int(rng.integers(2**40))), []
    for part in total(x):
        key, now = random.split(key)
        sums.append(part + 1.5 * random.normal(now))
    return jnp.stack(sums)


def folded(x, rng):
    key = key_of(rng)
    noise = [random.normal(random.fold_in(key, step)) for step in range(2)]
    return total(x) + jnp.array(noise)


def by_vmap(x, rng):
    keys = random.split(key_of(rng), 2)
    return jax.vmap(lambda part, key: part + random.normal(key))(total(x), keys)


@partial(jax.jit, static_argnames="scale")
def compiled_release(rows, key, scale):
    return rows.sum(axis=0) + scale * random.normal(key, rows.shape[1:])


def compiled(x, rng):
    return compiled_release(jnp.asarray(x), key_of(rng), scale=1.0)


def scanned(x, rng):
    def step(state, part):
        state, now = random.split(state)
        return state, part + random.normal(now)

    return jax.lax.scan(step, key_of(rng), total(x))[1]


def looped(x, rng):
    keys, sums = random.split(key_of(rng), 2), total(x)
    body = lambda k, out: out.at[k].add(random.normal(keys[k]))  # noqa: E731
    return jax.lax.fori_loop(0, 2, body, sums)


def written(x, rng):
    out = jnp.zeros(4)
    out = out.at[jnp.array([0, 2])].set(total(x) + random.normal(key_of(rng), (2,)))
    return out.at[3].set(5.0)[::-1]


def correlated(x, rng):
    cov = jnp.array([[4.0, 1.0], [1.0, 4.0]])
    return random.multivariate_normal(key_of(rng), total(x), cov)


def projected(x, rng):
    basis = jnp.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.0]])
    return basis @ (total(x) + random.normal(key_of(rng), (2,)))


def solved(x, rng):
    noisy = total(x) + random.normal(key_of(rng), (2,))
    return jnp.linalg.solve(jnp.array([[2.0, 1.0], [0.0, 3.0]]), noisy)


def descent(x, rng):
    key, w, rows = key_of(rng), jnp.zeros(2), jnp.asarray(x)
    loss = lambda w, row: -jnp.dot(w, row)  # noqa: E731
    for step in range(3):
        sums = jax.vmap(jax.grad(loss), (None, 0))(w, rows).sum(axis=0)
        noise = jnp.sqrt(3.0) * random.normal(random.fold_in(key, step), w.shape)
        w = w - 0.1 * (sums + noise)
    return w


def tree(x, rng):
    sums = {"a": total(x)[0], "b": total(x)[1:]}
    leaves, kind = jax.tree.flatten(sums)
    keys = random.split(key_of(rng), len(leaves))
    pairs = zip(leaves, keys, strict=True)
    return jax.tree.unflatten(kind, [s + random.normal(k, s.shape) for s, k in pairs])


def laplace(x, rng):
    return (total(x) + random.laplace(key_of(rng))).item()


def of_numpy(x, rng):
    return x.sum() + np.asarray(random.laplace(key_of(rng), (1,)))


def as_floats(x, rng):
    return x.sum() + np.array([float(e) for e in random.laplace(key_of(rng), (1,))])


def as_integers(x, rng):
    one, two = random.geometric(key_of(rng), 1 - np.exp(-1.0), (2,))
    return len(x) + int(one) - int(two)


def by_a_key(x, key):
    return total(x) + random.laplace(key)


def by_uniform(x, rng):
    u = random.uniform(key_of(rng), minval=-0.5, maxval=0.5)
    return total(x) - jnp.sign(u) * jnp.log1p(-2 * jnp.abs(u))


def difference(x, rng):
    one, two = random.exponential(key_of(rng), (2,))
    return float(total(x) + one - two)


def signed(x, rng):
    k, k2 = random.split(key_of(rng))
    return total(x) + random.rademacher(k, dtype=jnp.float32) * random.exponential(k2)


def by_gumbel(x, rng):
    counts = jnp.array([(x > 0.8).sum(), (x <= 0.8).sum()], dtype=jnp.float32)
    return int(jnp.argmax(counts / 2 + random.gumbel(key_of(rng), (2,))))


def by_categorical(x, rng):
    return random.categorical(key_of(rng), jnp.array([(x > 0.8).sum(), 0.0]) / 2)


def randomised(x, rng):
    stays = random.bernoulli(key_of(rng), jnp.e / (1 + jnp.e), x.shape)
    return jnp.where(stays, x > 0.8, x <= 0.8)


def by_gamma(x, rng):
    k, k2 = random.split(key_of(rng))
    direction = random.normal(k, (2,))
    radius = random.gamma(k2, 2.0)
    return total(x) + radius * direction / jnp.linalg.norm(direction)


def planar(x, rng):
    k, k2 = random.split(key_of(rng))
    t, r = random.uniform(k, maxval=2 * jnp.pi), random.gamma(k2, 2.0)
    return total(x) + jnp.stack([r * jnp.cos(t), r * jnp.sin(t)])


def averaged(x, rng):
    noisy = total(x) + random.laplace(key_of(rng)) * 2
    return jnp.clip(noisy / 800, 0, 1), noisy > 560


def rng_beside(x, rng):
    return total(x) + rng.laplace()


def by_entropy(x, rng):
    return total(x) + random.laplace(random.key(secrets.randbits(32)))


FEW = Pair([[0.0], [1.0]], [[1.0], [1.0]], "replace-one")
RIGHT = {
    each.__name__: (each, *NORMAL)
    for each in (
        *(plain, clipped_rows, split_by_step, folded, by_vmap, compiled, scanned),
        *(looped, written, correlated, projected, solved, descent, tree),
    )
} | {
    each.__name__: (each, *PURE)
    for each in (
        *(laplace, of_numpy, by_uniform, difference, signed, by_gumbel),
        *(by_categorical, averaged, rng_beside, by_entropy, as_floats, as_integers),
        by_a_key,
    )
}
RIGHT |= {
    "randomised": (randomised, FEW, PureDP(1.0)),
    "by_gamma": (by_gamma, ROWS, PureDP(1.0)),
    "planar": (planar, ROWS, PureDP(1.0)),
}


def short_of_noise(x, rng):
    return total(x) + 0.5 * random.normal(key_of(rng), (2,))  # fault


def scale_by_data(x, rng):
    return total(x) + random.laplace(key_of(rng)) * jnp.max(jnp.abs(x))  # fault


def divided_by_rows(x, rng):
    return (total(x) + random.normal(key_of(rng), (2,))) / x.shape[0]  # fault


def fixed_key(x, rng):
    return total(x) + random.normal(random.PRNGKey(0), (2,))  # fault


def one_key(x, rng):
    key = key_of(rng)
    first = total(x)[0] + 2 * random.normal(key)
    return first, total(x)[1] + 2 * random.normal(key)  # fault


def one_key_in_a_scan(x, rng):
    key = key_of(rng)

    def step(_, part):
        return 0, part + 9 * random.normal(key)  # fault

    return jax.lax.scan(step, 0, total(x))[1]


def raw_rows(x, rng):
    rows = jnp.asarray(x) * 3.0
    return jax.jit(lambda s, k: s + random.normal(k, s.shape))(  # fault
        rows.sum(axis=0), key_of(rng)
    )


def noise_for_one(x, rng):
    noisy = random.normal(key_of(rng)) + total(x)[0]
    return jnp.array([noisy, total(x)[1]])  # fault


def laplace_twice(x, rng):
    k, k2 = random.split(key_of(rng))
    return jnp.stack([total(x) + random.laplace(each) for each in (k, k2)])  # fault


def gumbel_of_double(x, rng):
    counts = jnp.array([(x > 0.8).sum(), 0], dtype=jnp.float32)
    return jnp.argmax(2 * counts + random.gumbel(key_of(rng), (2,)))  # fault


def small_radius(x, rng):
    k, k2 = random.split(key_of(rng))
    direction = random.normal(k, (2,))
    radius = random.gamma(k2, 2.0) / 2
    return total(x) + radius * direction / jnp.linalg.norm(direction)  # fault


WRONG = {
    each.__name__: (each, *NORMAL)
    for each in (
        *(short_of_noise, divided_by_rows, fixed_key, one_key, one_key_in_a_scan),
        *(raw_rows, noise_for_one),
    )
} | {
    each.__name__: (each, *PURE)
    for each in (scale_by_data, laplace_twice, gumbel_of_double)
}
WRONG["small_radius"] = small_radius, ROWS, PureDP(1.0)


def split_and_drawn(x, rng):
    key = key_of(rng)
    first, _ = random.split(key)
    return total(x) + random.normal(key, (2,)) + random.normal(first, (2,))


def other_draws(x, rng):
    key = key_of(rng)
    return total(x) + random.normal(key, (2,)), random.laplace(key, (3,))


def standing(x, rng):
    return total(x) + random.normal(STANDING, (2,))


def several_of_one(x, rng):
    keys = random.split(random.key(rng.integers(2**31), impl="rbg"), 2)
    return total(x) + jax.vmap(random.normal)(keys)


HIDDEN = {
    "one counts": several_of_one,
    "split": split_and_drawn,
    "other draws": other_draws,
    "standing": standing,
    "bits": lambda x, rng: (
        total(x) + random.truncated_normal(key_of(rng), -2.0, 2.0, (2,))
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_noise_of_arrays_is_followed(name):
    # Null: the claim is true. False-alarm probability 1e-3 each; seeded.
    mechanism, pair, claim = RIGHT[name]
    result = replay(mechanism, pair=pair, claim=claim)
    assert (result.verdict, result.findings) == ("NOT_REFUTED", ())


@pytest.mark.parametrize("kind", [jnp.float16, jnp.bfloat16])
def test_numbers_of_half_the_precision_are_read_and_not_followed(kind):
    def short(x, key):
        return kind(x.sum()) + random.laplace(key, dtype=kind) / 4

    how = {"pair": Pair([0.0], [0.0, 1.0]), "claim": PureDP(1.0)}
    assert audit(short, **how).refuted
    assert replay(short, budget=2, **how).verdict == "NOT_FOLLOWED"
    assert outputs.read(jnp.ones(2, dtype=kind)).numbers.tolist() == [1, 1]


@pytest.mark.parametrize("name", WRONG)
def test_faults_beside_arrays_are_refuted_at_their_line(name):
    mechanism, pair, claim = WRONG[name]
    result = replay(mechanism, pair=pair, claim=claim)
    assert result.verdict == "REFUTED"
    assert "# fault" in line_of(result.findings[0])


@pytest.mark.parametrize("name", HIDDEN)
def test_keys_that_are_used_otherwise_are_not_followed(name):
    result = replay(HIDDEN[name], pair=ROWS, claim=GaussianDP(9.0), budget=2)
    assert result.verdict == "NOT_FOLLOWED"


def test_jax_is_after_an_execution_what_it_was():
    core = pytest.importorskip("jax._src.core")
    before = core.trace_ctx.trace, jax.config.jax_disable_jit, random.choice
    draw = random.normal(STANDING, (2,))
    replay(RIGHT["compiled"][0], pair=ROWS, claim=GaussianDP(1.0))
    assert before == (core.trace_ctx.trace, jax.config.jax_disable_jit, random.choice)
    assert (random.normal(STANDING, (2,)) == draw).all()
    released = compiled_release(jnp.zeros((1, 2)), STANDING, scale=1.0)
    assert np.asarray(released) == pytest.approx(np.asarray(draw))
