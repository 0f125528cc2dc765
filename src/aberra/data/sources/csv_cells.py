"""What the cells of a CSV file are: numbers, dates or text, and cells that are not what they were.

Arrow settles the type of a column by the first rows, and stops at a cell that is of another one.
Then the column is read as text, and each cell becomes what it can: a number, a date or a gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from aberra.data.written import form_of
from aberra.errors import DataError

MORE_GAPS = ["?", "-", "--", "n.a.", "N.A.", "None", "none", "<NA>"]  # beside Arrow's own
GAPS = [*pacsv.ConvertOptions().null_values, *MORE_GAPS]
ARROW = {"number": pa.float64(), "text": pa.string()}
WHAT = {"number": "number", "time": "date"}

NUMBER = r"^-?\d*,?\d+$"  # perhaps with a decimal comma
CLEARLY = r",(\d{1,2}|\d{4,})$"  # 1,234 may as well be a thousand and more
COMMA = ",56"  # in the example of how a column is written
THOUSANDS = r"^[+-]?[1-9]\d{0,2}\.\d{3}$"  # if the decimal mark is a comma
PROBED = 1 << 14  # cells by which it is settled how a column is written
FEW = 2  # so many cells do not say that a column holds something else

Form = Callable[[pa.Array], pa.Array]  # from text to values; raises ArrowInvalid if one is none


class OddCell(NamedTuple):
    """A cell that is no number, or no date, in a column of them."""

    column: str
    kind: str  # "number" or "time"
    row: int  # its position in the file, or in the whole table
    text: str
    form: str = ""  # in which it should be written, if the column holds text


def types_of(kinds: Mapping[str, str], guessed: pa.Schema) -> dict[str, pa.DataType]:
    """Return the types of columns whose kind is known.

    Numbers may be written as True and False or as times of day, as they were for the fit.
    """
    types = {name: ARROW[kind] for name, kind in kinds.items() if kind in ARROW}
    for column in guessed:
        other = pa.types.is_boolean(column.type) or pa.types.is_time(column.type)
        if kinds.get(column.name) == "number" and other:
            types[column.name] = column.type
    return types


def to_be_settled(kinds: Mapping[str, str], guessed: pa.Schema) -> list[str]:
    """Return the columns of numbers and dates that are read as text where types do not fit."""
    return [
        column.name
        for column in guessed
        if kinds.get(column.name) == "number"
        or (kinds.get(column.name) == "time" and (_unlike_dates(column) or _is_date(column.type)))
    ]


def no_dates(kinds: Mapping[str, str], guessed: pa.Schema) -> bool:
    """Say whether the first rows of a column of dates are not what Arrow takes for dates."""
    return any(kinds.get(column.name) == "time" and _unlike_dates(column) for column in guessed)


def _is_date(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _unlike_dates(column: pa.Field) -> bool:
    return bool(pa.types.is_string(column.type) or pa.types.is_null(column.type))


@contextmanager
def misfits(found: list[pa.ArrowInvalid]) -> Iterator[None]:
    """Keep Arrow's error about a cell of another type; the caller reads on in another way."""
    try:
        yield
    except pa.ArrowInvalid as error:
        if "conversion error to" not in str(error):
            raise
        found.append(error)


@dataclass
class CellReader:
    """Turns columns of text into numbers and dates, cell by cell where one is neither.

    Parameters
    ----------
    kinds : mapping
        "number" or "time" for each column to turn.
    comma, point : bool
        Whether a decimal comma is possible, and whether a decimal point is.
    called : Path
        What messages call the file.
    place_of : callable
        Says where a row is.
    odd : list or None
        Gets the cells that are neither, which then are gaps; with None they are refused.
    forms : dict, default {}
        How each column is written, once some of its cells were seen.
    """

    kinds: Mapping[str, str]
    comma: bool
    point: bool
    called: Path
    place_of: Callable[[int], str]
    odd: list[OddCell] | None
    forms: dict[str, Form | None] = field(default_factory=dict)

    def probe(self, first: pa.Table) -> None:
        """Settle by the first rows how the columns are written."""
        for name in self.kinds:
            self._form(name, _trimmed(first.column(name)), 0)

    def __call__(self, table: pa.Table, start: int) -> pa.Table:
        """Return rows that begin at `start` with values instead of text."""
        odd: list[OddCell] = []
        for name, kind in self.kinds.items():
            text = _trimmed(table.column(name))
            form = self._form(name, text, start)
            if form is None:
                continue
            values, bad = _values(text, form)
            table = table.set_column(table.column_names.index(name), name, values)
            odd += [OddCell(name, kind, start + int(k), text[int(k)].as_py()) for k in bad]
        odd.sort(key=lambda cell: cell.row)
        if odd and self.odd is None:
            self._refuse(odd[0])
        elif self.odd is not None:
            self.odd.extend(odd)
        return table

    def _form(self, name: str, text: pa.Array, start: int) -> Form | None:
        """Return how a column is written; None if that is left to the model."""
        if name in self.forms:
            return self.forms[name]
        some = text.drop_null()[:PROBED]
        kind = self.kinds[name]
        forms = TIMES if kind == "time" else self._forms(some)
        if not len(some):
            return forms[0]
        fitting = [(len(some) - len(_values(some, form)[1]), form) for form in forms]
        n, form = max(fitting, key=lambda one: one[0])  # of equals, the first
        settled: Form | None = form
        if 2 * n < len(some) and len(some) > FEW:
            if kind == "number":
                bad = np.flatnonzero(np.asarray(text.is_valid()))
                odd = np.intersect1d(bad, _values(text, form)[1])[0]
                self._refuse_column(OddCell(name, kind, start + int(odd), text[int(odd)].as_py()))
            settled = None  # dates in another form, which the model may know
        self.forms[name] = settled
        return settled

    def _forms(self, some: pa.Array) -> Sequence[Form]:
        """Return how numbers may be written in a column of which some cells are known."""
        if not self.point:
            return (_with_comma, *OTHERS)
        clearly = self.comma and pc.any(pc.match_substring_regex(some, CLEARLY)).as_py()
        return (PLAIN, *OTHERS, _with_comma) if clearly else (PLAIN, *OTHERS)

    def _refuse(self, cell: OddCell) -> NoReturn:
        raise DataError(
            f"{self.called}, {self.place_of(cell.row)}: {cell.text!r} in the column "
            f"{cell.column!r} is no {WHAT[cell.kind]}. Correct this cell. In data to be scored, a "
            "model that was fitted with missing='impute' (--missing impute) takes it as a gap."
        )

    def _refuse_column(self, cell: OddCell) -> NoReturn:
        raise DataError(
            f"{self.called}: the column {cell.column!r} held {WHAT[cell.kind]}s when the model was "
            f"fitted, but now holds text ({cell.text!r} in {self.place_of(cell.row)}). Give it the "
            "column that it was fitted on, or fit a model on this table."
        )


def _trimmed(column: pa.ChunkedArray) -> pa.Array:
    """Return text without spaces around it; what is then a gap becomes one."""
    plain = column.cast(pa.string())
    whole = pa.concat_arrays(plain.chunks) if plain.num_chunks else pa.array([], pa.string())
    text = pc.utf8_trim_whitespace(whole)
    return pc.if_else(pc.is_in(text, pa.array(GAPS)), pa.scalar(None, pa.string()), text)


def _values(text: pa.Array, form: Form) -> tuple[pa.Array, NDArray[np.int64]]:
    """Return the values of cells, gaps where there is none, and where these are."""
    try:
        return form(text), np.array([], dtype=np.int64)
    except pa.ArrowInvalid:
        pass
    coded = text.dictionary_encode()
    fits = np.concatenate([_fitting(coded.dictionary, form), [True]])  # at last, that of gaps
    codes = coded.indices.fill_null(len(fits) - 1).to_numpy()
    good = pa.array(fits[codes])
    return form(pc.if_else(good, text, pa.scalar(None, pa.string()))), np.flatnonzero(~fits[codes])


def _fitting(texts: pa.Array, form: Form) -> NDArray[np.bool_]:
    """Say which texts have a value, by halves: few do not, as a rule."""
    try:
        form(texts)
    except pa.ArrowInvalid:
        if len(texts) == 1:
            return np.zeros(1, dtype=bool)
        middle = len(texts) // 2
        return np.concatenate([_fitting(texts[:middle], form), _fitting(texts[middle:], form)])
    return np.ones(len(texts), dtype=bool)


# Ways to write numbers and dates


def _cast(text: pa.Array, to: pa.DataType) -> pa.Array:
    return pc.cast(text, to)


def _with_comma(text: pa.Array) -> pa.Array:
    """Return numbers with a decimal comma; a point makes them something else."""
    swapped = pc.replace_substring(pc.replace_substring(text, ".", "x"), ",", ".")
    return pc.cast(swapped, pa.float64())


def _time_of_day(text: pa.Array) -> pa.Array:
    """Return the seconds since midnight of 12:30 or 12:30:59."""
    gap = pa.scalar(None, pa.string())
    day = pc.if_else(pc.is_valid(text), pa.scalar("1970-01-01T"), gap)
    moments = pc.cast(pc.binary_join_element_wise(day, text, ""), pa.timestamp("us"))
    return pc.divide(pc.cast(pc.cast(moments, pa.int64()), pa.float64()), 1e6)


def _hexadecimal(text: pa.Array) -> pa.Array:
    """Return whole numbers such as 0x1F, which Arrow reads only as such."""
    return pc.cast(pc.cast(text, pa.int64()), pa.float64(), safe=False)


PLAIN: Form = partial(_cast, to=pa.float64())
OTHERS: Sequence[Form] = (partial(_cast, to=pa.bool_()), _time_of_day, _hexadecimal)
TIMES: Sequence[Form] = tuple(
    partial(_cast, to=pa.timestamp(unit, zone)) for unit in ("us", "ns") for zone in (None, "UTC")
)


def has_decimal_commas(column: pa.Array) -> bool:
    """Say whether cells of text are numbers with a decimal comma."""
    clearly = pc.any(pc.match_substring_regex(column, CLEARLY)).as_py()
    if clearly and pc.all(pc.match_substring_regex(column, NUMBER)).as_py():
        return True
    return COMMA in (form_of(column.to_pandas()) or "")


def has_decimal_points(column: pa.Array) -> bool:
    """Say whether cells of text have a point that does not stand between thousands."""
    pointed = pc.match_substring(column, ".")
    thousands = pc.match_substring_regex(column, THOUSANDS)
    return bool(pc.any(pc.and_not(pointed, thousands)).as_py())
