"""Testing by betting: what is wagered against a claim, and why that is a proof.

A round of releases is counted in events; e-values turn counts into wealth; a claim
falls when the wealth against every null that obeys it is large. The proofs stand in
`evidence` and `families`; everything else here decides what to bet on, and may be as
wrong as it likes without costing validity. Nothing here knows of
mechanisms or attacks.
"""
