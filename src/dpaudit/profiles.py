"""How much work: the profiles of reports and benchmarks."""

__all__ = ["PROFILES"]

PROFILES = ("quick", "standard", "full")
"""A look, what is worth reading, what is worth printing; each contains the last."""
