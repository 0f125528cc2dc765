"""Weights reach every objective that is meant to have them, and choices stay as documented."""

import numpy as np
import pytest
from sklearn.base import clone

from aberra import DAGPR, OCSVM, RSRAE, AutoEncoder, DeepSVDD, HybridOCSVM, MultiView
from aberra.contract.scorer import checked_weights
from aberra.detectors import convolutions, rsrae
from aberra.detectors.dagpr import (
    codes_and_errors,
    first_labels,
    gp_regression,
    refined_labels,
)
from aberra.detectors.foreign import as_trainer
from aberra.detectors.hybrid import principal_axes
from aberra.detectors.network import default_hidden
from aberra.detectors.ocsvm import ocsvm_iadc, ocsvm_landmarks, scale_gamma
from aberra.detectors.scaling import min_max
from aberra.detectors.training import Prepared
from aberra.errors import DataError
from aberra.metrics import auroc
from aberra.nets.conv import ConvStack
from aberra.nets.conv_plan import lenet
from aberra.nets.stacked import MLPStack
from aberra.thresholds import threshold
from aberra.twister import Twister

N, ODD = 96, 32
ROWS = np.arange(N) < ODD  # the rows that are hardly trusted
WEIGHTS = np.where(ROWS, 1e-3, 1.0)
SHORT = {"batch_size": 32, "learning_rate": 1e-2, "random_state": 0}


def table():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(N, 6))
    X[:, 3:] = X[:, :3]  # three numbers say all
    X[:ODD, 3:] *= -1  # but not for the rows that are not trusted
    return X


def images():
    generator = np.random.default_rng(0)
    X = np.zeros((N, 1, 8, 8))
    X[:ODD, :, :, :4] = X[ODD:, :, :4, :] = 1.0
    return np.clip(X + 0.1 * generator.random(X.shape), 0, 1)


def contrast(detector, X, weights):
    """Return how much higher the scores of the odd rows are than those of the others."""
    scores = detector.fit(X, sample_weight=weights).anomaly_score(X)
    return scores[ROWS].mean() / scores[~ROWS].mean()


@pytest.mark.parametrize("make", [table, images])
@pytest.mark.parametrize(
    "detector",
    [
        AutoEncoder(epochs=40, **SHORT),
        DeepSVDD(epochs=20, pretrain_epochs=5, **SHORT),
        RSRAE(epochs=40, **SHORT),
    ],
    ids=lambda detector: type(detector).__name__,
)
def test_rows_of_little_weight_are_learnt_less_well(detector, make):
    X = make()
    if make is images and type(detector) is not DeepSVDD:  # two kinds are told apart soon
        detector = clone(detector).set_params(epochs=8)
    assert contrast(detector, X, WEIGHTS) > 1.5 * contrast(detector, X, None)


def same_networks(first, second):
    pairs = zip(first.weights, second.weights, strict=True)
    return all(np.array_equal(one, other) for one, other in pairs)


@pytest.mark.parametrize("detector", [HybridOCSVM(), DAGPR()], ids=str)
def test_weights_reach_the_autoencoder_before_the_detector(detector):
    detector.set_params(pretrain_epochs=2, **SHORT)
    plain = detector.fit(table()).members_.encoder
    assert same_networks(plain, detector.fit(table()).members_.encoder)
    trusting = detector.fit(table(), sample_weight=WEIGHTS).members_.encoder
    # The hybrid turns its last layer by the weights, whoever trained it; the first one tells.
    assert not np.array_equal(plain.weights[0], trusting.weights[0])


def test_deep_svdd_does_not_weigh_the_autoencoder_before_it():
    X = table()
    detector = DeepSVDD(epochs=1, pretrain_epochs=3, **SHORT)
    plain, trusting = (detector.fit(X, sample_weight=w).members_ for w in (None, WEIGHTS))
    assert np.array_equal(plain.centre, trusting.centre)  # the mean code after the first part
    assert not same_networks(plain.encoder, trusting.encoder)


def test_hybrid_solves_the_weighted_problem_on_whitened_codes():
    X = table()
    X[:, 0] *= 50  # one direction of the code is much longer than the others
    model = HybridOCSVM(hidden=(8, 3), pretrain_epochs=3, **SHORT).fit(X, sample_weight=WEIGHTS)
    code = model.members_.codes(X)[0].T
    covariance = np.cov(code.T, aweights=WEIGHTS, bias=True)
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() < 1e-6 * covariance.max()
    mean = np.average(code, axis=0, weights=WEIGHTS)
    white = (code - mean) / np.sqrt(np.diag(covariance))
    gamma = scale_gamma(white, np.ones(N))
    expected = ocsvm_iadc(white, WEIGHTS, 0.5, gamma).score(white)
    np.testing.assert_allclose(model.anomaly_score(X), expected, atol=1e-4)
    unweighted = ocsvm_iadc(white, np.ones(N), 0.5, gamma).score(white)
    assert np.abs(unweighted - expected).max() > 0.01


def test_principal_axes_are_those_of_the_trusted_rows_and_leave_out_what_is_flat():
    generator = np.random.default_rng(0)
    codes = generator.normal(size=(60, 3)) * [5, 1, 0]
    turn = np.linalg.qr(generator.normal(size=(3, 3)))[0]
    dirt = generator.normal(size=(20, 3)) * 100
    weights = np.r_[np.full(60, 2.0), np.zeros(20)]
    axes = principal_axes(np.concatenate([codes @ turn, dirt]), weights)
    found = codes @ turn @ axes
    np.testing.assert_allclose(found[:, 0], 0, atol=1e-12)
    covariance = np.cov(found.T)
    assert abs(covariance[1, 2]) < 1e-10
    np.testing.assert_allclose(np.linalg.norm(axes, axis=0), [0, 1, 1])
    # The longest direction is the measure: a deviation of a thousandth of its own is flat.
    three = generator.normal(size=(60, 3)) * [1e4, 5, 1]
    steep = principal_axes(three, weights[:60])
    np.testing.assert_allclose(np.linalg.norm(steep, axis=0), [0, 0, 1])
    assert not principal_axes(np.ones((5, 2)), np.ones(5)).any()  # whatever comes later is noise


def test_a_network_that_is_turned_shows_its_codes_along_other_axes():
    axes = np.random.default_rng(0).normal(size=(2, 3, 3))
    network = MLPStack([4, 5, 3], [Twister(0), Twister(1)]).freeze()
    rows = np.random.default_rng(1).normal(size=(4, 6))
    np.testing.assert_allclose(network.turned(axes)(rows), axes.swapaxes(1, 2) @ network(rows))
    for j in range(2):
        np.testing.assert_allclose(network.member(j)(rows), network(rows)[j : j + 1])
    images = ConvStack(lenet((1, 8, 8))[0], [Twister(0), Twister(1)]).freeze()
    pixels, axes = np.random.default_rng(2).random((64, 5)), np.eye(8)[None].repeat(2, 0)
    axes[:, :, 0] = 0.5
    codes = axes.swapaxes(1, 2) @ images(pixels)
    np.testing.assert_allclose(images.turned(axes)(pixels), codes, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(images.member(1)(pixels)[0], images(pixels)[1], rtol=1e-5)


def test_one_member_of_a_network_ends_as_the_whole_does():
    for linear in (False, True):
        twisters = [Twister(0), Twister(1)]
        network = MLPStack([4, 5, 3], twisters, linear_output=linear).freeze()
        rows = np.random.default_rng(1).normal(size=(4, 6))
        for j in range(2):
            np.testing.assert_allclose(network.member(j)(rows)[0], network(rows)[j])


def test_a_machine_of_images_sees_one_scale_for_all_pixels():
    X = (255 * images()).astype(np.uint8)
    X[:, :, 0, 0] //= 4  # a dark corner stays dark
    members = OCSVM().fit(X).members_
    seen = {row.tobytes() for row in (X.reshape(N, -1) * (1 / 255))}
    assert all(row.tobytes() in seen for row in members.machines[0].vectors)
    assert members.machines[0].gamma == pytest.approx(1 / (64 * (X / 255).var()))


@pytest.mark.parametrize("solver", ["exact", "nystroem"])
def test_one_class_machine_is_given_the_weights(solver):
    X = np.random.default_rng(1).normal(size=(N, 2))
    X[:ODD] += 4
    detector = OCSVM(solver=solver, n_landmarks=60, random_state=0)
    trusting = detector.fit(X, sample_weight=WEIGHTS).anomaly_score(X)
    assert trusting[ROWS].min() > np.quantile(trusting[~ROWS], 0.9)
    assert detector.fit(X).anomaly_score(X)[ROWS].min() < 0


@pytest.mark.parametrize(
    "detector",
    [
        OCSVM(solver="nystroem", n_landmarks=8),
        HybridOCSVM(pretrain_epochs=1, solver="nystroem", n_landmarks=8, **SHORT),
        DAGPR(pretrain_epochs=1, hidden=(8, 4), **SHORT),
        MultiView(n_trees=8, n_landmarks=8),
    ],
    ids=lambda detector: type(detector).__name__,
)
def test_a_member_learns_the_same_whoever_trains_beside_it_and_whatever_it_did_not_draw(detector):
    X, generator = table(), np.random.default_rng(4)
    rows = generator.integers(N, size=(3, N))
    weights, seeds = generator.random((3, N)) + 0.1, [3, 4, 5]
    prepared = trainer_of(detector)._prepare(X)

    def scores(which, w=weights, own=seeds):
        args = rows[which], w[which], own[which]
        return trainer_of(detector)._train(prepared, *args).scores(X)

    together, others = scores(slice(3)), weights.copy()
    for j in range(3):
        np.testing.assert_array_equal(scores(slice(j, j + 1))[0], together[j])
        others[j, np.setdiff1d(np.arange(N), rows[j])] = 9.0
    assert (others == 9.0).sum() > N / 2
    np.testing.assert_array_equal(scores(slice(3), others), together)
    assert (scores(slice(1), own=[8]) != together[0]).mean() > 0.9


def trainer_of(detector):
    return as_trainer(detector, None)


def test_the_lambdas_of_rsrae_reach_its_objective_in_their_order(monkeypatch):
    heard, train, objective = [], rsrae.train_perceptrons, convolutions.rsrae_iadc

    def perceptrons(layers, aims, lessons):
        heard.extend((aim.lambda1, aim.lambda2) for aim in aims)
        return train(layers, aims, lessons)

    def loss(*args):
        heard.append(args[-2:])
        return objective(*args)

    monkeypatch.setattr(rsrae, "train_perceptrons", perceptrons)
    monkeypatch.setattr(convolutions, "rsrae_iadc", loss)
    for X in (table(), images()):
        RSRAE(lambda1=0.25, lambda2=0.5, epochs=1, **SHORT).fit(X)
    assert heard == [(0.25, 0.5)] * (1 + N // 32)


def test_weight_decay_pulls_the_weights_of_a_network_towards_zero():
    sizes = [
        np.abs(detector.fit(table()).members_.decoder.weights[-1]).mean()
        for detector in (AutoEncoder(epochs=20, weight_decay=by, **SHORT) for by in (0.0, 1.0))
    ]
    assert sizes[1] < 0.5 * sizes[0]


def test_given_weights_have_mean_one_over_the_rows_that_count():
    data = np.zeros((4, 2))
    np.testing.assert_allclose(checked_weights([0, 1, 2, 3], data), [0, 0.5, 1, 1.5])
    np.testing.assert_allclose(checked_weights([0, 5e307, 1e308, 1.5e308], data), [0, 0.5, 1, 1.5])
    np.testing.assert_array_equal(checked_weights(None, data), np.ones(4))


def test_rows_without_weight_count_where_the_threshold_is_placed():
    X, heard, train = table(), [], OCSVM._train

    class Spied(OCSVM):
        def _train(self, prepared, rows, weights, seeds):
            heard.append(rows)
            return train(self, prepared, rows, weights, seeds)

    Spied(threshold="fdr", fdr=0.4).fit(X, sample_weight=np.where(ROWS, 0.0, 1.0))
    np.testing.assert_array_equal(heard[0], [np.flatnonzero(~ROWS)])  # but they do not train
    strict, lax = (OCSVM(threshold="fdr", fdr=rate).fit(X**3) for rate in (0.01, 0.9))
    for model in (strict, lax):
        rule = threshold(model.anomaly_score(X**3), "fdr", model.fdr)
        assert (model.threshold_, model.threshold_rule_) == rule
    assert lax.threshold_ < strict.threshold_
    detector = OCSVM().fit(X, sample_weight=np.where(ROWS, 0.0, 1.0))
    scores = detector.anomaly_score(X)
    assert (detector.threshold_, detector.threshold_rule_) == threshold(scores, "knee")
    assert detector.contamination_ == np.mean(scores > detector.threshold_)
    assert detector.portrait_.scores.n == N


def test_landmarks_are_rows_of_weight():
    x = np.random.default_rng(2).normal(size=(400, 2))
    w = np.where(np.arange(400) < 200, 1e-9, 1.0)
    found = ocsvm_landmarks(x, w, 0.5, 0.5, 50, np.random.default_rng(0))
    trusted = {row.tobytes() for row in x[200:]}
    assert all(row.tobytes() in trusted for row in found.vectors)


def test_landmarks_solve_the_weighted_problem():
    generator = np.random.default_rng(3)
    x, w = generator.normal(size=(200, 2)), generator.random(200) ** 4 + 1e-3
    exact = ocsvm_iadc(x, w, 0.5, 0.5).score(x)
    landmarks = ocsvm_landmarks(x, w, 0.5, 0.5, 200, generator).score(x)
    unweighted = ocsvm_iadc(x, np.ones(200), 0.5, 0.5).score(x)
    gap = np.abs(exact - landmarks).max()
    assert gap < 0.02 * np.ptp(exact)
    assert gap < 0.2 * np.abs(exact - unweighted).max()


@pytest.mark.parametrize("detector", [OCSVM(), HybridOCSVM(pretrain_epochs=2, **SHORT)], ids=str)
def test_by_default_half_of_the_rows_lie_outside_of_the_border(detector):
    assert detector.nu == 0.5
    X = np.random.default_rng(4).normal(size=(400, 3))
    outside = float(np.mean(detector.fit(X).anomaly_score(X) > 0))
    assert abs(outside - 0.5) < 0.05


def refined_by_hand(z, error, times, seed):
    """Label the rows, regress on them, and repeat, as the class says."""
    generator = np.random.default_rng(seed)
    chosen, y = first_labels(np.column_stack([z, error]), generator)
    regression = gp_regression(z[chosen], y)
    for _ in range(times):
        chosen, y = refined_labels(regression.mean(z), generator)
        regression = gp_regression(z[chosen], y)
    return regression.mean(z)


@pytest.mark.parametrize("asked", [{}, {"n_refinements": 0}, {"n_refinements": 3}])
def test_dagpr_refines_as_often_as_it_says(asked):
    X, rows, weights, seed = table(), np.arange(N)[None], np.ones((1, N)), 7
    model = DAGPR(hidden=(8, 4), pretrain_epochs=2, **SHORT, **asked)
    model.image_shape_ = None
    prepared = model._prepare(X)
    scores = model._train(prepared, rows, weights, [seed]).scores(X)[0]
    # The same autoencoder once more: a trained model keeps no decoder.
    networks = model._pretrained(prepared, rows, weights, [Twister(seed)], on_sphere=True)
    codes, errors = codes_and_errors(*(net.freeze() for net in networks[:2]), prepared.data)
    gaps = {
        n: np.abs(scores - refined_by_hand(codes[0], errors[0], n, seed)).max()
        for n in (0, 1, 3, 10)
    }
    assert [n for n, gap in gaps.items() if gap < 1e-5] == [asked.get("n_refinements", 1)]


def test_networks_have_the_widths_that_are_documented():
    widths = {d: default_hidden(d) for d in (1, 4, 6, 7, 99, 100)}
    wide, narrow = (128, 64, 32), (32, 16)
    expected = [(*narrow, 1), (*narrow, 3), (*narrow, 4), (*narrow, 6), (*narrow, 8), wide]
    assert list(widths.values()) == expected
    prepared = Prepared(np.zeros((2, 100), np.float32), min_max(np.eye(2)), None)
    assert RSRAE()._hidden(prepared) == (128, 64, 10)
    assert DAGPR()._hidden(prepared) == (128, 64, 32)
    assert RSRAE(hidden=(5, 2))._hidden(prepared) == (5, 2)
    with pytest.raises(ValueError, match="at least two widths"):
        RSRAE(hidden=(5,))._hidden(prepared)
    members = DAGPR(pretrain_epochs=0, random_state=0).fit(images()[:20]).members_
    assert members.codes(images()[:3].reshape(3, -1)).shape == (1, 10, 3)


def test_dagpr_scores_are_high_where_rows_are_odd():
    generator = np.random.default_rng(5)
    X = generator.normal(size=(300, 5))
    X[:15] += 6
    y = (np.arange(300) < 15).astype(int)
    for times in (0, 1, 10):
        model = DAGPR(pretrain_epochs=20, n_refinements=times, random_state=0).fit(X)
        assert auroc(y, model.anomaly_score(X)) > 0.9


def test_scaled_columns_are_what_the_machine_sees():
    X = table() * np.array([1.0, 10.0, 100.0, 1.0, 1.0, 1e4])
    x = min_max(X)(X)
    expected = ocsvm_iadc(x, np.ones(N), 0.5, scale_gamma(x, np.ones(N))).score(x)
    np.testing.assert_allclose(OCSVM().fit(X).anomaly_score(X), expected, atol=1e-6)


@pytest.mark.parametrize("hidden", [(), (4, 0), (4, 2.5), (-1,)])
def test_widths_that_are_none_are_refused(hidden):
    with pytest.raises(ValueError, match="whole numbers of at least 1"):
        AutoEncoder(hidden=hidden, epochs=1).fit(np.random.default_rng(0).random((20, 3)))


def test_images_are_at_least_eight_pixels_a_side():
    for shape in ((1, 7, 8), (1, 8, 7)):
        with pytest.raises(DataError, match="too small for the network"):
            AutoEncoder(epochs=1).fit(np.zeros((9, *shape)))
    with pytest.raises(ValueError, match="leave it None for images"):
        AutoEncoder(epochs=1, hidden=(4,)).fit(np.zeros((9, 1, 8, 8)))
    model = AutoEncoder(epochs=1, hidden=np.array([5, 1]), random_state=0)
    assert model.fit(np.random.default_rng(0).random((20, 3))).losses_
