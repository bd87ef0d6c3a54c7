"""Mechanisms as people write them, right and wrong: what a replay is measured on."""
