"""Mechanisms that release an orthonormal basis of a private principal subspace."""
