"""Dates as people write them: order, marks, names of months; `written` says which form."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

FEW = 0.05  # dates that are the other way round, day before month or after it
TELLING = 0.005  # of the dates have to show which way they are
LOOKED_AT = 1000  # different dates that say which parts there are
CENTURY = 69  # 68 is 2068, 69 is 1969

ORDERS = {  # of the parts in numbers, and the mark between them
    "2026-02-27": ("ymd", "-"),
    "2026/02/27": ("ymd", "/"),
    "2026.02.27": ("ymd", "."),
    "27.02.2026": ("dmy", "."),
    "27/02/2026": ("dmy", "/"),
    "27-02-2026": ("dmy", "-"),
    "02/27/2026": ("mdy", "/"),
    "02-27-2026": ("mdy", "-"),
}
NAMED = {  # with the name of the month
    "27-Feb-26": "dmy",
    "27-Feb-2026": "dmy",
    "27 Feb 26": "dmy",
    "27 Feb 2026": "dmy",
    "Feb 27, 2026": "mdy",
}
TIMES = ("", " 16:05", " 16:05:09", " 4:05 PM", " 4:05:09 PM")
NAMES = [  # of the twelve months, in English and German
    "jan january januar jän jänner",
    "feb february februar",
    "mar march mär märz mrz",
    "apr april",
    "may mai",
    "jun june juni",
    "jul july juli",
    "aug august",
    "sep sept september",
    "oct october okt oktober",
    "nov november",
    "dec december dez dezember",
]
MONTHS = {name: month for month, names in enumerate(NAMES, 1) for name in names.split()}

TIME = (
    r"(?:(?:T|,? +)(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2}(?:[.,][0-9]+)?))?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?"
    r"(?: ?(?:[Zz]|UTC|(?P<east>[+-])(?P<zone>[0-9]{2}):?(?P<zone_minute>[0-9]{2})?))?)?"
)
PARTS = {
    "ymd": rf"^ *(?P<y>[0-9]{{4}})(?P<mark>[-/.])(?P<m>[0-9]{{1,2}})(?P<other>[-/.])"
    rf"(?P<d>[0-9]{{1,2}}){TIME} *$",
    "dmy": rf"^ *(?P<d>[0-9]{{1,2}})(?P<mark>[-/.])(?P<m>[0-9]{{1,2}})(?P<other>[-/.])"
    rf"(?P<y>[0-9]{{4}}){TIME} *$",
    "named dmy": r"^ *(?P<d>[0-9]{1,2})(?P<mark>[-/ ]|\. ?)(?P<name>\p{L}{3,9})\.?,?[-/ ]"
    rf"(?P<y>[0-9]{{4}}|[0-9]{{2}}){TIME} *$",
    "named mdy": r"^ *(?P<name>\p{L}{3,9})\.? (?P<d>[0-9]{1,2})(?:st|nd|rd|th)?,? "
    rf"(?P<y>[0-9]{{4}}){TIME} *$",
}
PARTS["mdy"] = PARTS["dmy"].replace("<d>", "<?>").replace("<m>", "<d>").replace("<?>", "<m>")

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Parts = dict[str, pa.Array]


def likely(texts: pa.Array) -> NDArray[np.bool_]:
    """Say which texts are dates in some form."""
    return np.any([~np.isnan(read(texts, base)) for base in (*ORDERS, *NAMED)], axis=0)


def contested(texts: pa.Array) -> NDArray[np.bool_]:
    """Say which texts are dates whether the day comes first or the month."""
    pairs = (("27/02/2026", "02/27/2026"), ("27-02-2026", "02-27-2026"))
    return np.any([~np.isnan(read(texts, a) + read(texts, b)) for a, b in pairs], axis=0)


def form_of(texts: pa.Array, counts: Counts) -> str | None:
    """Return the form that most of some different texts have, by how often each occurs."""
    some, n = texts[:LOOKED_AT], counts[:LOOKED_AT]
    most = {base: int(n[~np.isnan(read(some, base))].sum()) for base in (*ORDERS, *NAMED)}
    base = max(most, key=lambda one: most[one])
    if base in NAMED:
        return _as_named(texts, counts, base) + _time(texts, counts, base)
    order, mark = ORDERS[base]
    swapped = next((b for b, how in ORDERS.items() if how == (order[1::-1] + "y", mark)), None)
    if swapped is not None:
        one, other = (np.isnan(read(texts, b)) for b in (base, swapped))
        tells, against = counts[~one & other].sum(), counts[one & ~other].sum()
        if against > tells:
            base, tells, against = swapped, against, tells
        if tells < max(1, TELLING * counts.sum()) or against > FEW * tells:
            return None
    return base + _time(texts, counts, base)


def read(texts: pa.Array, form: str) -> Floats:
    """Return the dates of some texts in seconds since 1970, NaN where one is not in a form."""
    base = _base(form)
    part = _parts(texts, base)
    fits = np.ones(len(texts), dtype=bool)
    if base in ORDERS:
        fits = _flags(pc.equal(part["mark"], ORDERS[base][1]))
        fits &= _flags(pc.equal(part["other"], ORDERS[base][1]))
        month = _number(part["m"])
    else:
        names = pc.dictionary_encode(pc.utf8_lower(pc.fill_null(part["name"], "")))
        known = [float(MONTHS.get(name, np.nan)) for name in names.dictionary.to_pylist()]
        month = np.array(known, np.float64)[np.asarray(names.indices)]
    year, day = _number(part["y"]), _number(part["d"])
    short = _flags(pc.equal(pc.utf8_length(part["y"]), 2))
    year = year + short * np.where(year < CENTURY, 2000.0, 1900.0)
    days = np.where(fits, _days(year, month, day), np.nan)
    return np.asarray(86400.0 * days + _seconds(part), np.float64)


def is_form(form: str) -> bool:
    """Say whether a text is a form of dates."""
    base = _base(form)
    return base in (*ORDERS, *NAMED) and form.removeprefix(base) in TIMES


def _base(form: str) -> str:
    """Return a form without its time of day, which is read wherever it is written."""
    time = max((one for one in TIMES if form.endswith(one)), key=len)
    return form.removesuffix(time)


def _parts(texts: pa.Array, base: str) -> Parts:
    shape = PARTS[ORDERS[base][0] if base in ORDERS else f"named {NAMED[base]}"]
    held = pc.extract_regex(texts, shape)
    return {field.name: held.field(field.name) for field in held.type}


def _days(year: Floats, month: Floats, day: Floats) -> Floats:
    """Return days since 1970, NaN for a date that no calendar has."""
    whole = ~np.isnan(year + month + day)
    y, m, d = (np.where(whole, part, 1.0).astype(np.int64) for part in (year, month, day))
    months = (12 * (y - 1970) + m - 1).astype("datetime64[M]")
    first, after = (k.astype("datetime64[D]").astype(np.int64) for k in (months, months + 1))
    there = whole & (y > 0) & (m >= 1) & (m <= 12) & (d >= 1) & (d <= after - first)
    return np.where(there, first + d - 1.0, np.nan)


def _seconds(part: Parts) -> Floats:
    """Return the seconds since midnight in UTC, NaN for a time that no clock shows."""
    hour, minute, second = (_number(part[name], 0.0) for name in ("hour", "minute", "second"))
    half = pc.utf8_lower(part["half"])
    afternoon, halved = _flags(pc.equal(half, "p")), ~_flags(pc.equal(half, ""))
    there = np.where(halved, (hour >= 1) & (hour <= 12), hour < 24) & (minute < 60) & (second < 60)
    hour = np.where(halved, hour % 12 + 12.0 * afternoon, hour)
    zone = 3600 * _number(part["zone"], 0.0) + 60 * _number(part["zone_minute"], 0.0)
    zone = np.where(_flags(pc.equal(part["east"], "-")), -zone, zone)
    return np.where(there, 3600 * hour + 60 * minute + second - zone, np.nan)


def _as_named(texts: pa.Array, counts: Counts, base: str) -> str:
    """Return the form with the mark and the length of the year that most dates have."""
    if NAMED[base] == "mdy":
        return base
    part = _parts(texts, base)
    known = counts * _flags(pc.is_valid(part["y"]))
    dashes = 2 * known[_flags(pc.equal(part["mark"], "-"))].sum() > known.sum()
    short = 2 * known[_flags(pc.equal(pc.utf8_length(part["y"]), 2))].sum() > known.sum()
    mark = "-" if dashes else " "
    return f"27{mark}Feb{mark}{'26' if short else '2026'}"


def _time(texts: pa.Array, counts: Counts, base: str) -> str:
    """Return the time of day as most dates have it."""
    part = _parts(texts, base)
    known = counts * _flags(pc.is_valid(part["y"]))

    def most_have(name: str) -> bool:
        there = _flags(pc.not_equal(part[name], ""))
        return bool(2 * known[there].sum() > known.sum())

    if not most_have("hour"):
        return ""
    seconds = ":09" if most_have("second") else ""
    return f" 4:05{seconds} PM" if most_have("half") else f" 16:05{seconds}"


def _number(texts: pa.Array, empty: float = np.nan) -> Floats:
    """Return digits as numbers, and what an optional part is if it is not there."""
    there = pc.not_equal(texts, "")
    kept = pc.if_else(there, pc.replace_substring(texts, ",", "."), None)
    values = kept.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return np.where(np.isnan(values), empty, np.asarray(values, np.float64))


def _flags(found: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(pc.fill_null(found, False)).astype(bool)
