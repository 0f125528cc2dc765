"""Bad input: what is said, and that nothing is half done."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from aberra import ADC, IADC, OCSVM, RSRAE, AutoEncoder, DeepSVDD, MultiView
from aberra.errors import DataError

X = np.random.default_rng(0).normal(size=(60, 3))
MODELS = [MultiView(), OCSVM(), AutoEncoder(epochs=1), ADC(), IADC(max_rounds=2)]
pytestmark = pytest.mark.filterwarnings("ignore::aberra.errors.RoundsExhaustedWarning")


def frame(**columns):
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], **columns})


def with_cell(value, dtype=float):
    table = X.astype(dtype)
    table[3, 1] = value
    return table


BAD_ROWS = {
    "empty table": (np.empty((0, 3)), ValueError, "0 sample"),
    "no columns": (np.empty((5, 0)), ValueError, "0 feature"),
    "one row": (X[:1], ValueError, "minimum of 2"),
    "one dimension": (X[0], ValueError, "2D array"),
    "three dimensions": (X[None], ValueError, "dim 3"),
    "NaN": (with_cell(np.nan), DataError, r"NaN in column '1' \(1 row\).*missing='impute'"),
    "infinity": (with_cell(np.inf), DataError, r"infinity in column '1' \(1 row\)"),
    "1e300": (with_cell(1e300), DataError, "squares overflow.*Rescale"),
    "complex": (X.astype(complex), ValueError, "Complex data not supported"),
    "sparse": (sparse.csr_matrix(X), TypeError, "[Ss]parse data was passed"),
    "text": (np.full((5, 2), "word"), ValueError, "Convert your data to numeric"),
    "text column": (frame(c="word"), DataError, "Text instead of numbers in column 'c'.*encode"),
    "gap in a frame": (frame(c=[np.nan] * 60), DataError, r"NaN in column 'c' \(60 rows\)"),
}


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("case", BAD_ROWS)
def test_bad_rows_are_refused_with_a_reason(model, case):
    rows, error, text = BAD_ROWS[case]
    with pytest.raises(error, match=text):
        model.fit(rows)
    assert not hasattr(model, "members_")


GOOD_ROWS = {
    "one column": X[:, :1],
    "constant column": np.column_stack([X, np.ones(60)]),
    "all rows equal": np.ones((20, 3)),
    "duplicated rows": np.repeat(X[:10], 5, axis=0),
    "booleans": X > 0,
    "integers near overflow": np.where(X > 0, np.iinfo(np.int64).max, np.iinfo(np.int64).min),
    "single precision": X.astype(np.float32),
    "fewer rows than a batch": X[:7],
    "two rows": X[:2],
    "list": X.tolist(),
    "booleans in a frame": frame(c=X[:, 2] > 0),
}


@pytest.mark.filterwarnings("ignore::aberra.errors.CollapseWarning")
@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("case", GOOD_ROWS)
def test_odd_but_good_rows_are_scored(model, case):
    rows = GOOD_ROWS[case]
    scores = type(model)(**model.get_params(deep=False)).fit(rows).anomaly_score(rows)
    assert len(scores) == len(rows)
    assert np.isfinite(scores).all()


BAD_LATER = {
    "fewer columns": (X[:, :2], ValueError, "2 features"),
    "no rows": (X[:0], ValueError, "0 sample"),
    "NaN": (with_cell(np.nan), DataError, "NaN in column '1'"),
    "images": (np.zeros((2, 1, 8, 8)), DataError, "fitted on a table"),
}


@pytest.mark.parametrize("case", BAD_LATER)
def test_bad_rows_at_score_time_leave_the_model_as_it_was(case):
    model = MultiView(random_state=0).fit(X)
    before = model.anomaly_score(X)
    rows, error, text = BAD_LATER[case]
    with pytest.raises(error, match=text):
        model.anomaly_score(rows)
    np.testing.assert_array_equal(model.anomaly_score(X), before)


def test_columns_in_another_order_are_refused_by_name():
    model = MultiView(random_state=0).fit(frame(c=X[:, 2]))
    with pytest.raises(ValueError, match="same order"):
        model.anomaly_score(frame(c=X[:, 2])[["c", "a", "b"]])


BAD_SETTINGS = {
    "no members": (IADC(n_members=0), "n_members"),
    "ratio": (IADC(outlier_ratio=1.5), "outlier_ratio"),
    "rounds": (IADC(max_rounds=0), "max_rounds"),
    "temperature": (IADC(temperature=0), "temperature"),
    "resample": (IADC(resample="half"), "resample"),
    "threshold": (MultiView(threshold="guess"), "threshold"),
    "missing": (MultiView(missing="drop"), "missing"),
    "nu": (OCSVM(nu=0), "nu"),
    "epochs": (AutoEncoder(epochs=0), "epochs"),
    "width": (AutoEncoder(hidden=[2.7]), "whole numbers"),
    "widths in a list": (AutoEncoder(hidden=[[3]]), "whole numbers"),
    "no subspace": (RSRAE(hidden=[3]), "at least two widths"),
    "threshold inside": (ADC(OCSVM(threshold=0.01)), "Set them on the ensemble"),
    "epochs inside": (ADC(AutoEncoder(epochs=0)), "epochs"),
    "learning rate": (DeepSVDD(learning_rate=-1), "learning_rate"),
}


@pytest.mark.parametrize("case", BAD_SETTINGS)
def test_bad_settings_are_named(case):
    model, name = BAD_SETTINGS[case]
    with pytest.raises(ValueError, match=name):
        model.fit(X)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_bad_weights_are_refused(model):
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        model.fit(X, sample_weight=-np.ones(60))
    with pytest.raises(ValueError, match="at least one non-zero"):
        model.fit(X, sample_weight=np.zeros(60))
    with pytest.raises(ValueError, match=r"inconsistent|shape"):
        model.fit(X, sample_weight=np.ones(59))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, sample_weight=np.full(60, np.nan))


def test_gaps_and_text_are_handled_on_request():
    text = np.where(X[:, 0] > 0, "left", "right").astype(object)
    text[5] = "nowhere"
    text[6] = None
    dirty = frame(c=text, d=pd.date_range("2020-01-01", periods=60))
    dirty.loc[3, "b"] = np.nan
    model = IADC(missing="impute", encode="auto", random_state=0).fit(dirty)
    scores = model.anomaly_score(dirty)
    assert np.isfinite(scores).all()
    assert scores[5] > np.median(scores)
    later = dirty.copy()
    later.loc[0, "c"] = "never seen"
    assert model.anomaly_score(later)[0] > scores[0]
    shares = model.explain(later.iloc[[0]])
    assert shares.iloc[0].idxmax() == "c"
    for wrong in (dirty.assign(a="text now"), dirty.assign(a=dirty["d"])):
        with pytest.raises(DataError, match="'a' held numbers"):
            model.anomaly_score(wrong)
    with pytest.raises(DataError, match="'d' held dates"):
        model.anomaly_score(dirty.assign(d="not a date"))


def test_numbers_stay_numbers_in_whatever_they_come():
    rows = [[float(a), int(b), "ab"[k % 2]] for k, (a, b) in enumerate(10 * X[:, :2])]
    rows[0][0] = 500.0
    plain = pd.DataFrame(rows)
    as_objects = plain.astype({0: object, 1: object})
    as_decimals = as_objects.assign(**{"0": plain[0].map(lambda v: Decimal(str(v)))})
    as_decimals = as_decimals[["0", 1, 2]].set_axis([0, 1, 2], axis=1)
    wanted = MultiView(encode="auto", random_state=0).fit(plain).anomaly_score(plain)
    assert wanted.argmax() == 0
    for given in (rows, np.array(rows, object), np.array(rows), as_objects, as_decimals):
        model = MultiView(encode="auto", random_state=0).fit(given)
        assert model.reader_.kinds == ["number", "number", "text"]
        np.testing.assert_allclose(model.anomaly_score(given), wanted)
    numbers = as_decimals[[0, 1]]
    assert np.isfinite(MultiView(random_state=0).fit(numbers).anomaly_score(numbers)).all()


def test_text_that_looks_like_numbers_is_text_where_it_has_a_choice():
    codes = pd.DataFrame({"n": X[:, 0], "postcode": ["01067", "80331", "50667"] * 20})
    for given in (codes, codes.astype(object), codes.to_numpy().tolist()):
        model = MultiView(encode="auto", random_state=0).fit(given)
        assert model.reader_.kinds == ["number", "text"]


def test_gaps_in_text_are_reported_too():
    dirty = frame(c=["x", None, "y"] * 20)
    with pytest.raises(DataError, match=r"gaps in column 'c' \(20 rows\).*missing='impute'"):
        MultiView(encode="auto").fit(dirty)
    model = MultiView(encode="auto", random_state=0).fit(dirty.dropna())
    with pytest.raises(DataError, match="gaps in column 'c'"):
        model.anomaly_score(dirty)


def test_images_have_no_columns():
    images = np.random.default_rng(0).random((20, 1, 8, 8))
    model = MultiView(missing="impute").fit(X)
    with pytest.raises(ValueError, match="are for tables"):
        model.fit(images)
    assert model.set_params(missing="error").fit(images).reader_ is None
    with pytest.raises(ValueError, match="0 sample"):
        model.fit(images[:0])


def test_only_the_ratios_of_weights_matter():
    w = np.random.default_rng(1).random(60)
    for model in (AutoEncoder(epochs=5, random_state=0), MultiView(random_state=0)):
        plain = model.fit(X, sample_weight=w).anomaly_score(X)
        for scale in (2.0**-40, 2.0**900):
            again = model.fit(X, sample_weight=scale * w).anomaly_score(X)
            np.testing.assert_array_equal(again, plain)


def test_imputed_gap_is_the_median():
    table = frame(c=X[:, 2])
    model = OCSVM(missing="impute", random_state=0).fit(table)
    gap, filled = table.copy(), table.copy()
    gap.loc[0, "a"] = np.nan
    filled.loc[0, "a"] = table["a"].median()
    np.testing.assert_array_equal(model.anomaly_score(gap), model.anomaly_score(filled))
    empty = table.assign(empty=np.nan)
    again = OCSVM(missing="impute", random_state=0).fit(empty)
    np.testing.assert_array_equal(again.anomaly_score(empty), model.anomaly_score(table))
    assert not np.asarray(again.explain(empty[:3]))[:, -1].any()
    with pytest.raises(DataError, match="No column says anything"):
        MultiView(missing="impute").fit(table * np.nan)


def test_text_means_the_same_in_any_company():
    rows = np.array([[k**1.5, ["1", "2.5", "x"][k % 3]] for k in range(60)], dtype=object)
    model = MultiView(encode="auto", missing="impute", random_state=0).fit(rows)
    together = model.anomaly_score(rows)
    for k in range(3):
        np.testing.assert_array_equal(model.anomaly_score(rows[k : k + 1]), together[k : k + 1])
    frame = pd.DataFrame({"s": ["1", "2", "x"] * 20, "n": np.arange(60.0)})
    model = MultiView(encode="auto", missing="impute", random_state=0).fit(frame)
    alone = model.anomaly_score(pd.DataFrame({"s": [1], "n": [0.0]}))
    with_gap = model.anomaly_score(pd.DataFrame({"s": [1, np.nan], "n": [0.0, 1.0]}))
    assert alone[0] == with_gap[0] == model.anomaly_score(frame[:1])[0]


def test_repeated_column_names_are_refused_by_name():
    with pytest.raises(DataError, match=r"more than once: .'a'.. Rename"):
        MultiView().fit(pd.DataFrame(X, columns=list("aab")))


def test_settings_for_columns_belong_to_the_ensemble():
    with pytest.raises(ValueError, match="Set them on the ensemble"):
        ADC(MultiView(missing="impute")).fit(X)


@pytest.mark.parametrize("bad", [sparse.csr_matrix(X), X[0]])
def test_reading_columns_keeps_the_usual_checks(bad):
    with pytest.raises((TypeError, ValueError), match=r"[Ss]parse|2D"):
        MultiView(missing="impute").fit(bad)


def test_one_row_is_not_enough_for_a_network():
    weight = np.zeros(60)
    weight[0] = 1
    with pytest.raises(DataError, match="at least 2 rows of positive weight"):
        AutoEncoder().fit(X, sample_weight=weight)


def test_durations_are_numbers():
    table = frame(c=pd.to_timedelta(np.arange(60), unit="h"))
    assert np.isfinite(MultiView(random_state=0).fit(table).anomaly_score(table)).all()


def test_object_arrays_are_read_column_by_column():
    rows = np.array([[1.0, "x"], [2.0, "y"], [3.0, "x"], [2.5, "x"]], dtype=object)
    scores = MultiView(encode="auto", random_state=0).fit(rows).anomaly_score(rows)
    assert scores.shape == (4,)
