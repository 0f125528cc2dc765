"""The same detectors on images."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from aberra import DAGPR, IADC, OCSVM, RSRAE, AutoEncoder, DeepSVDD, HybridOCSVM
from aberra.errors import DataError
from aberra.nets.conv import ConvStack
from aberra.nets.conv_plan import lenet, strided
from aberra.twister import Twister

SMALL = [
    AutoEncoder(epochs=2),
    DeepSVDD(epochs=1, pretrain_epochs=1),
    HybridOCSVM(pretrain_epochs=1),
    RSRAE(epochs=1),
    DAGPR(pretrain_epochs=1),
    OCSVM(),
]


@pytest.mark.slow
@pytest.mark.parametrize("detector", SMALL, ids=str)
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 8, 8), (2, 17, 23)])
def test_every_detector_takes_images_of_any_size(detector, shape):
    images = np.random.default_rng(0).integers(0, 256, size=(20, *shape)).astype(np.uint8)
    detector.set_params(random_state=0).fit(images)
    scores = detector.anomaly_score(images)
    assert scores.shape == (20,)
    assert np.isfinite(scores).all()
    with pytest.raises(DataError, match="fitted on images"):
        detector.anomaly_score(images.reshape(20, -1))


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 30, 41)])
@pytest.mark.parametrize("plan", [lenet, lambda shape: strided(shape, 10)])
def test_decoder_returns_the_size_of_the_image(plan, shape):
    import torch

    encoder, decoder = plan(shape)
    n = int(np.prod(shape))
    generators = [Twister(0), Twister(1)]
    x = torch.rand(2, n, 3)
    code = ConvStack(encoder, generators)(x)
    assert code.shape == (2, encoder.n_code, 3)
    assert ConvStack(decoder, generators)(code).shape == (2, n, 3)


def test_official_code_sizes():
    assert lenet((1, 28, 28))[0].n_code == 32
    assert lenet((3, 32, 32))[0].n_code == 128


def test_stacked_convolutions_are_the_members_one_by_one():
    import torch

    encoder, _ = lenet((1, 28, 28))
    x = torch.rand(2, 784, 16)
    both = ConvStack(encoder, [Twister(0), Twister(1)])(x)
    for j in range(2):
        alone = ConvStack(encoder, [Twister(j)])(x[j : j + 1])
        torch.testing.assert_close(alone[0], both[j])


def test_a_trained_network_judges_an_image_alone_as_in_company():
    import torch

    for plan, n in zip(lenet((1, 16, 16)), (256, 32), strict=True):
        stack = ConvStack(plan, [Twister(0), Twister(1)])
        x = np.random.default_rng(0).random((n, 12))
        for _ in range(3):
            in_training = stack(torch.tensor(x).float().expand(2, n, 12)).detach().numpy()
        frozen = stack.freeze()
        together = frozen(x)
        np.testing.assert_array_equal(frozen(x), together)
        np.testing.assert_allclose(frozen(x[:, :1]), together[:, :, :1], rtol=1e-4, atol=1e-5)
        assert np.abs(in_training - together).max() > 0.01  # which looks at its batch


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::aberra.errors.RoundsExhaustedWarning")
def test_iadc_finds_strange_digits():
    digits = load_digits()
    images = (digits.images / 16.0)[:, None]
    normal, odd = np.flatnonzero(digits.target == 0), np.flatnonzero(digits.target == 1)[:20]
    rows = np.concatenate([normal, odd])
    y = np.repeat([0, 1], [len(normal), 20])
    detector = AutoEncoder(epochs=30, learning_rate=3e-3)
    model = IADC(detector, n_members=2, max_rounds=2, random_state=0).fit(images[rows])
    assert roc_auc_score(y, model.anomaly_score(images[rows])) > 0.9


def test_small_images_and_hidden_are_refused_with_a_reason():
    with pytest.raises(DataError, match="at least 8 x 8"):
        AutoEncoder().fit(np.zeros((5, 1, 4, 4)))
    with pytest.raises(ValueError, match="leave it None for images"):
        AutoEncoder(hidden=(4, 2)).fit(np.zeros((5, 1, 8, 8)))
