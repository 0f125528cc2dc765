"""Columns of a table as numbers: dates, text that only names rows, gaps, other types."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import IsolationForest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import OneClassSVM

from aberra import ADC, IADC, OCSVM, MultiView, load, save
from aberra.data.date_parts import numbers_of_dates
from aberra.data.rarity import is_known, rarities, rarity_of
from aberra.data.tables import TableReader
from aberra.errors import DataError


def read(table, **settings):
    reader = TableReader(**settings)
    reader.fit(table)
    return reader, reader.transform(table)


def dates(n, step, start="2026-01-01"):
    return pd.date_range(start, periods=n, freq=step)


def test_dates_in_order_become_the_cycles_that_they_span():
    hourly = pd.DataFrame({"t": dates(24 * 20, "h")})
    reader, values = read(hourly)
    assert reader.parts == [["day", "week"]]
    assert reader.owners().tolist() == [0] * 4
    np.testing.assert_allclose(values[0, :2], values[24, :2], atol=1e-6)  # the same hour
    np.testing.assert_allclose(values[0, 2:], values[24 * 7, 2:], atol=1e-6)  # the same weekday
    np.testing.assert_allclose(np.square(values[:, :2]).sum(axis=1), 1.0)
    np.testing.assert_allclose(values[6, :2] - values[18, :2], 2 * values[6, :2], atol=1e-6)


def test_the_time_that_passed_counts_only_where_dates_are_not_in_order():
    births = pd.DataFrame({"born": dates(2000, "9D", "1950-01-01")}).sample(frac=1, random_state=0)
    reader, values = read(births)
    assert reader.parts == [["week", "year", "elapsed"]]
    later = pd.DataFrame({"born": [births["born"].max() + pd.Timedelta("900D")]})
    np.testing.assert_allclose(reader.transform(later)[0, -1], np.median(values[:, -1]))
    assert read(births.sort_values("born"))[0].parts == [["week", "year"]]


def test_a_date_is_the_sine_and_the_cosine_of_its_place_in_each_cycle():
    seconds = np.array([0.0, 21_600.0, 86_400 + 43_200.0, 3 * 604_800.0])
    parts = ["day", "week", "year", "elapsed"]
    found = numbers_of_dates(seconds, parts, [604_800.0, 5.0])
    days = seconds / 86_400
    turns = [days, days / 7, days / 365.2425]  # of the calendar's year
    wanted = [f(2 * np.pi * turn) for turn in turns for f in (np.sin, np.cos)]
    np.testing.assert_allclose(found[:-1], wanted, atol=1e-9)
    assert found[-1].tolist() == [0, 21_600, 129_600, 5]  # later than all of the training


def test_a_date_has_the_shares_of_all_its_numbers():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"t": dates(200, "h"), "x": rng.normal(size=200)})
    model = OCSVM().fit(table)
    apart = OCSVM().fit(model.reader_.transform(table))
    shares = apart.explain(model.reader_.transform(table[:9]))
    assert shares.shape == (9, 3)
    expected = np.column_stack([shares[:, :2].sum(axis=1), shares[:, 2]])
    np.testing.assert_allclose(model.explain(table[:9]), expected)


def test_a_table_of_nothing_but_dates_without_cycles_is_refused():
    with pytest.raises(DataError, match="only name or date"):
        read(pd.DataFrame({"t": dates(30, "s")}))


def test_text_that_names_rows_is_left_out_and_equal_rarities_can_be_told_apart():
    table = pd.DataFrame({"who": [f"p{k}" for k in range(100)], "kind": ["a", "b"] * 50})
    reader, values = read(table, encode="auto")
    assert reader.parts == [[], ["rarity"]]
    assert len(np.unique(values)) == 2
    np.testing.assert_allclose(values, np.log(101 / 51), atol=1e-3)
    table.loc[30:, "who"] = None  # gaps name no row, and are no reason to keep the others
    assert read(table, encode="auto", missing="impute")[0].parts == [[], ["rarity"]]


def test_text_becomes_how_rare_it_was_in_training_and_what_is_new_is_rarest():
    table = pd.DataFrame({"kind": ["b"] * 6 + ["c"] * 3 + ["a"] * 3})
    reader, values = read(table, encode="auto")
    b, c, a = values[[0, 6, 9], 0]
    np.testing.assert_allclose([b, c, a], np.log([13 / 7, 13 / 4, 13 / 4]), atol=1e-3)
    assert a < c  # equally rare: a hair apart, in the order of their names
    later = reader.transform(pd.DataFrame({"kind": ["z", "a", "a", "b"]}))[:, 0]
    np.testing.assert_allclose(later, [np.log(13), a, a, b], rtol=1e-12)


def test_a_new_value_is_as_rare_as_one_that_was_there_once_and_no_rarer():
    words = pd.Series(["good", "fine", "good", "bad", "so so", None])
    known = rarity_of(words)
    new, once, gap = rarities(pd.Series(["splendid", "fine", None]), known, unseen=9.0)
    assert new in {known["bad"], known["fine"], known["so so"]}
    assert new == pytest.approx(once, abs=1e-3)
    assert gap == known["\0missing"]
    assert is_known("bad", known)
    assert not is_known("splendid", known)
    # Where no value is there only once, a new one is news; so is the first gap.
    known = rarity_of(pd.Series(["yes", "no"] * 20))
    assert rarities(pd.Series(["maybe", None]), known, unseen=9.0).tolist() == [9.0, 9.0]
    known = rarity_of(pd.Series(["yes", "no", "no"]))
    assert rarities(pd.Series([None]), known, unseen=9.0).tolist() == [9.0]


@pytest.fixture
def sensor():
    """A month of readings with a daily rhythm."""
    rng, n = np.random.default_rng(0), 3000
    time = dates(n, "15min")
    rhythm = np.sin(2 * np.pi * np.arange(n) / 96)
    return pd.DataFrame(
        {"t": time, "x": rhythm + 0.1 * rng.normal(size=n), "y": rng.normal(size=n)}
    )


@pytest.mark.slow
def test_the_same_readings_two_weeks_later_are_as_odd_as_before(sensor, tmp_path):
    model = IADC(random_state=0).fit(sensor)
    later = sensor.assign(t=sensor["t"] + pd.Timedelta("14D"))
    now, then = ((model.predict(rows) < 0).mean() for rows in (later, sensor))
    assert abs(now - then) < 0.01
    odd = sensor[40:41].assign(x=-sensor["x"][40])  # a value of the night by day
    assert model.anomaly_score(odd)[0] > model.anomaly_score(sensor[40:41])[0]
    shares = model.explain(odd)
    assert list(shares.columns) == ["t", "x", "y"]
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    save(model, tmp_path / "m.aberra")
    again = load(tmp_path / "m.aberra").anomaly_score(sensor)
    np.testing.assert_array_equal(again, model.anomaly_score(sensor))


@pytest.mark.slow
def test_an_outage_is_flagged_as_a_whole(sensor):
    broken = sensor.copy()
    broken.loc[500:599, ["x", "y"]] = np.nan
    flags = IADC(missing="impute", random_state=0).fit(broken).predict(broken) < 0
    assert flags[500:600].all()
    assert flags[:500].mean() < 0.05


@pytest.mark.slow
def test_a_pipeline_gets_the_data_frame_as_it_is():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=200), "kind": rng.choice(["x", "y"], 200)})
    table.loc[3, "a"], table.loc[7, "a"] = np.nan, 50.0
    columns = ColumnTransformer([("a", SimpleImputer(), ["a"]), ("k", OneHotEncoder(), ["kind"])])
    model = IADC(
        make_pipeline(columns, IsolationForest(n_estimators=50)), max_rounds=1, random_state=0
    )
    assert model.fit(table).anomaly_score(table).argmax() == 7
    with pytest.raises(DataError, match="no explanations"):
        model.explain(table)


def test_text_without_encode_is_a_data_error_for_every_kind_of_table():
    plain = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"]})
    for table in (plain, plain.convert_dtypes(), plain.astype({"b": "category"})):
        with pytest.raises(DataError, match="encode='auto'"):
            MultiView().fit(table)


@pytest.mark.parametrize("kind", [list, lambda X: np.array(X, object), pd.DataFrame])
@pytest.mark.parametrize("settings", [{}, {"encode": "auto", "missing": "impute"}])
def test_whole_numbers_have_no_end_in_python_but_floats_have(kind, settings):
    X = [[k, float(k % 3)] for k in range(20)]
    model = OCSVM(**settings).fit(kind(X))
    X[3][0] = 10**30  # beyond 64 bits, and a float
    assert np.isfinite(model.anomaly_score(kind(X))).all()
    X[3][0] = 10**400
    for ask in (model.anomaly_score, model.compare, OCSVM(**settings).fit):
        with pytest.raises(DataError, match=r"whole numbers beyond 2e\+308. Rescale"):
            ask(kind(X))


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        (["03/04/2026", "05/06/2026", "07/08/2026"], "'03/04/2026' can be read in two ways"),
        (["2026-03-04", "14:00"], "'14:00' is no date"),  # pandas: today, at that time
        (["27.02.26", "1.3.26"], "'27.02.26' is no date"),  # pandas: in January the second
        ([20260304, 20260305], "numbers, which may count anything"),  # pandas: nanoseconds
        ([1772582400.0, None], "numbers, which may count anything"),
    ],
)
def test_what_may_be_another_date_is_not_guessed_in_a_column_of_dates(cells, why):
    reader, _ = read(pd.DataFrame({"t": dates(20, "D"), "x": range(20)}))
    new = pd.DataFrame({"t": cells, "x": 1.0})
    with pytest.raises(DataError, match=f"'t' held dates when the model was fitted, .* {why}"):
        reader.transform(new)


@pytest.mark.parametrize("written", ["2026-04-03", "03.04.2026", "3 Apr 2026", "2026-04-03T00:00Z"])
def test_text_that_says_one_date_is_that_date_in_a_column_of_dates(written):
    reader, _ = read(pd.DataFrame({"t": dates(60, "D"), "x": range(60)}))
    known, said = (
        reader.transform(pd.DataFrame({"t": cells, "x": [1.0]}))
        for cells in (pd.to_datetime(["2026-04-03"]), [written])
    )
    np.testing.assert_array_equal(said, known)


@pytest.mark.filterwarnings("ignore:All-NaN slice")
def test_a_column_that_only_a_pipeline_can_fill_has_quartiles_that_can_be_scored():
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "c"])
    table["b"] = np.nan
    filled = make_pipeline(SimpleImputer(keep_empty_features=True), OneClassSVM())
    model = ADC(filled, n_members=2, random_state=0).fit(table)
    np.testing.assert_array_equal(model.references_[:, 1], [0, 0, 0])
    np.testing.assert_allclose(
        model.references_[:, ::2], table[["a", "c"]].quantile([0.25, 0.5, 0.75])
    )
