"""Public mechanisms and models of other libraries, as their documentation uses them.

A module here lists what is audited of one library or several, a few
lines for each (`dpaudit.algorithms.third_party.subjects.subject`). ``dpaudit report
tour`` audits them.
"""
