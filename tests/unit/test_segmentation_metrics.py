"""Overlap of masks: closed forms, bounds that always hold, and a slow twin of the oracle."""

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import jaccard_score, precision_recall_fscore_support, roc_auc_score

from aberra.errors import DataError
from aberra.metrics import (
    auroc,
    average_precision,
    best_dice,
    dice,
    dice_curve,
    iou,
    precision,
    recall,
)

OVERLAPS = [dice, iou, precision, recall]
pairs_of_flags = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=30)
labelled_scores = st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=1, max_size=30)


def columns(pairs):
    return np.array([a for a, _ in pairs], dtype=bool), np.array([b for _, b in pairs])


def test_overlap_of_a_written_example():
    mask = np.array([[1, 1, 1], [1, 0, 0]], dtype=bool)
    predicted = np.array([[0, 1, 1], [0, 0, 1]], dtype=bool)  # 2 hits, 2 misses, 1 false alarm
    assert precision(mask, predicted) == 2 / 3
    assert recall(mask, predicted) == 2 / 4
    assert dice(mask, predicted) == 4 / 7
    assert iou(mask, predicted) == 2 / 5


@pytest.mark.parametrize("measure", OVERLAPS)
def test_empty_masks(measure):
    nothing, something = np.zeros((2, 2), dtype=bool), np.eye(2, dtype=bool)
    assert measure(nothing, nothing) == 1.0
    assert measure(nothing, something) == 0.0
    assert measure(something, nothing) == 0.0
    assert measure(something, something) == 1.0
    assert isinstance(measure(something, something), float)


@given(pairs_of_flags)
def test_bounds_that_every_table_must_keep(pairs):
    mask, predicted = columns(pairs)
    d, j, p, r = (measure(mask, predicted) for measure in OVERLAPS)
    assert j <= min(p, r) + 1e-12
    assert d <= (p + r) / 2 + 1e-12
    np.testing.assert_allclose(d, 2 * j / (1 + j))
    assert 0 <= j <= d <= 1


@given(pairs_of_flags)
def test_dice_and_iou_are_symmetric_and_precision_is_recall_the_other_way_round(pairs):
    mask, predicted = columns(pairs)
    assert dice(mask, predicted) == dice(predicted, mask)
    assert iou(mask, predicted) == iou(predicted, mask)
    assert precision(mask, predicted) == recall(predicted, mask)


@pytest.mark.slow
@given(pairs_of_flags.filter(lambda pairs: any(a for a, _ in pairs) and any(b for _, b in pairs)))
def test_overlap_is_that_of_scikit_learn(pairs):
    mask, predicted = columns(pairs)
    p, r, f, _ = precision_recall_fscore_support(mask, predicted, average="binary")
    found = [measure(mask, predicted) for measure in OVERLAPS]
    np.testing.assert_allclose(found, [f, jaccard_score(mask, predicted), p, r])


def slow_best_dice(mask, scores):
    """Try every score, and one threshold below them all."""
    thresholds = [*sorted(set(scores.tolist()), reverse=True), -math.inf]
    found = [(dice(mask, scores > t), t) for t in thresholds]
    return max(found, key=lambda pair: pair[0])  # the first, so the highest, of the best


@given(labelled_scores)
def test_best_dice_is_the_best_of_all_thresholds(pairs):
    mask, scores = columns(pairs)
    assert best_dice(mask, scores) == pytest.approx(slow_best_dice(mask, scores))


@given(labelled_scores)
def test_dice_curve_has_the_dice_of_each_threshold(pairs):
    mask, scores = columns(pairs)
    thresholds, curve = dice_curve(mask, scores)
    assert thresholds.tolist() == [*sorted(set(scores.tolist()), reverse=True), -math.inf]
    np.testing.assert_allclose(curve, [dice(mask, scores > t) for t in thresholds])


@given(labelled_scores, st.randoms(use_true_random=False))
def test_order_of_the_pixels_does_not_matter(pairs, random):
    mask, scores = columns(pairs)
    order = np.array(random.sample(range(len(mask)), len(mask)))
    assert best_dice(mask[order], scores[order]) == best_dice(mask, scores)
    for measure in OVERLAPS:
        assert measure(mask[order], scores[order] > 0) == measure(mask, scores > 0)
    np.testing.assert_equal(auroc(mask[order], scores[order]), auroc(mask, scores))


def test_best_dice_at_the_ends():
    assert best_dice([0, 0, 0], [1.0, 3.0, 2.0]) == (1.0, 3.0)  # nothing to find: flag nothing
    assert best_dice([1, 1, 0], [0.0, 0.0, 0.0]) == (0.8, -math.inf)  # no choice but all
    assert best_dice([], []) == (1.0, -math.inf)


def test_threshold_of_best_dice_gives_its_dice_on_single_precision():
    rng = np.random.default_rng(0)
    scores = rng.random((40, 40), dtype=np.float32)
    mask = scores + rng.normal(0, 0.2, scores.shape) > 0.8
    value, threshold = best_dice(mask, scores)
    assert dice(mask, scores > threshold) == value


def test_rankings_take_maps_of_any_shape():
    rng = np.random.default_rng(1)
    mask, scores = rng.random((3, 4, 5)) < 0.3, rng.random((3, 4, 5))
    assert auroc(mask, scores) == auroc(mask.ravel(), scores.ravel())
    assert average_precision(mask, scores) == average_precision(mask.ravel(), scores.ravel())
    np.testing.assert_allclose(auroc(mask, scores), roc_auc_score(mask.ravel(), scores.ravel()))


def test_rankings_without_a_value_are_nan():
    assert math.isnan(average_precision([0, 0], [1.0, 2.0]))
    assert math.isnan(auroc([0, 1], [math.nan, 2.0]))


@pytest.mark.parametrize("measure", [*OVERLAPS, best_dice, auroc, average_precision])
def test_shapes_that_numpy_would_stretch_are_refused(measure):
    with pytest.raises(DataError, match=r"\(3, 1\).*\(3,\)"):
        measure([[1], [0], [1]], [1, 0, 1])


def test_rankings_of_a_whole_test_set_are_fast():
    rng = np.random.default_rng(2)
    mask, scores = rng.random((88, 64, 64)) < 0.03, rng.random((88, 64, 64))
    start = time.process_time()
    auroc(mask, scores)
    best_dice(mask, scores)
    assert time.process_time() - start < 1  # about 0.1 on one core
