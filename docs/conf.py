"""Configuration of Sphinx: the pages of this folder and the reference, as a site.

``make docs`` writes it to ``build/docs``. It needs dpaudit with its extra ``docs``, and
no network: formulas are MathML, the search runs in the browser, and nothing is fetched.
"""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "dpaudit"
author = "The dpaudit developers"
version = release = version_of("dpaudit")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "notebooks",
    "mathml",
    "docstrings",
    "reference",
]
exclude_patterns = ["ci", "demonstrations", "extensions", "static", "witnesses"]

# Pages link to headings as they do in the repository.
myst_heading_anchors = 3

# Docstrings are numpydoc, with single backticks around names of code.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_inherit_docstrings = False
add_module_names = False
toc_object_entries_show_parents = "hide"

smartquotes = False
nitpicky = True

html_theme = "furo"
html_title = f"dpaudit {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_math_renderer = "mathml"
html_theme_options = {
    "light_css_variables": {"font-stack": "system-ui, sans-serif"},
    "dark_css_variables": {"font-stack": "system-ui, sans-serif"},
}
