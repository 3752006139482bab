r"""Formulas as MathML, which browsers draw themselves: nothing is loaded, also offline.

The converter is that of Docutils; a formula that it cannot read fails the build.
"""

from __future__ import annotations

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

log = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer `mathml`."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(_converted(node, block=False))
    raise nodes.SkipNode


def _block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math">{_converted(node, block=True)}</div>\n')
    raise nodes.SkipNode


def _converted(node: nodes.Element, *, block: bool) -> str:
    try:
        converted = str(tex2mathml(node.astext().strip(), as_block=block))
    except MathError as error:
        log.warning("formula %r: %s", node.astext(), error, location=node)
        return ""
    # as in TeX, where only brackets written with \left and \right grow
    return re.sub(r"<mo(?: class=.\w+.)?>([⟨⟩‖])</mo>", r'<mo stretchy="false">\1</mo>', converted)
