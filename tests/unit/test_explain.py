"""Reasons, doubts, rounds and chart data: one rule each, right whatever the model is."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.ensemble import IsolationForest

from aberra import ADC, IADC, OCSVM, MultiView
from aberra.errors import RoundsExhaustedWarning
from aberra.explain.charts import QUANTILES, score_bins, trust_band
from aberra.explain.doubts import Doubt, doubts, learnt_doubts, trust_in
from aberra.explain.glossary import GLOSSARY, explained
from aberra.explain.reasons import (
    LEAST_SHARE,
    N_REASONS,
    Reason,
    leading,
    leading_names,
    reasons,
    reasons_in_words,
    shown_value,
)
from aberra.explain.rounds import STOPPED, RoundsStory, story_of
from aberra.explain.scales import Scale, nice_steps, score_scale
from aberra.explain.subject import Subject, reference_scores
from aberra.explain.training import (
    about_threshold,
    changed_settings,
    input_size,
    name_of,
    what_it_does,
)
from aberra.localise.intensity import IntensityThreshold
from aberra.methods import named
from aberra.recipe import Recipe
from aberra.robust.weighting import LOST_TRUST, apart_weights, importance_weights
from aberra.thresholds import WHERE


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(120, 3)), columns=["a", "b", "c"])
    frame.iloc[:10, 1] += 9  # the odd ones are odd in b
    return frame


@pytest.fixture(scope="module")
def iadc(table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RoundsExhaustedWarning)
        return IADC(OCSVM(), n_members=3, max_rounds=4, random_state=0).fit(table)


# Reasons


def test_small_shares_are_no_reasons_but_the_largest_always_is():
    columns = [f"c{j}" for j in range(40)]
    even = np.full((1, 40), 1 / 40)  # every share is below 5 %
    assert reasons(even, columns) == [[Reason("c0", 1 / 40)]]
    some = np.array([[0.02, 0.5, 0.04, 0.2, 0.14, 0.1]])
    assert [name for name, _ in reasons(some, columns[:6])[0]] == ["c1", "c3", "c4"]
    two = np.array([[0.94, 0.049, 0.011]])
    assert reasons(two, columns[:3]) == [[Reason("c0", 0.94)]]
    assert reasons(np.zeros((1, 3)), columns[:3]) == [[]]


@given(
    hnp.arrays(
        np.float64, st.tuples(st.integers(1, 5), st.integers(1, 6)), elements=st.floats(0, 1)
    )
)
def test_all_forms_of_the_rule_agree(shares):
    columns = [f"c{j}" for j in range(shares.shape[1])]
    found, names, pairs = leading(shares), leading_names(shares, columns), reasons(shares, columns)
    assert found.shape == (len(shares), N_REASONS)
    assert names.shape == (N_REASONS, len(shares))
    for i, line in enumerate(pairs):
        kept = [int(j) for j in found[i] if j >= 0]
        assert [columns[j] for j in kept] == [r.column for r in line]
        assert [r.column for r in line] == [name for name in names[:, i] if name is not None]
        held = [r.share for r in line]
        assert held == sorted(held, reverse=True)
        assert all(share >= LEAST_SHARE for share in held[1:])
        assert bool(line) == (shares[i].max() > 0)
        left_out = np.delete(shares[i], kept)
        assert len(line) in (3, len(columns)) or not (left_out >= LEAST_SHARE).any()


def test_reasons_come_with_the_value_and_what_is_usual(table):
    mixed = table.assign(town=["Rome"] * 118 + ["Oslo"] * 2)
    model = MultiView(encode="auto", random_state=0).fit(mixed)
    [odd] = reasons_in_words(model, mixed.iloc[[0]])
    low, high = np.quantile(table["b"], (0.25, 0.75))
    assert odd[0].column == "b"
    assert odd[0].usual == f"usually {low:.3g} to {high:.3g}"
    assert odd[0].value == f"{table['b'].iloc[0]:.4g}"
    [strange] = reasons_in_words(model, mixed.iloc[[50]].assign(town="Atlantis"))
    assert (strange[0].value, strange[0].usual) == ("Atlantis", "never seen in training")
    [known] = reasons_in_words(model, mixed.iloc[[119]])
    assert (known[0].value, known[0].usual) == ("Oslo", "in 1.7 % of the training rows")


def test_reasons_without_column_names(table):
    model = OCSVM(random_state=0).fit(table.to_numpy())
    [found] = reasons_in_words(model, table.set_axis(["x", "x", "x"], axis=1).iloc[[2]])
    assert found[0].value == f"{table['b'].iloc[2]:.4g}"


def test_values_are_shown_as_people_write_them():
    assert shown_value(True) == "True"
    assert shown_value(None) == "missing"
    assert shown_value(pd.Timestamp("2026-01-06")) == "2026-01-06"
    assert shown_value(pd.Timestamp("2026-01-06 07:30")) == "2026-01-06 07:30:00"
    assert shown_value("x" * 60) == "x" * 39 + "…"


# Doubts


def test_doubts_are_the_least_trusted_first():
    trust, scores = np.array([0.5, 0.0, 0.0, 0.9]), np.array([9.0, 7.0, 8.0, 0.0])
    found = doubts(trust, scores, ["p", "q", "r", "s"], n=3)
    assert [d.name for d in found] == ["r", "q", "p"]  # of equal trust, the higher score first
    assert [d.row for d in found] == [2, 1, 0]
    asked = []

    def why(rows):
        asked.append(list(rows))
        return [[Reason("a", 1.0)] for _ in rows]

    assert doubts(trust, scores, reasons_of=why, n=1) == [
        Doubt(2, "row 2", 0.0, 8.0, [Reason("a", 1.0)])
    ]
    assert asked == [[2]]


def test_trust_is_learnt_or_what_iadc_would_begin_with(iadc, table):
    scores = iadc.training_scores()
    assert np.array_equal(trust_in(iadc, scores), iadc.weights_)
    plain = ADC(OCSVM(), n_members=2, random_state=0).fit(table)
    assert np.array_equal(
        trust_in(plain, plain.training_scores()), importance_weights(plain.training_scores())
    )
    default = ADC(n_members=2, random_state=0).fit(table)
    own = default.training_scores()
    assert np.array_equal(trust_in(default, own), apart_weights(own))
    assert learnt_doubts(plain) == []
    assert [d.row for d in learnt_doubts(iadc, 4)] == np.argsort(iadc.weights_)[:4].tolist()


def test_low_trust_is_less_than_half_that_of_the_middle(iadc):
    assert pytest.approx(np.median(iadc.weights_) / 2, abs=0.01) == LOST_TRUST
    history = iadc.history_
    assert history.n_low(history.kept) == (iadc.weights_ < LOST_TRUST).sum() > 0


# Rounds


def test_the_story_is_that_of_the_history(iadc):
    story, history = story_of(iadc), iadc.history_
    assert [line.crossings for line in story.lines] == [None, *history.crossings()]
    assert [line.number for line in story.lines if line.kept] == [history.kept + 1]
    lost = [(history.weights(t) < LOST_TRUST).sum() for t in range(len(history))]
    assert [line.low_trust for line in story.lines] == lost
    assert STOPPED[history.reason] in story.in_short()
    assert f"round {history.kept + 1} was kept" in story.in_short()


@pytest.mark.parametrize("reason", STOPPED)
def test_why_it_stopped_is_said_in_one_set_of_words(iadc, reason, monkeypatch):
    monkeypatch.setattr(iadc.history_, "reason", reason)
    assert f"It stopped because {STOPPED[reason]}." in " ".join(story_of(iadc).sentences("row"))


def test_the_caller_may_know_better_why_it_stopped(iadc):
    story = story_of(iadc, "the time budget of 2 min was used up")
    assert story.in_short().endswith("; the time budget of 2 min was used up")


class Rounds(list):
    """Stands for a history of four rounds."""

    def __init__(self, crossings, kept, reason="settled"):
        super().__init__(range(4))
        self.crossings, self.kept, self.reason = (lambda: crossings), kept, reason


def test_a_round_is_kept_for_the_reason_that_is_given():
    calm, restless = Rounds([20, 2, 9], 2), Rounds([40, 30, 45], 3)
    assert RoundsStory(calm, "").sentences("row")[1] == (
        "Round 3 was kept: in this round the fewest rows crossed over to the odder part of the "
        "ranking."
    )
    assert "Round 4 was kept: no round was calm" in RoundsStory(restless, "").sentences("row")[1]
    harm = Rounds([9], 0, "harm")
    said = RoundsStory(harm, STOPPED["harm"]).sentences("row")[1]
    assert said == "Round 1 was kept, which trusts all rows the same."
    heard = RoundsStory(Rounds([9, 9], 2, "heard"), STOPPED["heard"]).sentences("row")
    assert heard == [
        "Training took 4 rounds. It stopped because it had heard a second opinion and learnt from "
        "it.",
        "Round 3 was kept, the first to follow its own ranking again.",
    ]


def test_without_rounds_there_is_no_story(table):
    assert story_of(OCSVM(random_state=0).fit(table)) is None
    one = IADC(OCSVM(), n_members=2, max_rounds=1, random_state=0).fit(table)
    assert story_of(one).sentences("row") == [
        "Training had one round only, so no row could cross over."
    ]


# Charts


@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_scale_goes_there_and_back(spread):
    scale = Scale(-2.0, 300.0, 1.0, spread)
    edges = scale.edges(20)
    assert (edges[0], edges[-1]) == (-2, 300)
    assert (np.diff(edges) > 0).all()
    np.testing.assert_allclose(scale.places(edges), np.linspace(0, 1, 21), atol=1e-12)
    np.testing.assert_allclose(scale.unbent(scale.bent(edges)), edges, rtol=1e-12)
    ticks = scale.ticks(0.15)
    assert ticks == sorted(ticks)
    assert len(ticks) >= 3
    assert np.diff(scale.places(ticks)).min() >= 0.15


def test_round_numbers():
    assert nice_steps(0, 1) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert nice_steps(-3, 27) == [0, 5, 10, 15, 20, 25]


def test_only_long_tails_bend_the_scale():
    even = np.linspace(0, 1, 100)
    assert score_scale(even).spread == 0
    assert score_scale(np.append(even, 500.0)).spread > 0
    constant = score_scale(np.full(5, 3.0))
    assert constant.low < 3 < constant.high


def test_bins_hold_every_score_on_its_side_of_the_threshold():
    rng = np.random.default_rng(0)
    scores, others = rng.gamma(2.0, size=500), rng.gamma(2.0, size=90)
    for threshold in (None, -3.0, scores.min(), 1.7, scores.max(), 50.0):
        bins = score_bins([scores, others], threshold)
        assert (np.diff(bins.edges) > 0).all()
        assert [int(counts.sum()) for counts in bins.counts] == [500, 90]
        np.testing.assert_allclose(bins.shares(1).sum(), 1)
        above = 0 if threshold is None else (scores > threshold).sum()
        assert bins.counts[0][bins.above].sum() == above


@pytest.mark.parametrize(
    ("scores", "threshold", "n_above"),
    [([0.0] * 97 + [8.0] * 3, 0.0, 3), ([*range(10), 10.0], 9.9, 1), ([1.0] * 9, 1.0, 0)],
)
def test_bars_beside_the_threshold_are_wide_enough_to_be_seen(scores, threshold, n_above):
    bins = score_bins([np.array(scores)], threshold)
    assert bins.counts[0].sum() == len(scores)
    assert bins.counts[0][bins.above].sum() == n_above
    held = np.flatnonzero(bins.counts[0])
    widths = np.diff(bins.scale.places(bins.edges))
    assert widths[held].min() > 0.4 / len(widths)


def test_bands_are_the_quantiles_of_their_group():
    trust = np.random.default_rng(0).uniform(size=(3, 50))
    some = np.arange(50) < 20
    band = trust_band(trust, "some", some, odd=True)
    np.testing.assert_allclose(band.quantiles, np.quantile(trust[:, :20], QUANTILES, axis=1).T)
    np.testing.assert_allclose(band.middle, np.median(trust[:, :20], axis=1))
    assert (band.half[0] <= band.middle).all()
    assert (band.middle <= band.half[1]).all()
    assert trust_band(trust, "all").quantiles.shape == (3, 5)


# What was trained


def test_methods_are_described_by_the_register(iadc):
    said = what_it_does(iadc)
    assert said == [f"{name}: {named(name).sentence}" for name in ("IADC", "OCSVM")]
    assert name_of(iadc) == "IADC around OCSVM"


def test_defaults_and_strangers_are_described_too(table):
    default = ADC(n_members=2, random_state=0).fit(table)
    assert name_of(default) == "ADC around MultiView"
    foreign = ADC(IsolationForest(n_estimators=5), n_members=2, random_state=0).fit(table)
    assert what_it_does(foreign)[1].startswith("IsolationForest: Isolation Forest Algorithm")


@pytest.mark.parametrize("rule", WHERE)
def test_every_rule_makes_a_sentence(rule):
    said = about_threshold(2.5, rule)
    assert said == f"The threshold 2.5 was placed {WHERE[rule]}. No labels were used."


def test_only_changed_settings_are_listed(iadc):
    assert sorted(changed_settings(iadc)) == [
        ("max_rounds", "4"),
        ("n_members", "3"),
        ("random_state", "0"),
    ]
    assert (input_size(iadc).value, input_size(iadc).note) == ("3", "a, b, c")


def test_a_subject_knows_its_model_and_its_notes(iadc, table):
    bare, noted = Subject(iadc), Subject(iadc, Recipe("volumes", "ward", 7))
    assert (bare.thing, noted.thing) == ("row", "slice")
    assert bare.n_samples == noted.n_samples == 120  # what the model knows comes first
    assert bare.are_training_scores(iadc.anomaly_score(table))
    assert not bare.are_training_scores(iadc.anomaly_score(table)[::-1])
    assert bare.n_low_trust == (iadc.weights_ < LOST_TRUST).sum()
    assert bare.flags(np.array([iadc.threshold_, np.inf])).tolist() == [False, True]
    assert bare.contamination == iadc.contamination_
    assert bare.map_threshold is None
    assert [d.row for d in bare.doubts(2)] == np.argsort(iadc.weights_)[:2].tolist()
    known = [Doubt(4, "Mrs Four", 0.1, 3.0)]
    assert Subject(iadc, Recipe("table", "a.csv", 120, doubts=known)).doubts(2) == known


def test_a_localiser_flags_pixels_and_makes_no_estimate():
    images = np.random.default_rng(0).uniform(0.4, 0.6, size=(24, 1, 8, 8))
    model = IntensityThreshold(random_state=0).fit(images)
    subject = Subject(model)
    assert subject.contamination is None
    assert subject.map_threshold == model.map_threshold_
    assert Subject(model, Recipe("images", "ward", 24, map_threshold=0.2)).map_threshold == 0.2
    assert subject.sentences()[-1].startswith("In a map, every pixel above")
    assert reference_scores(model) is None
    assert reference_scores(model, [1.0, 2.0]).tolist() == [1, 2]


# Words


def test_the_glossary_has_the_words_that_pages_use():
    assert {"trust", "round", "crossing", "member", "map"} <= GLOSSARY.keys()
    assert [term for term, _ in explained()] == [term.capitalize() for term in GLOSSARY]
    assert explained("map") == [("Map", GLOSSARY["map"])]
    assert f"{LOST_TRUST:g}" in GLOSSARY["trust"]
