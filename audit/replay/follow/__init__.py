"""Following an execution: its draws, its arithmetic, and the values it looks at."""
