"""The words of the field, and ours, in the order in which a newcomer meets them.

A sentence uses no word of the list before the list has said what it means. The pages
of the report and `docs/glossary.md` show the same words; pieces of code stand in
backticks.
"""

__all__ = ["GLOSSARY"]

GLOSSARY: dict[str, str] = {
    "row": (
        "What a dataset has of one person. A dataset is a list of rows, and a row is "
        "mostly a list of numbers."
    ),
    "mechanism": (
        "A randomised program that reads a dataset and returns something that is meant "
        "to be published. In Python it is a function `(data, rng) -> array` or an "
        "object with the protocol `dpaudit.Mechanism`."
    ),
    "release": (
        "What one run of a mechanism returns: a number, an array, a text, an exception."
    ),
    "relation": (
        "The rule that says when two datasets differ in one person. With `add-remove` "
        "one of them has a row more; with `replace-one` both have the same number of "
        "rows, and one row differs."
    ),
    "neighbour": "A dataset that differs from another in one person, by the relation.",
    "pair": (
        "Two neighbours, called D and D'. In Python they are the `data` and the "
        "`neighbour` of a `dpaudit.Pair`."
    ),
    "side": (
        "One of the two datasets of a pair. '1,000 releases a side' are 1,000 on D and "
        "1,000 on D'."
    ),
    "event": (
        "A set of releases, such as 'the first number is above 0.8'. Whoever watches "
        "for it tries to tell D from D'."
    ),
    "epsilon": (
        "How much likelier an event may become if one person changes: `e^epsilon` "
        "times at most. Epsilon 0 tells nothing of anybody; 1 allows a factor of 2.7."
    ),
    "delta": (
        "What an event may have beyond that factor, as a probability: mostly 0, or as "
        "little as 1e-5."
    ),
    "differential privacy": (
        "A promise about all neighbours and all events: the probability on one side is "
        "at most `e^epsilon` times that on the other, plus delta. DP for short."
    ),
    "claim": (
        "The promise of differential privacy that the author of a mechanism makes: "
        "epsilon alone (pure, `dpaudit.PureDP`), epsilon and delta (approximate, "
        "`dpaudit.ApproxDP`), or a whole curve, such as `dpaudit.GaussianDP`."
    ),
    "privacy profile": (
        "The smallest delta that is true of a mechanism, as a function of epsilon. A "
        "claim is an upper bound of that curve."
    ),
    "mu": (
        "The parameter of a Gaussian claim: telling D from D' is no easier than "
        "telling two normal laws apart whose means differ by mu standard deviations."
    ),
    "privacy loss": (
        "How much a single release tells: the logarithm of its probability (or "
        "density) on D over that on D'. It is infinite if D' cannot give that release."
    ),
    "worst pair": (
        "The pair on which a mechanism loses most, where that is known. 'Exact on the "
        "worst pair' is computed from its formula, without drawing."
    ),
    "sensitivity": (
        "How far the answer without noise can move if one person changes. Noise is "
        "made in proportion to it."
    ),
    "audit": (
        "An experiment that tries to break a claim. It runs the mechanism many times "
        "on both sides and looks for an event that the claim forbids. It stops when "
        "it has proof, or when it has drawn all that it may."
    ),
    "budget": (
        "How many releases a side an audit may draw. A privacy budget is another "
        "thing: the epsilon and delta that several releases share."
    ),
    "attack": (
        "A rule that gives each release a number, its score: large where the release "
        "looks like D, small where it looks like D'. The events of an audit are "
        "scores above a threshold, below one, or between two."
    ),
    "confidence": (
        "One minus the probability that a statement is wrong. At confidence 0.999 an "
        "audit refutes a true claim with probability 0.001 at most, whatever it "
        "searched and whenever it stopped."
    ),
    "lower bound": (
        "A value that the true epsilon (or delta, or mu) is not below, at the stated "
        "confidence. In results it is `epsilon_lower`."
    ),
    "refuted": (
        "The claim is false, at the stated confidence: some event on this pair has "
        "probabilities that the claim forbids. In results it is `REFUTED`."
    ),
    "not refuted": (
        "This run did not find a violation. That is no proof of privacy: another pair, "
        "a rarer event or a longer run may show one. In results it is `NOT_REFUTED`."
    ),
    "no verdict": (
        "The releases were seen not to be independent draws with the random generator "
        "that the mechanism is handed, which every statement assumes: neither of the "
        "two follows, and no bound. In results it is `NO_VERDICT`."
    ),
    "detectable epsilon": (
        "The smallest epsilon that a run would have refuted nine times in ten, on the "
        "best event that it found: what an audit that did not refute was able to see. "
        "In results it is `detectable_epsilon`."
    ),
    "rarest event": (
        "The probability from which a run would have found, nine times in ten, an "
        "output that only one side gives. In results it is `rarest_event`."
    ),
    "witness": (
        "A file with the pair and the event of a refuted claim. `dpaudit verify` draws "
        "fresh releases and tests that one event again."
    ),
    "evidence": (
        "How much an audit has won in bets against a claim, as a multiple of its "
        "stake (an e-value). Against a true claim it reaches 1,000 with probability "
        "1/1,000 at most."
    ),
    "layer": (
        "How closely an audit looks: at releases only (black box, `black-box`), at "
        "every noisy value on the way (`transcript`), at exact privacy losses too "
        "(`white-box`), at the formula (`exact`), or at the code (`replay`)."
    ),
    "transcript": (
        "All noisy values that a mechanism computes on the way to its release, in "
        "order. Proofs that add up the cost of steps are about these."
    ),
    "replay": (
        "An audit that executes Python code a few times, records its randomness and "
        "looks inside. It names the line of a fault, and what it says may be a proof."
    ),
    "not followed": (
        "What a replay says where it found something that may break the claim, and "
        "neither a proof nor a test settled it. In results it is `NOT_FOLLOWED`."
    ),
    "bits": (
        "The last digits of numbers in a computer. Audits are about real numbers and "
        "ignore them; `--bits` asks whether they give somebody away."
    ),
    "catalogue": (
        "All mechanisms that dpaudit brings, right ones and wrong ones, by name: "
        "`dpaudit list`. A family is a part of it, such as `covariance`."
    ),
    "capability": (
        "Something that a mechanism knows about itself beyond its release, such as its "
        "exact privacy loss (`privacy_loss`). An audit uses what is there."
    ),
    "as published": (
        "A mechanism to the letter of its paper, with the paper's claim. "
        "`as_published` builds it."
    ),
    "calibrated": (
        "A mechanism with the least noise that is proven here for a claim. "
        "`calibrated` builds it. The proof stands at the head of its module."
    ),
    "canary": (
        "A made-up row that is put into the data or left out, so that one can ask a "
        "release whether it was there. With many canaries one run is an audit."
    ),
    "tracing": "Telling from a release who was in the data.",
    "second moment": (
        "The matrix X^T X of the rows X, or its mean over the rows. It is a sum of "
        "one term a row."
    ),
    "PCA": (
        "Principal component analysis: the k directions along which the rows vary "
        "most. They are the top eigenvectors of the second moment, and most private "
        "mechanisms for PCA add noise to that matrix."
    ),
    "subspace": "All combinations of the k directions that PCA finds.",
    "gap": (
        "The k-th eigenvalue of the second moment less the next one. The larger it is, "
        "the less noise turns the subspace."
    ),
    "error": (
        "How far a private subspace is from the one without noise: the sine of the "
        "largest angle between them, unless a page says otherwise. 0 is the same "
        "subspace; 1 has a direction that is lost."
    ),
    "captured": (
        "The part of the rows' variance that lies in a subspace. As a share of the "
        "best that k directions can do, 1 is as good as without noise."
    ),
    "exponent": (
        "The power with which an error grows or falls as n, d or epsilon grows: -1 in "
        "n says that twice the rows halve it. The report compares that of a theorem "
        "with the measured one."
    ),
    "OPT": (
        "What the best subspace captures of the rows, if it is chosen after all of "
        "them are seen. Online PCA must choose before each."
    ),
    "regret": "OPT less what the subspaces of an online mechanism captured.",
    "quick, standard, full": (
        "The sizes of a study or a report. They differ in how many releases an audit "
        "may draw and in how often an error is measured."
    ),
}
