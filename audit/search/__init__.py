"""The search for pairs of neighbours: which are worth an audit's time.

`proposals` invents pairs, and `pair_search` decides which of them to play next.
`dpaudit.audit.pairs` makes one thing of a given pair, a given list and a whole domain.
"""
