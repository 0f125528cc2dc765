"""The stacked members against the same members trained one by one, in plain PyTorch.

The networks are written as anybody would write them; the losses are the tagged functions.
"""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from aberra import DAGPR, RSRAE, AutoEncoder, DeepSVDD
from aberra.contract.members import row_counts
from aberra.detectors.deep_svdd import centres
from aberra.detectors.objectives import (
    ae_iadc,
    dsvdd_iadc,
    rsrae_iadc,
    squared_error,
    unit_sphere,
)
from aberra.detectors.scaling import min_max
from aberra.detectors.training import Prepared
from aberra.nets.stacked import MLPStack
from aberra.rng import draw_seeds, stream, torch_generator
from aberra.twister import Twister

N, D, M, HIDDEN, EPOCHS, BATCH = 200, 6, 3, (8, 5, 3), 4, 32


@pytest.fixture
def case():
    generator = np.random.default_rng(3)
    data = generator.normal(size=(N, D)) ** 3
    scaling = min_max(data)
    prepared = Prepared(scaling.copy(data), scaling, None)
    rows = stream(5).integers(N, size=(M, N))
    return prepared, rows, generator.random((M, N)), draw_seeds(9, n=M)


def as_tensors(prepared, rows, weights):
    return torch.from_numpy(prepared.data), torch.from_numpy(rows), torch.tensor(weights).float()


def perceptron(widths, linear_output):
    """Build one member as anybody would write it."""
    layers = []
    for k, (n_in, n_out) in enumerate(itertools.pairwise(widths)):
        layers.append(nn.Linear(n_in, n_out, bias=False))
        if not (linear_output and k == len(widths) - 2):
            layers += [nn.BatchNorm1d(n_out, eps=1e-4, affine=False), nn.LeakyReLU(0.01)]
    return nn.Sequential(*layers)


def draw(network, generator):
    """Fill the weights from the member's generator, in the order of the layers."""
    for layer in network:
        if isinstance(layer, nn.Linear):
            bound = layer.in_features**-0.5
            noise = torch.rand(layer.weight.shape, generator=generator)
            layer.weight.data = (2 * noise - 1) * bound


def epochs(data, rows, weights, generator, n_epochs):
    """Yield the member's batches: its own rows, shuffled, the odd rest dropped."""
    for _ in range(n_epochs):
        order = rows[torch.randperm(len(rows), generator=generator)]
        for start in range(0, len(order) - BATCH + 1, BATCH):
            index = order[start : start + BATCH]
            yield data[index], weights[index]


def weights_of(network):
    return [layer.weight.detach() for layer in network if isinstance(layer, nn.Linear)]


def frozen_by_hand(network, x):
    network.eval()
    with torch.no_grad():
        return network.double()(x.double())


def train_member(network_parameters, loss, batches):
    optimiser = torch.optim.Adam(network_parameters, lr=1e-3, weight_decay=1e-6)
    for x, w in batches:
        optimiser.zero_grad()
        loss(x, w).backward()
        optimiser.step()


def one_member(rows):
    """Return rows (B, d) as the tagged functions take them, (1, d, B)."""
    return rows.T[None]


def reconstruction(encoder, decoder, on_sphere=False):
    def loss(x, w):
        z = encoder(x)
        code = unit_sphere(one_member(z))[0].T if on_sphere else z
        x_hat = torch.sigmoid(decoder(code))
        return ae_iadc(squared_error(one_member(x), one_member(x_hat)), w[None])

    return loss


def autoencoder_by_hand(generator):
    encoder = perceptron([D, *HIDDEN], True)
    decoder = perceptron([*HIDDEN[::-1], D], True)
    draw(encoder, generator)
    draw(decoder, generator)
    return encoder, decoder


def assert_same(scores, expected):
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)


KEYWORDS = {"hidden": HIDDEN, "batch_size": BATCH}


@pytest.mark.parametrize("detector", [AutoEncoder(epochs=EPOCHS, **KEYWORDS)])
def test_autoencoder_parameters(case, detector):
    prepared, rows, weights, seeds = case
    members = detector._train(prepared, rows, weights, seeds)
    data, drawn, w = as_tensors(prepared, rows, weights)
    for j, seed in enumerate(seeds):
        generator = torch_generator(seed)
        encoder, decoder = autoencoder_by_hand(generator)
        parameters = [*encoder.parameters(), *decoder.parameters()]
        batches = epochs(data, drawn[j], w[j], generator, EPOCHS)
        train_member(parameters, reconstruction(encoder, decoder), batches)
        # The frozen stack has batch norm folded in; the linear code and output layers are raw.
        for frozen, network in ((members.encoder, encoder), (members.decoder, decoder)):
            last = torch.from_numpy(frozen.weights[-1][j]).float()
            torch.testing.assert_close(last, weights_of(network)[-1], rtol=0, atol=1e-5)
        code = frozen_by_hand(encoder, data)
        assert_same(members.encoder(prepared.data.T.astype(np.float64))[j].T, code)


def test_deep_svdd_parameters(case):
    prepared, rows, weights, seeds = case
    detector = DeepSVDD(epochs=EPOCHS, pretrain_epochs=2, **KEYWORDS)
    members = detector._train(prepared, rows, weights, seeds)
    data, drawn, w = as_tensors(prepared, rows, weights)
    for j, seed in enumerate(seeds):
        generator = torch_generator(seed)
        encoder, decoder = autoencoder_by_hand(generator)
        batches = epochs(data, drawn[j], torch.ones(N), generator, 2)
        parameters = [*encoder.parameters(), *decoder.parameters()]
        train_member(parameters, reconstruction(encoder, decoder), batches)
        with torch.no_grad():
            c = encoder.eval()(data[drawn[j]]).mean(dim=0)
        c[(c.abs() < 0.1) & (c < 0)] = -0.1
        c[(c.abs() < 0.1) & (c > 0)] = 0.1
        np.testing.assert_allclose(members.centre[j, :, 0], c, rtol=0, atol=1e-5)
        encoder.train()
        batches = epochs(data, drawn[j], w[j], generator, EPOCHS)
        train_member(
            encoder.parameters(),
            lambda x, w, net=encoder, c=c: dsvdd_iadc(
                one_member(net(x)), c[None, :, None], w[None]
            ),
            batches,
        )
        last = torch.from_numpy(members.encoder.weights[-1][j]).float()
        torch.testing.assert_close(last, weights_of(encoder)[-1], rtol=0, atol=1e-5)
        code = frozen_by_hand(encoder, data)
        assert_same(members.encoder(prepared.data.T.astype(np.float64))[j].T, code)


def test_rsrae_parameters(case):
    prepared, rows, weights, seeds = case
    members = RSRAE(epochs=EPOCHS, **KEYWORDS)._train(prepared, rows, weights, seeds)
    data, drawn, w = as_tensors(prepared, rows, weights)
    n_code, n_subspace = HIDDEN[-2:]
    for j, seed in enumerate(seeds):
        generator = torch_generator(seed)
        encoder = perceptron([D, *HIDDEN[:-1]], False)
        decoder = perceptron([n_subspace, *HIDDEN[:-1][::-1], D], True)
        draw(encoder, generator)
        draw(decoder, generator)
        A = torch.randn(n_subspace, n_code, generator=generator) / n_code**0.5
        A.requires_grad_()

        def loss(x, w, encoder=encoder, decoder=decoder, A=A):
            z = encoder(x)
            error = squared_error(one_member(x), one_member(torch.sigmoid(decoder(z @ A.T))))
            return rsrae_iadc(error, one_member(z), A[None], w[None], 0.1, 0.1)

        parameters = [*encoder.parameters(), *decoder.parameters(), A]
        train_member(parameters, loss, epochs(data, drawn[j], w[j], generator, EPOCHS))
        np.testing.assert_allclose(members.A[j], A.detach(), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("n_columns", "hidden", "width"), [(99, None, 8), (100, None, 10), (100, (9, 6, 3), 3)]
)
def test_the_subspace_of_rsrae_has_ten_axes_in_wide_tables(n_columns, hidden, width):
    rows = np.random.default_rng(0).normal(size=(20, n_columns))
    model = RSRAE(hidden=hidden, epochs=1, random_state=0).fit(rows)
    assert model.members_.A.shape[1] == width


def test_dagpr_autoencoder_parameters(case):
    prepared, rows, weights, seeds = case
    members = DAGPR(pretrain_epochs=EPOCHS, **KEYWORDS)._train(prepared, rows, weights, seeds)
    data, drawn, w = as_tensors(prepared, rows, weights)
    for j, seed in enumerate(seeds):
        generator = torch_generator(seed)
        encoder, decoder = autoencoder_by_hand(generator)
        loss = reconstruction(encoder, decoder, on_sphere=True)
        parameters = [*encoder.parameters(), *decoder.parameters()]
        train_member(parameters, loss, epochs(data, drawn[j], w[j], generator, EPOCHS))
        last = torch.from_numpy(members.encoder.weights[-1][j]).float()
        torch.testing.assert_close(last, weights_of(encoder)[-1], rtol=0, atol=1e-5)


def test_centre_counts_a_row_as_often_as_it_was_drawn(case):
    prepared, rows, *_ = case
    stack = MLPStack([D, *HIDDEN], [Twister(s) for s in range(M)])
    frozen = stack.freeze()
    for j in range(M):
        expected = frozen(prepared.data[rows[j]].T.astype(np.float64))[j].mean(axis=1)
        found = centres(stack, prepared.data, rows)[j, :, 0]
        off_zero = np.abs(expected) >= 0.1
        np.testing.assert_allclose(found[off_zero], expected[off_zero], rtol=1e-5, atol=1e-6)
        assert (np.abs(found) >= 0.1 - 1e-6).all()
    assert row_counts(rows, N).sum() == M * N
