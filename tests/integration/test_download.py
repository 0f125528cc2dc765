"""Downloads from a real server that misbehaves: the right file or a clear error, no half file."""

import hashlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from typer.testing import CliRunner

from aberra.cli import app
from aberra.data import registry
from aberra.data.catalogue import DATA_SETS
from aberra.data.data_set import DataSet
from aberra.data.download import fetch, kept_sha256
from aberra.data.transfer import Patience, RemoteFile
from aberra.errors import DataError
from aberra.progress import listening

CONTENT = random.Random(0).randbytes(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
MD5 = hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()
QUICK = Patience(timeout=0.5, tries=3, pause=0.01)
HALF = len(CONTENT) // 2


class Server(ThreadingHTTPServer):
    """Serves CONTENT; `faults` are what it does to its next requests before it behaves."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = CONTENT
        self.faults = []
        self.always = None
        self.seen = []  # the Range of each request
        self.marks = {"ETag": '"one"'}
        self.lock = threading.Lock()

    def address(self, path="file.bin"):
        return f"http://127.0.0.1:{self.server_port}/{path}"

    def handle_error(self, request, client_address):
        """Say nothing: clients that hang up are the point."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        with self.server.lock:
            self.server.seen.append(self.headers.get("Range"))
            fault = self.server.faults.pop(0) if self.server.faults else self.server.always
        (fault or whole)(self)

    def begin(self, code, length, **headers):
        self.send_response(code)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in {**self.server.marks, **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def hang_up(self):
        self.wfile.flush()
        self.close_connection = True
        self.connection.close()

    def rest(self):
        """Answer the header; return what is to be sent."""
        content, wanted = self.server.content, self.headers.get("Range")
        condition = self.headers.get("If-Range")
        if wanted is None or (condition and condition != self.server.marks.get("ETag")):
            self.begin(200, len(content))
            return content
        start = int(wanted.removeprefix("bytes=").removesuffix("-"))
        if start >= len(content):
            self.begin(416, 0, Content_Range=f"bytes */{len(content)}")
            return b""
        span = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self.begin(206, len(content) - start, Content_Range=span)
        return content[start:]


def whole(handler):
    handler.wfile.write(handler.rest())


def drop(n):
    def fault(handler):
        handler.wfile.write(handler.rest()[:n])
        handler.hang_up()

    return fault


def stall(n):
    def fault(handler):
        handler.wfile.write(handler.rest()[:n])
        handler.wfile.flush()
        time.sleep(1.5)
        handler.hang_up()

    return fault


def say_nothing(handler):
    time.sleep(1.5)
    handler.hang_up()


def corrupt(handler):
    data = bytearray(handler.rest())
    data[len(data) // 3] ^= 1
    handler.wfile.write(data)


def truncated_and_honest_about_it(handler):
    handler.begin(200, HALF)
    handler.wfile.write(CONTENT[:HALF])


def without_length(content):
    def fault(handler):
        handler.begin(200, None, Connection="close")
        handler.wfile.write(content)
        handler.hang_up()

    return fault


def chunked(content, end=True):
    def fault(handler):
        handler.begin(200, None, Transfer_Encoding="chunked")
        handler.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
        handler.wfile.write(b"0\r\n\r\n" if end else b"")
        handler.hang_up()

    return fault


def more_than_announced(handler):
    handler.begin(200, len(CONTENT), Connection="close")
    handler.wfile.write(CONTENT + b"and more")
    handler.hang_up()


def ignore_range(handler):
    handler.begin(200, len(CONTENT))
    handler.wfile.write(CONTENT)


def wrong_range(handler):
    handler.begin(206, 10, Content_Range=f"bytes 0-9/{len(CONTENT)}")
    handler.wfile.write(CONTENT[:10])


def code(number):
    def fault(handler):
        handler.begin(number, 0)

    return fault


def redirect(address):
    def fault(handler):
        handler.begin(302, 0, Location=address)

    return fault


def web_page(handler):
    handler.begin(200, 12, Content_Type="text/html; charset=utf-8")
    handler.wfile.write(b"<p>Log in</p")


def slowly(handler):
    data = handler.rest()
    for start in range(0, len(data), 10_000):
        handler.wfile.write(data[start : start + 10_000])
        handler.wfile.flush()
        time.sleep(0.02)


@pytest.fixture
def server():
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def wanted(server):
    return RemoteFile("sets/file.bin", (server.address(),), len(CONTENT), SHA256, MD5)


def is_right(path):
    """The file is whole, and nothing else is left behind."""
    return path.read_bytes() == CONTENT and os.listdir(path.parent) == [path.name]


def refuses(file, folder, *words, patience=QUICK):
    with pytest.raises(DataError) as caught:
        fetch(file, folder, patience)
    message = str(caught.value)
    assert not (folder / file.path).exists()
    for word in (*words, *file.addresses, str(folder / file.path)):
        assert word in message
    return message


def test_a_good_server(server, wanted, tmp_path):
    assert is_right(fetch(wanted, tmp_path))
    assert server.seen == [None]
    fetch(wanted, tmp_path)
    assert len(server.seen) == 1  # it is there: nobody is asked


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [drop(HALF), drop(0), stall(HALF), say_nothing, corrupt, code(500), code(503), code(429)],
    ids=["drop", "drop at once", "stall", "silence", "corrupt", "500", "503", "429"],
)
def test_what_passes_is_tried_again(server, wanted, tmp_path, fault):
    server.faults = [fault]
    assert is_right(fetch(wanted, tmp_path, QUICK))


def test_a_dropped_connection_is_resumed_where_it_broke(server, wanted, tmp_path):
    server.faults = [drop(100_000), drop(50_000), drop(1)]
    assert is_right(fetch(wanted, tmp_path, QUICK))
    assert server.seen == [None, "bytes=100000-", "bytes=150000-", "bytes=150001-"]


def test_attempts_that_bring_something_do_not_count(server, wanted, tmp_path):
    server.always = drop(20_000)
    assert is_right(fetch(wanted, tmp_path, QUICK))
    assert len(server.seen) == 15


def test_attempts_are_bounded(server, wanted, tmp_path):
    server.always = drop(1)
    refuses(wanted, tmp_path, f"of {len(CONTENT)} bytes", patience=replace(QUICK, most=7))
    assert len(server.seen) == 7
    server.always = stall(0)
    refuses(wanted, tmp_path, "stopped answering", patience=replace(QUICK, timeout=0.1))


def test_the_next_run_goes_on_where_the_last_one_gave_up(server, wanted, tmp_path):
    server.faults = [drop(HALF)]
    server.always = code(503)
    refuses(wanted, tmp_path, "503")
    server.always = None
    assert is_right(fetch(wanted, tmp_path, QUICK))
    assert server.seen[-1] == f"bytes={HALF}-"


def test_a_server_that_ignores_the_range(server, wanted, tmp_path):
    server.faults = [drop(HALF), ignore_range]
    assert is_right(fetch(wanted, tmp_path, QUICK))


def test_a_server_that_sends_another_range(server, wanted, tmp_path):
    server.faults = [drop(HALF), wrong_range]
    refuses(wanted, tmp_path, "another part")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (truncated_and_honest_about_it, f"announces {HALF} bytes"),
        (without_length(CONTENT[:HALF]), f"of {len(CONTENT)} bytes"),
        (without_length(CONTENT + b"x"), "too many"),
        (chunked(CONTENT[:HALF]), f"of {len(CONTENT)} bytes"),
        (chunked(CONTENT + b"x"), "too many"),
        (corrupt, "sha256 is"),
        (code(404), "404"),
        (code(403), "403"),
        (code(500), "500"),
        (web_page, "web page"),
        (redirect("ftp://127.0.0.1/file.bin"), "not safe"),
        (redirect("file:///etc/passwd"), "302"),
        (redirect("/file.bin"), "302"),
    ],
)
def test_what_does_not_pass_is_an_error(server, wanted, tmp_path, fault, words):
    server.always = fault
    refuses(wanted, tmp_path, words)


def test_more_than_announced_is_cut_off(server, wanted, tmp_path):
    server.faults = [more_than_announced]
    assert is_right(fetch(wanted, tmp_path, QUICK))


def test_redirections_are_followed_and_keep_the_range(server, wanted, tmp_path):
    server.faults = [redirect(server.address("other")), drop(HALF), redirect("/third")]
    assert is_right(fetch(wanted, tmp_path, QUICK))
    assert server.seen == [None, None, f"bytes={HALF}-", f"bytes={HALF}-"]


def test_a_refusal_is_not_repeated(server, wanted, tmp_path):
    server.always = code(404)
    refuses(wanted, tmp_path, "404 Not Found")
    assert len(server.seen) == 1


def test_the_second_address_completes_what_the_first_began(server, wanted, tmp_path):
    server.faults = [drop(HALF), code(404)]
    file = replace(wanted, addresses=(server.address("first"), server.address("second")))
    assert is_right(fetch(file, tmp_path, QUICK))
    assert server.seen[-1] == f"bytes={HALF}-"


def test_the_second_address_replaces_a_wrong_file(server, wanted, tmp_path):
    server.faults = [corrupt, corrupt]
    file = replace(wanted, addresses=(server.address("first"), server.address("second")))
    assert is_right(fetch(file, tmp_path, QUICK))


def test_offline_names_the_address_and_the_place(tmp_path):
    file = RemoteFile("odds/x.mat", ("http://nowhere.invalid/x.mat", "http://127.0.0.1:9/x.mat"))
    refuses(file, tmp_path, "connection failed", patience=replace(QUICK, tries=1))


def test_an_old_part_that_is_damaged_costs_one_more_download(server, wanted, tmp_path):
    part = tmp_path / "sets" / ".part-file.bin"
    part.parent.mkdir()
    part.write_bytes(b"?" * HALF)
    assert is_right(fetch(wanted, tmp_path, QUICK))
    assert server.seen == [f"bytes={HALF}-", None]


@pytest.mark.parametrize("extra", [b"", b"too long"])
def test_a_part_that_has_everything_or_more(server, wanted, tmp_path, extra):
    part = tmp_path / "sets" / ".part-file.bin"
    part.parent.mkdir()
    part.write_bytes(CONTENT + extra)
    assert is_right(fetch(wanted, tmp_path, QUICK))
    assert len(server.seen) == (1 if extra else 0)
    (tmp_path / "sets" / "file.bin").unlink()
    part.write_bytes(CONTENT + extra)  # size not published: the server has to say
    server.seen.clear()
    assert is_right(fetch(replace(wanted, size=None), tmp_path, QUICK))
    asked = f"bytes={len(CONTENT + extra)}-"
    assert server.seen == ([asked, None] if extra else [asked])


def test_a_wrong_file_under_the_final_name_is_refused_and_left_alone(server, wanted, tmp_path):
    path = tmp_path / "sets" / "file.bin"
    path.parent.mkdir()
    path.write_bytes(b"mine")
    with pytest.raises(DataError, match="4 bytes instead of 300000"):
        fetch(wanted, tmp_path)
    assert path.read_bytes() == b"mine"


def unverified(file):
    return replace(file, size=None, sha256=None, md5=None)


def test_without_a_checksum_the_first_download_counts(server, wanted, tmp_path):
    file = unverified(wanted)
    path = fetch(file, tmp_path, QUICK)
    assert kept_sha256(path) == SHA256
    assert (
        subprocess.run(
            ["sha256sum", "--check", "file.bin.sha256"], cwd=path.parent, capture_output=True
        ).returncode
        == 0
    )
    path.unlink()
    server.content = CONTENT[::-1]
    refuses(file, tmp_path, f"not {SHA256}")
    server.content = CONTENT
    assert fetch(file, tmp_path, QUICK).read_bytes() == CONTENT


def test_an_md5_alone_is_checked_too(server, wanted, tmp_path):
    file = replace(wanted, size=None, sha256=None)
    server.always = corrupt
    refuses(file, tmp_path, "md5 is")
    server.always = None
    assert kept_sha256(fetch(file, tmp_path, QUICK)) == SHA256


def test_without_a_checksum_two_versions_are_never_mixed(server, wanted, tmp_path):
    file = unverified(wanted)
    server.faults = [drop(HALF)]
    server.always = code(503)
    refuses(file, tmp_path, "503")
    server.always, server.content, server.marks = None, CONTENT[::-1], {"ETag": '"two"'}
    assert fetch(file, tmp_path, QUICK).read_bytes() == CONTENT[::-1]


@pytest.mark.parametrize("marks", [{}, {"ETag": 'W/"weak"'}])
def test_without_a_checksum_and_a_mark_nothing_is_resumed(server, wanted, tmp_path, marks):
    server.marks = marks
    server.faults = [drop(HALF)]
    assert fetch(unverified(wanted), tmp_path, QUICK).read_bytes() == CONTENT
    assert server.seen == [None, None]


@pytest.mark.parametrize("fault", [without_length(CONTENT[:HALF]), chunked(CONTENT, end=False)])
def test_without_a_checksum_a_length_is_needed(server, wanted, tmp_path, fault):
    server.always = fault
    refuses(unverified(wanted), tmp_path)


def test_without_a_size_there_is_a_limit(server, wanted, tmp_path):
    server.always = chunked(CONTENT)
    assert fetch(unverified(wanted), tmp_path, QUICK).read_bytes() == CONTENT
    refuses(replace(unverified(wanted), path="b", limit=1000), tmp_path, "too many")


def test_content_that_is_not_accepted_never_gets_the_name(server, wanted, tmp_path):
    def accept(path):
        raise DataError(f"{path.suffix} is no table")

    with pytest.raises(DataError, match=r"\.bin is no table"):
        fetch(unverified(wanted), tmp_path, QUICK, accept)
    assert os.listdir(tmp_path / "sets") == []


@pytest.mark.slow
def test_progress_is_told(server, wanted, tmp_path):
    told = []
    server.faults = [slowly]
    with listening(lambda task, fraction, note: told.append((task, fraction, note))):
        fetch(wanted, tmp_path)
    fractions = [fraction for _, fraction, _ in told]
    assert fractions == sorted(fractions)
    assert len(fractions) > 5
    assert told[-1][:2] == ("file.bin", 1.0)
    assert told[-2][2] == "0.3 of 0.3 MB"


def test_a_folder_that_cannot_be_written(server, wanted, tmp_path):
    (tmp_path / "sets").write_text("a file where the folder should be")
    with pytest.raises(DataError, match=r"cannot take file\.bin: File exists"):
        fetch(wanted, tmp_path, QUICK)


FETCH = """
import sys
from pathlib import Path
from aberra.data.download import fetch
from aberra.data.transfer import Patience, RemoteFile
from aberra.errors import DataError
if len(sys.argv) > 5:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[5]),) * 2)
try:
    fetch(RemoteFile("sets/file.bin", (sys.argv[1],), int(sys.argv[2]), sys.argv[3]),
          Path(sys.argv[4]), Patience(timeout=5))
except DataError as error:
    print(error)
    raise SystemExit(3)
"""


def start_fetching(server, folder, *more):
    arguments = (server.address(), len(CONTENT), SHA256, folder, *more)
    return subprocess.Popen(
        [sys.executable, "-c", FETCH, *map(str, arguments)], stdout=subprocess.PIPE, text=True
    )


def part_of(folder):
    return folder / "sets" / ".part-file.bin"


def wait_for_bytes(folder, n):
    part = part_of(folder)
    for _ in range(1000):
        if part.exists() and part.stat().st_size >= n:
            return
        time.sleep(0.01)
    raise AssertionError("no bytes came")


def test_a_killed_process_leaves_a_part_that_is_used(server, wanted, tmp_path):
    server.faults = [slowly]
    process = start_fetching(server, tmp_path)
    wait_for_bytes(tmp_path, 30_000)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not (tmp_path / wanted.path).exists()
    assert 30_000 <= part_of(tmp_path).stat().st_size < len(CONTENT)
    fetched = fetch(wanted, tmp_path, QUICK)
    assert is_right(fetched)
    assert server.seen[0] is None
    assert int(server.seen[1].strip("bytes=-")) >= 30_000


@pytest.mark.slow
def test_two_processes_and_two_threads_ask_once(server, wanted, tmp_path):
    server.always = slowly
    processes = [start_fetching(server, tmp_path) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        paths = list(pool.map(lambda _: fetch(wanted, tmp_path, QUICK), range(2)))
    assert [process.wait(20) for process in processes] == [0, 0]
    for process in processes:
        process.communicate()
    assert all(is_right(path) for path in paths)
    assert len(server.seen) == 1


def test_a_full_disk_is_an_error_that_can_be_mended(server, wanted, tmp_path):
    process = start_fetching(server, tmp_path, 100_000)
    said, _ = process.communicate(timeout=20)
    assert process.returncode == 3
    assert "cannot take file.bin: File too large" in said
    assert not (tmp_path / wanted.path).exists()
    assert len(server.seen) == 1  # the server is not to blame, so it is not asked again
    assert is_right(fetch(wanted, tmp_path, QUICK))


def test_room_is_asked_for_before_the_download(server, tmp_path):
    file = RemoteFile("file.bin", (server.address(),), limit=1 << 62, sha256=SHA256)
    server.always = lambda handler: handler.begin(200, 1 << 60)
    with pytest.raises(DataError, match="MB are needed"):
        fetch(file, tmp_path, QUICK)


@pytest.fixture
def tiny(server, monkeypatch):
    """A table of the registry that this server has."""
    import io

    X, y = np.arange(12.0).reshape(6, 2), np.array([0, 0, 1, 0, 0, 1])
    buffer = io.BytesIO()
    np.savez(buffer, X=X, y=y)
    server.content = buffer.getvalue()
    known = DataSet(
        "tiny",
        "table",
        "six rows",
        (6, 2),
        "none stated",
        "nobody",
        "http://127.0.0.1",
        prepared=("odds_extra/tiny.mat",),
        files=(RemoteFile("odds_extra/tiny.npz", (server.address("tiny.npz"),)),),
        original="odds_extra/tiny.npz",
        anomalies=2,
    )
    monkeypatch.setitem(DATA_SETS, "tiny", known)
    return known


def test_a_table_that_is_not_there_is_downloaded(tiny, tmp_path):
    X, y = registry.load_table("tiny", tmp_path)
    assert X.shape == (6, 2)
    assert y.dtype == np.int8
    assert y.tolist() == [0, 0, 1, 0, 0, 1]
    assert registry.find("tiny", tmp_path).path == tmp_path / "odds_extra" / "tiny.npz"


def test_another_table_at_the_address_is_refused(tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(DATA_SETS, "tiny", replace(tiny, anomalies=3))
    with pytest.raises(DataError, match="2 anomalies; tiny has"):
        registry.get("tiny", tmp_path, QUICK)
    assert os.listdir(tmp_path / "odds_extra") == []


def test_the_commands(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("ABERRA_DATA", str(tmp_path))
    run = CliRunner().invoke
    missing = run(app, ["data", "where", "tiny"])
    assert missing.exit_code == 3
    assert tiny.files[0].addresses[0] in missing.stderr
    assert str(tmp_path / "odds_extra" / "tiny.npz") in missing.stderr
    got = run(app, ["data", "get", "tiny"])
    assert got.exit_code == 0, got.output
    assert "no sha256 is published; from now on it is" in got.stdout
    there = run(app, ["data", "where", "tiny"])
    assert there.stdout == f"{tmp_path / 'odds_extra' / 'tiny.npz'}\n"


def test_get_goes_on_after_a_failure_and_ends_with_it(tiny, tmp_path, monkeypatch):
    lost = replace(tiny, name="lost", files=(), original="", prepared=("mri/lost",))
    monkeypatch.setitem(DATA_SETS, "lost", lost)
    result = CliRunner().invoke(app, ["data", "get", "lost", "tiny", "--data-dir", str(tmp_path)])
    assert result.exit_code == 3
    assert "No script may fetch it" in result.stderr
    assert registry.find("tiny", tmp_path) is not None


def test_what_a_killed_process_left_beside_a_complete_file_goes(tmp_path, wanted):
    target = fetch(wanted, tmp_path, QUICK)
    names = sorted(p.name for p in target.parent.iterdir())
    for name in (".part-", ".part-{}.tag", ".lock-"):
        left = name.format(target.name) if "{}" in name else f"{name}{target.name}"
        (target.parent / left).write_bytes(b"")
    fetch(wanted, tmp_path, QUICK)
    assert sorted(p.name for p in target.parent.iterdir()) == names
