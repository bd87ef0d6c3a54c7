"""Streaming: how the error of one component falls."""
