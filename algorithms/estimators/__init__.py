"""Estimators that choose a mechanism, run it on data, and say what it cost."""
