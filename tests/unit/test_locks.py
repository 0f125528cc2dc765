"""Locks between processes and threads: who holds, who waits, and what is left behind."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from aberra.errors import DataError
from aberra.locks import alone, lock, only_one

HOLD = """
import sys, time
from pathlib import Path
from aberra.locks import lock
with lock(Path(sys.argv[1])) as mine:
    print(mine, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def other(tmp_path):
    """Another process that holds the file `job`."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "job")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline().strip() == "True"
        yield process
        process.kill()


def test_who_does_not_wait_is_told_at_once(tmp_path, other):
    with lock(tmp_path / "job", wait=False) as mine:
        assert not mine
    with lock(tmp_path / "another job", wait=False) as mine:
        assert mine


def test_a_lock_ends_with_its_process(tmp_path, other):
    asked = []

    def meanwhile():
        asked.append(1)
        if len(asked) == 3:
            other.kill()  # it has no chance to clean up

    with lock(tmp_path / "job", meanwhile=meanwhile) as mine:
        assert mine
    assert len(asked) >= 3


def test_a_thread_is_kept_out_like_a_process(tmp_path):
    def ask():
        with lock(tmp_path / "job", wait=False) as mine:
            return mine

    with ThreadPoolExecutor(1) as pool:
        with lock(tmp_path / "job"):
            assert not pool.submit(ask).result()
        assert pool.submit(ask).result()


def test_a_file_of_data_is_held_as_it_is_and_stays(tmp_path):
    path = tmp_path / "lines"
    path.write_text("one\n")
    with lock(path), path.open("a") as file:
        file.write("two\n")
    assert path.read_text() == "one\ntwo\n"


def test_an_error_gives_the_lock_back_and_leaves_nothing(tmp_path):
    def fail():
        with only_one(tmp_path / "file.bin"):
            assert [path.name for path in tmp_path.iterdir()] == [".lock-file.bin"]
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        fail()
    assert list(tmp_path.iterdir()) == []
    with lock(tmp_path / ".lock-file.bin", wait=False) as mine:
        assert mine


def test_who_did_not_get_the_lock_does_not_take_it_away(tmp_path):
    path = tmp_path / "job"
    with lock(path, keep=False):
        with lock(path, wait=False, keep=False) as mine:
            assert not mine
        assert path.exists()
    assert not path.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="links take rights there")
@pytest.mark.parametrize("what", ["link", "folder"])
def test_nothing_is_made_through_a_link_and_what_is_in_the_way_is_named(what, tmp_path):
    path = tmp_path / ".lock-file.bin"
    path.symlink_to(tmp_path / "elsewhere") if what == "link" else path.mkdir()
    with (
        pytest.raises(DataError, match=r"\.lock-file\.bin is in the way: .*Remove"),
        only_one(tmp_path / "file.bin"),
    ):
        raise AssertionError("the lock was given")
    assert not (tmp_path / "elsewhere").exists()
    with pytest.raises(FileNotFoundError), only_one(tmp_path / "nowhere" / "file.bin"):
        raise AssertionError("the lock was given")


def test_whoever_waited_for_a_lock_that_is_gone_waits_for_the_next(tmp_path):
    target, inside, most = tmp_path / "file.bin", [], []

    def enter(seconds, ready):
        with only_one(target):
            inside.append(1)
            most.append(len(inside))
            ready.set()
            time.sleep(seconds)
            inside.pop()

    first, second = threading.Event(), threading.Event()
    with ThreadPoolExecutor(3) as pool:
        pool.submit(enter, 0.15, first)
        first.wait(5)
        waiting = pool.submit(enter, 0.0, threading.Event())
        time.sleep(0.1)  # it has opened the lock of the first by now
        while list(tmp_path.iterdir()):
            time.sleep(0.001)
        pool.submit(enter, 0.3, second)  # a new lock, of the same name
        waiting.result(5)
    assert most == [1, 1, 1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="links take rights there")
@pytest.mark.parametrize("there", [True, False], ids=["to a file", "to nothing yet"])
def test_a_link_and_where_it_leads_are_one_result(there, tmp_path):
    """Two runs wrote one file at a time, one of them through a link."""
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "out.csv", tmp_path / "link.csv"
    link.symlink_to(target)
    if there:
        target.touch()
    for first, second in ((target, link), (link, target)):
        with alone(first), pytest.raises(DataError, match="Another run is writing"), alone(second):
            raise AssertionError("the lock was given")
