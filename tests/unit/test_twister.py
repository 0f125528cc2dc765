"""The numbers that training draws are torch's, bit for bit, though torch is not asked."""

import numpy as np
import pytest
import torch

from aberra.twister import Twister


@pytest.mark.parametrize("seed", [0, 7, 2**31 - 2, 2**32 - 3])
@pytest.mark.parametrize("shape", [(1,), (3, 5), (16,), (4, 4), (10, 64), (7, 9, 5), (3, 10_001)])
def test_numbers_are_those_of_torch(seed, shape):
    ours, torchs = Twister(seed), torch.Generator().manual_seed(seed)
    np.testing.assert_array_equal(ours.uniform(*shape), torch.rand(*shape, generator=torchs))
    np.testing.assert_array_equal(ours.normal(*shape), torch.randn(*shape, generator=torchs))
    order = torch.randperm(shape[-1], generator=torchs)
    np.testing.assert_array_equal(ours.permutation(shape[-1]), order)
    np.testing.assert_array_equal(ours.uniform(5), torch.rand(5, generator=torchs))


def test_numbers_are_uniform_and_normal():
    uniform, normal = Twister(0).uniform(100_000), Twister(0).normal(100_000)
    assert uniform.min() >= 0.0
    assert uniform.max() < 1.0
    assert uniform.mean() == pytest.approx(0.5, abs=0.005)
    assert normal.mean() == pytest.approx(0.0, abs=0.01)
    assert normal.std() == pytest.approx(1.0, abs=0.01)


def test_an_order_holds_every_row_once():
    np.testing.assert_array_equal(np.sort(Twister(3).permutation(1000)), np.arange(1000))
    assert Twister(3).permutation(0).tolist() == []
