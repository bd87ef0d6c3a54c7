"""The auditor audited: what its studies found."""
