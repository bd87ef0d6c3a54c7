"""Mechanisms that read the data as a stream, batch by batch: Oja and DP-PCA."""
