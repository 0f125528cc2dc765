"""IADC against Algorithm 1 written out from its definition, around a detector of one number.

The detector knows nothing but the weighted mean of the rows, so each round can be computed here
in a few lines. Its score wobbles with that mean: the ranking never comes to rest completely, and
the patience of the stopping rule decides when to stop.
"""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.ensemble import IsolationForest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from aberra import ADC, IADC, OCSVM, AutoEncoder, HybridOCSVM, MultiView
from aberra.errors import DataError
from aberra.rng import draw_seeds
from aberra.robust.history import History, Round
from aberra.robust.start import ADVICE, Course, advice, course_of
from aberra.robust.weighting import in_quartiles

pytestmark = pytest.mark.filterwarnings("ignore::aberra.errors.RoundsExhaustedWarning")

N = 401
ROWS = np.random.default_rng(1).normal(size=(N, 1))
ROWS[:30] += 4
PRIOR = np.random.default_rng(2).uniform(0.2, 1.0, N)


def wobbling_distance(x, mean):
    return np.abs(x - mean) + 0.3 * np.sin(300 * x * mean)


class OneNumber(OutlierMixin, BaseEstimator):
    """Scores by the distance from the weighted mean."""

    def fit(self, X, y=None, sample_weight=None):
        self.mean_ = np.average(X[:, 0], weights=sample_weight)
        return self

    def score_samples(self, X):
        return -wobbling_distance(X[:, 0], self.mean_)


def weights_of(scores, temperature):
    """A sigmoid that is 0.5 at the median score and falls with the score."""
    middle = sorted(scores)[N // 2]
    reach = min(middle - min(scores), max(scores) - middle)
    return np.array([1 / (1 + np.exp((s - middle) / (temperature * reach))) for s in scores])


def crossed(now, before, ratio):
    """Count the rows among the odd share of the ranking now that were not there before."""
    k = int(np.ceil(ratio * N))
    return len(set(np.argsort(-now)[:k]) - set(np.argsort(-before)[:k]))


def algorithm_1(ratio, temperature, patience, prior, max_rounds):
    """Return the scores of all rounds, the crossings, and the round to keep."""
    w, rounds, h = np.ones(N), [], []
    while len(rounds) < max_rounds:
        mean = np.sum(w * prior * ROWS[:, 0]) / np.sum(w * prior)
        rounds.append(wobbling_distance(ROWS[:, 0], mean))
        w = weights_of(rounds[-1], temperature)
        if len(rounds) == 1:
            continue
        h.append(crossed(rounds[-1], rounds[-2], ratio))
        since_best = len(h) - 1 - h.index(min(h))
        calm = min(h) <= ratio * (1 - ratio) * N / 4
        if h[-1] == 0 or (calm and since_best >= patience):
            break
    return rounds, h, 1 + h.index(min(h))


@pytest.mark.parametrize("prior", [np.ones(N), PRIOR], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"outlier_ratio": 0.3},
        {"outlier_ratio": 0.3, "patience": 4},
        {"temperature": 1.0, "patience": 3},
    ],
    ids=["defaults", "ratio", "patience", "temperature"],
)
def test_iadc_a1_is_the_algorithm_written_out(settings, prior):
    weight = None if prior is not PRIOR else PRIOR
    model = IADC(OneNumber(), n_members=2, resample=False, random_state=0, **settings)
    history = model.fit(ROWS, sample_weight=weight).history_
    said = {"ratio": 0.5, "temperature": 0.5, "patience": 2}  # the documented defaults
    said |= {"ratio" if k == "outlier_ratio" else k: v for k, v in settings.items()}
    rounds, h, kept = algorithm_1(**said, prior=prior, max_rounds=30)
    assert 3 < len(rounds) < 30, "the example must stop by the rule"
    assert min(h) > 0, "the patience must decide, not a ranking that stands still"
    assert history.reason == "settled"
    assert len(history) == len(rounds)
    assert history.crossings() == h
    assert history.kept == kept
    for ours, theirs in zip(history, rounds, strict=True):
        np.testing.assert_allclose(ours.scores, theirs, rtol=0, atol=1e-6)
    final = weights_of(rounds[kept], said["temperature"])
    np.testing.assert_allclose(model.weights_, final, rtol=0, atol=1e-6)
    np.testing.assert_allclose(model.anomaly_score(ROWS), rounds[kept], rtol=0, atol=1e-6)


def test_adc_is_the_first_round_with_the_weights_that_are_given():
    model = ADC(OneNumber(), n_members=2, resample=False).fit(ROWS, sample_weight=PRIOR)
    first = wobbling_distance(ROWS[:, 0], np.average(ROWS[:, 0], weights=PRIOR))
    np.testing.assert_allclose(model.round_.scores, first, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("detector", "X", "words"),
    [
        (make_pipeline(SimpleImputer(), IsolationForest()), ROWS, "prepares the columns itself"),
        (AutoEncoder(), np.zeros((6, 1, 8, 8)), "these are images"),
    ],
)
def test_the_default_has_nothing_to_say_about_images_and_raw_frames(detector, X, words):
    X = pd.DataFrame(X) if X.ndim == 2 else X
    with pytest.raises(DataError, match=words):
        IADC(detector, start="advised", random_state=0).fit(X)


def test_an_advised_start_goes_by_what_the_default_says():
    view = ADC(MultiView(), random_state=0).fit(ROWS)
    settings = {"n_members": 2, "resample": False, "random_state": 0}
    model = IADC(OneNumber(), start="advised", **settings).fit(ROWS)
    said = advice(ROWS, np.ones(N), model.entropy_)
    assert np.corrcoef(said, view.training_scores())[0, 1] > 0.9  # of other random numbers
    w, always = np.ones(N), weights_of(said, 0.5)
    for now in model.history_[:3]:
        mean = np.average(ROWS[:, 0], weights=w * always)
        np.testing.assert_allclose(now.scores, wobbling_distance(ROWS[:, 0], mean), atol=1e-6)
        # half of the way to the trust by both scores, times the advice
        w = (w + weights_of(in_units(now.scores) + in_units(said), 0.5)) / 2


def test_advisers_are_told_the_prior_which_counts_beside_their_advice(monkeypatch):
    monkeypatch.setattr("aberra.robust.start.N_ADVISERS", 2)
    view = MultiView()
    every, twice = np.tile(np.arange(N), (2, 1)), np.tile(PRIOR, (2, 1))
    members = view._train(view._prepare(ROWS), every, twice, draw_seeds(3, ADVICE, 1, n=2))
    expected = members.scores(ROWS).mean(axis=0)
    for start, advised in (("advised", weights_of(expected, 0.5)), ("informed", np.ones(N))):
        course = course_of(start, ROWS, History(0.5, 2, 0.5), PRIOR, 3)
        np.testing.assert_allclose(course.said, expected, rtol=1e-9)
        np.testing.assert_allclose(course.prior, PRIOR * advised, rtol=1e-9)


INFORMED = {"n_members": 2, "resample": False, "start": "informed", "random_state": 0}


def test_an_informed_start_hears_the_default_before_the_second_round():
    model = IADC(OneNumber(), **INFORMED).fit(ROWS)
    said, history = advice(ROWS, np.ones(N), model.entropy_), model.history_
    trusts = [np.ones(N), weights_of(said, 0.5), weights_of(history[1].scores, 0.5)]
    for w, now in zip(trusts, history, strict=True):
        mean = np.average(ROWS[:, 0], weights=w)
        np.testing.assert_allclose(now.scores, wobbling_distance(ROWS[:, 0], mean), atol=1e-6)
    assert (history.reason, history.kept, history.replay(0.1)) == ("heard", 2, 2)
    scores = model.anomaly_score(ROWS)
    np.testing.assert_allclose(scores, wobbling_distance(ROWS[:, 0], mean), atol=1e-6)
    again = model.set_params(warm_start=True, max_rounds=31).fit(ROWS)
    assert (len(again.history_), again.history_.reason) == (3, "heard")


@pytest.mark.parametrize(("max_rounds", "reason"), [(2, "max_rounds"), (3, "heard")])
def test_an_informed_start_may_have_fewer_rounds(max_rounds, reason):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        history = IADC(OneNumber(), max_rounds=max_rounds, **INFORMED).fit(ROWS).history_
    assert (len(history), history.reason, history.kept) == (max_rounds, reason, max_rounds - 1)


class Contrary(OneNumber):
    """A detector that, once rows are doubted, finds odd what others find most ordinary."""

    def fit(self, X, y=None, sample_weight=None):
        super().fit(X, sample_weight=sample_weight)
        doubted = sample_weight is not None and np.ptp(sample_weight) > 0
        self.sign_ = -1 if doubted else 1
        return self

    def score_samples(self, X):
        return self.sign_ * super().score_samples(X)


@pytest.mark.parametrize("max_rounds", [1, 2, 9])
def test_an_informed_start_keeps_the_first_round_where_doubt_does_harm(max_rounds):
    model = IADC(Contrary(), max_rounds=max_rounds, **INFORMED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(ROWS)
    plain = ADC(Contrary(), n_members=2, resample=False, random_state=0).fit(ROWS)
    history = model.history_
    assert (len(history), history.kept) == (min(max_rounds, 2), 0)
    assert history.reason == ("max_rounds" if max_rounds == 1 else "harm")
    assert history.replay(0.1) == 0
    np.testing.assert_array_equal(model.anomaly_score(ROWS), plain.anomaly_score(ROWS))
    np.testing.assert_array_equal(model.training_scores(), plain.anomaly_score(ROWS))


def test_a_warm_start_does_not_forget_that_doubt_does_harm():
    model = IADC(Contrary(), warm_start=True, **INFORMED).fit(ROWS)
    before = model.anomaly_score(ROWS)
    again = model.set_params(max_rounds=29).fit(ROWS)
    assert (len(again.history_), again.history_.reason) == (2, "harm")
    np.testing.assert_array_equal(again.anomaly_score(ROWS), before)


def test_agreement_is_that_on_the_tenth_of_the_rows_that_advisers_find_oddest():
    said = np.arange(20.0)
    history = History(0.5, 2, 0.5)
    for scores in (np.roll(said, 1), said):  # the oddest row is found ordinary, then odd again
        history.append(Round(scores, 0.0))
    Course("informed", np.ones(20), said).judge(history)
    assert history.reason == ""
    history.rounds.reverse()
    Course("advised", np.ones(20), said).judge(history)
    assert history.reason == ""
    Course("informed", np.ones(20), said).judge(history)
    assert history.reason == "harm"
    top_three_alone = said.copy()
    top_three_alone[:17] = said[:17][::-1]  # the same for the oddest tenth, which is two rows
    level = History(0.5, 2, 0.5)
    for scores in (said, top_three_alone):
        level.append(Round(scores, 0.0))
    Course("informed", np.ones(20), said).judge(level)
    assert level.reason == ""
    for reason in ("heard", ""):  # a third round ends it; of a longer fit the crossings decide
        level.append(Round(said, 0.0))
        level.reason = ""
        Course("informed", np.ones(20), said).judge(level)
        assert level.reason == reason
    level.rounds = [*level.rounds[:2], Round(-said, 0.0)]  # the first two decide, not the third
    Course("informed", np.ones(20), said).judge(level)
    assert level.reason == "heard"


def in_units(s):
    """Scores in distances of the upper quartile from the median, sorted by hand."""
    ordered, k = np.sort(s), 0.75 * (len(s) - 1)
    low = int(k)
    upper = ordered[low] + (k - low) * (ordered[min(low + 1, len(s) - 1)] - ordered[low])
    return (s - np.median(s)) / (upper - np.median(s))


def test_a_gentle_start_goes_a_quarter_of_the_way_in_every_round():
    settings = {"n_members": 2, "resample": False, "random_state": 0}
    model = IADC(OneNumber(), start="gentle", max_rounds=3, patience=9, **settings)
    history = model.fit(ROWS).history_
    w = np.ones(N)
    for now, coming in itertools.pairwise(history):
        w = 0.75 * w + 0.25 * weights_of(now.scores, 0.5)
        mean = np.average(ROWS[:, 0], weights=w)
        np.testing.assert_allclose(coming.scores, wobbling_distance(ROWS[:, 0], mean), atol=1e-6)
    assert len(history) == 3


def test_scores_that_most_rows_share_have_a_unit_still():
    np.testing.assert_array_equal(in_quartiles(np.array([1.0, 1, 1, 1, 5])), [0, 0, 0, 0, 1])
    np.testing.assert_array_equal(in_quartiles(np.full(4, 2.0)), np.zeros(4))


@pytest.mark.parametrize(
    ("detector", "start"),
    [
        (AutoEncoder(epochs=2), "advised"),
        (HybridOCSVM(pretrain_epochs=2), "informed"),
        (OCSVM(), "equal"),
        (MultiView(), "equal"),
        (OneNumber(), "equal"),
    ],
)
def test_every_detector_has_the_start_that_suits_it_by_default(detector, start):
    settings = {"n_members": 1, "max_rounds": 2, "resample": False, "random_state": 0}
    by_default, said = (
        IADC(detector, start=s, **settings).fit(ROWS).history_ for s in ("auto", start)
    )
    assert IADC(detector).start == "auto"
    assert by_default[0].scores.tobytes() == said[0].scores.tobytes()
    assert by_default[-1].scores.tobytes() == said[-1].scores.tobytes()
