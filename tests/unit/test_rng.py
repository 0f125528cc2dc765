"""Threads: how many a process may use, and that a block on one thread leaves no trace."""

from threading import Event, Thread

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


def test_blocks_of_several_threads_leave_each_thread_as_it_was(before):
    allow_threads(3)
    inside, done = Event(), Event()

    def other():
        with single_thread():
            inside.set()
            done.wait(30)

    running = Thread(target=other)
    running.start()
    inside.wait(30)
    with single_thread():
        done.set()
        running.join()
        assert torch.get_num_threads() == 1
        assert n_threads() == 3
    assert torch.get_num_threads() == n_threads() == 3
