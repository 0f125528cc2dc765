"""The two protocols on maps whose results can be worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aberra.errors import DataError
from aberra.localise.protocols import anoddpm, standard
from aberra.metrics import auroc, best_dice, dice

OVERLAPS = ("dice", "iou", "precision", "recall")
ORACLES = ("dice_oracle", "dice_oracle_slice")


def lesions(n=12, side=16):
    """Return masks with a square lesion of growing size, the brain around it, and patients."""
    masks = np.zeros((n, side, side), dtype=bool)
    for i in range(n):
        masks[i, 4 : 5 + i // 2, 4:8] = True
    brain = np.zeros_like(masks)
    brain[:, 2:14, 2:14] = True
    return masks, brain, np.repeat([f"P{i}" for i in range(n // 4)], 4)


def noise(masks, seed=0):
    return np.random.default_rng(seed).random(masks.shape)


def both(maps, masks, brain, patients, threshold=0.5):
    return anoddpm(maps, masks), standard(maps, masks, brain, patients, threshold)


def means(found):
    return {name: summary.mean for name, summary in found.metrics.items()}


def test_a_perfect_map_is_perfect_by_every_measure():
    masks, brain, patients = lesions()
    for found in both(masks * 1.0, masks, brain, patients):
        assert set(means(found).values()) == {1.0}
        assert {summary.std for summary in found.metrics.values()} == {0.0}


def test_a_constant_map_knows_nothing():
    masks, brain, patients = lesions()
    silent, loud = np.zeros(masks.shape), np.ones(masks.shape)
    for found in both(silent, masks, brain, patients):
        assert all(found.metrics[name].mean == 0 for name in OVERLAPS)
        assert found.metrics["auroc"].mean == 0.5
    inside = [masks[patients == p].sum() / brain[patients == p].sum() for p in np.unique(patients)]
    published, ours = both(loud, masks, brain, patients)
    for found, expected in ((published, masks.mean(axis=(1, 2))), (ours, inside)):
        assert found.metrics["recall"].mean == 1.0
        np.testing.assert_allclose(found.metrics["precision"].mean, np.mean(expected))
        np.testing.assert_allclose(found.metrics["precision"].std, np.std(expected))
        assert found.threshold_oracle == -math.inf  # no threshold but all or nothing


def test_a_random_map_ranks_by_chance():
    masks, brain, patients = lesions(n=40, side=32)
    for found in both(noise(masks), masks, brain, patients):
        assert abs(found.metrics["auroc"].mean - 0.5) < 0.03
        np.testing.assert_allclose(found.metrics["recall"].mean, 0.5, atol=0.05)


def test_anoddpm_on_a_written_example_has_precision_and_recall_the_right_way_round():
    maps = [[[0.9, 0.6], [0.1, 0.0]], [[0.8, 0.5], [0.7, 0.2]]]  # 0.5 itself is not flagged
    masks = [[[1, 0], [0, 0]], [[1, 1], [0, 1]]]
    found = anoddpm(maps, masks)
    assert found.units["precision"].tolist() == [1 / 2, 1 / 2]
    assert found.units["recall"].tolist() == [1.0, 1 / 3]
    np.testing.assert_allclose(found.units["dice"], [2 / 3, 2 / 5])
    np.testing.assert_allclose(found.units["iou"], [1 / 2, 1 / 4])
    np.testing.assert_allclose(found.units["auroc"], [1.0, 1 / 3])
    assert found.metrics["recall"].mean == pytest.approx(2 / 3)
    assert found.metrics["recall"].std == pytest.approx(1 / 3)  # of the population
    # One threshold: 0.7 gives the slices 1 and 1/2, 0.1 gives 2/3 and 6/7, which is a little more,
    # and -inf gives 2/5 and 6/7. Each its own: 1 and 6/7.
    assert found.threshold_oracle == 0.1
    assert found.metrics["dice_oracle"].mean == pytest.approx((2 / 3 + 6 / 7) / 2)
    assert found.metrics["dice_oracle_slice"].mean == pytest.approx((1 + 6 / 7) / 2)


def test_standard_counts_the_brain_only_and_pools_each_patient():
    maps = np.array([[[0.9, 0.9], [0.1, 0.9]], [[0.9, 0.1], [0.1, 0.1]], [[0.1, 0.9], [0.1, 0.1]]])
    masks = np.array([[[1, 1], [0, 0]], [[1, 0], [1, 0]], [[1, 0], [0, 0]]], dtype=bool)
    brain = np.array([[[1, 0], [1, 1]], [[1, 1], [1, 1]], [[1, 1], [1, 1]]], dtype=bool)
    found = standard(maps, masks, brain, ["B", "B", "A"], 0.5)
    assert found.units.index.tolist() == ["A", "B"]
    # B: 2 hits, 1 miss and 1 false alarm in its two slices; A: 1 miss and 1 false alarm.
    np.testing.assert_allclose(found.units["dice"], [0, 2 / 3])
    np.testing.assert_allclose(found.units["iou"], [0, 1 / 2])
    assert found.units["lesion"].tolist() == [1, 3]
    assert found.units["lesion_outside"].tolist() == [0, 1]
    assert found.metrics["dice"].mean == pytest.approx(1 / 3)
    assert found.metrics["dice"].n == 2
    assert found.false_alarms == {}


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1))
def test_oracles_are_the_best_of_their_kind(seed):
    rng = np.random.default_rng(seed)
    masks = rng.random((4, 3, 3)) < 0.4
    masks[:, 1, 1] = True
    maps = rng.integers(0, 5, size=masks.shape) / 4
    found = anoddpm(maps, masks)
    common = [
        np.mean([dice(m, s > t) for m, s in zip(masks, maps, strict=True)])
        for t in [*np.unique(maps), -math.inf]
    ]
    np.testing.assert_allclose(found.metrics["dice_oracle"].mean, max(common))
    own = [best_dice(m, s)[0] for m, s in zip(masks, maps, strict=True)]
    np.testing.assert_allclose(found.metrics["dice_oracle_slice"].mean, np.mean(own))
    d, one, each = (found.metrics[name].mean for name in ("dice", *ORACLES))
    assert d <= one + 1e-9
    assert one <= each + 1e-9


def test_bounds_of_a_table_hold_for_the_means():
    masks, brain, patients = lesions()
    for found in both(noise(masks), masks, brain, patients, threshold=0.9):
        m = means(found)
        assert m["iou"] <= min(m["precision"], m["recall"])
        assert m["dice"] <= (m["precision"] + m["recall"]) / 2


def test_every_metric_has_its_values_in_the_table_of_the_units():
    masks, brain, patients = lesions()
    for found in both(noise(masks), masks, brain, patients):
        for name, summary in found.metrics.items():
            if name != "dice_oracle_slice":  # of slices, in the one protocol whose unit is another
                np.testing.assert_allclose(summary.mean, found.units[name].mean())
                np.testing.assert_allclose(summary.std, found.units[name].std(ddof=0))


def test_order_of_the_slices_does_not_matter():
    masks, brain, patients = lesions()
    maps, order = noise(masks), np.random.default_rng(1).permutation(len(masks))
    here = both(maps, masks, brain, patients)
    there = both(maps[order], masks[order], brain[order], patients[order])
    for a, b in zip(here, there, strict=True):
        assert means(a) == pytest.approx(means(b))
        assert a.threshold_oracle == b.threshold_oracle


def test_slices_without_lesion_have_no_auroc_and_no_oracle_of_their_own():
    masks, brain, patients = lesions()
    masks[:4] = False
    maps = noise(masks)
    published, ours = both(maps, masks, brain, patients)
    assert (published.metrics["auroc"].n, published.metrics["dice"].n) == (8, 12)
    assert (ours.metrics["auroc"].n, ours.metrics["average_precision"].n) == (2, 2)
    assert ours.metrics["dice"].n == 3
    for found in (published, ours):
        assert found.metrics["dice_oracle_slice"].n == 8


def test_without_any_lesion_there_is_nothing_to_rank():
    masks, brain, patients = lesions()
    found = standard(noise(masks), np.zeros_like(masks), brain, patients, 2.0)
    assert math.isnan(found.metrics["auroc"].mean)
    assert found.metrics["auroc"].n == 0
    assert found.metrics["dice"].mean == 1.0  # nothing there, nothing flagged
    assert found.by_size.empty


def test_sizes_are_terciles_of_the_lesion_area():
    masks, brain, patients = lesions()
    maps = noise(masks)
    found = standard(maps, masks, brain, patients, 0.5).by_size
    assert found.index.tolist() == ["small", "medium", "large"]
    assert found["n"].tolist() == [4, 4, 4]
    assert found["area_min"].tolist() == [4, 12, 20]
    assert found["area_max"].tolist() == [8, 16, 24]
    few = range(4)  # the smallest lesions come first
    assert found["dice"].iloc[0] == pytest.approx(
        np.mean([dice(masks[i][brain[i]], maps[i][brain[i]] > 0.5) for i in few])
    )
    assert found["auroc"].iloc[0] == pytest.approx(
        np.mean([auroc(masks[i][brain[i]], maps[i][brain[i]]) for i in few])
    )


def test_terciles_count_each_slice_though_areas_repeat():
    areas = (1, 1, 1, 1, 10, 20)
    masks = np.stack([np.arange(36).reshape(6, 6) < area for area in areas])
    found = standard(noise(masks), masks, np.ones_like(masks), ["A"] * 6, 0.5).by_size
    assert found["n"].to_dict() == {"small": 4, "large": 2}  # the quantiles of the areas: 1 and 4
    assert found["area_min"].to_dict() == {"small": 1, "large": 10}


def test_no_oracle_looks_outside_the_brain():
    masks = np.zeros((1, 4, 4), bool)
    masks[0, 1:3, 1:3] = True
    brain = np.ones_like(masks)
    brain[0, 3] = False
    maps = 0.5 * masks
    maps[0, 3] = 0.9  # higher than the lesion
    found = standard(maps, masks, brain, ["A"], 0.25)
    for name in ("dice", "dice_oracle", "dice_oracle_slice"):
        assert found.metrics[name].mean == 1.0


def test_lesions_of_one_size_are_not_split():
    masks, brain, patients = lesions()
    masks[:] = masks[-1]
    found = standard(noise(masks), masks, brain, patients, 0.5).by_size
    assert found["n"].tolist() == [12]


def test_false_alarms_on_healthy_slices_are_counted():
    masks, brain, patients = lesions()
    healthy, inside = np.zeros((4, 5, 5)), np.zeros((4, 5, 5), dtype=bool)
    inside[:, :, :4] = True  # 20 pixels a slice
    healthy[0, 0, :3] = 1.0
    healthy[1, 2, 2] = 1.0
    healthy[2, 4, 4] = 1.0  # outside the brain
    healthy[3, 0, 0] = 0.5  # at the threshold, not above it
    found = standard(noise(masks), masks, brain, patients, 0.5, healthy, inside)
    assert found.false_alarms == {"pixels": 4 / 80, "slices": 2 / 4}


def test_healthy_maps_and_brains_come_together():
    masks, brain, patients = lesions()
    with pytest.raises(ValueError, match="together"):
        standard(noise(masks), masks, brain, patients, 0.5, healthy_maps=noise(masks))
    with pytest.raises(DataError, match="healthy_brain is empty"):
        standard(noise(masks), masks, brain, patients, 0.5, noise(masks), np.zeros_like(brain))


def test_shapes_that_differ_are_named():
    masks, brain, patients = lesions()
    maps = noise(masks)
    with pytest.raises(DataError, match=r"maps has shape \(12, 16, 16\), masks.*\(11, 16, 16\)"):
        anoddpm(maps, masks[1:])
    with pytest.raises(DataError, match=r"brain has shape \(12, 16, 15\)"):
        standard(maps, masks, brain[..., 1:], patients, 0.5)
    with pytest.raises(DataError, match=r"patients has shape \(11,\)"):
        standard(maps, masks, brain, patients[1:], 0.5)
    with pytest.raises(DataError, match=r"healthy_maps has shape \(12, 16, 16\), healthy_brain"):
        standard(maps, masks, brain, patients, 0.5, maps, brain[1:])
    with pytest.raises(DataError, match=r"maps has shape \(16, 16\)"):
        anoddpm(maps[0], masks[0])
    with pytest.raises(DataError, match=r"maps has shape \(0, 16, 16\)"):
        anoddpm(maps[:0], masks[:0])


def test_values_that_mean_nothing_are_refused():
    masks, brain, patients = lesions()
    maps = noise(masks)
    with pytest.raises(DataError, match="masks holds values other than 0 and 1"):
        anoddpm(maps, masks * 0.3)
    with pytest.raises(ValueError, match="threshold"):
        standard(maps, masks, brain, patients, math.nan)
    with pytest.raises(DataError, match="empty in every slice of patient P0"):
        standard(maps, masks, brain & (patients != "P0")[:, None, None], patients, 0.5)
    maps[3, 0, 0] = math.nan
    with pytest.raises(DataError, match=r"maps is not finite in slices \[3\]"):
        anoddpm(maps, masks)


def test_inputs_are_left_as_they_were():
    masks, brain, patients = lesions()
    maps = noise(masks)
    for array in (maps, masks, brain, patients):
        array.setflags(write=False)
    both(maps, masks, brain, patients)
