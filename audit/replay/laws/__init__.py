"""The laws of what is drawn, and the privacy loss between two of them."""
