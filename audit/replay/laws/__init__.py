"""The laws of noisy values and choices, and the privacy loss between two of them."""
