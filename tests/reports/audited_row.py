"""A row of a table of audits as the runner makes it."""


def audited(**columns):
    """Return a claim that is false, and was not refuted, but for other columns."""
    row = {
        **{"mechanism": "m", "source": "a paper", "relation": "add-remove"},
        **{"claimed_epsilon": 1.0, "claimed_delta": 0.125, "exact_epsilon": 2.0},
        **{"exact_delta": 0.25, "claim": "false", "verdict": "NOT_REFUTED"},
        **{"epsilon_lower": 1.5, "delta_lower": 0.2, "attack": "support"},
        **{"event": "the release >= 3", "hits": 300.0, "hits_neighbour": 10.0},
        **{"detectable_epsilon": 3.0, "rarest_event": 0.0625, "samples": 1000},
        **{"max_samples": 1000, "samples_to_refute": 70.0, "confidence": 0.999},
        **{"seed": 0, "witness": None},
    }
    return row | columns
