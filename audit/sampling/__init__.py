"""How releases are drawn: one by one or in batches, here or by workers."""
