"""The law of scaling holds for all that has a public bound, and is seen to be broken.

Nothing is random: both sides draw from the same seeds.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest
from refusals import refused

from dpaudit import ApproxDP, InputError, Pair, PureDP, Relation, UnsupportedError
from dpaudit.algorithms import CATALOGUE, DPPCA, GOEGaussian, MeanEstimation, PrivateOja
from dpaudit.algorithms.estimators.private_mean import GaussianMean, LaplaceMean
from dpaudit.algorithms.streaming.minibatch_oja import BlockOja, MinibatchOja
from dpaudit.algorithms.streaming.private_histogram import PrivateHistogram
from dpaudit.algorithms.streaming.step_size_search import StepSizeSearch
from dpaudit.algorithms.streaming.top_eigenvalue import TopEigenvalue
from dpaudit.mechanism import Sensitivity
from dpaudit.testing import ConformanceError, check_scaling

PAIR = Pair([[0.0, 0.0]], [[0.0, 0.0], [0.6, 0.8]])


def rank(entry):
    """Return how many components a mechanism is asked for: two, if it has several."""
    if not entry.has_components:
        return None
    try:
        entry.build(n_components=2)
    except InputError:
        return 1
    return 2


@pytest.mark.parametrize(
    ("entry", "relation", "n_components"),
    [
        pytest.param(entry, relation, rank(entry), id=f"{entry.name}-{relation}")
        for entry in CATALOGUE.values()
        if entry.has_row_norm and entry.extra is None
        for relation in entry.relations
    ],
)
def test_the_row_norm_is_a_unit(entry, relation, n_components):
    check_scaling(
        lambda bound: entry.build(
            relation=relation, row_norm=bound, n_components=n_components
        ),
        size=4,
    )


PROMISE = {"epsilon": 1.0, "delta": 1e-5}
OJA = {
    "minibatch-oja": (MinibatchOja.calibrated, PROMISE),
    "block-oja": (BlockOja.calibrated, PROMISE | {"n_components": 2}),
    "minibatch-oja-search": (StepSizeSearch.calibrated, PROMISE),
    "private-oja": (PrivateOja.calibrated, PROMISE | {"epsilon": 0.5}),
}


@pytest.mark.parametrize(("share", "factor"), [(0.3, 2.0), (0.6, 0.25), (1.5, 2.0)])
@pytest.mark.parametrize("name", list(OJA))
def test_a_clip_is_a_squared_unit(name, share, factor):
    # Whether it is reached follows from its share of the squared norm, not of the norm.
    make, options = OJA[name]
    check_scaling(
        lambda bound: make(**options, row_norm=bound, clip=share * bound**2),
        size=4,
        factor=factor,
    )


@pytest.mark.parametrize("name", list(OJA))
def test_matrices_have_the_unit_of_their_clip(name):
    make, options = OJA[name]
    check_scaling(lambda bound: make(**options, row_norm=None, clip=bound), size=4)


UNITS = {
    "gaussian-mean": lambda r: (
        lambda b: GaussianMean.from_mu(1.0, relation=r, row_norm=b)
    ),
    "laplace-mean": lambda r: (
        lambda b: LaplaceMean.calibrated(1.0, relation=r, row_norm=b)
    ),
}


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("name", list(UNITS))
def test_means_have_the_unit_of_the_rows(name, relation):
    check_scaling(UNITS[name](relation))


@pytest.mark.parametrize(
    "build",
    [
        lambda unit: PrivateHistogram.calibrated(1.0, 1e-5, width=unit),
        lambda unit: MeanEstimation.calibrated(1.0, 1e-5, eigenvalue=unit**2),
        lambda unit: MeanEstimation.as_published(0.8, 1e-5, eigenvalue=unit**2),
    ],
    ids=["histogram", "mean", "mean-published"],
)
def test_what_has_no_bound_has_a_unit_too(build):
    check_scaling(build)


def test_scales_are_multiplied_where_no_bound_is_given_and_pass():
    mechanism = TopEigenvalue.calibrated(1.0, 1e-5)
    _, pair, _ = mechanism.canonical_pairs()
    check_scaling(lambda unit: mechanism, pair=pair)
    check_scaling(Sum)
    check_scaling(Sum, factor=3.0, pair=PAIR)


@pytest.mark.parametrize(("number", "power"), [(0, 2), (1, 2), (2, 2), (3, 1)])
def test_steps_have_the_inverse_unit_of_the_matrices(number, power):
    # The last pair is of matrices A_i, the others of rows.
    def build(unit):
        return DPPCA.calibrated(2.0, 1e-2, step_sizes=20 / unit**power)

    check_scaling(build, pair=build(1.0).canonical_pairs()[number])


@dataclass(frozen=True)
class Sum:
    """A noisy sum; each mistake makes one thing follow the bound by a wrong power."""

    bound: float
    mistake: str = ""
    relation: Relation = Relation.ADD_REMOVE
    capabilities: tuple = field(default=())

    def power(self, mistake, right):
        return self.bound ** (right - (self.mistake == mistake))

    @property
    def claim(self):
        return PureDP(1.0 if self.mistake != "claim" else self.bound)

    @property
    def true_epsilon(self):
        return 1.0 if self.mistake != "true_epsilon" else self.bound

    def draw(self, data, size, *, rng):
        noise = self.power("noise", 1) * rng.laplace(size=(size, 2))
        return data.sum(axis=0) + noise

    def release(self, data, *, rng):
        return self.draw(data, 1, rng=rng)[0]

    def canonical_pairs(self):
        row = self.power("pairs", 1) * np.array([[0.6, 0.8]])
        pair = Pair(0 * row, np.concatenate([0 * row, row]))
        return (pair,) * (2 if self.mistake == "count" and self.bound > 1 else 1)

    def statistic(self, data):
        return self.power("statistic", 0) * data.sum(axis=0)

    @property
    def sensitivity(self):
        return Sensitivity(self.power("sensitivity", 1), "frobenius")

    def exact_claim(self, pair):
        if self.mistake == "unsupported" and self.bound > 1:
            raise UnsupportedError("not above 1")
        return PureDP(1.0 if self.mistake != "exact_claim" else self.bound)

    def privacy_loss(self, releases, data, other):
        return releases.sum(axis=1) / self.power("privacy_loss", 1)

    def transcript(self, data, size, *, rng):
        noise = self.power("transcript", 1) * rng.standard_normal(size)
        return {"steps": data.sum() + noise}

    def transcript_loss(self, transcript, data, other):
        return transcript["steps"] / self.power("transcript_loss", 1)

    def step_means(self, transcript, data):
        return {"steps": np.full(len(transcript["steps"]), data.sum())}

    @property
    def step_scales(self):
        return {"steps": self.power("step_means", 1)}


test_what_does_not_scale_is_named = refused(
    ("claim", "claim is not what"),
    ("true_epsilon", "true_epsilon is not what"),
    ("noise", "release is not multiplied by a power of"),
    ("pairs", "side 1 of pair 0 that it names is not what"),
    ("count", "side . of pair 1 that it names is not what"),
    ("statistic", "release is not multiplied by a power of"),
    ("sensitivity", "release is not multiplied by a power of"),
    ("exact_claim", "exact_claim is not what"),
    ("unsupported", "exact_claim is not what"),
    ("privacy_loss", "privacy_loss is not what"),
    ("transcript", r"transcript \['steps'\] is not multiplied"),
    ("transcript_loss", "transcript_loss is not what"),
    ("step_means", r"step_means over step_scales \['steps'\] is not what"),
    by=lambda factor, mistake: check_scaling(
        lambda bound: Sum(bound, mistake), factor=factor
    ),
    each=(2.0, 3.0),
    error=ConformanceError,
)


def test_single_releases_in_parts_are_looked_at():
    class Parts:
        claim, relation = ApproxDP(1.0, 1e-5), Relation.ADD_REMOVE

        def __init__(self, bound, power):
            self.bound, self.power = bound, power

        def release(self, data, *, rng):
            noise = rng.normal(size=2)
            return {
                "sum": data.sum() + self.bound * noise[0],
                "square": (data**2).sum() + self.bound**self.power * noise[1],
            }

    check_scaling(lambda bound: Parts(bound, 2), pair=PAIR)
    with pytest.raises(ConformanceError, match=r"release \['square'\] is not mult"):
        check_scaling(lambda bound: Parts(bound, 1), pair=PAIR)
    with pytest.raises(InputError, match="pair is needed: the mechanism names none"):
        check_scaling(lambda bound: Parts(bound, 2))


@pytest.mark.parametrize(
    ("name", "bad"), [("factor", 0.0), ("factor", 1.0), ("size", 0), ("seed", -1)]
)
def test_bad_arguments_are_named(name, bad):
    with pytest.raises(InputError, match=f"{name} must be .*got {bad!r}"):
        check_scaling(GOEGaussian.from_mu, **{name: bad})
