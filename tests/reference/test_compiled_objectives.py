"""The compiled objectives against autograd through the tagged functions: value and gradient."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from aberra.detectors import compiled_training
from aberra.detectors.aims import State, chain_of, to_centre, to_reconstruct
from aberra.detectors.compiled_training import loss_and_gradient
from aberra.detectors.objectives import (
    ae_iadc,
    dsvdd_iadc,
    rsrae_iadc,
    squared_error,
    unit_sphere,
)
from aberra.nets.stacked import BN_EPS, LEAK, LINEAR, NORMALISED, SPHERE

CLOSE = 1e-5
SEEDS = range(8)


class Case:
    """A random network with a batch of rows and weights, in single precision."""

    def __init__(self, seed, n_code_from=1):
        self.generator = np.random.default_rng(seed)
        self.batch = int(self.generator.integers(5, 40))
        self.d = int(self.generator.integers(2, 9))
        self.hidden = self.generator.integers(3, 10, size=self.generator.integers(1, 4)).tolist()
        self.code = int(self.generator.integers(n_code_from, 4))
        self.x = self.generator.random((self.batch, self.d), dtype=np.float32)
        self.w = (3 * self.generator.random(self.batch)).astype(np.float32)
        self.w[0] = 0

    def compiled(self, widths, kinds, aim):
        """Return value and gradient, each layer's own; keep the layers for `tagged`."""
        self.kinds = kinds
        self.layers = [
            self.generator.normal(size=(b, a)).astype(np.float32) / np.float32(a**0.5)
            for a, b in pairwise(widths)
        ]
        flat = np.concatenate([layer.ravel() for layer in self.layers])
        statistics = np.ones((2, sum(widths[1:])), np.float32)
        state = State(flat, np.zeros((2, len(flat)), np.float32), statistics)
        value, gradient = loss_and_gradient(self.x, self.w, chain_of(widths, kinds), aim, state)
        ends = np.cumsum([layer.size for layer in self.layers])
        pieces = np.split(gradient, ends[:-1])
        return value, [g.reshape(la.shape) for g, la in zip(pieces, self.layers, strict=True)]

    def tagged(self, objective):
        """Return value and gradients of `objective(outputs of all layers, weights of layers)`."""
        layers = [torch.tensor(la, dtype=torch.float64, requires_grad=True) for la in self.layers]
        h = [torch.from_numpy(self.x).double().T[None]]  # (1, d, B)
        for layer, kind in zip(layers, self.kinds, strict=True):
            z = layer @ h[-1]
            if kind == NORMALISED:
                z = F.batch_norm(z[0].T, None, None, training=True, eps=BN_EPS).T[None]
                z = F.leaky_relu(z, LEAK)
            h.append(unit_sphere(z) if kind == SPHERE else z)
        value = objective(h, layers, torch.from_numpy(self.w).double()[None])
        value.backward()
        return float(value.detach()), [layer.grad.numpy() for layer in layers]


def assert_close(found, expected):
    value, gradients = found
    assert value == pytest.approx(expected[0], rel=CLOSE)
    # Layers before batch norm can have a gradient near zero, by cancellation, so that the largest
    # gradient of all layers is the measure.
    largest = max(np.abs(wanted).max() for wanted in expected[1])
    for gradient, wanted in zip(gradients, expected[1], strict=True):
        np.testing.assert_allclose(gradient, wanted, rtol=0, atol=CLOSE * largest)


def reconstruction_error(h):
    return squared_error(h[0], torch.sigmoid(h[-1]))


@pytest.mark.parametrize("on_sphere", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_iadc_4_compiled_is_the_tagged_objective(seed, on_sphere):
    case = Case(seed, n_code_from=2)
    widths = [case.d, *case.hidden, case.code, *case.hidden[::-1], case.d]
    half = [NORMALISED] * len(case.hidden)
    kinds = [*half, SPHERE if on_sphere else LINEAR, *half, LINEAR]
    found = case.compiled(widths, kinds, to_reconstruct())
    assert_close(found, case.tagged(lambda h, _, w: ae_iadc(reconstruction_error(h), w)))


@pytest.mark.parametrize("seed", SEEDS)
def test_iadc_6_compiled_is_the_tagged_objective(seed):
    case = Case(seed)
    widths = [case.d, *case.hidden, case.code]
    centre = case.generator.normal(size=case.code).astype(np.float32)
    found = case.compiled(widths, [NORMALISED] * len(case.hidden) + [LINEAR], to_centre(centre))
    c = torch.from_numpy(centre).double()[None, :, None]
    assert_close(found, case.tagged(lambda h, _, w: dsvdd_iadc(h[-1], c, w)))


@pytest.mark.parametrize(("lambda1", "lambda2"), [(0.1, 0.1), (0.7, 0.0), (0.0, 0.3), (0.0, 0.0)])
@pytest.mark.parametrize("seed", SEEDS)
def test_iadc_8_compiled_is_the_tagged_objective(seed, lambda1, lambda2):
    case = Case(seed)
    widths = [case.d, *case.hidden, case.code, *case.hidden[::-1], case.d]
    half = [NORMALISED] * len(case.hidden)
    k = len(case.hidden)  # the layer that is A
    found = case.compiled(
        widths, [*half, LINEAR, *half, LINEAR], to_reconstruct(k, lambda1, lambda2)
    )
    expected = case.tagged(
        lambda h, layers, w: rsrae_iadc(
            reconstruction_error(h), h[k], layers[k][None], w, lambda1, lambda2
        )
    )
    assert_close(found, expected)


def test_only_rsrae_has_a_layer_that_is_its_subspace():
    assert to_centre(np.ones(2, np.float32)).subspace < 0
    assert to_reconstruct().subspace < 0
    assert tuple(to_reconstruct(2, 0.5, 0.25)[1:]) == (2, 0.5, 0.25)


@pytest.mark.parametrize("seed", [0, 3])
def test_the_loops_are_the_same_in_python_where_views_have_an_end(seed, monkeypatch):
    # Compiled code reads on behind the end of a view, and finds what a wrong one should not have.
    k, found = len(Case(seed).hidden), {}
    for way in ("compiled", "python"):
        for aim in ("rsrae", "sphere", "centre"):
            case = Case(seed, 2)
            half = [NORMALISED] * k
            back = [case.code, *case.hidden[::-1], case.d]
            if aim == "centre":
                found[way, aim] = case.compiled(
                    [case.d, *case.hidden, case.code],
                    [*half, LINEAR],
                    to_centre(np.ones(case.code, np.float32)),
                )
                continue
            found[way, aim] = case.compiled(
                [case.d, *case.hidden, *back],
                [*half, SPHERE if aim == "sphere" else LINEAR, *half, LINEAR],
                to_reconstruct(k, 0.2, 0.3) if aim == "rsrae" else to_reconstruct(),
            )
        for name, function in vars(compiled_training).items():
            if hasattr(function, "py_func"):
                monkeypatch.setattr(compiled_training, name, function.py_func)
    for aim in ("rsrae", "sphere", "centre"):
        assert_close(found["python", aim], found["compiled", aim])
