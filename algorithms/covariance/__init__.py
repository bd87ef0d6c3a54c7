"""Mechanisms that release the second-moment matrix plus noise."""
