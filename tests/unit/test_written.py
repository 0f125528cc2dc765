"""Numbers and dates as people write them: what a column says is found from its cells alone."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aberra import IADC, MultiView, load, save
from aberra.data import written_numbers
from aberra.data.drift.portrait import Portrait
from aberra.data.tables import TableReader
from aberra.data.written import form_of, means, odd_places, read_as, two_ways
from aberra.errors import DataError, ModelFileError
from aberra.explain.reasons import columns_in_words
from aberra.model_file.portraits import check_portrait
from aberra.model_file.soundness import check_reader

MINUS = "\N{MINUS SIGN}"
RNG = np.random.default_rng(0)
NUMBERS = RNG.lognormal(6, 1.5, 400).round(2)  # some hundreds, some thousands
DAYS = pd.Series(pd.date_range("2025-11-03 04:05:06", periods=400, freq="1D"))


def swapped(text, marks):
    """Return 1,234.56 with other marks."""
    return text.translate(str.maketrans(",.", marks))


WRITINGS = {  # how one number is written, and the form of a column of such
    "1.234,56": lambda v: swapped(f"{v:,.2f}", ".,"),
    "1.234,56 €": lambda v: swapped(f"{v:,.2f} €", ".,"),
    "1 234,56": lambda v: swapped(f"{v:,.2f}", " ,"),
    "1 234,56 €": lambda v: swapped(f"{v:,.2f}\u00a0€", "\u202f,"),
    "$1,234.56": lambda v: f"{'-' if v < 0 else ''}${abs(v):,.2f}",
    "EUR 1234.56": lambda v: f"EUR {v:.2f}",
    "CHF 1'234.56": lambda v: f"CHF {v:,.2f}".replace(",", "\u2019"),
    "1,234.56": lambda v: f"{v:,.2f}",
    "1'234.56": lambda v: f"{v:,.2f}".replace(",", "'"),
    "1234.56%": lambda v: f"{v:.2f}%",
    "1234,56 %": lambda v: swapped(f"{v:.2f} %", ".,"),
    "1234.56kg": lambda v: f"{v:.2f}kg",
    "1234.56 km/h": lambda v: f"{v:+.2f} km/h".replace("-", MINUS),
    "1234.56": lambda v: f"{v:.2f}" if v >= 0 else f"({-v:.2f})",
    "US$ 1,234.56": lambda v: f"US$ {v:,.2f}" if v >= 0 else f"(US$ {-v:,.2f})",
}
WHOLE = {
    "1,234": lambda v: f"{v:,.0f}",
    "1.234 €": lambda v: f"{v:,.0f} €".replace(",", "."),
    "1'234": lambda v: f"{v:,.0f}".replace(",", "'"),
    "1 234": lambda v: f"{v:,.0f}".replace(",", "\u2009"),
    "1234 kg": lambda v: f"{v:.0f} kg",
    "1234 %": lambda v: f"{v:.0f} %",
    "(1234)": lambda v: f"{v:.0f}" if v >= 0 else f"({-v:.0f})",
    f"{MINUS}1234": lambda v: f"{v:.0f}".replace("-", MINUS),
}
DATES = {  # by the form, how Python writes them
    "27.02.2026": "%d.%m.%Y",
    "27.02.2026 16:05": "%d.%m.%Y %H:%M",
    "27.02.2026 16:05:09": "%d.%m.%Y %H:%M:%S",
    "27/02/2026 16:05": "%d/%m/%Y %H:%M",
    "02/27/2026": "%m/%d/%Y",
    "02/27/2026 4:05 PM": "%m/%d/%Y %I:%M %p",
    "02-27-2026 4:05:09 PM": "%m-%d-%Y %I:%M:%S %p",
    "27-02-2026": "%d-%m-%Y",
    "27-Feb-26": "%d-%b-%y",
    "27 Feb 2026": "%d %B %Y",
    "Feb 27, 2026": "%b %d, %Y",
    "2026-02-27": "%Y-%m-%d",
    "2026/02/27 16:05": "%Y/%m/%d %H:%M",
    "2026-02-27 16:05:09": "%Y-%m-%dT%H:%M:%SZ",
}
TEXT = {
    "postcodes": ["80331", "01067", "50667"],
    "numbers with leading zeros": ["007", "012", "099"],
    "decimals with leading zeros": ["012.5", "007.5", "009.1"],
    "versions": ["1.2.3", "2.10.4", "10.0.1"],
    "addresses": ["192.168.1.10", "10.0.0.2", "8.8.8.8"],
    "addresses of three digits": [f"192.168.100.{k}" for k in range(100, 160)],
    "times": ["12:30", "08:15", "23:59"],
    "ranges": ["3-5", "10-20", "7-9"],
    "codes": ["A12", "B7", "C100"],
    "codes of one letter": ["A12", "A7", "A100"],
    "codes with a dash": ["K-12", "K-7", "K-100"],
    "diagnoses": ["I10.9", "I21.4", "I50.1"],
    "rooms": ["Room 12", "Room 7", "Room 100"],
    "telephones": [f"0{k} 123 456" for k in range(30, 60)],
    "telephones of one length": [f"6{k} 123 456" for k in range(10, 60)],
    "telephones abroad": ["+49 123 456", "+1 234 567 890", "+44 555 666"],
    "units": ["12 kg", "500 g"] * 20,
    "currencies": ["12.50 EUR", "13.70 USD"] * 20,
    "two units": ["$12.50 USD", "$13.70 USD", "$15.00 USD"],
    "fractions": ["1/2", "3/4", "1/8"],
    "sizes": ["10x20", "3x4", "100x7"],
    "limits": ["<8.0", "<9.0", "<7.5"],
    "references": ["(1)", "(2)", "(17)"],
    "ordinals": ["1st", "2nd", "3rd", "4th"],
    "months": ["2026-01", "2026-02", "2026-03"],
    "short dates": ["01.02.26", "27.03.26", "14.05.26"],
    "impossible dates": ["45.13.2026", "99.99.2026", "27.14.2026"],
    "words": ["north", "south", "3 doors down"],
    "thousands or decimals": ["1,234", "5,678", "2,500"],
    "thousands or decimals of a currency": ["1.234 €", "5.678 €", "2.500 €"],
    "both marks": ["1,234", "5.678", "12"] * 9,
    "one slip beside undecided numbers": [f"{k},234" for k in range(1, 300)] + ["12,5"],
    "days or months": ["03/04/2026", "05/06/2026", "01/12/2026"],
    "one slip beside undecided dates": [f"0{k % 9 + 1}/04/2026" for k in range(300)]
    + ["13/04/2026"],
    "signed whole numbers": ["+5", "-3", "12"],
    "the same in two writings": ["12 kg", "12.0 kg"] * 20,
}


@pytest.mark.parametrize("form", WRITINGS)
def test_numbers_in_a_form_are_found_and_read(form):
    values = np.where(np.arange(400) % 7, NUMBERS, -NUMBERS)
    column = pd.Series([WRITINGS[form](v) for v in values])
    assert form_of(column) == form
    assert means(form) == "number"
    np.testing.assert_allclose(read_as(column, form), values)


@pytest.mark.parametrize("form", WHOLE)
def test_whole_numbers_in_a_form_are_found_and_read(form):
    values = np.where(np.arange(400) % 7, NUMBERS.round(), -NUMBERS.round())
    column = pd.Series([WHOLE[form](v) for v in values])
    assert form_of(column) == form
    np.testing.assert_allclose(read_as(column, form), values)


@pytest.mark.parametrize("form", DATES)
def test_dates_in_a_form_are_found_and_read(form):
    column = DAYS.dt.strftime(DATES[form])
    assert form_of(column) == form
    assert means(form) == "time"
    wanted = pd.to_datetime(column, format=DATES[form], utc=True)
    wanted = (wanted - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    np.testing.assert_array_equal(read_as(column, form), wanted)


@pytest.mark.parametrize("name", TEXT)
def test_text_stays_text(name):
    assert form_of(pd.Series(TEXT[name])) is None


def test_what_can_be_read_in_two_ways_is_known():
    for name in ("thousands or decimals", "thousands or decimals of a currency", "days or months"):
        assert two_ways(pd.Series(TEXT[name]))
    for name in ("postcodes", "codes", "times", "words", "telephones", "versions"):
        assert not two_ways(pd.Series(TEXT[name]))
    for form in ("1,234.56", "1.234,56 €"):
        assert not two_ways(pd.Series([WRITINGS[form](v) for v in NUMBERS]))
    assert not two_ways(pd.Series([None], dtype=object))


def test_a_contested_mark_is_told_by_the_whole_column():
    undecided = ["1,234", "5,678"]
    for more, form in (
        (["1,234,567"], "1,234"),
        (["1,234.50"], "1,234.56"),
        (["999", "12"], "1,234"),
        (["12,5"], "1234,56"),
        (["0,123"], "1234,56"),
        (["1.234,5"], "1.234,56"),
    ):
        column = pd.Series(undecided + more)
        assert form_of(column) == form
        assert read_as(column, form)[0] == (1234 if form.startswith("1,") else 1.234)
    for more in (["1234"], ["999", "1234"], ["12", "1,5", "1,234,567"]):
        assert form_of(pd.Series(undecided + more)) is None


def test_day_and_month_are_told_by_the_whole_column():
    undecided = ["03/04/2026", "05/06/2026"]
    assert form_of(pd.Series([*undecided, "27/02/2026"])) == "27/02/2026"
    assert form_of(pd.Series([*undecided, "02/27/2026"])) == "02/27/2026"
    assert form_of(pd.Series([*undecided, "02/27/2026", "27/02/2026"])) is None
    assert form_of(pd.Series(["03.04.2026", "05.06.2026"])) == "27.02.2026"


@pytest.mark.parametrize(
    ("cell", "wanted"),
    [
        ("2026-02-27", "2026-02-27T00:00:00"),
        (" 2026-2-7 ", "2026-02-07T00:00:00"),
        ("2026-02-27T16:05:09.250Z", "2026-02-27T16:05:09.250"),
        ("2026-02-27 01:05+02:00", "2026-02-26T23:05:00"),
        ("2026-02-27 23:05-0130", "2026-02-28T00:35:00"),
        ("2024-02-29", "2024-02-29T00:00:00"),
        ("0001-01-01", "0001-01-01T00:00:00"),
        ("9999-12-31", "9999-12-31T00:00:00"),
        ("2026-02-29", None),
        ("2026-13-01", None),
        ("2026-00-10", None),
        ("2026-02-00", None),
        ("2026-02/27", None),
        ("0000-01-01", None),
        ("2026-02-27 24:00", None),
        ("2026-02-27 12:60", None),
        ("2026-02-27 13:00 PM", None),
        ("2026-02-27 12:05 AM", "2026-02-27T00:05:00"),
        ("27.02.2026", None),
        ("unknown", None),
        ("", None),
    ],
)
def test_cells_of_an_iso_column(cell, wanted):
    found = read_as(pd.Series([cell]), "2026-02-27")[0]
    if wanted is None:
        assert math.isnan(found)
    else:
        assert found == np.datetime64(wanted).astype("datetime64[ms]").astype(int) / 1000


def test_names_of_months_in_two_languages_and_years_of_two_digits():
    column = pd.Series(["27-Feb-26", "1. März 2026", "3 Sept 68", "04-dez-69", "5 Marble 2026"])
    days = ["2026-02-27", "2026-03-01", "2068-09-03", "1969-12-04", "NaT"]
    found = read_as(column, "27-Feb-26")
    wanted = np.array(days, "datetime64[s]").astype(np.float64)
    np.testing.assert_array_equal(found[:-1], wanted[:-1])
    assert np.isnan(found[-1])


@pytest.mark.parametrize(
    ("form", "cell", "wanted"),
    [
        ("1.234,56 €", "1.234.567,5 €", 1234567.5),
        ("1.234,56 €", "-,5€", -0.5),
        ("1.234,56 €", "(3 €)", -3),
        ("1.234,56 €", "3,50", None),  # of which currency?
        ("1.234,56 €", "3,50 $", None),
        ("1.234,56 €", "3.50 €", None),
        ("1.234,56 €", "12.34.567 €", None),
        ("1.234,56 €", "(-3 €)", None),
        ("1.234,56 €", "(3 €", None),
        ("1.234,56 €", "--3 €", None),
        ("1.234,56 €", "03,5 €", None),
        ("1.234,56 €", 3.5, None),
        ("1.234,56 €", "9" * 400 + " €", None),
        ("1.234,56 €", "\ud800", None),
        ("1234 kg", "12.5 kg", 12.5),  # until now all were whole, but this can mean one thing only
        ("1234 kg", "12,5 kg", 12.5),
        ("1234 kg", "0,125 kg", 0.125),
        ("1234 kg", "1,250 kg", None),
        ("1234 kg", "1 250 kg", 1250),
        ("1,234", "1,234.5", 1234.5),
        ("1,234", "12,5", None),
        ("$1,234.56", "$-3", -3),
        ("$1,234.56", "-$3", -3),
        ("$1,234.56", "-$-3", None),
        ("$1,234.56", "$1.234.567", None),
        ("$1,234.56", "$1,234,567.8", 1234567.8),
    ],
)
def test_single_cells(form, cell, wanted):
    found = read_as(pd.Series([cell], dtype=object), form)[0]
    assert found == wanted or (wanted is None and math.isnan(found))


def test_a_few_other_cells_are_gaps_and_many_make_a_column_text():
    cells = [f"{v:,.2f} €" for v in NUMBERS[:100]]
    cells[3:8] = ["unknown", "12 $", "n.a.", "€", "17"]
    column = pd.Series(cells)
    assert form_of(column) == "1,234.56 €"
    assert odd_places(column, "1,234.56 €").tolist() == [3, 4, 5, 6, 7]
    assert form_of(pd.Series([*cells[:-1], "one more"])) is None
    column[20:40], column[40] = None, ""  # gaps are none of either
    assert form_of(column) is None  # 5 of 79
    assert form_of(column.drop([3, 4])) == "1,234.56 €"
    assert form_of(pd.Series([None, None], dtype=object)) is None


def test_what_is_a_number_or_a_date_already_is_what_it_is():
    np.testing.assert_array_equal(read_as(pd.Series([1.5, None]), "$1,234.56"), [1.5, np.nan])
    days = pd.Series(pd.to_datetime(["1970-01-02", None]))
    np.testing.assert_array_equal(read_as(days, "27.02.2026"), [86400, np.nan])


@pytest.mark.parametrize(
    "form",
    [
        *("", "1234", "12.50", "1.234.56", "1,234,56", "1234.56 ", "(1234", "1234 kg)"),
        *("$1,234.56 €", "Room 1234.56", "1234.56 kg 2", "-1234.56 €"),
        *("27.02.2026 16:05 ", "28.02.2026", "02.27.2026"),
    ],
)
def test_what_is_no_form(form):
    assert means(form) is None


quick = settings(max_examples=40, deadline=None)
several = st.lists(st.floats(-1e9, 1e9).map(lambda v: round(v, 2) + 0.0), min_size=2, max_size=30)


@quick
@given(values=several, form=st.sampled_from(sorted(WRITINGS)))
def test_a_number_that_is_written_and_read_is_the_same(values, form):
    column = pd.Series([WRITINGS[form](v) for v in values])
    np.testing.assert_array_equal(read_as(column, form), values)
    found = form_of(column)
    if found is not None:  # numbers up to 999 show no grouping
        np.testing.assert_array_equal(read_as(column, found), values)
    else:
        assert len(set(values)) == 1


@quick
@given(
    days=st.lists(st.datetimes(pd.Timestamp("1970-01-01"), pd.Timestamp("2068-12-31")), min_size=1),
    form=st.sampled_from(sorted(DATES)),
)
def test_a_date_that_is_written_and_read_is_the_same(days, form):
    column = pd.Series([day.strftime(DATES[form]) for day in days])
    wanted = pd.to_datetime(column, format=DATES[form], utc=True) - pd.Timestamp(0, tz="UTC")
    np.testing.assert_array_equal(read_as(column, form), wanted.dt.total_seconds())


@quick
@given(
    cells=st.lists(st.text(max_size=12), max_size=12), form=st.sampled_from(["", *WRITINGS, *DATES])
)
def test_any_text_can_be_looked_at(cells, form):
    column = pd.Series(cells, dtype=object)
    found = form_of(column)
    assert found is None or means(found) is not None
    if form:
        assert read_as(column, form).shape == (len(cells),)


# In a table


def prices(n=300):
    """Return rows with prices and days as a German writes them."""
    rng = np.random.default_rng(1)
    price = rng.normal(500, 300, n).clip(3).round(2)
    day = pd.Series(pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 90, n), "D"))
    return pd.DataFrame(
        {
            "price": [WRITINGS["1.234,56 €"](v) for v in price],
            "day": day.dt.strftime("%d.%m.%Y"),
            "x": rng.normal(size=n),
            "who": rng.choice(["Ada", "Bob"], n),
        }
    )


def test_a_table_says_the_same_in_every_writing():
    table = prices()
    plain = table.assign(
        price=read_as(table["price"], "1.234,56 €"),
        day=pd.to_datetime(table["day"], format="%d.%m.%Y"),
    )
    readers = [TableReader("impute", "auto") for _ in range(2)]
    for reader, rows in zip(readers, (table, plain), strict=True):
        reader.fit(rows)
    one, two = readers
    assert one.forms == {0: "1.234,56 €", 1: "27.02.2026"}
    assert two.forms is None
    assert one.kinds == ["text", "text", "number", "text"]
    assert one.meanings() == two.meanings() == ["number", "time", "number", "text"]
    assert set(one.rarity) == {3}
    assert one.parts == two.parts
    assert one.medians == two.medians
    np.testing.assert_array_equal(one.transform(table), two.transform(plain))
    np.testing.assert_array_equal(one.transform(plain), two.transform(plain))


def test_a_cell_that_is_not_in_the_form_is_a_gap():
    table = prices()
    reader = TableReader("impute", "auto")
    reader.fit(table)
    other = table[:3].copy()
    other["price"], other["day"] = ["12 $", None, "1 €"], ["unknown", "45.01.2026", "27.02.2026"]
    gaps = np.isnan(reader.transform(other, fill=False))
    owners = reader.owners()
    np.testing.assert_array_equal(gaps[:, owners == 0].ravel(), [True, True, False])
    np.testing.assert_array_equal(gaps[:, owners == 1].all(axis=1), [True, True, False])
    filled = reader.transform(other)[0, owners < 2]
    np.testing.assert_array_equal(filled, np.array(reader.medians)[owners < 2])


def test_without_missing_a_cell_in_another_form_is_an_error():
    table = prices()
    model = MultiView(n_trees=6, encode="auto", random_state=0).fit(table)
    other = table[:5].copy()
    other.loc[[2, 3], "price"] = ["12 $", "13 $"]
    words = r"'price' is written as '1.234,56 €', but has '12 \$' too \(2 rows.*missing='impute'"
    with pytest.raises(DataError, match=words):
        model.anomaly_score(other)
    other.loc[2, "price"] = None
    with pytest.raises(DataError, match="gaps in column 'price'"):
        model.anomaly_score(other)
    with pytest.raises(DataError, match="pass encode='auto'"):
        MultiView().fit(table)


@pytest.fixture(scope="module")
def model():
    table = prices()
    table.loc[7, "day"] = "unknown"
    settings = {"encode": "auto", "missing": "impute", "random_state": 0}
    return IADC(MultiView(n_trees=10), 2, max_rounds=2, **settings).fit(table)


def test_a_model_keeps_its_forms_in_a_file(model, tmp_path):
    table = prices()
    table.loc[5, "price"] = "90.000,00 €"
    scores = model.anomaly_score(table)
    assert scores.argmax() == 5
    save(model, tmp_path / "m.aberra")
    again = load(tmp_path / "m.aberra")
    assert again.reader_.forms == {0: "1.234,56 €", 1: "27.02.2026"}
    np.testing.assert_array_equal(again.anomaly_score(table), scores)
    assert again.compare(table).verdict == "steady"


def test_reasons_call_a_written_number_a_number(model):
    table = prices(50)
    table.loc[5, "price"] = "90.000,00 €"
    said = {one.column: one for one in columns_in_words(model, table[5:6])[0]}
    assert said["price"].value == "90.000,00 €"
    assert said["price"].usual.startswith("usually ")
    assert said["day"].usual == ""
    assert said["who"].usual.startswith("in ")


def test_reasons_have_no_words_for_a_column_without_values():
    table = prices()[["x"]].assign(empty=np.nan)
    model = MultiView(n_trees=6, missing="impute", random_state=0).fit(table)
    assert {one.column: one.usual for one in columns_in_words(model, table[:1])[0]}["empty"] == ""


@pytest.mark.parametrize(
    ("forms", "words"),
    [
        ({0: "1234", 1: "27.02.2026"}, "forms: no form"),
        ({2: "1,234.56"}, "forms: .*not in a column of text"),
        ({9: "1,234.56"}, "forms: .*not in a column of text"),
        ({0: "27.02.2026", 1: "27.02.2026"}, "parts: no such numbers"),
        ({0: "1,234.56 €"}, "parts: no such numbers"),
        (None, "parts: no such numbers"),
    ],
)
def test_a_file_with_wrong_forms_is_refused(model, forms, words):
    reader = TableReader(**vars(model.reader_))
    check_reader(reader, 4)
    reader.forms = forms
    with pytest.raises(ModelFileError, match=rf"learnt\.reader_\.{words}"):
        check_reader(reader, 4)


def test_drift_compares_written_numbers_and_dates_as_what_they_say(model):
    table = prices()
    assert [one.kind for one in model.portrait_.columns] == ["number", "time", "number", "text"]
    assert model.portrait_.columns[1].n_gaps == 1
    check_portrait(model.portrait_, 4)
    dearer = read_as(table["price"], "1.234,56 €") * 3
    moved = model.compare(table.assign(price=[WRITINGS["1.234,56 €"](v) for v in dearer]))
    assert moved.moved[0] == "price"
    assert "price has moved" in (said := " ".join(moved.why))
    assert "median before" in said
    new = model.compare(table.assign(day=table["day"].str.replace("2026", "2027")))
    assert "day goes on until 2027-03-31" in " ".join(new.why)
    wrong = Portrait.of(table[["price"]], None, {0: "1.234,56 €"})
    object.__setattr__(wrong.columns[0], "form", "27.02.2026")
    with pytest.raises(ModelFileError, match="is no form of such a column"):
        check_portrait(wrong, 1)


def test_dates_that_a_data_frame_keeps_as_objects_are_dates():
    kept = DAYS[:300].sample(frac=1, random_state=0).dt.date.reset_index(drop=True)
    assert kept.dtype == object
    kept.iloc[[4, 9]] = [None, pd.NaT]
    table = pd.DataFrame({"n": np.arange(300.0) % 7, "day": kept})
    reader = TableReader("impute", "auto")
    reader.fit(table)
    assert (reader.meanings(), reader.forms) == (["number", "time"], {1: "2026-02-27"})
    same = table.assign(day=pd.to_datetime(table["day"]))
    np.testing.assert_array_equal(reader.transform(table), reader.transform(same))


def test_iso_dates_of_a_data_frame_are_dates_in_python_too():
    table = prices().assign(day=DAYS[:300].dt.strftime("%Y-%m-%d").sample(frac=1, random_state=0))
    table.loc[3, "day"] = "2020-13-45"
    settings = {"encode": "auto", "missing": "impute", "random_state": 0}
    model = IADC(MultiView(n_trees=6), 2, max_rounds=1, **settings).fit(table)
    assert model.reader_.forms[1] == "2026-02-27"
    assert "week" in model.reader_.parts[1]


def test_a_row_is_taken_apart_once_for_each_column(monkeypatch):
    table = pd.DataFrame({f"x{j}": [f"${v:,.2f}" for v in NUMBERS[j:]][:300] for j in range(5)})
    reader = TableReader(missing="impute", encode="auto")
    reader.fit(table)
    calls = []
    apart = written_numbers._cells
    monkeypatch.setattr(written_numbers, "_cells", lambda texts: calls.append(1) or apart(texts))
    reader.transform(table[:1])
    assert len(calls) == 5  # and not once more for every pair of columns
