"""Which mechanism for private PCA to take: a measured grid, and how well it advises."""
