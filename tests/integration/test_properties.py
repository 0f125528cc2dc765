"""Properties that hold for any data, searched for counter-examples."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone

from aberra import ADC, IADC, OCSVM, AutoEncoder, MultiView
from aberra.robust.weighting import importance_weights

few = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
tables = hnp.arrays(
    np.float64,
    st.tuples(st.integers(8, 60), st.integers(1, 5)),
    elements=st.floats(-1e6, 1e6, allow_subnormal=False),
)
DETERMINISTIC = [OCSVM()]
SEEDED = [
    MultiView(random_state=0),
    AutoEncoder(hidden=(4, 2), epochs=2, random_state=0),
    ADC(OCSVM(), n_members=2, random_state=0),
    IADC(n_members=2, max_rounds=2, random_state=0),
]
pytestmark = [
    pytest.mark.filterwarnings("ignore::aberra.errors.RoundsExhaustedWarning"),
    pytest.mark.filterwarnings("ignore::aberra.errors.CollapseWarning"),
]


def name(model):
    return type(model).__name__


@pytest.mark.slow
@pytest.mark.parametrize("model", SEEDED, ids=name)
@few
@given(X=tables, data=st.data())
def test_a_row_scores_the_same_in_any_company(model, X, data):
    fitted = clone(model).fit(X)
    together = fitted.anomaly_score(X)
    chosen = data.draw(st.lists(st.integers(0, len(X) - 1), min_size=1, max_size=10))
    np.testing.assert_array_equal(fitted.anomaly_score(X[chosen]), together[chosen])


@pytest.mark.slow
@pytest.mark.parametrize("model", SEEDED, ids=name)
@few
@given(X=tables)
def test_refitting_gives_the_same_bytes_and_disturbs_no_generator(model, X):
    state = np.random.get_state()[1].tobytes()
    one = clone(model)
    first = one.fit(X).anomaly_score(X).tobytes()
    assert one.fit(X).anomaly_score(X).tobytes() == first
    assert clone(model).fit(X).anomaly_score(X).tobytes() == first
    assert np.random.get_state()[1].tobytes() == state


@pytest.mark.parametrize("model", DETERMINISTIC, ids=name)
@few
@given(
    X=hnp.arrays(
        np.float64,
        st.tuples(st.integers(8, 60), st.integers(1, 4)),
        elements=st.integers(-50, 50).map(float),
    ),
    seed=st.integers(0, 100),
)
def test_order_of_the_training_rows_does_not_matter(model, X, seed):
    order = np.random.default_rng(seed).permutation(len(X))
    first = clone(model).fit(X).anomaly_score(X)
    second = clone(model).fit(X[order]).anomaly_score(X)
    np.testing.assert_allclose(first, second, rtol=1e-3, atol=2e-3)


@pytest.mark.parametrize("model", DETERMINISTIC, ids=name)
@few
@given(seed=st.integers(0, 100))
def test_columns_are_known_by_name_not_by_place(model, seed):
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(generator.normal(size=(50, 4)), columns=list("abcd"))
    fitted = clone(model).fit(frame)
    shuffled = frame[list(generator.permutation(list("abcd")))]
    if list(shuffled.columns) != list("abcd"):
        with pytest.raises(ValueError, match="same order"):
            fitted.anomaly_score(shuffled)
    by_name = fitted.anomaly_score(shuffled[fitted.feature_names_in_])
    np.testing.assert_array_equal(by_name, fitted.anomaly_score(frame))
    refitted = clone(model).fit(shuffled).anomaly_score(shuffled)
    np.testing.assert_allclose(refitted, by_name, rtol=1e-4, atol=1e-4)


@few
@given(
    s=hnp.arrays(np.float64, st.integers(3, 50), elements=st.floats(-1e3, 1e3)),
    scale=st.floats(1e-3, 1e3),
    shift=st.floats(-1e3, 1e3),
)
def test_affine_change_of_scores_leaves_the_order_of_trust(s, scale, shift):
    w = importance_weights(s)
    moved = importance_weights(scale * s + shift)
    spread = np.ptp(s)
    if spread > 1e-3:  # closer scores vanish in the rounding of the shift
        order = np.argsort(s, kind="stable")
        assert (np.diff(moved[order]) <= 1e-9).all()
        assert (np.diff(w[order]) <= 0).all()
