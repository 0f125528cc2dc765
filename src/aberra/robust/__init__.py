"""Training that survives contaminated data: ADC and IADC.

`iadc.IADC.fit` reads as Algorithm 1 of the paper. `rounds` trains one round, `weighting` turns
scores into trust and counts crossings, `history` decides when to stop and which round to keep.
`aberra.explain.glossary` says what a member, a round, a crossing and trust are.
"""
