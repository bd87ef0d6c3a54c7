"""The layers of evidence: what a mechanism knows of itself, put to use.

`layer` names them and says which of them a mechanism offers; `exact` compares a claim
with a privacy profile that is known; `whitebox` bounds the profile of one pair from
draws of the exact privacy loss; `consistency` asks whether that loss belongs to the
sampler.
"""
