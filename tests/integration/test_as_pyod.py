"""What PyOD asks of its own detectors, asked of ours in PyOD's clothes."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

pytest.importorskip("pyod")

from pyod.models.base import BaseDetector
from pyod.utils.utility import standardizer

from aberra import OCSVM, MultiView, as_pyod
from aberra.robust.iadc import IADC


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(180, 3)), rng.uniform(-8, 8, size=(20, 3))])
    return X[::2], X[1::2], np.repeat([0, 1], [90, 10])


@pytest.fixture(scope="module")
def found(data):
    return as_pyod(MultiView(random_state=0), contamination=0.1).fit(data[0])


def test_attributes_and_scores(found, data):
    train, test, y = data
    assert isinstance(found, BaseDetector)
    assert found.decision_scores_.shape == found.labels_.shape == (100,)
    assert found.labels_.sum() == 10
    np.testing.assert_array_equal(found.labels_, found.predict(train))
    np.testing.assert_array_equal(found.decision_function(train), found.decision_scores_)
    assert roc_auc_score(y, found.decision_function(test)) > 0.9


@pytest.mark.parametrize("method", ["linear", "unify"])
def test_probabilities_and_confidence(found, data, method):
    chances = found.predict_proba(data[1], method=method)
    assert chances.shape == (100, 2)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    labels, confidence = found.predict(data[1], return_confidence=True)
    assert ((confidence >= 0) & (confidence <= 1)).all()
    assert set(labels) <= {0, 1}


def test_clones_refits_and_combines(found, data):
    again = clone(found).fit(data[0])
    np.testing.assert_array_equal(again.decision_scores_, found.decision_scores_)
    assert isinstance(as_pyod().fit(data[0]).model_, IADC)
    scores = [
        as_pyod(one).fit(data[0]).decision_function(data[1]) for one in (OCSVM(), OCSVM(nu=0.2))
    ]
    assert standardizer(np.stack(scores, axis=1)).shape == (100, 2)
    with pytest.raises(ValueError, match="contamination"):
        as_pyod(contamination=0.9)
    with pytest.raises(ValueError, match="features"):
        found.decision_function(data[1][:, :2])
