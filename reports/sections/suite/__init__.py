"""The textbook suite: the audit where the truth is known."""
