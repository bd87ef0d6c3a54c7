"""Formulas as MathML, which browsers show without a script or a font of ours."""

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

__all__ = ["setup"]

_LOGGER = logging.getLogger(__name__)


def _mathml(node: nodes.Element, block: bool) -> str:
    """Return a formula, or nothing and a warning if it cannot be translated."""
    source = re.sub(r"\\[Bb]ig(?=[()])", "", node.astext())  # sizes of parentheses
    try:
        return tex2mathml(source, as_block=block)
    except MathError as error:
        _LOGGER.warning("formula: %s: %r", error, source, location=node)
        return ""


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(_mathml(node, block=False))
    raise nodes.SkipNode


def _block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="formula">{_mathml(node, block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer `mathml`."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
