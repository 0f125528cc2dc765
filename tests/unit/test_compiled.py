"""Compiled code is kept where it can be written, and a long compilation is announced."""

import os
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import pytest
from numba import config

from aberra.compiled import _tell_not_kept, announce, compiled, kept_in
from aberra.progress import advance, hearing, in_threads, listening, remark


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Sources that nothing can be written beside, a user's folder, a temporary folder."""
    sources, home, temporary = (tmp_path / name for name in ("sources", "home", "temporary"))
    for folder in (sources, home, temporary):
        folder.mkdir()
    (sources / "__pycache__").write_text(
        "no folder, so that nobody can write into it, not even root"
    )
    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    kept_in.cache_clear()
    yield sources, home, temporary
    kept_in.cache_clear()


def test_code_is_kept_beside_the_sources_or_where_the_user_says(places, tmp_path, monkeypatch):
    assert kept_in(tmp_path) is None  # numba's own first choice
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    assert kept_in(places[0]) is None


def test_else_it_is_kept_in_the_users_folder(places):
    sources, home, _ = places
    assert kept_in(sources) == home / "aberra" / "compiled"


@pytest.mark.parametrize("home", ["unwritable", "missing"])
def test_without_a_home_it_is_kept_in_a_temporary_folder(places, monkeypatch, home):
    sources, _, temporary = places
    monkeypatch.delenv("XDG_CACHE_HOME")
    found = str(sources / "__pycache__") if home == "unwritable" else "~"
    monkeypatch.setattr(os.path, "expanduser", lambda path: path.replace("~", found))
    folder = kept_in(sources)
    assert folder.parent == temporary
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.skipif(os.name != "posix", reason="temporary folders are shared on POSIX only")
def test_code_is_not_kept_where_others_can_write(places, monkeypatch):
    sources = places[0]
    monkeypatch.setenv("XDG_CACHE_HOME", str(sources / "__pycache__"))
    folder = kept_in(sources)
    folder.chmod(0o777)
    kept_in.cache_clear()
    assert kept_in(sources) is None


USE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from aberra.progress import hearing
said = []
with hearing(said.append):
    from small import twice
    assert twice(21) == 42
print(said, sum(twice.stats.cache_hits.values()))
"""


@pytest.mark.slow
def test_the_second_process_finds_what_the_first_has_compiled(tmp_path):
    """And only the first one announces it."""
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "__pycache__").write_text("")
    (sources / "small.py").write_text(
        "from aberra.compiled import announce, compiled\n\n"
        "@compiled\ndef twice(n):\n    return 2 * n\n\nannounce(twice, 'This takes a while.')\n"
    )
    (tmp_path / "temporary").mkdir()
    environment = {**os.environ, "HOME": "/dev/null", "TMPDIR": str(tmp_path / "temporary")}
    for name in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):
        environment.pop(name, None)
    command = [sys.executable, "-B", "-c", USE, str(sources)]
    said = [subprocess.check_output(command, env=environment, text=True).strip() for _ in range(2)]
    assert said == ["['This takes a while.'] 0", "[] 1"]


def test_a_compilation_is_announced_once_to_whoever_listens(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))  # where nothing is kept yet

    @compiled
    def thrice(n):
        return 3 * n

    announce(thrice, "This takes a while.")
    said = []
    with hearing(said.append), ThreadPoolExecutor(2) as threads:
        assert list(threads.map(in_threads(thrice), [1, 2.0])) == [3, 6.0]
    assert said == ["This takes a while."]


def test_remarks_go_to_standard_error_if_nobody_listens(capsys):
    remark("This takes a while.")
    assert capsys.readouterr().err == "This takes a while.\n"


def test_threads_report_to_whoever_listens_to_the_one_that_started_them():
    told = []
    with listening(lambda *words: told.append(words)), ThreadPoolExecutor(1) as threads:
        threads.submit(advance, "lost", 0.5).result()
        threads.submit(in_threads(advance), "heard", 0.5).result()
    assert told == [("heard", 0.5, "")]


def test_it_is_said_once_that_nothing_compiled_can_be_kept(monkeypatch):
    def nowhere(signature=None, cache=False, **keywords):
        if cache:
            raise RuntimeError("no locator available")
        return lambda function: function

    said = []
    monkeypatch.setattr("aberra.compiled.njit", nowhere)
    monkeypatch.setattr(config, "CACHE_DIR", "/proc/nowhere")
    _tell_not_kept.cache_clear()
    with hearing(said.append):
        for _ in range(2):
            assert compiled(len_of)([1, 2]) == 2
    assert len(said) == 1
    assert "NUMBA_CACHE_DIR=/proc/nowhere" in said[0]


def len_of(rows):
    return len(rows)
