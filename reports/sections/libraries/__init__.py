"""Other libraries: their PCA beside ours, and audits of what they ship."""
