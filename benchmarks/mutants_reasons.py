"""Why some mutants survive: because nothing changes (equivalent), or because it does not matter.

A mutant is named by its module, the line of code as it stands there, and the change.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple


class Reason(NamedTuple):
    """Why a mutant survives."""

    kind: Literal["equivalent", "accepted"]
    module: str
    code: str  # the beginning of the line
    what: str
    why: str


# Changes of one sort, wherever they are made: what the line looks like, the change, and why.
EVERYWHERE = (
    (r"^@dataclass\(.*(frozen|eq|repr|kw_only|slots)=", r"^(True|False) ->",
     "whether a class is frozen, compared or shown: nobody assigns, compares or prints one"),
    (r"field\(.*repr=", r"^False -> True", "whether a field is shown"),
    (r"strict=True", r"^True -> False", "a guard: both are always of one length"),
    (r"perf_counter\(\)", r"(Sub|Div) ->", "seconds that are shown and decide nothing"),
    (r"lru_cache\(maxsize=", r"->", "how many results are kept, not which"),
    (r"overwrite_\w+=True", r"^True -> False", "whether memory is used again"),
)  # fmt: skip

REASONS: tuple[Reason, ...] = ()


def reason_for(line: dict[str, Any]) -> tuple[str, str]:
    """Return the kind of a survivor ("equivalent", "accepted" or "survived"), and why."""
    for code, what, why in EVERYWHERE:
        if re.search(code, line["code"]) and re.search(what, line["what"]):
            return "equivalent", why
    for reason in REASONS:
        same = (reason.module, reason.what) == (line["module"], line["what"])
        if same and line["code"].startswith(reason.code):
            return reason.kind, reason.why
    return "survived", ""
