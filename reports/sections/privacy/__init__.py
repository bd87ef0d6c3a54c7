"""Privacy: verdicts, and the wall between claims and losses."""
