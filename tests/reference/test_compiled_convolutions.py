"""The compiled training of small convolutional networks against torch: loss, gradient, training."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from aberra.detectors import compiled_convolutions, compiled_maps, compiled_training, convolutions
from aberra.detectors.aims import State, to_centre, to_reconstruct
from aberra.detectors.compiled_convolutions import loss_and_gradient
from aberra.detectors.conv_chain import can_be_compiled, chain_of_convolutions
from aberra.detectors.objectives import ae_iadc, dsvdd_iadc, squared_error
from aberra.detectors.training import EpochPlan, Lessons, Prepared
from aberra.nets.conv import ConvStack
from aberra.nets.conv_plan import ConvLayer, ConvPlan, lenet, strided
from aberra.twister import Twister

CLOSE = 1e-5


def odd_plans():
    """Return networks with what the LeNets have not: odd numbers, no pooling, other borders."""
    encoder = (
        ConvLayer(2, 3, (9, 11), pool=True),
        ConvLayer(3, 1, (2, 3), padding=1),
        ConvLayer(1, 5, (2, 3)),
    )
    decoder = (
        ConvLayer(3, 2, (5, 7), transposed=True, upsample_to=(5, 7)),
        ConvLayer(2, 2, (9, 11), transposed=True, padding=1, upsample_to=(7, 9), linear=True),
    )
    return (
        ConvPlan((2, 9, 11), encoder, 18, (5, 2, 3)),
        ConvPlan((2, 9, 11), decoder, 18, (3, 2, 3), decodes=True, dense=False),
    )


PLANS = {"mnist": lenet((1, 28, 28)), "odd": odd_plans(), "colour": lenet((3, 8, 9))}


class Case:
    """Two networks, and a batch of images with weights."""

    def __init__(self, plans, batch):
        generator = np.random.default_rng(batch)
        self.plans = plans
        self.stacks = [ConvStack(plan, [Twister(k)]) for k, plan in enumerate(plans)]
        self.x = generator.random((batch, int(np.prod(plans[0].image))), dtype=np.float32)
        self.x[:, ::3] = 0  # equal neighbours, as on a black ground
        self.w = (3 * generator.random(batch)).astype(np.float32)
        self.w[0] = 0

    def compiled(self, aim):
        """Return loss, gradient and running statistics."""
        kernels = convolutions._in_order([stack.members[0] for stack in self.stacks])
        flat = np.concatenate([kernel.ravel() for kernel in kernels])
        chain = chain_of_convolutions(*self.plans)
        statistics = np.zeros((2, chain.units[-1]), np.float32)
        statistics[1] = 1
        state = State(flat, np.zeros((2, flat.size), np.float32), statistics)
        value, gradient = loss_and_gradient(self.x, self.w, chain, aim, state)
        return value, gradient, statistics

    def tagged(self, objective):
        """Return the same by autograd; the objective gets images (1, d, B) and their weights."""
        x, w = torch.from_numpy(self.x.T.copy())[None], torch.from_numpy(self.w)[None]
        value = objective(x, w)
        value.backward()
        gradients = [[kernel.grad for kernel in stack.members[0]] for stack in self.stacks]
        statistics = [
            np.concatenate(
                [part.numpy() for stack in self.stacks for part in getattr(stack, of)[0]]
            )
            for of in convolutions.STATISTICS
        ]
        in_order = convolutions._in_order(gradients)
        return float(value.detach()), np.concatenate([g.ravel() for g in in_order]), statistics


def assert_close(found, expected):
    assert found[0] == pytest.approx(expected[0], rel=CLOSE)
    np.testing.assert_allclose(
        found[1], expected[1], rtol=0, atol=CLOSE * np.abs(expected[1]).max()
    )
    np.testing.assert_allclose(found[2], expected[2], rtol=CLOSE, atol=1e-6)


@pytest.mark.parametrize("batch", [2, 16, 21])
@pytest.mark.parametrize("name", PLANS)
def test_iadc_4_of_small_convolutions_is_the_tagged_objective(name, batch):
    case = Case(PLANS[name], batch)
    encoder, decoder = case.stacks

    def objective(x, w):
        return ae_iadc(squared_error(x, torch.sigmoid(decoder(encoder(x)))), w)

    assert_close(case.compiled(to_reconstruct()), case.tagged(objective))


@pytest.mark.parametrize("name", PLANS)
def test_iadc_6_of_small_convolutions_is_the_tagged_objective(name):
    case = Case(PLANS[name][:1], 16)
    (encoder,) = case.stacks
    centre = np.linspace(-1, 1, encoder.plan.n_code, dtype=np.float32)

    def objective(x, w):
        return dsvdd_iadc(encoder(x), torch.from_numpy(centre)[None, :, None], w)

    assert_close(case.compiled(to_centre(centre)), case.tagged(objective))


@pytest.mark.parametrize("n_layers", [1, 2])
def test_the_loops_are_the_same_in_python_where_views_have_an_end(n_layers, monkeypatch):
    # Compiled code reads on behind the end of a view, and finds what a wrong one should not have.
    case = Case(PLANS["odd"][:n_layers], 3)
    aim = to_reconstruct() if n_layers == 2 else to_centre(np.linspace(-1, 1, 18, dtype=np.float32))
    expected = case.compiled(aim)
    for module in (compiled_maps, compiled_training, compiled_convolutions):
        for name, function in vars(module).items():
            if hasattr(function, "py_func"):
                monkeypatch.setattr(module, name, function.py_func)
    assert_close(case.compiled(aim), expected)


@pytest.mark.parametrize("name", PLANS)
def test_every_layer_has_just_the_room_that_its_maps_take(name):
    chain = chain_of_convolutions(*PLANS[name])
    for k, pad in enumerate(chain.pad):
        (height, width), (high, wide) = chain.side[k], chain.side_out[k]
        assert (high, wide) == (height + 2 * pad - 4, width + 2 * pad - 4)  # kernels of 5 x 5
        room = [np.diff(part)[k] for part in (chain.padded, chain.products, chain.gradients)]
        assert room[0] == chain.n_in[k] * (height + 2 * pad) * (width + 2 * pad)
        assert room[1] == chain.n_out[k] * high * wide
        # Kernels that run back over the gradients leave the maps with which the layer began.
        assert room[2] == chain.n_out[k] * (height + 4) * (width + 4)
        assert np.diff(chain.weights)[k] == chain.n_in[k] * chain.n_out[k] * 25
        assert np.diff(chain.units)[k] == chain.n_out[k]
    assert {part[0] for part in (chain.padded, chain.products, chain.gradients)} == {0}
    assert np.diff(chain.weights)[-1] == chain.n_features * chain.n_code


@pytest.mark.parametrize("aim", ["reconstruct", "centre"])
def test_small_convolutions_train_as_in_torch(aim, monkeypatch):
    generator = np.random.default_rng(0)
    data = generator.random((40, 2 * 9 * 11), dtype=np.float32)
    rows, weights = generator.integers(0, 40, (2, 33)), generator.random((2, 40))

    def trained(small):
        monkeypatch.setattr(convolutions, "is_small", lambda *plans: small)
        encoder, decoder = (ConvStack(plan, [Twister(1), Twister(2)]) for plan in odd_plans())
        schedule = EpochPlan(2, 16, 1e-3, 1e-2, "task")
        prepared = Prepared(data, None, (2, 9, 11))
        lessons = Lessons(prepared, rows, weights, [Twister(3), Twister(4)], schedule)
        if aim == "centre":
            centre = np.full((2, encoder.plan.n_code, 1), 0.5, np.float32)
            centre[1] = -0.3
            return convolutions.train_to_centre(encoder, centre, lessons), encoder.freeze()
        losses = convolutions.train_to_reconstruct(encoder, decoder, lessons, on_sphere=False)
        return losses, encoder.freeze(), decoder.freeze()

    found, expected = trained(True), trained(False)
    np.testing.assert_allclose(found[0], np.array(expected[0]), rtol=1e-5)
    for own, other in zip(found[1:], expected[1:], strict=True):
        for name, array in other.arrays.items():
            np.testing.assert_allclose(own.arrays[name], array, rtol=1e-4, atol=2e-5, err_msg=name)


def test_only_the_lenets_of_few_maps_are_compiled():
    assert convolutions.is_small(*lenet((1, 28, 28)))
    assert convolutions.is_small(lenet((1, 28, 28))[0])
    assert can_be_compiled(*lenet((3, 32, 32)))
    encoder, _ = lenet((3, 32, 32))
    assert not can_be_compiled(encoder, encoder)  # no decoder ends in a code
    assert not convolutions.is_small(*lenet((3, 32, 32)))
    (first, *_) = PLANS["odd"]
    for n_maps in (16, 17):
        wide = replace(first, layers=(replace(first.layers[0], n_out=n_maps), *first.layers[1:]))
        assert convolutions.is_small(wide) == (n_maps == 16)
    assert not can_be_compiled(*strided((1, 28, 28), 10))
    assert not can_be_compiled(*strided((1, 28, 28), None))


@pytest.mark.parametrize("small", [True, False])
def test_small_networks_are_compiled_unless_their_codes_lie_on_the_sphere(small, monkeypatch):
    called = []
    monkeypatch.setattr(convolutions, "is_small", lambda *plans: small)
    for name in ("train_compiled", "train_convolutions"):
        monkeypatch.setattr(convolutions, name, lambda *_, name=name, **__: called.append(name))
    encoder, decoder = (ConvStack(plan, [Twister(1)]) for plan in odd_plans())
    lessons = Lessons(None, np.zeros((1, 4), np.int64), None, [], None)
    for on_sphere in (True, False):
        convolutions.train_to_reconstruct(encoder, decoder, lessons, on_sphere)
    convolutions.train_to_centre(encoder, np.zeros((1, 18, 1), np.float32), lessons)
    convolutions.train_subspace(encoder, decoder, np.zeros((1, 2, 18)), lessons, (0.1, 0.1))
    ways = {False: "train_convolutions", True: "train_compiled"}
    assert called == [ways[compiled] for compiled in (False, small, small, False)]
