"""Other people's detectors as members: scikit-learn's, pipelines, PyOD's."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from aberra import ADC, IADC
from aberra.detectors.foreign import ForeignTrainer, thinned
from aberra.errors import ArgumentError, CollapseWarning, DataError, DivergenceError

SCIKIT_LEARN = [
    IsolationForest(n_estimators=20),
    LocalOutlierFactor(novelty=True),
    EllipticEnvelope(),
    OneClassSVM(),
    make_pipeline(StandardScaler(), LocalOutlierFactor(n_neighbors=30, novelty=True)),
    make_pipeline(StandardScaler(), IsolationForest(n_estimators=20)),
]

PYOD = {
    "abod": "ABOD",
    "cblof": "CBLOF",
    "copod": "COPOD",
    "ecod": "ECOD",
    "gmm": "GMM",
    "hbos": "HBOS",
    "iforest": "IForest",
    "inne": "INNE",
    "kde": "KDE",
    "knn": "KNN",
    "loda": "LODA",
    "lof": "LOF",
    "mcd": "MCD",
    "ocsvm": "OCSVM",
    "pca": "PCA",
    "sampling": "Sampling",
}


def check_finds_the_odd_rows(detector, dirty_blob):
    X, y = dirty_blob
    model = IADC(detector, n_members=3, max_rounds=3, random_state=0).fit(X)
    assert roc_auc_score(y, model.anomaly_score(X)) > 0.9
    assert model.weights_[y == 1].mean() < model.weights_[y == 0].mean()
    again = IADC(detector, n_members=3, max_rounds=1, random_state=0).fit(X)
    np.testing.assert_array_equal(model.history_[0].scores, again.history_[0].scores)


@pytest.mark.filterwarnings("ignore::aberra.errors.RoundsExhaustedWarning")
@pytest.mark.parametrize("detector", SCIKIT_LEARN, ids=str)
def test_scikit_learn_detectors(detector, dirty_blob):
    check_finds_the_odd_rows(detector, dirty_blob)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # PyOD's own
@pytest.mark.parametrize("module", PYOD)
def test_pyod_detectors(module, dirty_blob):
    models = pytest.importorskip(f"pyod.models.{module}")
    check_finds_the_odd_rows(getattr(models, PYOD[module])(), dirty_blob)


def test_detectors_that_compare_rows_see_them_all_at_once(dirty_blob):
    ecod = pytest.importorskip("pyod.models.ecod")
    X, _ = dirty_blob
    plain = ecod.ECOD().fit(X)
    member = ADC(ecod.ECOD(), n_members=1, resample=False).fit(X)
    np.testing.assert_allclose(member.anomaly_score(X), plain.decision_function(X))


def test_sample_weight_goes_to_those_who_take_it():
    assert ForeignTrainer(OneClassSVM()).weight_argument == "sample_weight"
    assert ForeignTrainer(LocalOutlierFactor(novelty=True)).weight_argument is None
    pipeline = make_pipeline(StandardScaler(), OneClassSVM())
    assert ForeignTrainer(pipeline).weight_argument == "oneclasssvm__sample_weight"


def test_of_too_few_rows_the_two_of_most_weight_are_kept():
    weights = np.array([0.0, 1.0, 1e-9, 0.5, 1e-9])
    for drawn, expected in (([1], [1, 3]), ([0, 1, 2, 4], [1, 3]), ([2, 4, 2], [2, 4])):
        kept = thinned(np.array(drawn), weights, np.random.default_rng(0))
        assert kept.tolist() == expected
    two = thinned(np.array([3, 3, 3, 2]), np.array([0.1, 0.9, 1.0, 1.0]), np.random.default_rng(0))
    assert two.tolist() == [2, 3]  # two are enough, whatever others weigh


def test_thinning_keeps_rows_by_their_weight():
    weights = np.repeat([1.0, 0.25, 0.0], 4000)
    kept = thinned(np.arange(12000), weights, np.random.default_rng(0))
    counts = np.bincount(kept // 4000, minlength=3)
    assert counts[0] == 4000
    assert abs(counts[1] - 1000) < 120
    assert counts[2] == 0


class NoParameters:
    """A detector that was written without scikit-learn in mind."""

    def fit(self, X, y=None):
        return self

    def decision_function(self, X):
        return np.zeros(len(X))


@pytest.mark.parametrize("ensemble", [ADC, IADC])
def test_what_cannot_be_copied_is_told_how_to_become_a_detector(ensemble, dirty_blob):
    with pytest.raises(ArgumentError, match=r"NoParameters has no get_params, .*BaseEstimator"):
        ensemble(NoParameters()).fit(dirty_blob[0])
    with pytest.raises(ArgumentError, match=r"is the class OneClassSVM, .* OneClassSVM\(\)"):
        ensemble(OneClassSVM).fit(dirty_blob[0])


def test_detector_that_cannot_score_new_rows_says_what_to_do(dirty_blob):
    with pytest.raises(TypeError, match="novelty=True"):
        ADC(LocalOutlierFactor()).fit(dirty_blob[0])


@pytest.mark.parametrize(
    ("learner", "kind"),
    [(LogisticRegression(), "classifier"), (make_pipeline(StandardScaler(), Ridge()), "regressor")],
)
def test_what_learns_from_labels_is_refused_in_words(learner, kind, dirty_blob):
    with pytest.raises(ArgumentError, match=f"is a {kind}, which learns from labels"):
        IADC(learner).fit(dirty_blob[0])


def test_images_are_refused_by_detectors_for_tables():
    with pytest.raises(DataError, match="Flatten"):
        ADC(IsolationForest()).fit(np.zeros((4, 1, 8, 8)))


class Fixed(OutlierMixin, BaseEstimator):
    """Gives the first row a score of its own and all others zero."""

    def __init__(self, first=0.0):
        self.first = first

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def score_samples(self, X):
        return np.append(-self.first, np.zeros(len(X) - 1))


@pytest.mark.parametrize("first", [np.inf, np.nan])
@pytest.mark.parametrize("detector", [Fixed, lambda first: make_pipeline(Fixed(first))])
@pytest.mark.parametrize("ensemble", [ADC, IADC])
def test_scores_that_are_not_finite_are_laid_to_the_detector(dirty_blob, detector, first, ensemble):
    words = r"^Fixed returned scores that are not finite\."
    with pytest.raises(DivergenceError, match=words) as error:
        ensemble(detector(first), n_members=2, random_state=0).fit(dirty_blob[0])
    assert "learning rate" not in str(error.value)


def test_equal_scores_are_laid_to_the_detector(dirty_blob):
    with pytest.warns(CollapseWarning, match="same score.*They come from Fixed") as caught:
        ADC(Fixed(), n_members=2, random_state=0).fit(dirty_blob[0])
    assert "network" not in str(caught[0].message)
