"""The search for pairs of neighbours: which are worth an audit's time.

`proposals` invents pairs, and `pair_search` decides which of them to play next.
`dpaudit.audit.harness` says where the pairs of an audit come from.
"""
