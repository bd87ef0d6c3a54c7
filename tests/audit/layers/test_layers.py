"""Which layers a mechanism offers, and the transcript as a release."""

from dataclasses import dataclass

import numpy as np
from refusals import refuses

from dpaudit import Claim, GaussianDP, Pair, Relation
from dpaudit.algorithms import GOEGaussian
from dpaudit.audit import Verdict, audit
from dpaudit.audit.layers.layer import Layer, TranscriptView, applicable_layers
from dpaudit.mechanism import HasBatchedDraw, HasWorstCase, Mechanism

PAIR = Pair([0.0], [0.0, 1.0])
CLAIM = GaussianDP(1.0)


@dataclass(frozen=True)
class LeakyMean:
    """Two noisy sums, of which the release shows the average; one has little noise."""

    claim: Claim = CLAIM
    relation: Relation = Relation.ADD_REMOVE

    def release(self, data, *, rng):
        steps = self.transcript(data, 1, rng=rng)
        return (steps["first"][0] + steps["second"][0]) / 2

    def transcript(self, data, size, *, rng):
        total = np.sum(data)
        return {
            "first": total + 20.0 * rng.standard_normal(size),
            "second": total + 0.1 * rng.standard_normal(size),
        }


class WithWorstCase(LeakyMean):
    def worst_case(self, dimension=2):
        return PAIR


def test_layers_follow_the_capabilities():
    assert applicable_layers(GOEGaussian.from_mu(1.0)) == (
        Layer.EXACT,
        Layer.WHITE_BOX,
        Layer.BLACK_BOX,
    )
    assert applicable_layers(LeakyMean()) == (Layer.TRANSCRIPT, Layer.BLACK_BOX)
    assert applicable_layers(lambda data, rng: 0.0) == (Layer.BLACK_BOX,)
    assert str(Layer.WHITE_BOX) == "white-box"


def test_the_transcript_is_the_release():
    view = TranscriptView(LeakyMean())
    assert isinstance(view, Mechanism)
    assert isinstance(view, HasBatchedDraw)
    assert (view.claim, view.relation) == (CLAIM, Relation.ADD_REMOVE)
    batch = view.draw(PAIR.data, 5, rng=np.random.default_rng(0))
    assert {key: value.shape for key, value in batch.items()} == {
        "first": (5,),
        "second": (5,),
    }
    one = view.release(PAIR.data, rng=np.random.default_rng(0))
    again = view.draw(PAIR.data, 1, rng=np.random.default_rng(0))
    assert one == {key: value[0] for key, value in again.items()}


def test_the_worst_case_is_passed_on():
    assert isinstance(TranscriptView(WithWorstCase()), HasWorstCase)
    assert TranscriptView(WithWorstCase()).worst_case() is PAIR
    refuses("pair is needed", TranscriptView(LeakyMean()).worst_case)


def test_a_transcript_falls_where_the_release_stands():
    """The false alarm of the second audit has probability at most 0.001."""
    options = {"pair": PAIR, "budget": 300, "seed": 1}
    view = audit(TranscriptView(LeakyMean()), **options)
    release = audit(LeakyMean(), **options)
    assert view.verdict is Verdict.REFUTED
    assert release.verdict is Verdict.NOT_REFUTED


def test_a_mechanism_without_a_transcript_is_named():
    refuses("GOEGaussian", TranscriptView, GOEGaussian.from_mu(1.0))
