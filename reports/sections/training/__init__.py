"""The section on models that are trained in private."""
