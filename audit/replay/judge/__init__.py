"""What executions on two datasets prove of a claim."""
