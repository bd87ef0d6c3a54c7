"""Mechanisms that others wrote, as their libraries ship them.

The adapters add nothing to the privacy of what they call: they hand over data in the
form that the library asks for, and repeat its claim in the terms of dpaudit. A library
is imported only when something is drawn; the extras `opendp` and `diffprivlib` install
them.
"""
