"""Following an execution: what is drawn, what is computed with it, what is seen."""
