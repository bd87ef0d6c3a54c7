"""What outlives an audit: its store, its checkpoints, and witnesses of refutations."""
