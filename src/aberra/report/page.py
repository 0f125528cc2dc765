"""From a report's values to one HTML file that needs no network and runs no foreign code."""

from __future__ import annotations

import base64
from hashlib import sha256
from importlib.resources import files

from aberra.extras import need
from aberra.report.contents import Report
from aberra.robust.weighting import LOST_TRUST
from aberra.words import count, number, percent, score


def render(report: Report) -> str:
    """Return the page: one string, the same for the same report."""
    return rendered("page.html.j2", report=report)


def rendered(template: str, **values: object) -> str:
    """Return a page from one of the templates here, with the style and script that all share."""
    jinja = need("jinja2", "report", "A report")
    environment = jinja.Environment(
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja.FunctionLoader(_part),
    )
    environment.filters.update(number=number, percent=percent, score=score)
    environment.globals.update(count=count, low_trust=LOST_TRUST)
    style, script = _part("page.css"), _part("page.js")
    page: str = environment.get_template(template).render(
        style=style, script=script, policy=_policy(style, script), **values
    )
    return page


def _part(name: str) -> str:
    return files("aberra.report").joinpath(name).read_text("utf-8")


def _policy(style: str, script: str) -> str:
    """Allow this style, this script and pictures inside the page; nothing else."""
    return (
        f"default-src 'none'; img-src data:; style-src {_policy_digest(style)}; "
        f"script-src {_policy_digest(script)}; base-uri 'none'; form-action 'none'"
    )


def _policy_digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"
