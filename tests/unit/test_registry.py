"""Named data sets: what the registry promises, how files become arrays, and what is refused."""

import gzip
import hashlib
import io
import json
import os
import pickle
import re
import struct
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from scipy.io import savemat
from typer.testing import CliRunner

from aberra.cli import app
from aberra.data import originals
from aberra.data.archives import Unpacking, unpack
from aberra.data.catalogue import DATA_SETS
from aberra.data.originals import MNIST_FILES, read_cifar10, read_idx, read_table
from aberra.data.registry import data_dir, entry, find, get, load_images, load_table
from aberra.data.transfer import RemoteFile
from aberra.errors import DataError

REAL = pytest.mark.skipif(not os.environ.get("ABERRA_DATA"), reason="$ABERRA_DATA is not set")


@pytest.mark.parametrize("known", DATA_SETS.values(), ids=lambda known: known.name)
def test_entries_are_complete(known):
    assert known.what
    assert known.licence
    assert known.citation.endswith(".")
    assert urlsplit(known.page).netloc
    assert known.prepared
    assert bool(known.files) != bool(known.by_hand)
    assert (known.anomalies is not None) == (known.kind == "table")
    assert known.group in ("odds", "odds_extra", "images", "mri")
    for file in known.files:
        assert file.addresses
        assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)
        assert file.md5 is None or re.fullmatch("[0-9a-f]{32}", file.md5)
        assert not Path(file.path).is_absolute()
        for address in file.addresses:
            # plain http only where a checksum that nobody can forge catches what was changed
            assert address.startswith("https://") or (address.startswith("http://") and file.sha256)


def test_no_two_files_share_a_place_or_a_checksum():
    files = [file for known in DATA_SETS.values() for file in known.files]
    assert len({file.path for file in files}) == len(files)
    checksums = [file.sha256 for file in files if file.sha256]
    assert len(set(checksums)) == len(checksums)


def test_the_papers_six_tables_are_there_by_name():
    six = {known.name: known for known in DATA_SETS.values() if known.group == "odds"}
    shares = {name: round(100 * six[name].anomalies / six[name].shape[0], 2) for name in six}
    assert shares == {
        "satellite": 31.64,
        "arrhythmia": 14.6,
        "cardio": 9.61,
        "shuttle": 7.15,
        "thyroid": 2.47,
        "satimage-2": 1.22,
    }
    assert {known.checked for known in six.values()} == {"sha256"}


def test_data_dir_takes_the_first_that_is_given(monkeypatch, tmp_path):
    monkeypatch.setenv("ABERRA_DATA", "/named")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert data_dir(tmp_path) == tmp_path
    assert data_dir(None) == Path("/named")
    monkeypatch.delenv("ABERRA_DATA")
    assert data_dir() == Path("/cache/aberra")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert data_dir() == Path("/home/somebody/.cache/aberra")
    assert data_dir("~/sets") == Path("/home/somebody/sets")


def test_unknown_names_are_listed():
    with pytest.raises(DataError, match=r"'cardo'.*satellite, arrhythmia, cardio"):
        entry("cardo")


def a_table(rows=240, columns=6, anomalies=30):
    X = np.random.default_rng(0).normal(size=(rows, columns))
    return X, (np.arange(rows) < anomalies).astype(np.int64)


def put(folder, place, **arrays):
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".mat":
        savemat(path, arrays)
    else:
        np.savez(path, **arrays)
    return path


@pytest.mark.parametrize("suffix", [".npz", ".mat"])
def test_tables_are_read_as_they_lie(tmp_path, suffix, monkeypatch):
    X, y = a_table()
    column = y[:, None].astype(np.uint8) if suffix == ".mat" else y
    put(tmp_path, f"odds_extra/vertebral{suffix}", X=X, y=column)
    if suffix == ".mat":  # not the public file, and not asked to be: it was put there by hand
        monkeypatch.setenv("ABERRA_DATA", str(tmp_path))
    found_X, found_y = load_table("vertebral", tmp_path)
    np.testing.assert_array_equal(found_X, X)
    np.testing.assert_array_equal(found_y, y)
    assert (found_X.dtype, found_y.dtype) == (np.float64, np.int8)
    assert found_X.flags.c_contiguous


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"X": np.zeros((240, 6))}, "no array y"),
        ({"X": np.zeros(3), "y": np.zeros(3)}, "X has shape"),
        ({"X": np.zeros((3, 2)), "y": np.zeros(4)}, "y \\(4,\\)"),
        ({"X": np.zeros((3, 2)), "y": np.array([0, 1, 2])}, "else than 0 and 1"),
        ({"X": np.zeros((3, 2)), "y": np.array([0, 1, 1])}, "2 anomalies; vertebral has"),
    ],
)
def test_tables_that_are_not_right(tmp_path, arrays, words):
    put(tmp_path, "odds_extra/vertebral.npz", **arrays)
    with pytest.raises(DataError, match=words):
        load_table("vertebral", tmp_path)


class Evil:
    def __reduce__(self):
        return (os.mkdir, ("was-run",))


def test_nothing_is_unpickled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = put(tmp_path, "x.npz", X=np.array([[Evil()]], dtype=object), y=np.zeros(1))
    with pytest.raises(DataError, match="damaged"):
        read_table(path)
    path.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(DataError, match="damaged"):
        read_table(path)
    assert not Path("was-run").exists()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut short", b"MATLAB 5.0 MAT-file" * 9])
@pytest.mark.parametrize("name", ["x.npz", "x.mat"])
def test_damaged_tables(tmp_path, content, name):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"x\.(npz|mat) (is damaged|has no array)"):
        read_table(path)


def test_a_mat_file_of_version_7_3_says_what_it_needs(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)  # as if it were not installed
    path = tmp_path / "http.mat"
    header = b"MATLAB 7.3 MAT-file".ljust(124) + struct.pack("<HH", 0x0200, 0x4D49)
    path.write_bytes(header.ljust(512, b"\0") + b"\x89HDF\r\n\x1a\n" + bytes(100))
    with pytest.raises(DataError, match=r"7\.3.*pip install h5py.*http\.npz"):
        read_table(path)


def test_a_folder_without_the_file(tmp_path):
    with pytest.raises(DataError, match="No such file"):
        read_table(tmp_path / "x.npz")


def idx(array):
    head = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.tobytes()


def small_mnist(folder):
    random = np.random.default_rng(0)
    parts = {}
    for name in MNIST_FILES:
        n = 5 if name.startswith("train") else 3
        shape = (n, 28, 28) if "images" in name else (n,)
        parts[name] = random.integers(0, 10, shape, dtype=np.uint8)
        path = folder / "images" / "mnist" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(idx(parts[name])))
    return [parts[name] for name in MNIST_FILES]


def test_mnist_from_its_four_files(tmp_path):
    parts = small_mnist(tmp_path)
    found = load_images("mnist", tmp_path)
    assert [array.shape for array in found] == [(5, 1, 28, 28), (5,), (3, 1, 28, 28), (3,)]
    for array, part in zip(found, parts, strict=True):
        np.testing.assert_array_equal(array.reshape(part.shape), part)
        assert array.dtype == np.uint8
        assert array.flags.writeable


def test_three_of_four_files_are_not_the_set(tmp_path):
    small_mnist(tmp_path)
    (tmp_path / "images" / "mnist" / MNIST_FILES[3]).unlink()
    assert find("mnist", tmp_path) is None


def test_files_of_mnist_that_are_not_the_public_ones_are_told_by_get(tmp_path):
    small_mnist(tmp_path)
    (tmp_path / "images" / "mnist" / MNIST_FILES[3]).unlink()
    with pytest.raises(DataError, match="is not the public file"):
        get("mnist", tmp_path)
    small_mnist(tmp_path)
    with pytest.raises(DataError, match="is not the public file"):
        get("mnist", tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"not gzip",
        gzip.compress(b""),
        gzip.compress(b"\0\0\x0d\x01" + bytes(8)),
        gzip.compress(idx(np.zeros((2, 3), np.uint8))[:-1]),
        gzip.compress(idx(np.zeros((2, 3), np.uint8)) + b"x"),
        gzip.compress(idx(np.zeros((2, 3), np.uint8))[:7]),
        gzip.compress(bytes((0, 0, 8, 3)) + b"\xff" * 12),
        gzip.compress(idx(np.zeros((2, 3), np.uint8)))[:-9],
    ],
    ids=["text", "empty", "floats", "short", "long", "header", "huge", "cut"],
)
def test_damaged_idx_files(tmp_path, content):
    path = tmp_path / "x.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"x\.gz"):
        read_idx(path)


def test_a_bomb_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(originals, "IDX_LIMIT", 1000)
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(idx(np.zeros(1001, np.uint8))))
    with pytest.raises(DataError, match="more than 1000 bytes"):
        read_idx(path)


def npz_images(folder, place, shape):
    return put(
        folder,
        place,
        x_train=np.arange(np.prod((2, *shape))).reshape(2, *shape).astype(np.uint8),
        y_train=np.array([0, 1], np.uint8),
        x_test=np.zeros((1, *shape), np.uint8),
        y_test=np.zeros((1, 1), np.uint8),
    )


def test_colours_go_first(tmp_path):
    npz_images(tmp_path, "images/cifar10.npz", (32, 32, 3))
    images, _, test, labels = load_images("cifar10", tmp_path)
    assert (images.shape, test.shape, labels.shape) == ((2, 3, 32, 32), (1, 3, 32, 32), (1,))
    assert images[0, :, 0, 1].tolist() == [3, 4, 5]


def test_a_part_serves_until_the_whole_set_is_there(tmp_path):
    part = npz_images(tmp_path, "images/cifar10_subset.npz", (32, 32, 3))
    found = find("cifar10", tmp_path)
    assert (found.path, found.whole) == (part, False)
    whole = npz_images(tmp_path, "images/cifar10.npz", (32, 32, 3))
    found = find("cifar10", tmp_path)
    assert (found.path, found.whole) == (whole, True)


def test_other_images_at_the_place(tmp_path):
    npz_images(tmp_path, "images/cifar10.npz", (28, 28))
    with pytest.raises(DataError, match="Another set lies at that place"):
        load_images("cifar10", tmp_path)
    put(tmp_path, "images/cifar10.npz", **dict.fromkeys(originals.IMAGE_KEYS, np.zeros(1)))
    with pytest.raises(DataError, match="float64, not uint8"):
        load_images("cifar10", tmp_path)


def test_kinds_are_not_mixed_up(tmp_path):
    with pytest.raises(DataError, match="not of kind 'table' but 'images'"):
        load_table("mnist", tmp_path)
    with pytest.raises(DataError, match="not of kind 'images' but 'scans'"):
        load_images("ixi", tmp_path)


def test_what_no_script_may_fetch(tmp_path):
    with pytest.raises(DataError, match=r"No script may fetch.*851861.*mri/edinburgh\."):
        get("edinburgh", tmp_path)
    (tmp_path / "mri" / "edinburgh").mkdir(parents=True)
    assert get("edinburgh", tmp_path).path == tmp_path / "mri" / "edinburgh"


def tar(path, *members, mode="w:gz"):
    """Write an archive of (name, content) pairs; content may also be a function of the TarInfo."""
    with tarfile.open(path, mode) as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            if callable(content):
                content(member)
                archive.addfile(member)
            else:
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return path


def link(kind, to):
    def change(member):
        member.type, member.linkname = kind, to

    return change


@pytest.fixture
def small_cifar(monkeypatch):
    monkeypatch.setattr(originals, "CIFAR_RECORDS", 2)
    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (12, 3072), dtype=np.uint8)
    records = np.hstack([np.arange(12, dtype=np.uint8)[:, None] % 10, pixels])
    names = [f"data_batch_{k}.bin" for k in range(1, 6)] + ["test_batch.bin"]
    return records, [
        (f"cifar-10-batches-bin/{name}", records[2 * k : 2 * k + 2].tobytes())
        for k, name in enumerate(names)
    ]


def test_cifar10_from_its_archive(tmp_path, small_cifar):
    records, members = small_cifar
    shuffled = [("cifar-10-batches-bin/readme.html", b"hello"), *members[::-1]]
    path = tar(tmp_path / "cifar.tar.gz", *shuffled)
    train, labels, test, test_labels = read_cifar10(path)
    np.testing.assert_array_equal(train.reshape(10, -1), records[:10, 1:])
    np.testing.assert_array_equal(test.reshape(2, -1), records[10:, 1:])
    assert labels.tolist() == list(range(10))
    assert test_labels.tolist() == [0, 1]


def test_cifar10_archives_that_are_not_right(tmp_path, small_cifar):
    _, members = small_cifar
    path = tmp_path / "cifar.tar.gz"
    with pytest.raises(DataError, match=r"has no cifar-10-batches-bin/test_batch\.bin"):
        read_cifar10(tar(path, *members[:5]))
    with pytest.raises(DataError, match="is no file of 6146 bytes"):
        read_cifar10(tar(path, *members[:5], (members[5][0], b"short")))
    to_passwords = link(tarfile.SYMTYPE, "/etc/passwd")
    with pytest.raises(DataError, match="is no file of 6146 bytes"):
        read_cifar10(tar(path, *members[:5], (members[5][0], to_passwords)))
    with pytest.raises(DataError, match="label above 9"):
        read_cifar10(tar(path, *members[:5], (members[5][0], b"\xff" * 6146)))
    whole = tar(path, *members).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="damaged"):
        read_cifar10(path)


RECIPE = Unpacking("mri/set", "*.nii.gz", most_files=3, most_bytes=100)


def test_archives_are_unpacked_whole(tmp_path):
    path = tar(
        tmp_path / "x.tar",
        ("top/a/1.nii.gz", b"one"),
        ("./top/a/2.nii.gz", b"two"),
        ("top/readme.txt", b"stays"),
        mode="w",
    )
    folder = unpack(path, tmp_path, Unpacking("mri/set", "*.nii.gz", strip=1))
    assert folder == tmp_path / "mri" / "set"
    files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*.*")}
    assert files == {"a/1.nii.gz": b"one", "a/2.nii.gz": b"two"}
    assert os.listdir(folder.parent) == ["set"]
    path.unlink()
    assert unpack(path, tmp_path, RECIPE) == folder  # it is there: the archive is not needed


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([("../x.nii.gz", b"x")], "not safe"),
        ([("a/../../x.nii.gz", b"x")], "not safe"),
        ([("/x.nii.gz", b"x")], "not safe"),
        ([("..\\x.nii.gz", b"x")], "not safe"),
        ([("c:x.nii.gz", b"x")], "not safe"),
        ([("x.nii.gz", link(tarfile.SYMTYPE, "/etc/passwd"))], "not safe"),
        ([("x.nii.gz", link(tarfile.LNKTYPE, "../../secret"))], "not safe"),
        ([("x.nii.gz", link(tarfile.CHRTYPE, ""))], "not safe"),
        ([("x.nii.gz", link(tarfile.FIFOTYPE, ""))], "not safe"),
        ([("x.nii.gz", b"x"), ("x.nii.gz", b"y")], "comes twice"),
        ([(f"{k}.nii.gz", b"x") for k in range(4)], "more than it should"),
        ([("x.nii.gz", b"x" * 101)], "more than it should"),
        ([("x.txt", b"x")], "has no member"),
        # a link outwards as a folder, then a file through it
        ([("d", link(tarfile.SYMTYPE, "..")), ("d/x.nii.gz", b"x")], None),
    ],
)
def test_members_are_not_trusted(tmp_path, members, words):
    data = tmp_path / "outer" / "data"
    data.mkdir(parents=True)
    path = tar(data / "x.tar.gz", *members)
    if words is None:
        assert (unpack(path, data, RECIPE) / "d" / "x.nii.gz").read_bytes() == b"x"
    else:
        with pytest.raises(DataError, match=words):
            unpack(path, data, RECIPE)
        assert os.listdir(data / "mri") == []
    outside = {p.name for p in tmp_path.rglob("*") if not p.is_relative_to(data / "mri")}
    assert outside == {"outer", "data", "x.tar.gz"}


def test_an_archive_that_is_cut_short_leaves_nothing(tmp_path):
    random = np.random.default_rng(0)
    path = tar(tmp_path / "x.tar.gz", ("a.nii.gz", b"a"), ("b.nii.gz", random.bytes(9000)))
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(DataError, match="damaged"):
        unpack(path, tmp_path, Unpacking("mri/set", "*.nii.gz"))
    assert os.listdir(tmp_path / "mri") == []


def test_what_a_killed_run_left_is_cleared_away(tmp_path):
    left = tmp_path / "mri" / ".unpacking-set"
    left.mkdir(parents=True)
    (left / "old.nii.gz").write_bytes(b"half")
    folder = unpack(tar(tmp_path / "x.tar.gz", ("a.nii.gz", b"a")), tmp_path, RECIPE)
    assert os.listdir(folder) == ["a.nii.gz"]


def test_two_threads_unpack_one_archive(tmp_path):
    members = [(f"{k}.nii.gz", bytes(20_000)) for k in range(50)]
    path = tar(tmp_path / "x.tar.gz", *members)
    recipe = Unpacking("mri/set", "*.nii.gz")
    with ThreadPoolExecutor(4) as pool:
        folders = list(pool.map(lambda _: unpack(path, tmp_path, recipe), range(4)))
    assert len(set(folders)) == 1
    assert len(os.listdir(folders[0])) == 50
    assert os.listdir(tmp_path / "mri") == ["set"]


def test_scans_are_got_from_their_archive(tmp_path, monkeypatch):
    path = tar(tmp_path / "s.tar.gz", ("top/a/sub-a_T1w.nii.gz", b"scan"), ("top/readme", b"x"))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    file = RemoteFile("s.tar.gz", ("http://127.0.0.1:9/s.tar.gz",), sha256=digest)
    known = replace(entry("nfbs"), files=(file,))
    monkeypatch.setitem(DATA_SETS, "nfbs", known)
    folder = get("nfbs", tmp_path).path
    assert (folder / "a" / "sub-a_T1w.nii.gz").read_bytes() == b"scan"
    command = ["data", "get", "nfbs", "--data-dir", str(tmp_path)]
    assert f"{path} is unpacked and may be deleted" in CliRunner().invoke(app, command).stdout
    path.unlink()
    assert get("nfbs", tmp_path).path == folder


def test_list_as_text_and_as_json(tmp_path):
    put(tmp_path, "odds/cardio.npz", X=np.zeros((1, 1)), y=np.zeros(1))
    npz_images(tmp_path, "images/cifar10_subset.npz", (32, 32, 3))
    run = CliRunner().invoke
    text = run(app, ["data", "list", "--data-dir", str(tmp_path)]).stdout
    lines = {line.split()[0]: line for line in text.splitlines()}
    assert re.search(r"1831 x 21 +yes +sha256 +none stated", lines["cardio"])
    assert re.search(r"567498 x 3 +no +unverified", lines["http"])
    assert re.search(r"60000 x 3x32x32 +170 +a part", lines["cifar10"])
    assert re.search(r"581 scans +no +md5 +CC BY-SA 3\.0", lines["ixi"])
    assert text.splitlines()[-1] == f"The data folder is {tmp_path}"
    for arguments in (["data", "list", "--json"], ["--json", "data", "list"]):
        answer = json.loads(run(app, [*arguments, "--data-dir", str(tmp_path)]).stdout)
        assert [one["name"] for one in answer["sets"]] == list(DATA_SETS)
        there = [one["name"] for one in answer["sets"] if one["path"]]
        assert there == ["cardio", "cifar10"]


def test_get_takes_groups_and_refuses_unknown_names_first(tmp_path):
    for known in DATA_SETS.values():
        if known.group == "odds":
            put(tmp_path, known.prepared[0], X=np.zeros((1, 1)), y=np.zeros(1))
    run = CliRunner().invoke
    result = run(app, ["data", "get", "odds", "cardio", "--data-dir", str(tmp_path)])
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 6
    result = run(app, ["data", "get", "nfbs", "nonsense", "--data-dir", str(tmp_path)])
    assert result.exit_code == 3
    assert "No data set is named 'nonsense'" in result.stderr
    assert not (tmp_path / "mri").exists()


@REAL
def test_real_tables_are_what_the_registry_says():
    present = [k.name for k in DATA_SETS.values() if k.kind == "table" and find(k.name)]
    if not present:
        pytest.skip("$ABERRA_DATA holds no table")
    for name in present:
        X, _ = load_table(name)
        assert np.isfinite(X).all()


@pytest.mark.slow
@REAL
@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_real_images_are_what_the_registry_says(name):
    found = find(name)
    if found is None:
        pytest.skip(f"$ABERRA_DATA holds no {name}")
    train, labels, test, _ = load_images(name)
    assert np.unique(labels).tolist() == list(range(10))
    assert (len(train) + len(test) == entry(name).shape[0]) == found.whole
