"""ADC and IADC as a user meets them."""

import copy
import inspect
import warnings
from typing import get_type_hints

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

import aberra.robust.rounds as rounds_module
from aberra import ADC, DAGPR, IADC, OCSVM, RSRAE, AutoEncoder, DeepSVDD, HybridOCSVM, MultiView
from aberra.declare import learnt_by
from aberra.errors import CollapseWarning, DataError, DivergenceError, RoundsExhaustedWarning
from aberra.robust.committee import Committee
from aberra.robust.history import History, Round
from aberra.robust.weighting import importance_weights

SHORT = {"hidden": (8, 3)}
NETWORKS = [
    AutoEncoder(epochs=10, **SHORT),
    DeepSVDD(epochs=10, pretrain_epochs=10, **SHORT),
    HybridOCSVM(pretrain_epochs=10, **SHORT),
    RSRAE(epochs=10, **SHORT),
    DAGPR(pretrain_epochs=10, **SHORT),
]
DETECTORS = [MultiView(), OCSVM(), OCSVM(solver="nystroem", n_landmarks=32), *NETWORKS]


def fitted(detector, X, **keywords):
    settings = {"n_members": 3, "max_rounds": 3, "random_state": 0} | keywords
    return IADC(clone(detector), **settings).fit(X)


pytestmark = pytest.mark.filterwarnings("ignore::aberra.errors.RoundsExhaustedWarning")


@pytest.mark.slow
@pytest.mark.parametrize("detector", DETECTORS, ids=str)
def test_same_seed_same_bytes_on_any_engine(detector, dirty_blob):
    X, _ = dirty_blob
    here = fitted(detector, X)
    for engine in (None, "threading", "loky"):
        there = fitted(detector, X, engine=engine)
        assert there.anomaly_score(X).tobytes() == here.anomaly_score(X).tobytes()
        assert there.weights_.tobytes() == here.weights_.tobytes()


@pytest.mark.slow
def test_same_seed_same_bytes_on_any_number_of_threads(dirty_blob):
    import torch

    X, _ = dirty_blob
    scores = []
    for n_threads in (1, 2, 3):
        before = torch.get_num_threads()
        torch.set_num_threads(n_threads)
        try:
            scores.append(fitted(NETWORKS[1], X).anomaly_score(X).tobytes())
            assert torch.get_num_threads() == n_threads
        finally:
            torch.set_num_threads(before)
    assert len(set(scores)) == 1


@pytest.mark.parametrize("detector", DETECTORS, ids=str)
def test_fit_leaves_the_global_generators_alone(detector, dirty_blob):
    import random

    import torch

    np.random.seed(1)
    torch.manual_seed(1)
    random.seed(1)
    before = (np.random.get_state()[1].tolist(), torch.get_rng_state().tolist(), random.getstate())
    detector = clone(detector).set_params(random_state=3)
    first = detector.fit(dirty_blob[0]).anomaly_score(dirty_blob[0])
    after = (np.random.get_state()[1].tolist(), torch.get_rng_state().tolist(), random.getstate())
    assert before == after
    np.testing.assert_array_equal(first, detector.fit(dirty_blob[0]).anomaly_score(dirty_blob[0]))


def test_weights_follow_from_the_kept_round(dirty_blob):
    X, y = dirty_blob
    model = fitted(OCSVM(), X, max_rounds=10)
    kept = model.history_[model.history_.kept]
    np.testing.assert_array_equal(model.weights_, importance_weights(kept.scores))
    np.testing.assert_allclose(model.anomaly_score(X), kept.scores)
    assert roc_auc_score(y, kept.scores) > 0.99


def test_adc_is_the_first_round_of_iadc(dirty_blob):
    X, _ = dirty_blob
    adc = ADC(OCSVM(), n_members=3, random_state=0).fit(X)
    iadc = fitted(OCSVM(), X)
    np.testing.assert_array_equal(adc.round_.scores, iadc.history_[0].scores)


def test_rules_of_an_ensemble_are_those_of_its_members():
    for ensemble, image, rules in (
        (ADC(), None, ("fdr", "apart")),
        (ADC(), (1, 8, 8), ("knee", "median")),  # of HybridOCSVM
        (ADC(OCSVM()), None, ("knee", "median")),
        (ADC(MultiView()), (1, 8, 8), ("fdr", "apart")),
        (ADC(IsolationForest()), None, ("knee", "median")),
    ):
        ensemble.image_shape_ = image
        assert (ensemble.flag_rule, ensemble.trust_rule) == rules
        assert ensemble.sees_gaps == (rules[0] == "fdr")


def test_constructors_keep_the_order_of_their_first_parameters():
    first = {
        ADC: ["detector", "n_members", "resample"],
        IADC: ["detector", "n_members", "outlier_ratio", "max_rounds", "resample", "temperature"],
    }
    for kind, names in first.items():
        parameters = inspect.signature(kind).parameters.values()
        positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        assert positional == names
        for parameter in parameters:
            assert f"{parameter.name} : " in kind.__doc__


def test_what_is_known_about_the_training(dirty_blob):
    X, _ = dirty_blob
    adc, iadc = ADC(OCSVM(), 3, random_state=0).fit(X), fitted(OCSVM(), X)
    assert adc.training_scores() is adc.round_.scores
    assert adc.training_trust() is None
    assert adc.training_sample() is iadc.training_sample() is None  # no file was in between
    assert adc.training_rounds() is None
    history = iadc.training_rounds()
    assert history is iadc.history_
    assert iadc.training_scores() is history[history.kept].scores
    assert iadc.training_trust() is iadc.weights_


def test_types_say_what_a_model_file_keeps():
    for part, names in {
        Round: ["scores", "seconds", "crossings", "sample"],
        History: [
            "outlier_ratio",
            "patience",
            "temperature",
            "trust",
            "fingerprint",
            "rounds",
            "reason",
        ],
        Committee: ["parts"],
    }.items():
        assert list(inspect.signature(part).parameters) == names
        assert set(names) <= set(get_type_hints(part))
    hints = get_type_hints(Round, include_extras=True)
    (shape,) = hints["scores"].__metadata__
    assert (shape.dims, shape.dtype) == (("N",), "float64")
    assert get_type_hints(IADC)["entropy_"] is int
    assert {"history_", "weights_", "entropy_"} <= {f.name for f in learnt_by(IADC)}


def test_user_weights_multiply_the_learnt_ones(dirty_blob):
    X, y = dirty_blob
    # Rows of weight zero have no part: the same model comes out whatever they hold.
    weight = np.where(y == 1, 0.0, 1.0)
    other = np.where(y[:, None] == 1, X + 1.0, X)
    for detector in (OCSVM(gamma=1.0),):
        with_odd = fitted(detector, X, resample=False)
        one = IADC(detector, n_members=2, max_rounds=1, resample=False, random_state=0)
        first = one.fit(X, sample_weight=weight).anomaly_score(X[y == 0])
        assert not np.allclose(first, with_odd.anomaly_score(X[y == 0]))
        two = clone(one).fit(np.clip(other, X.min(0), X.max(0)), sample_weight=weight)
        np.testing.assert_allclose(first, two.anomaly_score(X[y == 0]), atol=1e-9)


def test_interrupt_keeps_finished_rounds_and_warm_start_goes_on(dirty_blob, monkeypatch):
    X, _ = dirty_blob
    whole = fitted(OCSVM(), X, max_rounds=6, patience=9)
    original = rounds_module.run_members
    calls = []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(rounds_module, "run_members", interrupted)
    model = IADC(OCSVM(), 3, max_rounds=6, patience=9, warm_start=True, random_state=0).fit(X)
    assert model.history_.reason == "interrupted"
    assert len(model.history_) == 3
    assert model.anomaly_score(X).shape == (220,)
    model.fit(X)
    assert len(model.history_) == 6
    np.testing.assert_array_equal(model.history_[5].scores, whole.history_[5].scores)
    np.testing.assert_array_equal(model.weights_, whole.weights_)


def test_interrupt_in_the_first_round_is_passed_on(dirty_blob, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    model = IADC(OCSVM(), n_members=2, max_rounds=2, warm_start=True, random_state=0)
    with monkeypatch.context() as patched:
        patched.setattr(rounds_module, "run_members", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(dirty_blob[0])
    assert not hasattr(model, "members_")
    assert len(model.fit(dirty_blob[0]).history_) == 2


def test_warm_start_refuses_other_rows_and_settings(dirty_blob):
    X, _ = dirty_blob
    model = fitted(OCSVM(), X, warm_start=True)
    before = model.anomaly_score(X)
    for other in (X[:100], X + 1, X[:, :3], X[:, ::-1]):
        with pytest.raises(DataError, match="rows and settings of the last fit"):
            model.fit(other)
    with pytest.raises(DataError, match="rows and settings of the last fit"):
        model.fit(X, sample_weight=np.arange(len(X)))
    for change in ({"temperature": 0.1}, {"detector__nu": 0.2}, {"detector": AutoEncoder()}):
        with pytest.raises(DataError, match="rows and settings of the last fit"):
            clone_of(model).set_params(**change).fit(X)
    np.testing.assert_array_equal(model.anomaly_score(X), before)


def clone_of(model):
    return copy.copy(model).set_params(detector=clone(model.detector))


@pytest.mark.parametrize("model", [MultiView(missing="impute"), ADC(), IADC(max_rounds=2)], ids=str)
def test_a_fit_that_fails_leaves_the_model_as_it_was(model, dirty_blob):
    X, _ = dirty_blob
    model = clone(model).set_params(random_state=0)
    for bad in (lambda: model.fit(X * 100, sample_weight=-np.ones(220)), lambda: model.fit(X[:1])):
        with pytest.raises(ValueError, match=r"weight|sample"):
            bad()
        assert not hasattr(model, "n_features_in_")
    before = model.fit(X).anomaly_score(X)
    for bad in (
        lambda: model.fit(X * 100 + 5, sample_weight=-np.ones(220)),
        lambda: model.fit(np.column_stack([X, np.full(220, np.inf)])),
    ):
        with pytest.raises(ValueError, match=r"weight|infinity"):
            bad()
        np.testing.assert_array_equal(model.anomaly_score(X), before)


def test_a_warning_as_error_leaves_no_half_fitted_model(dirty_blob):
    model = IADC(NETWORKS[1], n_members=2, max_rounds=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RoundsExhaustedWarning):
            model.fit(dirty_blob[0])
    assert not hasattr(model, "members_")


def test_divergence_is_named(dirty_blob):
    with pytest.raises(DivergenceError, match=r"^AutoEncoder .* Lower the learning rate"):
        AutoEncoder(learning_rate=1e30, epochs=3, random_state=0).fit(dirty_blob[0])


@pytest.mark.parametrize("rate", [1e20, 1e38])
@pytest.mark.parametrize(
    "detector", [AutoEncoder(epochs=3), DeepSVDD(epochs=3, pretrain_epochs=1), RSRAE(epochs=3)]
)
def test_divergence_is_an_error_and_not_a_row_of_warnings(dirty_blob, detector, rate):
    with pytest.raises(DivergenceError, match=type(detector).__name__):
        detector.set_params(learning_rate=rate, random_state=0).fit(dirty_blob[0])


@pytest.mark.slow
def test_layout_of_the_rows_does_not_matter(dirty_blob):
    Z = np.random.default_rng(0).normal(size=(1500, 20))
    for model in (MultiView(random_state=0), OCSVM(random_state=0)):
        plain = clone(model).fit(Z).anomaly_score(Z)
        for other in (np.asfortranarray(Z), pd.DataFrame(Z)):
            fitted_on = clone(model).fit(other)
            np.testing.assert_array_equal(fitted_on.anomaly_score(other), plain)
            alone = fitted_on.anomaly_score(other[1030:1031])
            np.testing.assert_array_equal(alone, plain[1030:1031])


def test_thread_limits_are_restored(dirty_blob):
    from threadpoolctl import threadpool_info

    def limits():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = limits()
    for _ in range(3):
        ADC(OCSVM(), n_members=4, engine="threading", random_state=0).fit(dirty_blob[0])
    assert limits() == before


def test_numpy_booleans_mean_what_they_say(dirty_blob):
    X, _ = dirty_blob
    plain = ADC(OCSVM(), resample=False).fit(X).round_.scores
    np.testing.assert_array_equal(ADC(OCSVM(), resample=np.False_).fit(X).round_.scores, plain)


def test_history_says_why_it_stopped(dirty_blob):
    X, _ = dirty_blob
    assert fitted(OCSVM(), X, max_rounds=30).history_.reason == "settled"
    with pytest.warns(RoundsExhaustedWarning, match="max_rounds=2"):
        model = fitted(NETWORKS[1], X, max_rounds=2)
    assert model.history_.reason == "max_rounds"


@pytest.mark.parametrize("detector", DETECTORS, ids=str)
def test_score_does_not_depend_on_the_other_rows(detector, dirty_blob):
    X, _ = dirty_blob
    model = clone(detector).set_params(random_state=0).fit(X)
    together = model.anomaly_score(X)
    alone = np.concatenate([model.anomaly_score(row[None]) for row in X[:30]])
    np.testing.assert_array_equal(alone, together[:30])


def test_data_frames_keep_their_columns(dirty_blob):
    frame = pd.DataFrame(dirty_blob[0], columns=list("abcde"))
    model = fitted(OCSVM(), frame)
    assert list(model.feature_names_in_) == list("abcde")
    with pytest.raises(ValueError, match="feature names"):
        model.anomaly_score(frame[list("edcba")])


def test_deep_svdd_learns_and_does_not_collapse(dirty_blob):
    X, _ = dirty_blob
    model = DeepSVDD(epochs=30, pretrain_epochs=20, random_state=0, **SHORT).fit(X)
    assert model.losses_[-1] < 0.5 * model.losses_[0]
    assert np.ptp(model.anomaly_score(X)) > 1e-6
    assert (np.abs(model.members_.centre) >= 0.1 - 1e-9).all()


def test_collapse_is_not_silent(dirty_blob, monkeypatch):
    import aberra.detectors.deep_svdd as module

    # Zero weights map every row to zero: the collapsed solution that the warning is about.
    def collapse(layers, *arguments):
        for layer in layers:
            layer.weight[:] = 0
        return [0.0]

    monkeypatch.setattr(module, "train_perceptrons", collapse)
    with pytest.warns(CollapseWarning, match="collapsed to a constant map"):
        DeepSVDD(epochs=1, pretrain_epochs=1, random_state=0).fit(dirty_blob[0])


@pytest.mark.parametrize("detector", [AutoEncoder, DeepSVDD, RSRAE])
def test_members_that_train_in_threads_give_the_same_bytes(dirty_blob, detector):
    import torch

    X, _ = dirty_blob
    found, before = [], torch.get_num_threads()
    try:
        for n in (1, 4):
            torch.set_num_threads(n)
            model = ADC(detector(epochs=3, **SHORT), n_members=5, random_state=0).fit(X)
            found.append(model.anomaly_score(X))
    finally:
        torch.set_num_threads(before)
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.parametrize("ensemble", [ADC, IADC])
def test_settings_that_make_no_sense_are_refused_before_any_work(ensemble):
    with pytest.raises(ValueError, match="'n_members' parameter"):
        ensemble(n_members=0).fit(np.zeros((20, 2)))
    with pytest.raises(ValueError, match="'resample' parameter"):
        ensemble(resample="sometimes").fit(np.zeros((20, 2)))
