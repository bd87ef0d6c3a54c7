"""What to do about what was seen: a table, from words of findings to remedies.

A finding says what is true of a line; what would make the code followed, or settle the
claim, stands here and nowhere else. The first row that a finding has the words of is
the remedy: state first, since nothing is judged beside it; then draws that are not
followed; then what differs, which no better law would change; last what depends on how
the code looks at noise.
"""

from collections.abc import Sequence

from dpaudit.audit.replay.judge.judgement import Finding

__all__ = ["remedy_for"]

_DECLARE = "draw noise from the generator that is handed over, or declare a primitive"
_PRIMITIVE = "or declare the function that {} a primitive"
_LOOP = (
    "or declare a loop that draws until a number fits one primitive (Laplace noise "
    "that is truncated)"
)
_NUMBERS = (
    "return its numbers and texts (vars of an object, state_dict of a model, isoformat "
    "of a date, tolist of an array)"
)
_SETTLE = "draw more of them (budget=, --max-samples)"
_HIDDEN = (
    "show by proof that the release hides it, draw more releases (budget=, "
    "--max-samples), or say sees='transcript' if every noisy value is seen"
)
_ANY = "draws from a law"
_AMONG = "choice randrange randint integers sample shuffle permutation permuted".split()
_SET = (
    "let the data set the probabilities of what is released (rng.random(n) < p, "
    "rng.choice(k, p=p)), "
)
_FEW = (
    f"{_SET}make few draws among few (rng.integers(k), rng.choice(k): 64 ways are "
    "executed in all), draw the rows of a batch by a flip of each (rng.random(n) < q), "
    "say batches='public' if everybody sees what rng.choice or rng.permutation draws, "
    + _PRIMITIVE.format("draws them")
)
_WORDS: dict[str, str] = {
    "half precision": "add noise in single or double precision, and round after it",
    "go on here": f"draw as often as is public, {_LOOP}",
    "seconds of the budget": "give it more of them, or hand over smaller datasets",
    "a generator that": "hand the generator over, or make it, or the object that holds "
    "it, within the mechanism",
    "was drawn before": "draw the noise within the mechanism, in each execution anew",
    "that an earlier execution drew": "draw the noise within the mechanism, in each "
    "execution anew",
    "one seed": "give each generator a seed of its own, or spawn them",
    "draws otherwise from bits": "use a generator that is spawned, not a copy",
    "a state that is not": "seed a new generator",
    "bits of the generator": "draw from the generator, "
    + _PRIMITIVE.format("uses its bits"),
    "copied or sent away": "hand over a generator that is spawned, and not to another "
    "process",
    "imported by name": "call it by the name of its module (np.random.laplace), or "
    "draw from the generator that is handed over",
    "stays so": "put back what is replaced, or call the new one by a name of its own",
    "another thread": "draw before threads are started, or let a ThreadPoolExecutor do "
    "it",
    "would take more": "claim a smaller epsilon, for which fewer executions do",
    "randomness, or": "keep nothing between executions, release no time of the clock, "
    "and " + _DECLARE,
    "another release": _DECLARE,
    "is called": "hand over what is drawn, " + _PRIMITIVE.format("draws"),
    "makes noise that has made": "split the key, and use each part once",
    "added before is added again": "draw noise for each sum anew",
    "was not audited": "hand it plain arguments, say trusted=True, or give the audit a "
    "larger budget",
    "other arguments": "hand it what follows from data and noisy values, or say "
    "trusted=True",
    "keeps from one execution": "keep nothing between executions",
    "a declared primitive": "let its declaration fit what it takes and returns, and "
    "let it change no argument",
    **dict.fromkeys(("neither numbers nor text", "releases must be"), _NUMBERS),
    "only when it is followed": "compute with noise by NumPy's functions and operators "
    "alone, " + _PRIMITIVE.format("draws it"),
    "the mechanism raises": "hand over a pair on which it does not fail",
    "the batch": "let each value go by its own batch and by noisy values alone",
    "here it is without": "release the number that has the noise in its stead",
    "a number without noise": "add noise to it, or make it of noisy values and public "
    "numbers alone",
    **{f"{name} {_ANY}": _FEW for name in _AMONG},
    _ANY: "draw Laplace, Gaussian, geometric or uniform numbers of fixed scale in its "
    "stead, or declare a primitive of that law",
    "too many laws": _FEW,
    "may be hidden": f"{_SET}make fewer choices at once (64 ways are executed), say "
    "batches='public' if they are seen, " + _PRIMITIVE.format("makes them"),
    "as a text": "write what was made of noise and data, not the noise",
    "text of noise": "make a number of it, or a text, and not both",
    "on a lattice": "compare whole numbers, or with a number in between",
    "other probabilities": "draw each row by a flip of its own, whose "
    "probability goes by no other row",
    "one of these readings": "add the noise to the data once, as one expression",
    "only a sum was seen": "draw noise for each value by itself, "
    + _PRIMITIVE.format("uses it"),
    "whose law is not known": "add independent noise of one scale to each number, "
    + _PRIMITIVE.format("makes it"),
    "ordinary number": "add the noise to the data before anything is made of it, "
    + _PRIMITIVE.format("makes it"),
    "may hide what differs": "look at all noisy values in one array (np.argmax(counts "
    "+ rng.laplace(size=k))), let the release go by the data through noisy values "
    "alone, " + _PRIMITIVE.format("looks at them"),
    "has no bound": "let the scale of the noise be public, clip what is noisy to "
    "public bounds, or claim a delta",
    "noise decides whether": f"draw as often as is public, {_LOOP}",
}
_KINDS = {
    "coin": _DECLARE,
    "scale": "let the scale go by public numbers and noisy values alone",
    "structure": "let what is drawn and returned go by public values and noisy values "
    f"alone, {_LOOP}",
    "release": "let the release go by the data through noisy values alone",
    "distance": "bound what one row changes here, or add noise of a larger scale",
    "budget": "spend less on each step, or claim what all together cost",
    "primitive": "mend the primitive, or declare what it keeps",
}


def remedy_for(findings: Sequence[Finding], sees: str) -> str:
    """Return what would make code followed, or settle it, and at which line."""
    settle = _HIDDEN if sees == "release" else _SETTLE
    rows = [(words, "", remedy) for words, remedy in _WORDS.items()]
    for words, kind, remedy in [*rows, *(("", *row) for row in _KINDS.items())]:
        for each in findings:
            if words in each.message and each.kind == (kind or each.kind):
                final = each.kind == "coin" or "the mechanism raises" in each.message
                more = "" if final else f"; or {settle}"
                return f"at {each.where}: {remedy}{more}"
    return settle
