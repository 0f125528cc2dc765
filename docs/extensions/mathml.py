"""Equations as MathML, which every browser draws by itself: no scripts, no network."""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

# docutils sets the index of an accented letter below the letter; it belongs beside it.
LETTER = r"(<m\w+>[^<]*</m\w+>)"
BELOW = re.compile(rf"<munderover>\s*{LETTER}\s*{LETTER}\s*(<mo [^>]*>[^<]*</mo>)\s*</munderover>")


def mathml(equation: str, block: bool = False) -> str:
    """Return an equation in LaTeX as MathML."""
    found = tex2mathml(equation, as_block=block)
    return BELOW.sub(r"<msub><mover accent='true'>\1\3</mover>\2</msub>", found)


def inline(writer: Any, node: nodes.math) -> None:
    """Write an equation within a sentence."""
    writer.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    """Write an equation on a line of its own."""
    writer.body.append('<div class="equation">')
    writer.body.append(mathml(node.astext(), block=True))
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx about it."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
