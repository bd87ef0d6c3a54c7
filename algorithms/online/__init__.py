"""Mechanisms that publish after every row: prefix sums, and subspaces that follow."""
