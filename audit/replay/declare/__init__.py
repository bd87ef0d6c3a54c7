"""Declarations of code that is not followed: primitives, libraries, training."""
