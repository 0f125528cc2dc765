"""Foreign patches: their shapes, what they hold, and what a network makes of them."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import ndimage

from aberra import PatchFinder
from aberra.diffusion.noise import clouds
from aberra.localise.patch_finder import (
    GAIN,
    SHADE,
    FinderPlan,
    FinderRun,
    finder_loss,
    foreignness,
)
from aberra.localise.patches import blurred, body, covers, foreign, pasted, recontrasted
from aberra.loop import Tempo, batch_of
from aberra.nets.place import Place
from aberra.nets.unet import FEW, UNetPlan

CPU = Place(torch.device("cpu"))
TEMPO = Tempo(train_steps=100, batch_size=16, learning_rate=3e-3)


def heads(n=64, side=32, channels=1):
    """Bright ellipses with folds on black, in [-1, 1]."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:side, :side] / (side - 1) * 2 - 1
    inside = (x / 0.7) ** 2 + (y / 0.85) ** 2 < 1
    fold = 0.15 * np.sin(9 * x + rng.uniform(0, 6, (n, channels, 1, 1)))
    return torch.from_numpy((2 * inside * (0.6 + fold) - 1).astype(np.float32))


def drawn(x, step=0):
    return batch_of(x, torch.ones(len(x)), len(x), 0, step, CPU)


def signs(n, sign):
    return torch.full((n, 1, 1, 1), float(sign))


def test_patches_lie_inside_the_body_and_have_all_sizes():
    batch = drawn(heads())
    inside = body(batch.x)
    cover = covers(batch.x, batch, signs(64, 1))
    assert cover.shape == (64, 1, 32, 32)
    assert cover.min() >= 0
    assert cover.max() == 1
    assert not cover[~inside].any()
    share = (cover > 0.5).flatten(1).sum(1) / inside.flatten(1).sum(1)
    assert share.min() < 0.05
    assert 0.1 < share.max() < 0.3


def test_an_image_without_a_body_still_takes_patches():
    dark = torch.full((4, 1, 16, 16), -1.0)
    assert body(dark).all()
    batch = drawn(dark)
    assert covers(batch.x, batch, signs(4, 1)).flatten(1).amax(dim=1).min() > 0


def test_a_patch_has_four_pixels_at_least_and_covers_all_where_there_are_no_more():
    batch = drawn(torch.zeros(16, 1, 2, 2))
    cover = covers(batch.x, batch, signs(16, 1)).flatten(1)
    torch.testing.assert_close(cover.amin(dim=1), torch.full((16,), 0.5))  # the edge runs there
    alone = drawn(torch.zeros(4, 1, 1, 1))
    assert (covers(alone.x, alone, signs(4, 1)) == 0.5).all()


def test_bright_patches_are_brighter_and_dark_ones_darker():
    batch = drawn(heads())
    inside = body(batch.x).expand_as(batch.x)
    for sign in (1, -1):
        gap = sign * (foreign(batch.x, batch, signs(64, sign)) - batch.x)
        means = torch.stack([g[i].mean() for g, i in zip(gap, inside, strict=True)])
        # Patches that are another image have no sign.
        assert (means > 0).float().mean() > 0.7


def test_pasting_changes_what_is_covered_and_nothing_else():
    batch = drawn(heads(channels=3))
    y, cover = pasted(batch.x, batch)
    assert y.abs().max() <= 1
    assert torch.equal(y[(cover == 0).expand_as(y)], batch.x[(cover == 0).expand_as(y)])
    untouched = (cover == 0).flatten(1).all(dim=1)
    assert 0 < untouched.sum() < 24
    again, _ = pasted(batch.x, drawn(heads(channels=3)))
    assert torch.equal(again, y)
    other, _ = pasted(batch.x, drawn(heads(channels=3), step=1))
    assert not torch.equal(other, y)


def test_another_contrast_keeps_the_order_of_grey_and_black():
    x = torch.linspace(-1, 1, 256).reshape(1, 1, 16, 16).repeat(8, 1, 1, 1)
    batch = drawn(x)
    assert torch.equal(recontrasted(x, batch, 0.0, (0.85, 1.1), 0.15), x)
    other = recontrasted(x, batch, 1.0, (0.85, 1.1), 0.0)
    assert (other.flatten(1).diff(dim=1) >= -1e-6).all()
    assert torch.allclose(other[:, :, 0, 0], torch.tensor(-1.0))
    assert (other - x).abs().flatten(1).mean(dim=1).min() > 0.01


def test_what_is_foreign_is_what_changed_visibly():
    x = torch.zeros(1, 1, 32, 32)
    y, cover = x.clone(), x.clone()
    y[..., 10:20, 10:20], cover[..., 10:20, 10:20] = 0.6, 1
    target = foreignness(x, y, cover)
    assert target[..., 12:18, 12:18].min() == 1
    assert target[cover == 0].max() == 0
    assert foreignness(x, x, cover).max() == 0


def test_the_loss_of_colour_images_is_written_out():
    generator = torch.Generator().manual_seed(0)
    x, y, added = (torch.rand((2, 3, 10, 10), generator=generator) for _ in range(3))
    cover = torch.zeros(2, 1, 10, 10)
    cover[0, :, 2:7, 3:8] = 0.5
    logit, w = torch.randn((2, 1, 10, 10), generator=generator), torch.tensor([0.25, 1.0])
    change = blurred(((y - x).abs().sum(dim=1) / 3)[:, None], 5)
    target = torch.minimum(change / 0.2, torch.ones(())) * (cover > 0)
    torch.testing.assert_close(foreignness(x, y, cover), target)
    faint = foreignness(x, x + 0.03 * (y - x), cover)  # a change of less than 0.2 counts in part
    torch.testing.assert_close(faint, 0.03 * change / 0.2 * (cover > 0))
    expected = 0.0
    for k in range(2):
        p, inside = torch.sigmoid(logit[k]), cover[k] > 0
        crossed = -(target[k] * p.log() + (1 - target[k]) * (1 - p).log()).mean()
        gap = (y[k] - added[k] - x[k]).abs()
        covered = (gap * inside).mean() / max(float(inside.float().mean()), 1e-3)
        expected += w[k] * (crossed + covered / 2 + gap.mean() / 2) / 2
    torch.testing.assert_close(finder_loss(x, y, cover, added, logit, w), expected)


def test_the_loss_is_least_for_the_truth_and_follows_the_weights():
    x = torch.zeros(2, 1, 32, 32)
    y, cover, w = x.clone(), x.clone(), torch.ones(2)
    y[0, :, 10:20, 10:20], cover[0, :, 10:20, 10:20] = 0.6, 1
    sure = 20 * (2 * foreignness(x, y, cover) - 1)
    best = finder_loss(x, y, cover, y - x, sure, w)
    assert best < 0.1
    idle = finder_loss(x, y, cover, torch.zeros_like(x), torch.full_like(sure, -FEW), w)
    assert idle > 3 * best
    blind = finder_loss(
        x, y, cover, torch.zeros_like(x), torch.full_like(sure, -FEW), torch.tensor([0.0, 2.0])
    )
    assert blind < 0.1  # the image with the patch counts for nothing


@pytest.mark.slow
def test_a_network_learns_where_patches_are_and_what_they_added():
    plan = FinderPlan(UNetPlan(1, (8, 16), 1, (False, True), 2, 8, 4), TEMPO, 0.9, 0.5)
    run, batch = FinderRun(plan, 0, CPU), drawn(heads(16, side=16))
    losses = [float(run.step(k, drawn(heads(16, side=16)))["loss"].detach()) for k in range(100)]
    assert losses[-1] < 0.6 * losses[0]  # the same patches every time
    x = recontrasted(batch.x, batch, 0.5, GAIN, SHADE)
    y, cover = pasted(x, batch)
    added, logit = run.net.found(y)
    target = foreignness(x, y, cover)
    found = logit.sigmoid()
    assert found[target > 0.9].mean() > 3 * found[target == 0].mean()
    strong = ((y - x).abs() > 0.3) & (target > 0.9)
    assert (added - (y - x))[strong].abs().mean() < 0.8 * (y - x)[strong].abs().mean()


@pytest.mark.slow
def test_the_average_follows_the_network_and_a_trained_one_can_go_on():
    images = (heads(24, side=16).numpy() + 1) / 2
    model = PatchFinder(train_steps=2, batch_size=4, random_state=0).fit(images)
    before = [p.clone() for p in model.members_.nets[0].parameters()]
    assert not any(p.requires_grad for p in before)
    model.set_params(learning_rate=1e-6).adapt(images)
    after = list(model.members_.nets[0].parameters())
    assert 0 < max(float((a - b).abs().max()) for a, b in zip(after, before, strict=True)) < 1e-4


@pytest.mark.parametrize(("added", "left"), [(0.0, None), (5.0, -1.0), (-5.0, 1.0)])
def test_what_is_shown_to_a_watch_stays_within_the_range_of_images(added, left):
    found = SimpleNamespace(found=lambda y: (torch.full_like(y, added), None))
    y, restored = FinderRun.shown(SimpleNamespace(average=found), drawn(heads(4)))
    batch = drawn(heads(4))
    assert torch.equal(y, pasted(batch.x, batch)[0])
    assert torch.equal(restored, y if left is None else torch.full_like(y, left))


@pytest.mark.slow
def test_the_map_shows_what_was_taken_out_and_one_side_of_it_when_asked():
    images = (heads(24, side=16).numpy() + 1) / 2
    model = PatchFinder(train_steps=2, batch_size=4, smooth=1, random_state=0).fit(images)
    gap = 2 * (images - model.reconstruct(images))[:, 0] / np.ptp(images)
    np.testing.assert_allclose(model.anomaly_map(images), np.abs(gap), atol=1e-5)
    model.set_params(error="darker")
    np.testing.assert_allclose(model.anomaly_map(images), np.clip(-gap, 0, None), atol=1e-5)


# The same written out for one image after the other, with the same draws


def blurred_by_hand(image, side):
    """Return the mean over a square of neighbours that exist."""
    ones = np.ones(image.shape[-2:])
    parts = [ndimage.uniform_filter(a, side, mode="constant") for a in (*image, ones)]
    return np.stack(parts[:-1]) / parts[-1]


def one(batch, low, high):
    return (low + (high - low) * batch.uniform(1, 1, 1).numpy())[:, 0, 0, 0]


def clouds_of(batch, cell):
    return clouds(tuple(batch.x.shape), batch.generator, cell=cell)[:, 0].numpy()


def cover_by_hand(x, batch, sign):
    h, w = x.shape[2:]
    chance = batch.uniform(1, h, w)[:, 0].numpy()
    angle, stretch = one(batch, 0, np.pi), one(batch, 1, 2)
    share = 0.004 + 0.216 * batch.uniform(1)[:, 0].numpy() ** 1.5
    rough, octaves = one(batch, 0, 1.2), [clouds_of(batch, cell) for cell in (4, 8, 16)]
    parts, soft = batch.uniform(3, 1, 1, 1).numpy()[:, :, 0, 0, 0], one(batch, 0.05, 0.6)
    found = np.zeros((len(x), h, w))
    for b, image in enumerate(x):
        inside = blurred_by_hand((image.max(axis=0) > -0.85)[None].astype(float), 3)[0] > 0.5
        bright = blurred_by_hand(image.mean(axis=0)[None], 3)[0]
        room = np.where(inside, 0.3 + 0.35 * (1 - sign[b] * bright), 1e-9)
        best = np.argmax(np.log(room) - np.log(-np.log(chance[b])))
        down, right = np.indices((h, w)) - np.array(divmod(best, w))[:, None, None]
        along = np.cos(angle[b]) * down + np.sin(angle[b]) * right
        across = np.cos(angle[b]) * right - np.sin(angle[b]) * down
        n = max(4, share[b] * inside.sum())
        away = np.hypot(along / stretch[b] ** 0.5, across * stretch[b] ** 0.5)
        ragged = sum(p * o[b] for p, o in zip(parts[b], octaves, strict=True))
        height = rough[b] * ragged / np.linalg.norm(parts[b]) - away / np.sqrt(n / np.pi)
        last = np.sort(np.where(inside, height, -1e3), axis=None)[::-1][int(n)]
        found[b] = np.clip((height - last) / soft[b] + 0.5, 0, 1) * inside
    return found[:, None]


def foreign_by_hand(x, batch, sign):
    far, level = one(batch, 0.15, 1), one(batch, 0, 0.2)
    texture = clouds_of(batch, 2) + clouds_of(batch, 1)
    kept, some = one(batch, 0, 0.7), one(batch, 0.15, 0.9)
    down, right = torch.randint(-8, 9, (2,), generator=batch.generator).tolist()
    turned = one(batch, 0, 1) >= 0.5
    bright, kind = one(batch, 0.5, 1.3), one(batch, 0, 1)
    found = np.empty_like(x)
    for b, image in enumerate(x):
        around, end = blurred_by_hand(image, 5), sign[b]
        if kind[b] < 0.5:
            even = around + far[b] * (end - around) + level[b] * texture[b]
            found[b] = even + kept[b] * (image - blurred_by_hand(image, 7))
        elif kind[b] < 0.75:
            found[b] = image + some[b] * (end - image)
        else:
            other = np.roll(x[b - 1], (down, right), (1, 2))
            other = other[:, :, ::-1] if turned[b] else other
            found[b] = (1 + other) * bright[b] - 1
    return found.clip(-1, 1)


def test_patches_are_what_is_written_out():
    images = heads(24, channels=3)[:, :, :26] * torch.linspace(0.4, 1, 32)
    ours, batch = drawn(images), drawn(images)
    y, cover = pasted(ours.x, ours)
    x = batch.x.numpy().astype(float)
    z, covered = x, np.zeros_like(x[:, :1])
    for chance in (0.9, 0.4):
        there = one(batch, 0, 1) < chance
        sign = np.where(one(batch, 0, 1) < 0.5, 1.0, -1.0)
        own = cover_by_hand(x, batch, sign)
        own = own * (one(batch, 0.3, 1) * there)[:, None, None, None]
        z = z + own * (foreign_by_hand(x, batch, sign) - z)
        covered = np.maximum(covered, own)
    np.testing.assert_allclose(cover, covered, atol=1e-3)
    np.testing.assert_allclose(y, z, atol=1e-3)


def test_another_contrast_is_what_is_written_out():
    images = heads(16)[:, :, :26]
    ours, batch = drawn(images), drawn(images)
    found = recontrasted(ours.x, ours, 0.6, (0.7, 1.4), 0.3)
    level = (batch.x[:, 0].numpy() + 1) / 2
    rises = 0.4 + 1.2 * batch.uniform(4).numpy()
    shade, across = one(batch, 0, 0.3), clouds_of(batch, 16)
    gain, changed = one(batch, 0.7, 1.4), one(batch, 0, 1) < 0.6
    for b in range(16):
        knots = np.r_[0, np.cumsum(rises[b])] / rises[b].sum()
        other = np.interp(level[b], np.linspace(0, 1, 5), knots)
        other = (other * gain[b] * (1 + shade[b] * across[b])).clip(0, 1)
        expected = 2 * other - 1 if changed[b] else batch.x[b, 0].numpy()
        np.testing.assert_allclose(found[b, 0], expected, atol=1e-5)


def test_a_finder_trains_for_at_least_five_thousand_steps_unless_told_otherwise():
    found = [PatchFinder(name)._preset().train_steps for name in ("small", "medium")]
    assert found == [5000, 20_000]
    assert PatchFinder(train_steps=7)._preset().train_steps == 7
