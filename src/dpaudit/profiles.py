"""How much work: the profiles of whatever can be done with more or less care."""

__all__ = ["PROFILES"]

PROFILES = ("quick", "standard", "full")
"""A look, what is worth reading, what is worth printing; each contains the last."""
