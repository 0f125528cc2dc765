"""Numbers as people write them: marks, signs, currencies and units; `written` says which form."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

FEW = 0.05  # cells that are written otherwise, beside those that tell how numbers are written
TELLING = 0.005  # of the cells have to show what a mark means; a slip of the pen does not

MINUS = "\N{MINUS SIGN}"  # which keyboards do not have
QUOTE = "\N{RIGHT SINGLE QUOTATION MARK}"  # beside the straight apostrophe

# Of currencies; other words before a number make it a name: Room 12.
CODES = [
    "AED", "ARS", "AUD", "BDT", "BGN", "BRL", "CAD", "CHF", "CLP", "CNY", "COP", "CZK", "DKK",
    "EGP", "EUR", "GBP", "HKD", "HUF", "IDR", "ILS", "INR", "ISK", "JPY", "KES", "KRW", "MXN",
    "MYR", "NGN", "NOK", "NZD", "PEN", "PHP", "PKR", "PLN", "RON", "RSD", "RUB", "SAR", "SEK",
    "SGD", "THB", "TRY", "TWD", "UAH", "USD", "VND", "ZAR", "Euro", "Fr", "Fr.", "Kr", "Kr.",
    "Rs", "Rs.", "kr", "kr.",
]  # fmt: skip
WORDS = "|".join(map(re.escape, sorted(CODES, key=len, reverse=True)))
GAP = r"[\s\p{Zs}]"
SYMBOL = r"[\p{L}]{0,3}\p{Sc}"
UNIT = r"[\p{L}%‰°\p{Sc}](?:[^0-9()]{0,14}[^0-9()\s\p{Zs}])?"
SIGN = rf"[+\-{MINUS}]?"
PARTS = (
    rf"^{GAP}*(?P<open>\(?){GAP}*(?P<sign>{SIGN}){GAP}*"
    rf"(?:(?P<symbol>{SYMBOL}){GAP}*|(?P<code>{WORDS}){GAP}+)?(?P<inner>{SIGN})"
    rf"(?P<body>[.,]?[0-9](?:[0-9.,'{QUOTE}\p{{Zs}}]*[0-9])?)"
    rf"(?:(?P<gap>{GAP}*)(?P<unit>{UNIT}))?{GAP}*(?P<close>\)?){GAP}*$"
)
OTHER = {".": ",", ",": "."}
GROUPED = r"[1-9][0-9]{0,2}(?:%s[0-9]{3})+"
WHOLE = "|".join([r"0|[1-9][0-9]*", GROUPED % r"\p{Zs}", GROUPED % f"['{QUOTE}]"])
READABLE = {  # by the decimal mark; without one, what can be read in one way only
    ".": rf"^(?:{WHOLE}|{GROUPED % ','})?(?:\.[0-9]+)?$",
    ",": rf"^(?:{WHOLE}|{GROUPED % '[.]'})?(?:,[0-9]+)?$",
    "": rf"^(?:0?[.,][0-9]+|(?:{WHOLE})(?:[.,](?:[0-9]{{1,2}}|[0-9]{{4,}}))?)$",
}
CONTESTED = r"^[1-9][0-9]{0,2}%s[0-9]{3}$"
FORM = re.compile(
    rf"(?P<open>[({MINUS}]?)(?P<prefix>[^0-9()]*?)1(?P<group>[.,' ]?)234(?:(?P<mark>[.,])56)?"
    r"(?P<gap> ?)(?P<unit>[^0-9()]*)\)?"
)

Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]


class _Cells(NamedTuple):
    """Texts taken apart: the number without its sign, and what stands around it."""

    body: pa.Array
    before: pa.Array  # a currency
    unit: pa.Array
    spaced: Flags  # there is a space between number and unit
    negative: Flags
    plus: Flags
    long_minus: Flags  # which keyboards do not have
    opened: Flags  # in parentheses
    whole: Flags  # it has the shape of a number at all


@dataclass(frozen=True)
class _Form:
    """What an example says."""

    before: str
    unit: str
    decimal: str  # "" if no cell had one

    def of(self, cells: _Cells) -> Flags:
        """Say which cells are written like this."""
        same = pc.and_(pc.equal(cells.before, self.before), pc.equal(cells.unit, self.unit))
        return cells.whole & _flags(same) & _matches(cells.body, READABLE[self.decimal])


def likely(texts: pa.Array) -> Flags:
    """Say which texts look like numbers."""
    return _cells(texts).whole


def contested(texts: pa.Array) -> Flags:
    """Say which texts are numbers whether their mark is for decimals or for thousands."""
    cells = _cells(texts)
    return cells.whole & _matches(cells.body, CONTESTED % "[.,]")


def form_of(texts: pa.Array, counts: Counts) -> str | None:
    """Return the form that most of some different texts have, by how often each occurs."""
    cells = _cells(texts)
    counted = counts * cells.whole
    before, unit = _most(pc.binary_join_element_wise(cells.before, cells.unit, "\n"), counted)
    alike = pc.and_(pc.equal(cells.before, before), pc.equal(cells.unit, unit))
    counted = counted * _flags(alike)
    decimal = _decimal(cells.body, counted)
    if (before and unit) or decimal is None:
        return None
    counted = counted * _matches(cells.body, READABLE[decimal])
    group, mark = _marks(cells.body, counted, decimal)
    told = before or unit or mark or (group and _varies(cells, counted))
    sign = "" if told else _sign(cells, counted)
    if not told and not sign:
        return None
    gap = _spaced(cells, texts, counted, before)
    lead, tail = before + gap * bool(before), gap * bool(unit) + unit
    return f"{sign}{lead}1{group}234{mark}{'56' * bool(mark)}{tail}{')' * (sign == '(')}"


def read(texts: pa.Array, form: str) -> NDArray[np.float64]:
    """Return the numbers of some texts, NaN where one is not in a form."""
    found, cells = _parsed(form), _cells(texts)
    assert found is not None
    fits = found.of(cells)
    grouping = rf"['{QUOTE}\s\p{{Zs}}{OTHER.get(found.decimal, '')}]"
    plain = pc.replace_substring_regex(cells.body, grouping, "")
    plain = pc.if_else(fits, pc.replace_substring(plain, ",", "."), None)
    values = np.array(plain.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
    values[np.isinf(values)] = np.nan  # more digits than floats have
    return np.where(cells.negative, -values, values)


def is_form(form: str) -> bool:
    """Say whether a text is a form of numbers."""
    return _parsed(form) is not None


@lru_cache(maxsize=1024)  # asked for every column of every piece
def _parsed(form: str) -> _Form | None:
    held = FORM.fullmatch(form)
    if held is None or form.endswith(")") != (held["open"] == "("):
        return None
    group, mark, unit = held["group"], held["mark"] or "", held["unit"]
    before = held["prefix"].removesuffix(" ")
    cells = _cells(pa.array([form]))
    same = cells.before[0].as_py() == before and cells.unit[0].as_py() == unit
    told = before or unit or mark or group or held["open"]
    twice = (before and unit) or (mark and group == mark) or (held["gap"] and not unit)
    if not (cells.whole[0] and same and told) or twice:
        return None
    return _Form(before, unit, mark or OTHER.get(group, ""))


def _cells(texts: pa.Array) -> _Cells:
    held = pc.extract_regex(texts, PARTS)
    part = {f.name: pc.fill_null(held.field(f.name), "") for f in held.type}
    opened, closed = (_flags(pc.not_equal(part[end], "")) for end in ("open", "close"))
    before = pc.binary_join_element_wise(part["symbol"], part["code"], "")
    signs = pc.binary_join_element_wise(part["sign"], part["inner"], "")
    minus, long_minus = (_flags(pc.equal(signs, sign)) for sign in ("-", MINUS))
    once = _flags(pc.less_equal(pc.utf8_length(signs), 1)) & ~(opened & (minus | long_minus))
    return _Cells(
        part["body"],
        before,
        part["unit"],
        _flags(pc.not_equal(part["gap"], "")),
        minus | long_minus | opened,
        _flags(pc.equal(signs, "+")),
        long_minus,
        opened,
        _flags(pc.is_valid(held)) & (opened == closed) & once & ~_flags(pc.equal(part["body"], "")),
    )


def _most(texts: pa.Array, counts: Counts) -> tuple[str, str]:
    """Return what most cells have before and behind the number."""
    encoded = texts.dictionary_encode()
    totals = np.bincount(np.asarray(encoded.indices), counts, len(encoded.dictionary))
    before, _, unit = encoded.dictionary[int(totals.argmax())].as_py().partition("\n")
    return before, unit


def _decimal(body: pa.Array, counts: Counts) -> str | None:
    """Return the decimal mark, "" if there is none; None if it cannot be told from grouping."""
    point, comma = (_matches(body, READABLE[mark]) for mark in ".,")
    n_point, n_comma = (int(counts[one].sum()) for one in (point & ~comma, comma & ~point))
    contested = {mark: _sum(body, CONTESTED % re.escape(mark), counts) for mark in ".,"}
    n, unclear = int(counts.sum()), sum(contested.values())
    enough = max(1, TELLING * n) if unclear else 1
    if n_point >= enough and n_comma <= FEW * n_point:
        return "."
    if n_comma >= enough and n_point <= FEW * n_comma:
        return ","
    if not unclear:
        return ""
    # 1,234 beside whole numbers that all are below 1,000 has a mark for thousands.
    short, long = (_sum(body, shape, counts) for shape in ("^[0-9]{1,3}$", "^[0-9]{4,}$"))
    if n_point or n_comma or long or short < enough or min(contested.values()):
        return None
    return "," if contested["."] else "."


def _marks(body: pa.Array, counts: Counts, decimal: str) -> tuple[str, str]:
    """Return the mark between groups of digits that most numbers have, and the decimal mark."""
    shapes = {" ": r"[0-9]\p{Zs}[0-9]", "'": f"['{QUOTE}]"}
    if decimal:
        shapes[OTHER[decimal]] = re.escape(OTHER[decimal])
    found = {mark: _sum(body, shape, counts) for mark, shape in shapes.items()}
    group = max(found, key=lambda mark: found[mark])
    decimals = decimal and _sum(body, re.escape(decimal), counts)
    return group if found[group] else "", decimal if decimals else ""


def _sign(cells: _Cells, counts: Counts) -> str:
    """Return the sign of negative numbers if it is one that only numbers have."""
    for sign, has in (("(", cells.opened), (MINUS, cells.long_minus)):
        if 0 < counts[has].sum() < counts.sum():
            return sign
    return ""


def _varies(cells: _Cells, counts: Counts) -> bool:
    """Say whether numbers in groups of digits differ in length, as those of telephones do not."""
    digits = pc.utf8_length(pc.replace_substring_regex(cells.body, "[^0-9]", ""))
    lengths = np.unique(np.asarray(digits)[counts > 0])
    return len(lengths) > 1 and not counts[cells.plus].sum()


def _spaced(cells: _Cells, texts: pa.Array, counts: Counts, before: str) -> str:
    """Return the space between the number and what goes with it, if most numbers have it."""
    spaced = cells.spaced
    if before:
        spaced = _matches(texts, re.escape(before) + GAP)
    return " " if 2 * counts[spaced].sum() > counts.sum() else ""


def _matches(texts: pa.Array, shape: str) -> Flags:
    return _flags(pc.match_substring_regex(texts, shape))


def _sum(texts: pa.Array, shape: str, counts: Counts) -> int:
    return int(counts[_matches(texts, shape)].sum())


def _flags(found: pa.Array) -> Flags:
    return np.asarray(pc.fill_null(found, False)).astype(bool)
