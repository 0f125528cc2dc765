"""One HTML page with all tables and figures so far; it needs no network and no library."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from html import escape

from aberra.reproduce.tables import Row, grid, words

STYLE = """
:root { color-scheme: light dark; --line: #8886; --ahead: #0072b2; --behind: #d55e00 }
@media (prefers-color-scheme: dark) { :root { --ahead: #56b4e9; --behind: #e69f00 } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
nav a { margin-right: 1rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px }
.wide { overflow-x: auto }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left }
th button { all: unset; cursor: pointer; font-weight: 600 }
th button:focus-visible { outline: 2px solid currentColor; outline-offset: 2px }
.ahead { color: var(--ahead); font-weight: 600 } .ahead::after { content: " ▲" }
.behind { color: var(--behind) } .behind::after { content: " ▼" }
.none, .not, .withheld, .stale { opacity: .65 }
small { opacity: .75; display: block }
figure { margin: 1rem 0; background: white; padding: .5rem } figure img { width: 100% }
@media print { nav { display: none } .wide { overflow: visible } }
"""

SCRIPT = """
for (const table of document.querySelectorAll("table"))
  table.querySelectorAll("th button").forEach((button, column) => button.onclick = () => {
    const head = button.closest("th"), down = head.getAttribute("aria-sort") !== "descending";
    table.querySelectorAll("th").forEach(th => th.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const order = (a, b) => {
      const [x, y] = [value(a), value(b)];
      const number = x !== "" && y !== "" && !isNaN(x) && !isNaN(y);
      return number ? y - x : String(y).localeCompare(String(x));
    };
    const rows = [...table.tBodies[0].rows].sort(order);
    table.tBodies[0].append(...(down ? rows : rows.reverse()));
  });
"""


def page(
    tables: Mapping[str, tuple[str, Sequence[Row], int, tuple[str, str]]],
    figures: Mapping[str, tuple[str, bytes]],
) -> str:
    """Return the page.

    Parameters
    ----------
    tables : mapping
        From a name to what stands above it, its rows, the decimals to show, and the names of the
        first two columns.
    figures : mapping
        From a name to its title and its SVG.
    """
    names = [*tables, *figures]
    links = " ".join(f'<a href="#{name}">{escape(name)}</a>' for name in names)
    parts = [_table_section(name, *held) for name, held in tables.items()]
    parts += [_figure_section(name, *held) for name, held in figures.items()]
    policy = (
        f"default-src 'none'; img-src data:; style-src {_allowed(STYLE)}; "
        f"script-src {_allowed(SCRIPT)}"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>Aberra: the papers' tables and figures</title><style>{STYLE}</style></head>\n"
        "<body><h1>The papers' tables and figures</h1>\n"
        "<p>Our mean ± deviation over seeds, the paper's figure in brackets. ▲ and ▼: ahead or "
        "behind by more than one standard deviation; pale: no verdict. Click a heading to "
        "sort.</p>\n"
        f"<nav>{links}</nav>\n{''.join(parts)}<script>{SCRIPT}</script></body></html>\n"
    )


def _allowed(text: str) -> str:
    """Return the digest by which a page may name its own style and script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _table_section(
    name: str, head: str, rows: Sequence[Row], digits: int, heads: tuple[str, str]
) -> str:
    cases, lines = grid(rows)
    titles = "".join(
        f'<th scope="col"><button type="button">{escape(title)}</button></th>'
        for title in (*heads, *cases)
    )
    body = "".join(
        f"<tr><td>{escape(d)}</td><td>{escape(v)}</td>"
        + "".join(_table_cell(cell, digits) for cell in cells)
        + "</tr>\n"
        for d, v, cells in lines
    )
    return (
        f'<section id="{name}"><h2>{escape(name)}</h2><p>{escape(head)}</p><div class="wide">'
        f"<table><thead><tr>{titles}</tr></thead><tbody>\n{body}</tbody></table></div></section>\n"
    )


def _table_cell(cell: Row | None, digits: int) -> str:
    if cell is None or cell.mean is None:
        return '<td class="not" data-value="">not run</td>'
    kind = cell.verdict.split()[-1]
    text = escape(words(cell, digits, " ± "))
    return f'<td data-value="{cell.mean:.6g}"><span class="{kind}">{text}</span></td>'


def _figure_section(name: str, title: str, svg: bytes) -> str:
    source = f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
    return (
        f'<section id="{name}"><h2>{escape(name)}</h2><p>{escape(title)}</p>'
        f'<figure><img alt="{escape(title)}" src="{source}"></figure></section>\n'
    )
