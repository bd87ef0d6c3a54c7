"""Mechanisms for private PCA, the user's own among them, side by side on some rows."""
