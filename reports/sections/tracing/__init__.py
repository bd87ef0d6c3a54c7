"""Tracing: lower bounds as attacks."""
