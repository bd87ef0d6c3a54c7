"""Outlier-robust private PCA: geodesic descent on the GLAD objective, and REAPER."""
