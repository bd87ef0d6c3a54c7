"""Audits from one execution: canaries that are in or out by the toss of a coin."""
