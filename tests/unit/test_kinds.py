"""How single values are written into a model file and read back, at the borders of it."""

import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from aberra import OCSVM, load, save
from aberra.errors import ModelFileError
from aberra.model_file import _explained, container, load_card, load_notes, load_versions
from aberra.model_file.archives import _parts
from aberra.model_file.composite import NamedBy, OneOf, Part
from aberra.model_file.derive import CLASSES
from aberra.model_file.foreign import Foreign
from aberra.model_file.kinds import (
    Array,
    As,
    Count,
    ListOf,
    Maybe,
    OneWord,
    Ranged,
    Reader,
    Scalar,
    Writer,
    shown,
)
from aberra.model_file.values import Values

VALUES = Values(CLASSES)


def taken(kind, node, arrays=None, **more):
    return kind.decode(node, Reader({} if arrays is None else dict(arrays), **more), "x.y")


def refused(kind, node, words, arrays=None, **more):
    with pytest.raises(ModelFileError, match=words):
        taken(kind, node, arrays, **more)


def there_and_back(kind, value):
    out = Writer()
    node = kind.encode(value, out, "x.y")
    return taken(kind, node, out.arrays)


def test_what_is_shown_is_no_longer_than_a_line():
    assert shown("a" * 78) == repr("a" * 78)
    assert shown("a" * 79) == "'" + "a" * 79 + " ..."


def test_scalars_are_of_their_very_type():
    assert taken(Scalar(int), 2**63 - 1) == 2**63 - 1
    assert taken(Scalar(int), -(2**63) + 1) == -(2**63) + 1
    for number in (2**63, -(2**63)):
        refused(Scalar(int), number, "beyond 64 bits")
    for of, node in ((int, True), (int, 1.0), (float, 1), (str, 1), (bool, 0), (int, "inf")):
        refused(Scalar(of), node, f"where a {of.__name__} belongs")
    for number in (np.inf, -np.inf, 0.5):
        assert there_and_back(Scalar(float), number) == number
    assert np.isnan(there_and_back(Scalar(float), np.nan))
    with pytest.raises(ModelFileError, match="unseen: some numbers are not finite"):
        Scalar(float).decode("nan", Reader({}), "learnt.members_.unseen")
    assert Scalar(float).encode(np.inf, Writer(), "") == "inf"
    assert taken(Scalar(str), "inf") == "inf"


def test_ranges_hold_unless_limits_are_lifted_and_the_low_end_always():
    kind = Ranged(int, 2, 5)
    assert [taken(kind, n) for n in (2, 5)] == [2, 5]
    for n in (1, 6):
        refused(kind, n, "2 to 5")
    assert taken(kind, 6, limits=False) == 6
    refused(kind, 1, "2 to 5", limits=False)
    assert taken(OneWord(str, ("a", "b")), "b") == "b"
    refused(OneWord(str, ("a", "b")), "c", "one of a, b")


def test_arrays_of_a_file_can_be_written_to_whatever_safetensors_hands_out(monkeypatch):
    def read_only(blob):
        held = load_arrays(blob)
        for array in held.values():
            array.flags.writeable = False
        return held

    load_arrays = container.load_arrays
    monkeypatch.setattr(container, "load_arrays", read_only)
    _, arrays = container.unpack(container.pack({}, {"a": np.arange(3.0), "b": np.ones((2, 2))}))
    assert sorted(arrays) == ["a", "b"]
    for array in arrays.values():
        assert array.flags.writeable  # as those of a fit
        assert array.flags.owndata


@pytest.mark.parametrize("array", [np.arange(6.0).reshape(2, 3), np.arange(3.0), np.ones((1, 1))])
def test_arrays_keep_their_order_in_memory(array):
    for made in (array, np.asfortranarray(array), array.T):
        back = there_and_back(Array(None), made)
        np.testing.assert_array_equal(back, made)
        assert back.flags.c_contiguous == made.flags.c_contiguous
        assert back.flags.f_contiguous == made.flags.f_contiguous


def test_an_array_is_there_once_and_in_a_known_order():
    file = Reader({"x": np.zeros(2)})
    with pytest.raises(ModelFileError, match="neither 'C' nor 'F'"):
        file.take("x", "K")
    assert len(file.take("x", "C")) == 2
    with pytest.raises(ModelFileError, match="missing"):
        file.take("x", "C")
    with pytest.raises(ModelFileError, match="only float64"):
        Array(None).encode(np.zeros(2, np.float32), Writer(), "x")


def test_dimensions_of_one_name_have_one_size():
    file = Reader({"a.one": np.zeros(3), "a.two": np.zeros(4), "b.two": np.zeros(4),
                   "c.two": np.zeros((4, 1))})  # fmt: skip
    Array(("s",)).decode("C", file, "a.one")
    with pytest.raises(ModelFileError, match="size 4, but 3 elsewhere"):
        Array(("s",)).decode("C", file, "a.two")
    Array(("s",)).decode("C", file, "b.two")  # a small letter holds within one part
    with pytest.raises(ModelFileError, match="instead of 1 dimensions"):
        Array(("s",)).decode("C", file, "c.two")
    file = Reader({"a.one": np.zeros((3, 7)), "b.one": np.zeros((4, 7))})
    Array(("S", None)).decode("C", file, "a.one")
    with pytest.raises(ModelFileError, match="size 4, but 3 elsewhere"):
        Array(("S", None)).decode("C", file, "b.one")  # a capital one in the whole file
    file = Reader({"a": np.zeros((3, 2))})
    assert Count("S").decode(3, file, "n") == 3
    Array(("S", 2)).decode("C", file, "a")
    with pytest.raises(ModelFileError, match="with 2 instead of 3"):
        Array((None, 3)).decode("C", Reader({"a": np.zeros((3, 2))}), "a")


def test_lists_names_and_nothing():
    pair = As(tuple, ListOf(Scalar(int)), 2)
    assert there_and_back(pair, (1, 2)) == (1, 2)
    refused(pair, [1], "1 entries instead of 2")
    refused(pair, {"a": 1}, "a list belongs here")
    assert taken(Maybe(pair), None) is None
    assert there_and_back(Maybe(pair), (0, 0)) == (0, 0)
    numbered = NamedBy(Scalar(float), int)
    assert there_and_back(numbered, {0: 0.5, 123456789: 1.5}) == {0: 0.5, 123456789: 1.5}
    for name in ("01", "1234567890", "-1", "a", ""):
        refused(numbered, {name: 0.5}, "no number")
    refused(numbered, [], "JSON object belongs")


def test_a_name_leads_to_one_known_class():
    kind = OneOf({"Count": Part(Count, {"name": Scalar(str)})}.get)
    assert there_and_back(kind, Count("n")) == Count("n")
    for node in ({}, {"Array": {}}, {"Count": {"name": "n"}, "Array": {}}):
        refused(kind, node, "no part of a registered method")
    with pytest.raises(ModelFileError, match="cannot save a Array"):
        kind.encode(Array(None), Writer(), "x")
    refused(kind, {"Count": {}}, "missing entries")
    refused(kind, {"Count": {"name": "n", "more": 1}}, "unknown entries")
    later = Part(dict, {"a": Scalar(int), "b": Maybe(Scalar(int))}, frozenset({"b"}))
    assert taken(later, {"a": 1}) == {"a": 1}
    assert taken(later, {"a": 1, "b": 2}) == {"a": 1, "b": 2}
    refused(later, {"b": 1}, "missing entries")
    assert later.encode(SimpleNamespace(a=1, b=None), Writer(), "x") == {"a": 1}
    assert later.encode(SimpleNamespace(a=1, _b=2), Writer(), "x") == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    "value", [None, True, 3, "words", 0.5, np.inf, [1, [2.5]], (1, (2, None)), np.float32(0.25)]
)
def test_parameters_come_back_as_they_were(value):
    back = there_and_back(VALUES, value)
    assert back == value
    assert isinstance(back, type(value)) or isinstance(value, np.generic)


def test_parameters_of_other_kinds():
    assert there_and_back(VALUES, Path("a") / "b") == str(Path("a") / "b")
    for array in (np.eye(2), np.arange(3), np.array([True]), np.arange(3, dtype=np.uint8)):
        back = there_and_back(VALUES, array)
        assert back.dtype == array.dtype
        np.testing.assert_array_equal(back, array)
    for wrong in (np.array(["a"]), np.array([None]), {1: 2}, object(), 1j):
        with pytest.raises(ModelFileError, match="cannot save"):
            VALUES.encode(wrong, Writer(), "x")
    for node in ({}, {"set": []}, {"tuple": [], "float": 1.0}):
        refused(VALUES, node, "unknown sort of value")

    class Fits:  # and has no parameters to be copied by
        def fit(self, X):
            return self

    with pytest.raises(ModelFileError, match=r"x: .*Fits.* not known to be safe"):
        VALUES.encode(Fits(), Writer(), "x")
    detector = there_and_back(VALUES, OCSVM(nu=0.25))
    assert (type(detector), detector.nu) == (OCSVM, 0.25)
    refused(VALUES, {"estimator": {"class": "Path", "params": {}}}, "unknown class")
    refused(VALUES, {"estimator": {"class": ["OCSVM"], "params": {}}}, "unknown class")
    refused(VALUES, {"estimator": {"class": "OCSVM", "params": {"mu": 1}}}, "no parameters")


def test_a_random_state_goes_on_where_it_stood():
    given = np.random.RandomState(3)
    given.normal(size=5)  # one more is drawn already
    out = Writer()
    node = VALUES.encode(given, out, "x.y")
    again = taken(VALUES, node, out.arrays)
    np.testing.assert_array_equal(again.normal(size=7), given.normal(size=7))
    key, position, has, gauss = node["random_state"]
    for place in (0, 624):
        taken(VALUES, {"random_state": [key, place, has, gauss]}, out.arrays)
    whole = out.arrays["x.y"]
    for state, array in (
        ([key, -1, has, gauss], whole),
        ([key, 625, has, gauss], whole),
        ([key, position, has], whole),
        ([key, position, has, 0], whole),
        ((key, position, has, gauss), whole),
        ([key, position, has, gauss], whole[1:]),
        ([key, position, has, gauss], whole.astype(np.int64)),
    ):
        refused(VALUES, {"random_state": state}, "malformed", {"x.y": array})
    other = np.random.RandomState(np.random.PCG64(0))
    with pytest.raises(ModelFileError, match="PCG64"):
        VALUES.encode(other, Writer(), "x")


def test_an_archive_is_a_row_of_bytes():
    for array in (np.zeros(4), np.zeros((2, 2), np.uint8), np.zeros((), np.uint8)):
        refused(Foreign(), "C", "the archive has type", {"x.y": array})


def test_parts_of_a_detector_are_found_however_deep_each_once():
    found = OCSVM()
    value = found
    for _ in range(5000):
        value = [value]
    assert found in list(_parts(value))
    assert found in list(_parts({"a": (found,)}))
    assert list(_parts("words")) == ["words"]
    itself = [found]
    itself.append(itself)
    assert sum(part is found for part in _parts(itself)) == 1


@pytest.mark.slow
def test_the_card_of_a_wide_table_does_not_keep_its_file_from_loading(tmp_path):
    """Names of 64 KB made a card that `save` wrote and `load` refused, as 0.2.0 did."""
    names = [f"{k:04d}{'x' * 60}" for k in range(1200)]
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 1200)), columns=names)
    path = tmp_path / "wide.aberra"
    save(OCSVM(random_state=0).fit(frame), path)
    assert names[0] in load_card(path)
    assert len(load_card(path)) < 10_000
    manifest, arrays = container.unpack(path.read_bytes())
    manifest["card"] = "# " + "x" * 200_000
    path.write_bytes(container.pack(manifest, arrays))
    assert load(path).n_features_in_ == 1200
    assert load_card(path).endswith("x ...")


def test_card_versions_and_notes_are_read_without_the_model(tmp_path):
    rows = np.random.default_rng(0).normal(size=(30, 2))
    path = tmp_path / "m.aberra"
    save(OCSVM().fit(rows), path, {"who": "me"})
    assert load_card(path).startswith("# ")
    assert load_notes(path) == {"who": "me"}
    assert load_versions(path)["numpy"] == np.__version__
    manifest, arrays = container.unpack(path.read_bytes())
    assert list(load_versions(path)) == sorted(manifest["versions"])
    del manifest["card"], manifest["notes"]
    path.write_bytes(container.pack(manifest, arrays))
    assert load_card(path) is None
    assert load_notes(path) == {}
    load(path)
    for wrong in ("format", "estimator"):
        held = dict(manifest)
        held[wrong] = container.FORMAT + 1
        path.write_bytes(container.pack(held, arrays))
        with pytest.raises(ModelFileError, match=r"contradicts the header|JSON object"):
            load(path)
    path.write_bytes(container.pack(manifest, {**arrays, "more": np.zeros(1)}))
    with pytest.raises(ModelFileError, match="unknown entries"):
        load(path)


def test_notes_that_are_no_numbers_of_json_are_refused(tmp_path):
    model = OCSVM().fit(np.random.default_rng(0).normal(size=(20, 2)))
    with pytest.raises(ModelFileError, match="JSON"):
        save(model, tmp_path / "m", {"much": np.nan})
    save(model, tmp_path / "m", {"words": "ä"})
    assert load_notes(tmp_path / "m") == {"words": "ä"}


def test_a_manifest_has_256_megabytes_at_most():
    start = container.HEAD.pack(container.MAGIC, container.FORMAT, bytes(32))
    fits, beyond = 1 << 28, (1 << 28) + 1
    head = start + container.LENGTHS.pack(fits, 8)
    assert container._check_head(head, container.START + fits + 8) == fits
    head = start + container.LENGTHS.pack(beyond, 8)
    with pytest.raises(ModelFileError, match="268435456 are the most"):
        container._check_head(head, container.START + beyond + 8)


def test_a_header_is_of_one_format_and_as_long_as_it_says(tmp_path, monkeypatch):
    data = container.pack({"a": 1}, {"b": np.zeros(2)})
    manifest, arrays = container.unpack(data)
    assert (manifest, arrays["b"].tolist()) == ({"a": 1}, [0, 0])
    assert arrays["b"].flags.writeable
    (tmp_path / "m").write_bytes(data)
    assert container.read_manifest(tmp_path / "m") == {"a": 1}
    assert container.read_model(tmp_path / "m")[0] == {"a": 1}

    def with_format(version):
        return container.MAGIC + version.to_bytes(4, "little") + data[12:]

    for forged, words in (
        (with_format(0), "there is no format 0"),
        (with_format(1), "before the first release"),
        (with_format(container.FORMAT - 1), "before the first release"),
        (with_format(container.FORMAT + 1), "newer than format"),
        (data[: container.START - 1], "cut off in its header"),
        (data[:-1], "instead of the"),
        (data + b"x", "instead of the"),
        (data[:-1] + b"x", "checksum"),
        (b"x" + data[1:], "not an Aberra model file"),
    ):
        (tmp_path / "m").write_bytes(forged)
        for read in (container.read_model, container.read_manifest):
            with pytest.raises(ModelFileError, match=words):
                read(tmp_path / "m")
    monkeypatch.setattr(container, "MOST_TEXT", 7)
    assert container.unpack(container.pack({"a": 1}, {})) == ({"a": 1}, {})
    monkeypatch.setattr(container, "MOST_TEXT", 6)
    with pytest.raises(ModelFileError, match="a manifest of 7 bytes, where 6 are the most"):
        container.unpack(data)
    with pytest.raises(ModelFileError, match="names and notes of 7 bytes"):
        container.pack({"a": 1}, {})


def test_a_manifest_is_read_without_holding_the_arrays(tmp_path):
    (tmp_path / "m").write_bytes(container.pack({"a": 1}, {"b": np.zeros(1 << 20)}))
    for read, most in ((container.read_manifest, 0.5), (container.read_model, 2.2)):
        tracemalloc.start()
        read(tmp_path / "m")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < most * (8 << 20)


def test_a_file_that_is_no_model_takes_its_size_until_that_is_known(tmp_path):
    whole = container.pack({"a": 1}, {"b": np.zeros(1 << 20)})
    (tmp_path / "m").write_bytes(whole[:-1] + b"x")
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="checksum"):
        container.read_model(tmp_path / "m")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.2 * len(whole)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left"), "Cannot save to m: No space left. "),
        (OSError("the disk is odd"), "Cannot save to m: the disk is odd. "),
        (ModelFileError("wrong."), "Cannot save to m: wrong."),
        (KeyError("part"), "Cannot save to m: KeyError: 'part'"),
    ],
)
def test_whatever_goes_wrong_names_the_file(error, words):
    with pytest.raises(ModelFileError) as raised, _explained("save to", "m"):
        raise error
    assert str(raised.value).startswith(words)
