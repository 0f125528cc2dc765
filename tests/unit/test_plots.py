"""The pictures for notebooks and documents draw what explain has counted."""

import numpy as np
import pytest

from aberra import IADC, OCSVM
from aberra.plots import plot_scores, plot_trust

pytest.importorskip("matplotlib")


def test_trust_is_drawn_as_bands_with_the_round_kept(dirty_blob):
    X, y = dirty_blob
    model = IADC(OCSVM(), n_members=2, max_rounds=20, random_state=0).fit(X)
    ax = plot_trust(model, y)
    trust = np.stack([model.history_.weights(t) for t in range(len(model.history_))])
    normal, odd, kept = ax.get_lines()
    np.testing.assert_allclose(normal.get_ydata(), np.median(trust[:, y == 0], axis=1))
    np.testing.assert_allclose(odd.get_ydata(), np.median(trust[:, y == 1], axis=1))
    assert kept.get_xdata()[0] == model.history_.kept + 1
    assert len(ax.collections) == 2
    assert len(plot_trust(model).get_lines()) == 2  # one band, and the round kept


@pytest.mark.parametrize("far", [5.0, 1e4])
def test_scores_are_drawn_with_their_threshold(far):
    scores = np.append(np.linspace(0, 1, 200), far)
    ax = plot_scores(scores, 0.9, np.arange(201) == 200)
    assert ax.get_lines()[0].get_xdata()[0] == 0.9
    normal, odd = (patch.get_data() for patch in ax.patches)
    assert (normal.values.sum(), odd.values.sum()) == (200, 1)
    above = normal.edges[:-1] >= 0.9
    assert normal.values[above].sum() == (scores[:200] > 0.9).sum()
    ax.figure.canvas.draw()  # ticks and scale fit each other
