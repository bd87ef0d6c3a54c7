"""How errors scale, against the theorems: the rows of the report's scoreboard."""

from dpaudit.reports.sections.theorems.findings import ROWS


class ErrorExponent:
    """Measured exponents, those of a quick report; its rows say what is predicted."""

    params = ([row.name for row in ROWS],)
    param_names = ("row",)
    version = "2"
    unit = "exponent"

    def setup_cache(self) -> dict[str, float]:
        """Measure all rows, those of one experiment on the same draws."""
        # Not above: each row is read by a process of its own, which needs none of it.
        from dpaudit.reports.experiment import run
        from dpaudit.reports.sections import chosen_sections, plan
        from dpaudit.reports.sections.theorems.judgement import score

        experiments = plan("quick", 0, chosen_sections(("theorems",)))
        names = dict.fromkeys(row.experiment for row in ROWS)
        tables = {name: run(experiments[name]) for name in names}
        return {
            row.name: score(row, tables[row.experiment]).fit.exponent for row in ROWS
        }

    setup_cache.timeout = 600  # type: ignore[attr-defined]

    def track_error_exponent(self, exponents: dict[str, float], name: str) -> float:
        """Return the slope of log error over the log of the row's variable."""
        return exponents[name]
