"""The weighted objectives against their definitions, written out with loops."""

import numpy as np
import pytest
import torch

from aberra import RSRAE, AutoEncoder
from aberra.detectors.compiled_training import sigmoids
from aberra.detectors.convolutions import batches
from aberra.detectors.deep_svdd import centres
from aberra.detectors.foreign import as_trainer
from aberra.detectors.objectives import (
    ae_iadc,
    distance,
    dsvdd_iadc,
    rsrae_iadc,
    squared_error,
    unit_sphere,
)
from aberra.detectors.training import batch_length
from aberra.errors import DataError
from aberra.progress import listening
from aberra.twister import Twister

M, D, B = 3, 4, 5
torch_rand = torch.Generator().manual_seed(0)


def rand(*shape):
    return torch.rand(*shape, generator=torch_rand, dtype=torch.float64)


@pytest.mark.parametrize(
    ("detector", "shape"),
    [(AutoEncoder, (32, 4)), (RSRAE, (32, 1, 8, 8))],
    ids=["compiled", "torch"],
)
def test_whoever_listens_hears_how_far_the_epochs_are_and_of_their_losses(detector, shape):
    heard = []
    with listening(lambda *said: heard.append(said)):
        model = detector(epochs=4, random_state=0).fit(np.random.default_rng(0).random(shape))
    epochs = [said for said in heard if said[2].startswith("loss")]
    assert [share for _, share, _ in epochs] == [0.25, 0.5, 0.75, 1.0]
    assert [note for _, _, note in epochs] == [f"loss {loss:.4g}" for loss in model.losses_]


def test_iadc_4s_is_the_squared_distance_of_a_row_to_its_reconstruction():
    x, x_hat = rand(M, D, B).numpy(), rand(M, D, B).numpy()
    by_hand = [
        [sum((x[j, k, i] - x_hat[j, k, i]) ** 2 for k in range(D)) for i in range(B)]
        for j in range(M)
    ]
    np.testing.assert_allclose(squared_error(x, x_hat), by_hand)


def test_iadc_6s_is_the_squared_distance_of_a_code_to_the_centre():
    z, c = rand(M, D, B).numpy(), rand(M, D, 1).numpy()
    by_hand = [
        [sum((z[j, k, i] - c[j, k, 0]) ** 2 for k in range(D)) for i in range(B)] for j in range(M)
    ]
    np.testing.assert_allclose(distance(z, c), by_hand)


def test_iadc_4_is_the_weighted_mean_of_squared_errors():
    x, x_hat, w = rand(M, D, B), rand(M, D, B), rand(M, B)
    expected = sum(
        w[j, i] * ((x[j, :, i] - x_hat[j, :, i]) ** 2).sum() / B for j in range(M) for i in range(B)
    )
    torch.testing.assert_close(ae_iadc(squared_error(x, x_hat), w), expected)


def test_iadc_3_is_iadc_4_with_unit_weights():
    x, x_hat = rand(1, D, B), rand(1, D, B)
    plain = ((x - x_hat) ** 2).sum() / B
    torch.testing.assert_close(ae_iadc(squared_error(x, x_hat), torch.ones(1, B)), plain)


def test_iadc_6_is_the_weighted_mean_distance_to_the_centre():
    z, c, w = rand(M, D, B), rand(M, D, 1), rand(M, B)
    expected = sum(
        w[j, i] * ((z[j, :, i] - c[j, :, 0]) ** 2).sum() / B for j in range(M) for i in range(B)
    )
    torch.testing.assert_close(dsvdd_iadc(z, c, w), expected)


def test_iadc_8_weighs_the_first_two_terms_only():
    x, x_hat, w = rand(M, D, B), rand(M, D, B), rand(M, B)
    z, A = rand(M, 6, B), rand(M, 2, 6)
    A, z = A.float(), z.float()
    error, w = squared_error(x, x_hat).float(), w.float()
    expected = 0.0
    for j in range(M):
        for i in range(B):
            residual = z[j, :, i] - A[j].T @ A[j] @ z[j, :, i]
            expected += w[j, i] * (error[j, i].sqrt() + 0.3 * residual.norm()) / B
        expected += 0.7 * ((A[j] @ A[j].T - torch.eye(2)) ** 2).sum()
    torch.testing.assert_close(rsrae_iadc(error, z, A, w, 0.3, 0.7), expected)


def test_codes_on_the_sphere_have_length_one():
    z = rand(M, D, B)
    torch.testing.assert_close(unit_sphere(z).norm(dim=1), torch.ones(M, B, dtype=torch.float64))
    np.testing.assert_allclose(unit_sphere(z.numpy()), unit_sphere(z))


def test_batches_visit_each_drawn_row_at_most_once_per_epoch():
    data = torch.arange(50, dtype=torch.float32)[:, None].expand(50, 2)
    rows = torch.stack([torch.arange(50), torch.arange(50).flip(0)])
    weights = torch.arange(50, dtype=torch.float32).expand(2, 50)
    steps = list(batches(data, rows, weights, 16, [Twister(0), Twister(1)]))
    assert len(steps) == 3
    for x, w in steps:
        assert x.shape == (2, 2, 16)
        torch.testing.assert_close(x[:, 0], w)  # the weight follows its row
    for j in range(2):
        seen = torch.cat([w[j] for _, w in steps])
        assert len(seen.unique()) == 48


def test_batch_length_never_exceeds_the_rows_and_is_a_multiple_of_sixteen():
    assert batch_length(1000, 128) == 128
    assert batch_length(100, 128) == 96
    assert [batch_length(n, 50) for n in (2, 15, 16, 17, 31, 32, 99)] == [2, 15, 16, 16, 16, 32, 48]
    with pytest.raises(DataError, match="at least 2 rows"):
        batch_length(1, 128)
    assert batch_length(5, 128) == 5
    assert np.all([batch_length(n, 128) >= 1 for n in range(2, 300)])


@pytest.mark.parametrize("shape", [(64, 6), (64, 1, 8, 8)], ids=["table", "images"])
def test_the_loss_of_an_epoch_is_a_mean_over_its_batches(shape):
    rows = np.random.default_rng(0).random(shape)
    given = {"epochs": 2, "learning_rate": 1e-9, "random_state": 0}  # nothing is learnt
    found = [AutoEncoder(batch_size=size, **given).fit(rows).losses_ for size in (64, 32, 16)]
    np.testing.assert_allclose(found, found[0][0], rtol=0.1)
    assert np.shape(found) == (3, 2)
    per_number = found[0][0] / np.prod(shape[1:])
    assert 0.02 < per_number < 0.5  # of numbers between 0 and 1


@pytest.mark.parametrize("shape", [(64, 6), (64, 1, 8, 8)], ids=["table", "images"])
def test_the_loss_of_an_epoch_is_a_mean_over_the_members(shape):
    rows = np.random.default_rng(0).random(shape).reshape(64, -1)
    found = []
    for m in (1, 3):
        given = {"epochs": 1, "learning_rate": 1e-9, "batch_size": 16}
        trainer = as_trainer(AutoEncoder(**given), None if len(shape) == 2 else shape[1:])
        drawn, weights = np.tile(np.arange(64), (m, 1)), np.ones((m, 64))
        trainer._train(trainer._prepare(rows), drawn, weights, list(range(m)))
        found.append(trainer.losses_[0])
    assert found[1] == pytest.approx(found[0], rel=0.15)


def test_sigmoids_are_right_to_single_precision():
    values = np.linspace(-20, 20, 4001, dtype=np.float32)
    found = values.copy()
    sigmoids(found, np.empty(len(values), np.int32))
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-values.astype(np.float64))), rtol=3e-7)


@pytest.mark.parametrize("n", [6, 1024, 1025])  # 1024 rows go through a network at a time
def test_a_centre_is_the_mean_code_of_the_rows_a_member_drew_and_not_near_zero(n):
    data = np.random.default_rng(n).normal(size=(n, 3)).astype(np.float32)
    shift = np.array([[0.0, 0.05], [-0.05, 3.0], [-0.1, 0.1]])  # three members with two codes each

    class Encoder:
        def freeze(self):
            return lambda x: shift[:, :, None] + 0 * x[:2] + [[1.0], [0.0]] * x[:1]

    rows = np.stack([np.arange(n), np.full(n, n - 1), np.arange(n) // 2])
    means = np.stack([shift[j] + [data[rows[j], 0].mean(dtype=float), 0.0] for j in range(3)])
    expected = np.where(np.abs(means) < 0.1, 0.1 * np.sign(means), means)
    np.testing.assert_allclose(centres(Encoder(), data, rows)[:, :, 0], expected, atol=1e-6)
    few = rows[:, ::3]  # a member may draw fewer rows than there are
    third = shift[:, 0] + [data[own, 0].mean(dtype=float) for own in few]
    third = np.where(np.abs(third) < 0.1, 0.1 * np.sign(third), third)
    np.testing.assert_allclose(centres(Encoder(), data, few)[:, 0, 0], third, atol=1e-6)
    still = centres(Encoder(), np.zeros_like(data), rows)[:, :, 0]
    np.testing.assert_allclose(still, [[0, 0.1], [-0.1, 3], [-0.1, 0.1]], atol=1e-7)
