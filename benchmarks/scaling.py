"""How errors scale, against the theorems: the rows of the report's scoreboard."""

from dpaudit.reports.experiment import run
from dpaudit.reports.sections import chosen_sections, plan
from dpaudit.reports.sections.theorems.judgement import score
from dpaudit.reports.sections.theorems.rows import ROWS, only

_ROWS = {row.name: row for row in ROWS}


class ErrorExponent:
    """Measured exponents, as in a quick report; the docs say which are predicted."""

    params = (list(_ROWS),)
    param_names = ("row",)
    version = "1"
    unit = "exponent"

    def track_error_exponent(self, name: str) -> float:
        """Return the slope of log error over the log of the row's variable."""
        row = _ROWS[name]
        experiments = plan("quick", 0, chosen_sections(("theorems",)))
        table = run(only(row, experiments[row.experiment]))
        return score(row, table).fit.exponent
