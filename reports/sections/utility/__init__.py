"""Utility: what privacy costs, in captured variance and in time."""
