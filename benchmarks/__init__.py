"""The benchmarks of dpaudit, for airspeed velocity (``make bench``)."""
