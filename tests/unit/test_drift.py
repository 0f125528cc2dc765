"""The portrait of the training data, and what new rows look like beside it."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from aberra import IADC, OCSVM, MultiView, load, save
from aberra.data.drift.distributions import Categories, Numbers
from aberra.data.drift.evidence import chance, corrected, interval, shifted, turned_over
from aberra.data.drift.overlay import Overlay, overlaid
from aberra.data.drift.packed import packed, unpacked
from aberra.data.drift.portrait import ColumnPortrait, Portrait
from aberra.data.drift.verdict import _effects, _goes_on
from aberra.errors import DataError
from aberra.report import html
from aberra.report.drift import overlay_chart


def table(n, seed, **changed):
    rng = np.random.default_rng(seed)
    held = pd.DataFrame(
        {
            "height": rng.normal(170, 10, n),
            "visits": rng.integers(0, 4, n),
            "clinic": rng.choice(["north", "south", "west"], n, p=[0.6, 0.3, 0.1]),
            "weight": np.where(rng.random(n) < 0.02, np.nan, rng.gamma(9, 8, n)),
        }
    )
    return held.assign(**changed)


@pytest.fixture(scope="module")
def model():
    return MultiView(missing="impute", encode="auto", random_state=0).fit(table(1500, 0))


def test_two_samples_of_one_distribution_are_steady(model):
    for seed in range(1, 9):
        drift = model.compare(table(1000, seed))
        assert (drift.verdict, drift.moved) == ("steady", []), drift


def test_five_per_cent_of_dirt_is_no_drift(model):
    dirty = table(1000, 1)
    dirty.loc[:49, ["height", "weight"]] = 9999.0
    dirty.loc[:49, "clinic"] = "?"
    drift = model.compare(dirty)
    assert drift.moved == []
    assert any("never seen" in sentence for sentence in drift.why)


def test_scores_of_few_rows_a_column_are_higher_for_new_rows_and_that_is_no_drift():
    rng = np.random.default_rng(0)
    causes = rng.normal(size=(5, 60))
    old, new, other = (
        rng.normal(size=(n, 5)) @ causes + 0.5 * rng.normal(size=(n, 60)) for n in (300, 800, 800)
    )
    model = MultiView(random_state=0).fit(old)
    drift = model.compare(new)
    assert drift.score_effect > 0.25
    assert drift.verdict == "steady", drift
    assert model.compare(np.where(rng.random((800, 60)) < 0.1, other + 6, other)).verdict == "moved"


def test_half_a_standard_deviation_is_found_and_named(model):
    shifted_rows = table(2000, 1)
    shifted_rows["height"] += 5
    drift = model.compare(shifted_rows)
    assert (drift.verdict, drift.moved) == ("moved", ["height"])
    assert 0.15 < drift.columns[0].effect < 0.25
    assert "median about 17" in drift.columns[0].why


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"weight": np.nan}, "weight has moved .* is empty now"),
        ({"visits": 2}, "visits has moved .* is always 2 now; before, 0 to 3"),
        ({"clinic": "east"}, "clinic has moved .* 100 % values never seen in training .'east'"),
    ],
)
def test_columns_that_went_empty_constant_or_new_are_named(model, changed, words):
    drift = model.compare(table(500, 1, **changed))
    assert drift.verdict == "moved"
    assert pd.Series(drift.why).str.contains(words).any(), drift.why


def test_no_median_is_made_up_beyond_the_range_of_training():
    prices = pd.DataFrame({"price": np.random.default_rng(0).lognormal(3, 1, 2000)})
    model = OCSVM(random_state=0).fit(prices)
    (cents,) = model.compare(100 * prices).columns  # their median is about 2,000
    assert re.fullmatch(
        r"now [\d.]+ to [\d,]+, median before 19\.\d+; "
        r"[\d.]+ % outside the range of training \([\d.]+ to [\d.]+\)",
        cents.why,
    )


def test_values_between_the_old_ones_are_a_shift():
    """Of 0 and 1 in training, nothing is left if all rows are 0.25 or 1.25."""
    before = Numbers.of(np.tile([0.0, 1.0], 50), 65)
    assert shifted(before, before.count(np.tile([0.25, 1.25], 50))) == 0.5
    assert shifted(before, before.count(np.tile([-0.25, 0.75], 50))) == 0.5


def test_the_largest_difference_is_that_of_kolmogorov_and_smirnov():
    from scipy.stats import ks_2samp

    rng = np.random.default_rng(0)
    old, new = rng.normal(size=400), rng.normal(0.4, 1, 300)
    before = Numbers.of(old, len(old) + 1)
    assert shifted(before, before.count(new)) == pytest.approx(
        ks_2samp(old, new).statistic, abs=1 / 300
    )


def test_later_dates_are_no_drift_but_are_said():
    days = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(400) % 31, unit="D")
    january = table(400, 0, day=days)
    february = table(400, 1, day=days + pd.Timedelta(days=31))
    model = OCSVM(missing="impute", encode="auto").fit(january)
    drift = model.compare(february)
    assert "day" not in drift.moved
    assert any("day goes on until 2026-03-03; the training data end at 2026-01-31" in s
               for s in drift.why)  # fmt: skip
    assert "day" in model.compare(january.assign(day=days - pd.Timedelta(days=900))).moved


@pytest.mark.parametrize("in_order", [True, False])
def test_a_later_date_alone_raises_no_score_and_the_verdict_says_so(in_order):
    days = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(400) // 10, unit="D")
    shuffled = days if in_order else days[np.random.default_rng(0).permutation(400)]
    before = table(400, 0, day=shuffled)
    model = OCSVM(missing="impute", encode="auto").fit(before)
    # one time of the week, as the week is a part of the dates; long after the last one
    later = [before.assign(day=pd.Timestamp("2026-03-02") + pd.Timedelta(weeks=k)) for k in (0, 9)]
    first, last = map(model.anomaly_score, later)
    np.testing.assert_allclose(first, last)
    odd = before.assign(day=days + pd.Timedelta(weeks=9), weight=500.0)
    why = model.compare(odd).why
    assert any("no row odd for a later date alone" in s for s in why), why
    assert not any("no row odd" in s for s in model.compare(before).why)


def test_dates_with_offsets_are_told_in_utc():
    hours = pd.date_range("2026-01-01", periods=400, freq="h", tz="Europe/Paris")
    model = OCSVM(missing="impute", encode="auto").fit(table(400, 0, at=hours))
    later = hours + pd.Timedelta(days=30)
    (said,) = [s for s in model.compare(table(400, 1, at=later)).why if "goes on" in s]
    end, last = ((h - pd.Timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S UTC")
                 for h in (hours[-1], later[-1]))  # fmt: skip
    assert said == f"at goes on until {last}; the training data end at {end}."
    (plain,) = [
        s for s in model.compare(table(400, 1, at=later.tz_localize(None))).why if "goes on" in s
    ]
    assert "UTC" not in plain


def test_pieces_add_up_to_the_whole(model):
    rows = table(900, 3)
    before, scores = model.training_portrait(), model.anomaly_score(rows)
    for threshold in (model.threshold_, np.median(scores)):
        whole = before.count(rows, scores, threshold)
        parts = [before.count(rows[a:b], scores[a:b], threshold) for a, b in ((0, 200), (200, 900))]
        again = [unpacked(packed(part), before) for part in parts]
        assert packed(again[0] + again[1]) == packed(whole)
    assert (whole.n_rows, whole.n_flagged) == (900, 450)  # above, not at, the threshold


def test_the_portrait_is_saved_with_the_model_and_is_small(model, tmp_path):
    save(model, tmp_path / "with.aberra")
    again, rows = load(tmp_path / "with.aberra"), table(300, 5)
    assert packed(again.training_portrait()) == packed(model.training_portrait())
    assert again.compare(rows).as_dict() == model.compare(rows).as_dict()
    json.dumps(again.compare(rows).as_dict(), allow_nan=False)
    assert len(packed(model.training_portrait())) < 5000


def test_wide_tables_get_smaller_portraits():
    rows = np.random.default_rng(0).normal(size=(200, 600))
    held = Portrait.of(rows, None)
    assert {len(column.numbers.points) for column in held.columns if column.numbers} == {17}
    assert held.columns[3].name == "column 3"
    assert held.scored(np.arange(200.0), 150.0).n_flagged == 49  # above the threshold, not at it


def test_a_model_of_images_has_nothing_to_compare():
    images = np.random.default_rng(0).normal(size=(20, 1, 4, 4))
    model = OCSVM().fit(np.random.default_rng(0).normal(size=(30, 3)))
    assert model.training_portrait() is not None
    model.fit(images)
    assert model.training_portrait() is None
    with pytest.raises(DataError, match="no portrait"):
        model.compare(images)


def test_ensembles_compare_too():
    rows = np.random.default_rng(0).normal(size=(400, 3))
    model = IADC(OCSVM(), max_rounds=1, random_state=0).fit(rows)
    assert model.compare(rows).verdict == "steady"
    assert model.compare(rows + np.array([2, 0, 0])).moved == ["column 0"]


def test_holm_and_wilson_agree_with_the_textbook():
    assert corrected([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert interval(10, 100) == pytest.approx((0.0552, 0.1744), abs=1e-4)
    assert chance(0.05, 1000, 1000) == 1.0
    assert chance(0.5, 1000, 1000) < 1e-80
    # Two samples count as one of n m / (n + m) rows; a twentieth of the rows may be anything.
    assert chance(0.25, 100, 400) == pytest.approx(2 * np.exp(-2 * 80 * 0.2**2))
    assert chance(0.25, 100, 0) == 1.0
    assert corrected([0.02, 0.011, 0.9]) == pytest.approx([0.04, 0.033, 0.9])
    assert corrected([0.02, 0.021, 0.03]) == pytest.approx([0.06, 0.06, 0.06])


def test_gaps_are_a_drift_of_their_own_among_all_rows():
    old, new = (np.where(np.arange(400) % 10 < n, np.nan, np.arange(400.0)) for n in (1, 3))
    before = ColumnPortrait.of("x", pd.Series(old), 65)
    now = before.count(pd.Series(new))
    assert (now.n, now.gap_share, before.gap_share) == (280, 0.3, 0.1)
    effect, p_values, p_gaps = _effects(before, now)
    moved = shifted(before.numbers, now.numbers)
    assert moved < 0.05
    assert effect == pytest.approx(0.2)
    assert p_gaps == pytest.approx(chance(0.2, 400, 400))
    assert p_values == chance(moved, 360, 280) == 1.0


def test_dates_go_on_only_where_none_is_earlier_and_their_middle_is_not():
    days = pd.Series(pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(100), unit="D"))
    before = ColumnPortrait.of("t", days, 65)
    later, early = (before.count(some) for some in (days[60:], days[:40]))
    earlier = before.count(days - pd.Timedelta(days=1))
    found = [_goes_on(before, now) for now in (before, later, early, earlier)]
    assert found == [True, True, False, False]
    assert [_effects(before, now)[0] > 0.5 for now in (later, early)] == [False, True]


def test_labels_that_turned_over_are_counted_beyond_what_chance_does():
    before = Categories.of(pd.Series(["a"] * 60 + ["b"] * 40))
    now = before.count(pd.Series(["a"] * 20 + ["b"] * 30 + ["c"] * 30 + ["d"] * 20))
    assert (now.counts.tolist(), now.n_others, now.others) == ([20, 30], 50, ["c", "d"])
    pooled = np.array([0.4, 0.35, 0.25])
    spread = np.sqrt(pooled * (1 - pooled) * (1 / 100 + 1 / 100))
    by_chance = np.sqrt(2 / np.pi) * spread.sum() / 2
    assert turned_over(before, now) == pytest.approx(0.5 - by_chance)
    assert turned_over(before, before) == 0.0


def test_many_labels_differ_by_chance_and_that_is_allowed_for():
    rng = np.random.default_rng(0)
    labels = [pd.Series(rng.integers(0, 60, 300).astype(str)) for _ in range(2)]
    before = Categories.of(labels[0])
    now = before.count(labels[1])
    assert np.abs(before.shares - now.shares).sum() / 2 > 0.15
    assert turned_over(before, now) < 0.05


def test_a_median_is_about_right_and_exact_where_values_repeat():
    values = np.random.default_rng(0).gamma(3, size=5000)
    held = Numbers.of(values, 65)
    assert held.quantile(0.5) == pytest.approx(np.median(values), rel=0.01)
    assert held.count(values + 1).quantile(0.5) == pytest.approx(np.median(values) + 1, rel=0.05)
    assert Numbers.of(np.repeat([1.0, 2.0, 3.0], [10, 80, 10]), 65).quantile(0.5) == 2
    assert Numbers.of(np.arange(100.0), 101).quantile(0.5) == 49  # half are at most that


def test_overlaid_shares_add_up(model):
    drift = model.compare(table(500, 2))
    for column in drift.columns:
        found = overlaid(column.before, column.now)
        assert 0.97 <= found.before.sum() <= 1 + 1e-9
        assert 0.97 <= found.now.sum() <= 1 + 1e-9


def test_the_report_says_and_draws_what_moved(model):
    moved = table(500, 2)
    moved["height"] += 20
    page = html(model, moved)
    assert "Compared with the training data: moved" in page
    assert "height: bars show the new rows" in page
    assert "Compared with the training data: steady" in html(model, table(500, 2))


def test_long_labels_below_small_charts_are_cut_with_a_sign():
    share = np.full(7, 1 / 7)
    labels = ["DE", "US", "FR", "IT", "GB", "Germny", "other"]
    drawn = overlay_chart("country", Overlay(labels, share, share))
    found = re.findall(r">([^<>]+)</text>", drawn)
    assert found == ["DE", "US", "FR", "IT", "GB", "Ger…", "oth…"]
