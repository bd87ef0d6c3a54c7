"""Fingerprinting codes, and what they say about private subspaces.

`TardosCode` and `CodeLength`: codes that betray who contributed to a pirated word;
`collude`: how pirates may make one; `rank_p_values` and its kin: where to accuse;
`HardInstance`: codes as the rows of a matrix of which no private mechanism finds the
principal subspace; `CullingGame`: the game behind the proof for subspaces.

Source: Dwork, Talwar, Thakurta, Zhang, *Analyze Gauss: optimal bounds for
privacy-preserving principal component analysis*, STOC 2014, section 5.
"""

from dpaudit.fingerprinting.calibration import (
    calibrated_threshold,
    conditional_p_values,
    rank_p_values,
)
from dpaudit.fingerprinting.codes import (
    STRATEGIES,
    Strategy,
    TardosCode,
    collude,
    draw_biases,
    draw_codewords,
    invalid_share,
    tracing_scores,
    unanimous,
)
from dpaudit.fingerprinting.culling import CullingGame, CullingStrategy, Proportion
from dpaudit.fingerprinting.instances import (
    PAD_RATIO,
    Disguise,
    HardInstance,
    is_useful,
    usefulness_gap,
)
from dpaudit.fingerprinting.lengths import (
    CodeLength,
    false_accusation_bound,
    missing_bound,
)

__all__ = [
    "PAD_RATIO",
    "STRATEGIES",
    "CodeLength",
    "CullingGame",
    "CullingStrategy",
    "Disguise",
    "HardInstance",
    "Proportion",
    "Strategy",
    "TardosCode",
    "calibrated_threshold",
    "collude",
    "conditional_p_values",
    "draw_biases",
    "draw_codewords",
    "false_accusation_bound",
    "invalid_share",
    "is_useful",
    "missing_bound",
    "rank_p_values",
    "tracing_scores",
    "unanimous",
    "usefulness_gap",
]
