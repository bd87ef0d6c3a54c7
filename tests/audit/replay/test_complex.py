"""Complex numbers with noise: laws by linear algebra, and the values of plain code."""

import numpy as np
import pytest
from scipy import fft

from dpaudit import GaussianDP, Pair
from dpaudit.audit import replay
from dpaudit.audit.replay.execute.executor import execute
from dpaudit.audit.replay.follow.tape import EAGER, LAZY, Mode

PAIR = Pair([[0.5, 0.1, 0.2, 0.4]], [[0.5, 0.1, 0.2, 0.4], [0.0, 1.0, 0.0, 0.0]])
MATRIX = np.arange(16).reshape(4, 4) * (1 + 0.5j)


def written(x, a, b):
    z = np.zeros(4, dtype=complex)
    z[::2] = a[:2] + 1j * b[:2]
    z.imag += b
    z[1] = complex(a[3], 2 * b[0])
    half = z.real
    half += 1.0
    return z - x


def moved(x, a, b):
    z = np.array([complex(p, q) for p, q in zip(a, b, strict=True)])
    z = np.concatenate([z[2:], np.roll(z, 1)[:2]]).reshape(2, 2).T.ravel()
    return np.where(np.arange(4) > 1, np.stack([z, x * z])[1], z.conj()), z.sum()


# What is done with the row sums x and two vectors of Gaussian draws a and b.
FUNCTIONS = {
    "parts": lambda x, a, b: (x * (1 + 1j) + a - 1j * b) / (2 - 1j),
    "there and back": lambda x, a, b: np.fft.ifft(np.fft.fft(x + a) * 1j + b),
    "half": lambda x, a, b: np.fft.irfft(np.fft.rfft(x + a)[:2] + 1j * b[:2], 5),
    "cosines": lambda x, a, b: x + fft.dct(a, norm="ortho") - fft.rfft(b, 6),
    "product": lambda x, a, b: MATRIX @ (a.astype(complex) + x) + 1j * b @ MATRIX,
    "pairs": lambda x, a, b: np.stack([x + a, b], axis=-1).view(complex).imag,
    **{"written": written, "moved": moved},
}


def parts(value):
    several = value if isinstance(value, tuple) else (value,)
    return [part for each in several for part in (np.real(each), np.imag(each))]


def flat(value):
    return np.concatenate([np.ravel(part) for part in parts(value)])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_laws_are_those_of_linear_algebra(name):
    function = FUNCTIONS[name]

    def mechanism(data, rng):
        a, b = rng.normal(size=4), rng.normal(size=4)
        return parts(function(data.sum(axis=0), a, b))

    x = PAIR.data.sum(axis=0)
    mean = flat(function(x, *np.zeros((2, 4))))
    columns = [flat(function(x, *one.reshape(2, 4))) - mean for one in np.eye(8)]
    for mode in (LAZY, EAGER, Mode(keeps=True)):
        trace = execute(mechanism, PAIR.data, 3, mode=mode)
        assert np.allclose(trace.value, trace.plainly().value, rtol=1e-9, atol=1e-12)
        again = trace.again(script=trace.tape.observations)
        assert np.allclose(trace.value, again.value, rtol=1e-9, atol=1e-12)
    trace = execute(mechanism, PAIR.data, 3)
    found = np.zeros((len(mean), 8))
    terms = trace.release
    rows, places = np.nonzero(terms.index >= 0)
    np.add.at(found, (rows, terms.index[rows, places]), terms.coef[rows, places])
    assert trace.open
    assert np.allclose(terms.centre, mean, rtol=1e-12, atol=1e-12)
    wanted = np.stack(columns, axis=1)
    assert np.allclose(found @ found.T, wanted @ wanted.T, rtol=1e-12, atol=1e-12)


def spectrum(data):
    return np.fft.rfft(data.sum(axis=0), norm="ortho")


def reused(data, rng):
    noise = rng.normal(size=3)
    return spectrum(data) + noise * (1 + 1j)


def sizes(data, rng):
    return np.abs(spectrum(data) + rng.normal(size=3) + 1j * rng.normal(size=3))


def kept_view(data, rng):
    noise = np.fft.fft(rng.normal(size=4) + data.sum(axis=0))
    part = noise.real
    part += 1.0
    return np.abs(noise)


@pytest.mark.parametrize(
    ("mechanism", "mu", "verdict"),
    [
        (sizes, 1.0, "NOT_REFUTED"),
        (kept_view, 1.0, "NOT_REFUTED"),
        (reused, 1.0, "REFUTED"),
    ],
)
def test_claims_about_complex_releases(mechanism, mu, verdict):
    result = replay(mechanism, pair=PAIR, claim=GaussianDP(mu), budget=2)
    assert (result.verdict, result.proof) == (verdict, verdict == "REFUTED")
    assert np.isfinite(execute(mechanism, PAIR.data, 0).value).all()
