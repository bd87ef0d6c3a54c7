"""The game of one audit: rounds on pairs of neighbours, and the bets on their events.

Why a verdict holds is said here and in `dpaudit.audit.betting`.
"""
