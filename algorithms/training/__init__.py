"""Models that are trained in private."""
