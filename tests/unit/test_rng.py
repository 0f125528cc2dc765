"""Threads: how many a process may use, and that a block on one thread leaves no trace."""

import os
import subprocess
import sys
from contextlib import nullcontext
from threading import Barrier, Event, Thread, get_ident
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.ensemble import IsolationForest
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline

from aberra import ADC, OCSVM, MultiView, rng
from aberra.progress import advance, listening
from aberra.rng import (
    allow_threads,
    batch_rows,
    for_each,
    n_threads,
    seed_estimator,
    single_thread,
)


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


def test_work_is_shared_by_threads_that_use_one_each(before):
    allow_threads(3)
    together, seen = Barrier(3, timeout=30), {}

    def work(item):
        together.wait()  # so three of them run at a time
        inside = set()
        for_each(lambda _: inside.add(get_ident()), range(4))
        assert inside == {get_ident()}  # they do not multiply
        seen[item] = (get_ident(), torch.get_num_threads())

    for_each(work, range(6))
    assert sorted(seen) == list(range(6))
    assert {threads for _, threads in seen.values()} == {1}
    assert len({thread for thread, _ in seen.values()}) == 3
    assert torch.get_num_threads() == 3


def test_work_in_threads_is_heard_by_whoever_listens(before):
    allow_threads(3)
    told = []
    with listening(lambda task, fraction, note: told.append(fraction)):
        for_each(lambda item: advance("work", item / 4), range(4))
    assert sorted(told) == [0.0, 0.25, 0.5, 0.75]


@pytest.mark.parametrize("n", [1, 3])
def test_an_error_in_a_thread_comes_out(before, n):
    allow_threads(n)

    def fail(item):
        raise ZeroDivisionError(item)

    with pytest.raises(ZeroDivisionError, match="0"):
        for_each(fail, range(5))


@pytest.mark.slow
@pytest.mark.parametrize("detector", [MultiView(), OCSVM(solver="nystroem")], ids=str)
def test_threads_change_no_byte(before, detector):
    rows = np.random.default_rng(0).normal(size=(9000, 3))
    found = []
    for n in (1, 3):
        allow_threads(n)
        model = ADC(detector, n_members=2, random_state=0).fit(rows)
        found.append((model.anomaly_score(rows).tobytes(), model.explain(rows[:600]).tobytes()))
    assert found[0] == found[1]


@pytest.mark.slow
def test_torch_that_is_loaded_late_finds_the_threads_it_would_have_had():
    """Tables do without it, so a fit of images may be the first to load it, inside of a block."""
    code = (
        "import sys\nfrom aberra.rng import allow_threads, load_torch, n_threads, single_thread\n"
        "allow_threads(3)\n"
        "with single_thread():\n"
        "    assert 'torch' not in sys.modules\n"
        "    load_torch('A test')\n"
        "    import torch\n"
        "    print(n_threads(), torch.get_num_threads())\n"
        "print(n_threads(), torch.get_num_threads())\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["3", "1", "3", "3"]


@pytest.mark.parametrize(("block", "n"), [(nullcontext, 3), (single_thread, 1)])
def test_torch_is_told_how_many_threads_as_it_is_loaded(before, monkeypatch, block, n):
    allow_threads(3)
    told = []
    monkeypatch.setattr(rng, "need", lambda *_: SimpleNamespace(set_num_threads=told.append))
    monkeypatch.delitem(sys.modules, "torch")
    with block():
        rng.load_torch("A test")
    assert told == [n]


@pytest.mark.parametrize(("asked", "expected"), [("2", 2), ("4,2", 4), ("many", None), ("", None)])
def test_without_torch_the_environment_says_how_many_threads(monkeypatch, asked, expected):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(rng._Process, "n_threads", None)
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert n_threads() == (expected or len(os.sched_getaffinity(0)))
    with single_thread():
        assert n_threads() == (expected or len(os.sched_getaffinity(0)))


def test_batches_go_through_all_rows_in_a_new_order_every_epoch():
    order = np.concatenate([batch_rows(5, 12, 4, step) for step in range(9)]).reshape(3, 12)
    assert (np.sort(order, axis=1) == np.arange(12)).all()
    assert len({tuple(epoch) for epoch in order}) == 3
    np.testing.assert_array_equal(batch_rows(5, 12, 5, 2), order.ravel()[10:15])
    assert (batch_rows(6, 12, 12, 0) != order[0]).any()


def test_every_part_of_a_pipeline_has_a_seed_of_its_own():
    def seeds(seed):
        pipeline = make_pipeline(Nystroem(), IsolationForest())
        seed_estimator(pipeline, seed)
        return [part.random_state for _, part in pipeline.steps]

    assert len({*seeds(0), *seeds(1)}) == 4
    assert seeds(0) == seeds(0)
    assert all(isinstance(seed, int) for seed in seeds(0))
