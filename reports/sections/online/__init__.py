"""Online PCA: regret, and its exponents beside theorems."""
