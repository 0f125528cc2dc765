"""Threads: how many a process may use, and that a block on one thread leaves no trace."""

import pytest
import torch

from aberra.rng import allow_threads, n_threads, single_thread


@pytest.fixture
def before():
    held = torch.get_num_threads()
    yield held
    torch.set_num_threads(held)


@pytest.mark.parametrize("n", [1, 3])
def test_threads_are_the_same_inside_and_outside_of_a_block_on_one(before, n):
    allow_threads(n)
    assert n_threads() == n
    with single_thread(), single_thread():
        assert n_threads() == n
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == n
