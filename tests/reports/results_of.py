"""Tables as the results that figures are drawn from."""

import pandas as pd

from dpaudit.reports.sections import Results


def results_of(tables, **experiments):
    """Return tables as results, with the experiments that a figure asks about."""
    return Results("tiny", 0, experiments, tables)


def verdicts(refuted=(), standing=()):
    """Return a table of audits, as far as figures look at it."""
    found = dict.fromkeys(refuted, "REFUTED") | dict.fromkeys(standing, "NOT_REFUTED")
    return pd.DataFrame({"mechanism": list(found), "verdict": list(found.values())})
