"""Damaged, hostile and half-written model files: an error that says so, never a wrong model."""

import contextlib
import hashlib
import io
import json
import os
import pickle
import random
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from sklearn.svm import OneClassSVM

from aberra import ADC, DAGPR, IADC, OCSVM, AutoEncoder, MultiView, load, save
from aberra.errors import ModelFileError
from aberra.model_file.container import FORMAT, HEAD, LENGTHS, MAGIC, pack, unpack

pytestmark = pytest.mark.filterwarnings("ignore::aberra.errors.RoundsExhaustedWarning")

N_DAMAGED = 500


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(40, 3))


@pytest.fixture(scope="module")
def files(rows, tmp_path_factory):
    """Return the bytes of a few sound files, each with the scores of its model."""
    short = {"n_members": 2, "random_state": 0}
    models = [
        MultiView(random_state=0),
        IADC(OCSVM(), max_rounds=2, **short),
        ADC(OneClassSVM(), **short),
        DAGPR(hidden=(4, 2), pretrain_epochs=1, random_state=0),
    ]
    folder = tmp_path_factory.mktemp("sound")
    sound = []
    for k, model in enumerate(models):
        save(model.fit(rows), folder / f"{k}.aberra")
        data = (folder / f"{k}.aberra").read_bytes()
        sound.append((data, model.anomaly_score(rows).tobytes()))
    return sound


def sealed(body):
    """Give any body a header and checksum that fit it."""
    return HEAD.pack(MAGIC, FORMAT, hashlib.sha256(body).digest()) + body


def resealed(data):
    """Make the checksum of a damaged file fit, so that the checks behind it are reached."""
    return sealed(data[HEAD.size :]) if len(data) > HEAD.size else data


def flip(data, other, rng):
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 10])):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def truncate(data, other, rng):
    return data[: rng.randrange(len(data))]


def extend(data, other, rng):
    return data + rng.choice([rng.randbytes(rng.randrange(1, 99)), b"\0", other])


def swap(data, other, rng):
    """Overwrite a block with the other file's block of the same place."""
    start = rng.randrange(min(len(data), len(other)) - 1)
    size = rng.randrange(1, min(len(data), len(other)) - start)
    return data[:start] + other[start : start + size] + data[start + size :]


def splice(data, other, rng):
    """Join one file's manifest with the other's arrays."""
    return pack(unpack(data)[0], unpack(other)[1])


def noise(data, other, rng):
    return rng.choice([b"", data[: len(MAGIC)]]) + rng.randbytes(rng.randrange(2000))


def cut_out(data, other, rng):
    start = rng.randrange(len(data))
    return data[:start] + data[start + rng.randrange(1, 99) :]


def check_refused_or_equal(data, path, X, expected):
    """Say whether the file was refused; a file that loads must score as it should."""
    path.write_bytes(data)
    try:
        model = load(path)
    except ModelFileError:
        return True
    finally:
        assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert model.anomaly_score(X).tobytes() == expected
    return False


@pytest.mark.slow
def test_damaged_files_are_refused(files, rows, tmp_path):
    rng = random.Random(0)
    damages = [flip, truncate, extend, swap, splice, noise, cut_out]
    for k in range(N_DAMAGED):
        (data, expected), (other, _) = rng.sample(files, 2)
        broken = damages[k % len(damages)](data, other, rng)
        refused = check_refused_or_equal(broken, tmp_path / "m.aberra", rows, expected)
        assert refused == (broken != data)


def test_damage_behind_a_fitting_checksum_raises_nothing_else(files, tmp_path):
    """Whoever forges the checksum may change numbers, but gets no other error and no crash."""
    rng = random.Random(1)
    path = tmp_path / "m.aberra"
    for k in range(N_DAMAGED):
        (data, _), (other, _) = rng.sample(files, 2)
        damage = [flip, truncate, extend, swap, cut_out][k % 5]
        path.write_bytes(resealed(damage(data, other, rng)))
        with contextlib.suppress(ModelFileError):
            load(path)
        assert list(tmp_path.iterdir()) == [path]


def places(node):
    """Yield every container in a JSON tree with each of its keys."""
    for key in node if isinstance(node, dict) else range(len(node)):
        yield node, key
        if isinstance(node[key], dict | list):
            yield from places(node[key])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # whatever strange numbers lead to
def test_changed_manifests_raise_nothing_else(files, tmp_path):
    rng = random.Random(3)
    images = np.random.default_rng(0).random((20, 1, 8, 8))
    save(AutoEncoder(epochs=1, random_state=0).fit(images), tmp_path / "images")
    path, refused = tmp_path / "m.aberra", 0
    sound = [*(data for data, _ in files), (tmp_path / "images").read_bytes()]
    for k in range(N_DAMAGED):
        manifest, arrays = unpack(sound[k % len(sound)])
        node, key = rng.choice(list(places(manifest)))
        node[key] = rng.choice([None, True, -1, 0, 7, 1.5, "x", [], [1], {}, {"x": 1}])
        path.write_bytes(pack(manifest, arrays))
        try:
            load(path)
        except ModelFileError:
            refused += 1
    assert refused > N_DAMAGED / 2


def edited(data, edit):
    """Return a sound frame around contents that `edit` has changed."""
    manifest, arrays = unpack(data)
    edit(manifest, arrays)
    return pack(manifest, arrays)


def learnt(name, value):
    def edit(manifest, arrays):
        manifest["learnt"][name] = value

    return edit


def array(name, change):
    def edit(manifest, arrays):
        place = f"learnt.members_.parts.0.machines.0.{name}"
        arrays[place] = change(arrays[place])

    return edit


LIES = {
    "class": (lambda m, a: m["estimator"].update({"class": "os.system"}), "unknown class"),
    "class list": (lambda m, a: m["estimator"].update({"class": []}), "unknown class"),
    "parameter": (lambda m, a: m["estimator"]["params"].update(shell=True), "no parameters"),
    "nested": (
        lambda m, a: m["estimator"]["params"]["detector"]["estimator"].update({"class": "Popen"}),
        "params.detector: unknown class",
    ),
    "value": (lambda m, a: m["estimator"]["params"].update(n_members={"eval": "1"}), "n_members"),
    "key": (lambda m, a: m.update(more=1), "unknown entries"),
    "no key": (lambda m, a: m.pop("learnt"), "missing entries"),
    "format": (lambda m, a: m.update(format=9), "contradicts"),
    "attribute": (learnt("__class__", "x"), "unknown entries"),
    "method": (learnt("anomaly_score", "x"), "unknown entries"),
    "type": (learnt("threshold_", "high"), "learnt.threshold_: got 'high'"),
    "columns": (learnt("n_features_in_", 4), "3 columns instead of 4"),
    "bool": (learnt("n_features_in_", True), "learnt.n_features_in_"),
    "part": (learnt("members_", {"parts": [{"Popen": {}}]}), "members_.parts.0: got"),
    "no members": (learnt("members_", {"parts": []}), "Error"),
    "extra array": (lambda m, a: a.update(more=np.zeros(3)), "arrays: unknown entries"),
    "no array": (lambda m, a: a.pop("learnt.weights_"), "learnt.weights_: the array is missing"),
    "dtype": (array("vectors", lambda v: v.astype(np.float32)), "vectors: .*type float32"),
    "ndim": (array("vectors", lambda v: v[0]), "vectors: .*shape"),
    "sizes": (array("vectors", lambda v: v[1:]), "coefficients: a dimension"),
    "width": (array("vectors", lambda v: v[:, 1:].copy()), "ValueError"),
    "rows": (lambda m, a: a.update({"learnt.weights_": np.zeros(7)}), "weights_: a dimension"),
}


@pytest.mark.parametrize("lie", LIES)
def test_the_message_names_the_part_that_is_wrong(lie, files, tmp_path):
    edit, message = LIES[lie]
    path = tmp_path / "m.aberra"
    path.write_bytes(edited(files[1][0], edit))
    with pytest.raises(ModelFileError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (FORMAT + 1, r"format 4, newer .* Update Aberra"),
        (FORMAT - 1, r"format 2, of a version before .* Fit the model again"),
        (0, "there is no format 0"),
    ],
)
def test_other_formats_say_what_to_do(files, tmp_path, version, message):
    path = tmp_path / "m.aberra"
    data = files[0][0]
    path.write_bytes(HEAD.pack(MAGIC, version, b"\0" * 32) + data[HEAD.size :])
    with pytest.raises(ModelFileError, match=message):
        load(path)


@pytest.mark.parametrize(
    "body",
    [
        LENGTHS.pack(2**63, 2**63),
        LENGTHS.pack(2, 0) + b"{}",
        LENGTHS.pack(100_000, 0) + b"[" * 100_000,
        LENGTHS.pack(9, 0) + b'{"a": NaN',
        LENGTHS.pack(2, 16) + b"[]" + b"\xff" * 16,
        LENGTHS.pack(4, 8) + b'{"\xff"' + b"\0" * 8,
    ],
)
def test_nonsense_in_a_sound_frame(body, tmp_path):
    path = tmp_path / "m.aberra"
    path.write_bytes(sealed(body))
    with pytest.raises(ModelFileError):
        load(path)


class Payload:
    """Makes a file when it is unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


def zip_of(**contents):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in contents.items():
            file.writestr(name.replace("_", "."), content)
    return buffer.getvalue()


def call(module, name, loader):
    """Return a skops node that wants a function of ours called."""
    return {"__module__": module, "__class__": name, "__loader__": loader}


def hostile_archives(marker):
    payload = pickle.dumps(Payload(marker))
    objects = io.BytesIO()
    np.save(objects, np.array([Payload(marker)], dtype=object), allow_pickle=True)
    text = {**call("builtins", "str", "JsonNode"), "content": json.dumps(str(marker))}
    args = {**call("builtins", "tuple", "TupleNode"), "content": [text]}
    ndarray = {**call("numpy", "ndarray", "NdArrayNode"), "type": "numpy", "file": "a.npy"}
    mkdir = {**call("os", "mkdir", "ConstructorFromReduceNode"), "content": args}
    reduce = {**call("os", "mkdir", "TreeNode"), "content": args, "__reduce__": {"args": args}}
    caller = {**call("operator", "methodcaller", "OperatorFuncNode"), "attrs": args}
    schemas = [ndarray, mkdir, reduce, caller, call("os", "mkdir", "FunctionNode")]
    yield payload
    for schema in schemas:
        for protocol in range(4):
            schema_json = json.dumps({**schema, "protocol": protocol})
            yield zip_of(schema_json=schema_json, a_npy=objects.getvalue())
            yield zip_of(schema_json=schema_json, a_npy=payload)


def test_no_payload_is_run(files, tmp_path):
    marker, path = tmp_path / "marker", tmp_path / "m.aberra"
    place = "learnt.members_.parts.0.detectors.1"
    for archive in hostile_archives(marker):
        for bad in (
            archive,
            edited(files[2][0], lambda m, a, b=archive: a.update({place: as_bytes(b)})),
            edited(files[2][0], lambda m, a, b=archive: a.update({"params.detector": as_bytes(b)})),
        ):
            path.write_bytes(bad)
            with pytest.raises(ModelFileError):
                load(path)
            assert not marker.exists()
    pickle.loads(pickle.dumps(Payload(marker)))
    assert marker.exists()  # the payload works


def as_bytes(data):
    return np.frombuffer(data, dtype=np.uint8)


def test_compressed_archives_are_refused(files, tmp_path):
    path = tmp_path / "m.aberra"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("schema.json", " " * 10_000_000)
    bomb = as_bytes(buffer.getvalue())
    path.write_bytes(edited(files[2][0], lambda m, a: a.update({"params.detector": bomb})))
    with pytest.raises(ModelFileError, match=r"params.detector.*compressed"):
        load(path)


def test_things_that_are_no_model_file(files, tmp_path):
    inside = tmp_path / "m.zip"
    inside.write_bytes(zip_of(model_aberra=files[0][0]))
    empty = tmp_path / "empty"
    empty.touch()
    beyond = inside / "model.aberra"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (inside, empty, tmp_path, beyond, pipe, tmp_path / "missing", "/dev/zero"):
        with pytest.raises(ModelFileError, match="Cannot load"):
            load(path)


KILLER = """if True:
    import hashlib, os, random, signal, sys, time
    import numpy as np
    from aberra import load, save
    one, two, target, n_kills = sys.argv[1:]
    models, rng = [load(one), load(two)], random.Random(2)
    X = np.random.default_rng(0).normal(size=(40, 3))
    start = time.monotonic()
    for model in models[::-1]:
        save(model, target)
    patience = max(0.05, 2 * (time.monotonic() - start))  # on a busy machine a save takes longer
    for _ in range(int(n_kills)):
        saver = os.fork()
        while saver == 0:
            for model in models:
                save(model, target)
        time.sleep(rng.random() * patience)
        os.kill(saver, signal.SIGKILL)
        os.waitpid(saver, 0)
        print(hashlib.sha256(load(target).anomaly_score(X).tobytes()).hexdigest())
"""


@pytest.mark.parametrize("n_kills", [100])
@pytest.mark.slow
def test_kill_while_saving(n_kills, files, tmp_path):
    """A process saves two models in turn and is killed at random moments, again and again."""
    names = [tmp_path / "one", tmp_path / "two"]
    for name, (data, _) in zip(names, files[:2], strict=True):
        name.write_bytes(data)
    target = tmp_path / "out" / "model.aberra"
    target.parent.mkdir()
    command = [sys.executable, "-c", KILLER, *names, target, str(n_kills)]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert len(out) == n_kills
    assert set(out) == {hashlib.sha256(scores).hexdigest() for _, scores in files[:2]}
    left = [entry.name for entry in target.parent.iterdir() if entry != target]
    assert all(name.startswith(".aberra-tmp-") for name in left)
    save(load(target), target)
    assert list(target.parent.iterdir()) == [target]  # the next writer takes over what was left


def test_container_gives_back_what_it_was_given():
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.zeros((0, 4), np.float32)}
    manifest, again = unpack(pack({"x": [1, None, "é"]}, arrays))
    assert manifest == {"x": [1, None, "é"]}
    for name, value in arrays.items():
        np.testing.assert_array_equal(again[name], value)
        assert again[name].dtype == value.dtype
        assert again[name].flags.writeable
