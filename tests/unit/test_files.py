"""Files are there whole or not at all, and nothing of a killed run stays beside them."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from aberra import MultiView
from aberra.data.sources import kind_of_path
from aberra.errors import DataError, ModelFileError
from aberra.files import TEMPORARY, replacing, write_atomically
from aberra.locks import alone
from aberra.model_file import save
from aberra.report.writing import check_place
from aberra.scoring.parts import check_output
from aberra.viewer.catalogue import catalogue
from aberra.workflow.outcome import check_model_place

KILLED = """
import os, signal, sys
from pathlib import Path
from aberra.files import replacing
with replacing(Path(sys.argv[1])) as temporary:
    temporary.write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def left_in(folder):
    return sorted(p.name for p in folder.iterdir())


def test_what_a_killed_writer_left_is_taken_over(tmp_path):
    target = tmp_path / "scores.csv"
    target.write_bytes(b"old")
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", KILLED, target], check=False)
        assert done.returncode == -signal.SIGKILL
        assert target.read_bytes() == b"old"
        assert sum(name.startswith(TEMPORARY) for name in left_in(tmp_path)) == 1
    write_atomically(target, b"new")
    assert target.read_bytes() == b"new"
    assert left_in(tmp_path) == ["scores.csv"]


def test_two_writers_of_one_file_do_not_touch_each_other(tmp_path):
    target = tmp_path / "a.bin"
    with replacing(target) as one:
        with replacing(target) as other:
            assert one != other
            one.write_bytes(b"one")
            other.write_bytes(b"other")
        assert target.read_bytes() == b"other"
    assert target.read_bytes() == b"one"
    assert left_in(tmp_path) == ["a.bin"]


@pytest.mark.parametrize("make", [os.symlink, os.link], ids=["symbolic", "hard"])
def test_a_link_in_the_place_of_the_temporary_file_is_not_written_through(make, tmp_path):
    with replacing(tmp_path / "a.bin") as usual:
        pass
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    make(victim, usual)
    write_atomically(tmp_path / "a.bin", b"new")
    assert victim.read_bytes() == b"mine"
    assert (tmp_path / "a.bin").read_bytes() == b"new"


def test_the_second_run_on_one_output_is_refused(tmp_path):
    target, refusals = tmp_path / "scores.csv", []

    def second():
        try:
            with alone(target):
                pass
        except DataError as error:
            refusals.append(str(error))

    with alone(target):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert "Another run is writing" in refusals[0]
    second()  # afterwards it is free again
    assert len(refusals) == 1
    assert left_in(tmp_path) == []


PLACES = {
    "table to fit or score": kind_of_path,
    "scores": check_output,
    "model": lambda path: check_model_place(path, path.with_name("data.csv")),
    "report": check_place,
    "view": catalogue,
    "write": lambda path: write_atomically(path, b""),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_pipe_is_neither_read_nor_replaced(place, tmp_path):
    pipe = tmp_path / "data.csv"
    os.mkfifo(pipe)
    with pytest.raises(DataError, match=r"a device, a pipe or a socket.*regular file"):
        PLACES[place](pipe)
    assert pipe.is_fifo()


def test_a_device_is_not_replaced():
    with pytest.raises(DataError, match="a device"):
        write_atomically(Path("/dev/null"), b"")  # as root this would put a file there


def test_save_says_why_a_pipe_is_refused(dirty_blob, tmp_path):
    os.mkfifo(tmp_path / "m.aberra")
    with pytest.raises(ModelFileError, match=r"Cannot save to .* a pipe"):
        save(MultiView(random_state=0).fit(dirty_blob[0]), tmp_path / "m.aberra")
