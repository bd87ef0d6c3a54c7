"""Executing a mechanism with a generator and functions that record."""
