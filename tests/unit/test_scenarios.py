"""Contamination made on purpose: the share, the place, the seed, and nothing else touched."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage

from aberra.data.scenarios import EVERYDAY, contaminate, everyday_dirt, paste_lesions
from aberra.errors import DataError


def rng(seed=0):
    return np.random.default_rng(seed)


def heads(n=6, side=64, dtype=np.float32, top=1.0):
    """Return slices with an elliptic brain of two tissues inside a skull, and the brain masks."""
    rows, columns = np.mgrid[-1 : 1 : side * 1j, -1 : 1 : side * 1j]
    distance = np.hypot(rows / 0.8, columns / 0.65)
    brain = np.repeat((distance < 0.85)[None], n, axis=0)
    folds = 0.55 + 0.1 * np.sign(np.sin(9 * rows) * np.sin(9 * columns))
    head = np.where(distance < 0.85, folds, np.where(distance < 1, 1.0, 0.0))
    grain = rng(99).normal(0, 0.02, size=(n, side, side)) * brain
    return (np.clip(head + grain, 0, 1) * top).astype(dtype), brain


@given(
    st.integers(1, 60),
    st.floats(0, 0.9),
    st.integers(0, 2**32 - 1),
)
def test_contaminated_share_is_met_to_half_a_row(n, share, seed):
    normal, odd = np.arange(n), -1 - np.arange(1000)
    X, y = contaminate(normal, odd, share, rng(seed))
    assert sorted(X[~y]) == list(range(n))  # every normal row, once
    assert len(set(X[y])) == y.sum()  # no anomaly twice
    assert (X[y] < 0).all()
    wanted = share * len(X)
    assert abs(y.sum() - wanted) <= 0.5 + 1e-9


@pytest.mark.parametrize(
    ("share", "n_odd"), [(0.0, 0), (0.1, 10), (0.2, 90 * 0.25 + 0.5), (0.5, 90)]
)
def test_contaminated_numbers_are_rounded_with_halves_up(share, n_odd):
    _, y = contaminate(np.zeros((90, 3)), np.ones((90, 3)), share, rng())
    assert y.sum() == int(n_odd)


def test_contamination_is_shuffled_and_keeps_shape_and_type():
    normal, odd = np.zeros((40, 1, 4, 4), np.uint8), np.ones((40, 1, 4, 4), np.uint8)
    X, y = contaminate(normal, odd, 0.5, rng())
    assert (X.shape, X.dtype) == ((80, 1, 4, 4), np.uint8)
    np.testing.assert_array_equal(X[:, 0, 0, 0], y)
    assert 5 < y[:40].sum() < 35


def test_contaminate_says_what_it_lacks():
    with pytest.raises(DataError, match="takes 30 anomalous rows, but there are 29"):
        contaminate(np.zeros((30, 2)), np.ones((29, 2)), 0.5, rng())
    with pytest.raises(DataError, match=r"normal has shape \(3, 2\), anomalous has shape \(3, 4\)"):
        contaminate(np.zeros((3, 2)), np.ones((3, 4)), 0.1, rng())
    with pytest.raises(ValueError, match="share"):
        contaminate(np.zeros((3, 2)), np.ones((3, 2)), 1.0, rng())


@pytest.mark.parametrize("share", [0.0, 0.05, 0.1, 0.25, 1.0])
def test_share_of_dirty_slices_is_exact(share):
    images, brain = heads(20)
    dirty, masks, flags = paste_lesions(images, brain, share, rng())
    assert flags.sum() == round(20 * share)
    np.testing.assert_array_equal(masks.any(axis=(1, 2)), flags)
    np.testing.assert_array_equal((dirty != images).any(axis=(1, 2)), flags)


@pytest.mark.parametrize("side", [16, 64, 128])
@pytest.mark.parametrize("seed", range(5))
def test_lesions_are_connected_lie_in_the_brain_and_change_nothing_else(side, seed):
    images, brain = heads(10, side)
    dirty, masks, _ = paste_lesions(images, brain, 1.0, rng(seed))
    assert not (masks & ~brain).any()
    assert [ndimage.label(mask)[1] for mask in masks] == [1] * 10
    soft = np.stack([ndimage.distance_transform_edt(~mask) <= side / 32 + 0.5 for mask in masks])
    np.testing.assert_array_equal(dirty[~(soft & brain)], images[~(soft & brain)])
    changed = np.abs(dirty.astype(float) - images)
    assert (changed[masks] > 0).mean() > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("side", [64, 128])
def test_area_follows_the_brain(side):
    images, brain = heads(60, side)
    _, masks, _ = paste_lesions(images, brain, 1.0, rng())
    share = masks.sum(axis=(1, 2)) / brain.sum(axis=(1, 2))
    assert share.max() <= 0.08 + 1e-3
    assert 0.03 < np.median(share) < 0.05
    _, masks, _ = paste_lesions(images, brain, 1.0, rng(), area=(0.2, 0.2))
    share = masks.sum(axis=(1, 2)) / brain.sum(axis=(1, 2))
    assert share.min() > 0.1
    assert share.max() < 0.201


def contrast(dirty, images, masks):
    """Return the brightness of each lesion over that of the tissue it took the place of."""
    return np.array(
        [d[m].mean() / i[m].mean() for d, i, m in zip(dirty, images, masks, strict=True)]
    )


def test_lesions_are_darker_unless_wanted_bright():
    images, brain = heads(60)
    dirty, masks, _ = paste_lesions(images, brain, 1.0, rng())
    darker = contrast(dirty, images, masks) < 1
    assert 0.7 < darker.mean() < 0.97
    dirty, masks, _ = paste_lesions(images, brain, 1.0, rng(), brighter=1.0)
    assert (contrast(dirty, images, masks) > 1.05).mean() > 0.9


def test_where_there_is_no_room_above_lesions_are_dark():
    _, brain = heads(60)
    images = brain * 1.0  # all tissue at the top of the scale
    dirty, masks, _ = paste_lesions(images, brain, 1.0, rng(), brighter=1.0)
    assert (contrast(dirty, images, masks) < 0.95).all()


def test_values_stay_in_the_range_of_their_slice():
    images, brain = heads(20)
    images = images * np.linspace(0.5, 3, 20, dtype=np.float32)[:, None, None] - 1
    dirty, _, _ = paste_lesions(images, brain, 1.0, rng())
    assert (dirty.min(axis=(1, 2)) >= images.min(axis=(1, 2))).all()
    assert (dirty.max(axis=(1, 2)) <= images.max(axis=(1, 2))).all()


def test_scale_of_the_images_does_not_matter():
    images, brain = heads(6, dtype=np.float64)
    unit, masks, _ = paste_lesions(images, brain, 0.5, rng())
    signed, same, _ = paste_lesions(2 * images - 1, brain, 0.5, rng())
    np.testing.assert_array_equal(same, masks)
    np.testing.assert_allclose((signed + 1) / 2, unit, atol=1e-12)


@pytest.mark.parametrize(("dtype", "top"), [(np.uint8, 255), (np.int16, 900), (np.float32, 1.0)])
def test_type_stays_and_whole_numbers_are_rounded(dtype, top):
    images, brain = heads(6, dtype=dtype, top=top)
    exact, masks, flags = paste_lesions(images.astype(np.float64), brain, 0.5, rng())
    dirty, *same = paste_lesions(images, brain, 0.5, rng())
    assert dirty.dtype == dtype
    for here, there in zip((masks, flags), same, strict=True):
        np.testing.assert_array_equal(here, there)
    np.testing.assert_allclose(dirty, exact, atol=0.5 if top > 1 else 1e-6)


def test_a_channel_is_kept():
    images, brain = heads()
    plain, *_ = paste_lesions(images, brain, 0.5, rng())
    channel, masks, _ = paste_lesions(images[:, None], brain, 0.5, rng())
    np.testing.assert_array_equal(channel[:, 0], plain)
    assert masks.shape == brain.shape


def test_inputs_and_the_global_generator_are_untouched():
    images, brain = heads()
    X = np.arange(12.0).reshape(6, 2)
    kept = images.tobytes(), X.tobytes()
    for array in (images, brain, X):
        array.setflags(write=False)
    before = np.random.get_state()[1].tobytes()
    dirty, *_ = paste_lesions(images, brain, 0.5, rng())
    clean, _ = contaminate(X, X, 0.0, rng())
    dirty[:] = 0
    clean[:] = 0
    assert (images.tobytes(), X.tobytes()) == kept
    assert np.random.get_state()[1].tobytes() == before


def test_one_seed_gives_the_same_bytes_and_another_others():
    images, brain = heads()
    first, again, other = (paste_lesions(images, brain, 0.5, rng(s)) for s in (3, 3, 4))
    assert [a.tobytes() for a in first] == [a.tobytes() for a in again]
    assert first[0].tobytes() != other[0].tobytes()
    rows = np.arange(20.0)
    first, again = (contaminate(rows, -rows, 0.3, rng(3)) for _ in range(2))
    assert [a.tobytes() for a in first] == [a.tobytes() for a in again]


def test_a_higher_share_keeps_the_lesions_of_a_lower_one():
    images, brain = heads(12)
    few, _, flags = paste_lesions(images, brain, 0.25, rng(5))
    more, _, _ = paste_lesions(images, brain, 0.75, rng(5))
    np.testing.assert_array_equal(more[flags], few[flags])
    rows, odd = np.zeros(60), np.arange(1.0, 61.0)
    low, high = (contaminate(rows, odd, share, rng(5)) for share in (0.1, 0.4))
    assert set(low[0][low[1]]) < set(high[0][high[1]])


def test_a_brain_that_fills_the_frame_or_is_one_pixel_has_room():
    images = 0.5 + 0.01 * rng().normal(size=(2, 32, 32))
    brain = np.ones((2, 32, 32), dtype=bool)
    brain[1] = False
    brain[1, 7, 9] = True
    _, masks, _ = paste_lesions(images, brain, 1.0, rng())
    np.testing.assert_array_equal(masks[1], brain[1])
    assert 0 < masks[0].mean() < 0.09


def test_an_empty_brain_mask_is_named():
    images, brain = heads()
    brain[[2, 4]] = False
    with pytest.raises(DataError, match=r"empty in 2 slices, first \[2, 4\]"):
        paste_lesions(images, brain, 0.5, rng())


def test_what_does_not_fit_is_refused():
    images, brain = heads()
    with pytest.raises(DataError, match=r"images has shape \(6, 64, 64\), brain.*\(5, 64, 64\)"):
        paste_lesions(images, brain[1:], 0.5, rng())
    with pytest.raises(DataError, match=r"images has shape \(6, 3, 64, 64\)"):
        paste_lesions(np.repeat(images[:, None], 3, axis=1), brain, 0.5, rng())
    with pytest.raises(DataError, match=r"brain has shape \(64, 64\)"):
        paste_lesions(images[0], brain[0], 0.5, rng())
    with pytest.raises(ValueError, match="share"):
        paste_lesions(images, brain, 1.5, rng())
    with pytest.raises(ValueError, match="area"):
        paste_lesions(images, brain, 0.5, rng(), area=(0.1, 0.01))


def numbers(n=200, d=6):
    return pd.DataFrame(rng(3).normal(10, 2, size=(n, d)), index=[f"r{k}" for k in range(n)])


def test_everyday_dirt_damages_just_what_it_names():
    clean = numbers()
    damaged, what = everyday_dirt(clean, 0.1, rng())
    assert {kind: int((what == kind).sum()) for kind in EVERYDAY} == dict.fromkeys(EVERYDAY, 5)
    same = (damaged == clean).all(axis=1).to_numpy()
    assert same[what == ""].all()
    assert not same[what != ""].any()
    assert damaged.index.equals(clean.index)


def test_each_kind_of_everyday_dirt_is_what_it_is_called():
    clean = numbers()
    damaged, what = everyday_dirt(clean, 0.2, rng(1))
    was, now = clean.to_numpy(), damaged.to_numpy()
    for row in np.flatnonzero(what == "slipped comma"):
        assert sorted(now[row] / was[row]) == [1, 1, 1, 1, 1, 10]
    for row in np.flatnonzero(what == "columns exchanged"):
        assert sorted(now[row]) == sorted(was[row])
    assert len(np.unique(now[what == "row copied"], axis=0)) == 1
    for row in np.flatnonzero(what == "rows mixed up"):
        assert (now[row] != was[row]).sum() == 2


def test_everyday_dirt_is_nested():
    little, kinds = everyday_dirt(numbers(), 0.05, rng())
    much, more = everyday_dirt(numbers(), 0.3, rng())
    dirty = kinds != ""
    assert (more[dirty] == kinds[dirty]).all()
    assert (much[dirty] == little[dirty]).all(axis=None)
