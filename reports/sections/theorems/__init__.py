"""The theorem scoreboard: measured exponents beside those that papers print."""
