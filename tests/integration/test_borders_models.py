"""Forged model files that once crashed, hung, took all memory, or loaded and then broke.

Each is the smallest form of a case that a campaign found (`benchmarks/borders_models.py`).
"""

import io
import json
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.covariance import EllipticEnvelope
from sklearn.linear_model import SGDOneClassSVM
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import OneClassSVM
from skops.io import dumps

from aberra import (
    ADC,
    IADC,
    OCSVM,
    IntensityThreshold,
    MultiView,
    NearestHealthy,
    SpatialAE,
    load,
    save,
)
from aberra.detectors.compiled_views import pooled_nats
from aberra.errors import ArgumentError, DataError, ModelFileError
from aberra.explain.charts import score_bins
from aberra.model_file.container import pack, unpack
from aberra.model_file.foreign import archive
from aberra.recipe import Recipe
from aberra.workflow import info
from aberra.workflow.opened import opened

pytestmark = pytest.mark.filterwarnings("ignore::aberra.errors.RoundsExhaustedWarning")


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Return the bytes of small sound files by name."""
    rng = np.random.default_rng(0)
    X, images = rng.normal(size=(40, 3)), rng.random((12, 1, 16, 16)).astype(np.float32)
    frame = pd.DataFrame({"a": X[:, 0], "ward": rng.choice(["n", "s"], 40)})
    short = {"n_members": 2, "random_state": 0}
    neighbours = LocalOutlierFactor(novelty=True, algorithm="brute", n_neighbors=3)
    models = {
        "views": MultiView(random_state=0).fit(X),
        "svm": ADC(OneClassSVM(), **short).fit(X),
        "marked": MultiView(random_state=0).fit(X).feedback(X[:2], [1, 0]),
        "lof": ADC(neighbours, **short).fit(X),
        "ellipse": ADC(EllipticEnvelope(random_state=0), **short).fit(X),
        "text": IADC(OCSVM(), encode="auto", missing="impute", max_rounds=2, **short).fit(frame),
        "map": IntensityThreshold().fit(images),
        "near": NearestHealthy(random_state=0).fit(images),
    }
    folder, files = tmp_path_factory.mktemp("sound"), {}
    for name, model in models.items():
        save(model, folder / name)
        files[name] = (folder / name).read_bytes()
    return files


def test_sound_models_are_loaded_and_score(sound, tmp_path):
    rng = np.random.default_rng(0)
    rows, images = rng.normal(size=(5, 3)), rng.random((5, 1, 16, 16)).astype(np.float32)
    frame = pd.DataFrame({"a": rows[:, 0], "ward": ["n", "s", "n", "s", "n"]})
    asked = {"text": frame, "map": images, "near": images}
    for name, content in sound.items():
        (tmp_path / name).write_bytes(content)
        assert np.isfinite(load(tmp_path / name).anomaly_score(asked.get(name, rows))).all()


def set_at(path, value):
    """Return an edit of the manifest: what is at the path becomes the value."""

    def edit(manifest, arrays):
        *way, last = path
        node = manifest["learnt"]
        for key in way:
            node = node[key]
        node[last] = value(node[last]) if callable(value) else value

    return edit


def array_at(ending, change):
    def edit(manifest, arrays):
        for name in [name for name in arrays if name.endswith(ending)]:
            arrays[name] = change(arrays[name].copy())

    return edit


def all_to(value):
    return lambda array: np.full_like(array, value)


def first_to(value):
    return lambda array: np.where(np.arange(array.size).reshape(array.shape) == 0, value, array)


def without_rounds(manifest, arrays):
    manifest["learnt"]["history_"]["rounds"] = []
    for name in [name for name in arrays if ".rounds." in name]:
        del arrays[name]


def other_versions(manifest, arrays):
    manifest["versions"] = [["aberra", "1"]]


VIEW = ("members_", "members", 0)
FRAME = ("members_", "frame")
COMPARISON = ("members_", "comparison")
FORGED = {
    "NaN in an array": ("views", array_at("centre", all_to(np.nan)), "not finite"),
    "NaN bins": ("views", array_at("per_unit", all_to(np.nan)), "not finite"),
    "one NaN": ("views", array_at("tails.start", first_to(np.nan)), "not finite"),
    "no bulk": ("views", array_at("members.0.middle", all_to(np.nan)), "not finite"),
    "few columns": ("views", array_at("lens.used", lambda a: a[:0]), "lens"),
    "a child too far": ("views", array_at("tight.left", all_to(10**6)), "leads nowhere"),
    "a child at the end of 32 bits": (
        "views",
        array_at("tight.left", all_to(2**31 - 1)),
        "leads nowhere",
    ),
    "a strange column": ("views", array_at("tight.columns", all_to(99)), "not there"),
    "deep trees": ("views", set_at((*VIEW, "tight", "steps"), 10**9), "too deep"),
    "NaN threshold": ("views", set_at(("threshold_",), "nan"), "threshold_: nothing is above"),
    "an image shape": ("views", set_at(("image_shape_",), [1, 10**6, 10**6]), "image_shape_"),
    "few kinds": ("text", set_at(("reader_", "kinds"), ["number"]), "reader_.kinds"),
    "strange kind": ("text", set_at(("reader_", "kinds"), ["number", "x"]), "reader_.kinds"),
    "few medians": ("text", set_at(("reader_", "medians"), []), "reader_.medians"),
    "no rarity": ("text", set_at(("reader_", "rarity"), {}), "reader_.rarity"),
    "more names": ("text", set_at(("feature_names_in_",), ["a", "b", "c"]), "3 names"),
    "same names": ("text", set_at(("feature_names_in_",), ["a", "a"]), "not 2 different"),
    "no rounds": ("text", without_rounds, "history_: there are no rounds"),
    "a strange end": ("text", set_at(("history_", "reason"), "max_rounfs"), "no reason for"),
    "huge scores": ("text", array_at("coefficients", all_to(1.7e308)), "or huge ones"),
    "large grid": ("map", set_at((*FRAME, "grid"), [10**5, 10**5]), "grid.0: got 100000"),
    "grid beyond": ("map", set_at((*FRAME, "grid"), [500, 500]), "larger than the images"),
    "multiple": ("map", set_at((*FRAME, "multiple"), 10**9), "multiple: got 1000000000"),
    "no multiple": ("map", set_at((*FRAME, "multiple"), 0), "multiple: got 0"),
    "even smooth": ("map", set_at(("members_", "style", "smooth"), 10**6), "smooth: got"),
    "wrong error": ("map", set_at(("members_", "style", "error"), "x"), "one of squared"),
    "portrait of more columns": (
        "views",
        set_at(("portrait_", "columns"), lambda held: held[:2]),
        "portrait_",
    ),
    "counts that fall": ("views", array_at("scores.below", all_to(-1)), "not counts"),
    "points that do not rise": ("views", array_at("numbers.points", all_to(1.0)), "not rise"),
    "numbers called text": (
        "views",
        set_at(("portrait_", "columns", 0, "kind"), "text"),
        "does not fit what is counted",
    ),
    "labels twice": (
        "text",
        set_at(("portrait_", "columns", 1, "categories", "labels"), ["n", "n"]),
        "different labels",
    ),
    "more flagged than rows": ("views", set_at(("portrait_", "n_flagged"), 999), "999 of 40 rows"),
    "training scores of NaN": ("svm", array_at("round_.scores", all_to(np.nan)), "not finite"),
    "marks of no size": ("marked", array_at("feedback_.usual", all_to(np.nan)), "not finite"),
    "marks far away": ("marked", array_at("feedback_.middle", all_to(1.7e308)), "too large"),
    "marks that are none": ("marked", array_at("feedback_.labels", all_to(7)), "neither 0 nor 1"),
    "no neighbours": ("near", set_at((*COMPARISON, "n_neighbours"), 0), "n_neighbours: got 0"),
    "fewer than none": ("near", set_at((*COMPARISON, "n_neighbours"), -5), "n_neighbours: got -5"),
    "no such network": (
        "near",
        set_at(("members_", "nets", 0, "plan", "size"), [-1, 16]),
        r"nets\.0\.plan: no network can be made of it",
    ),
    "leaves of no depth": ("views", array_at("tight.depths", first_to(np.nan)), "not finite"),
    "endless evidence": ("views", array_at("far.nats", all_to(np.inf)), "not finite"),
    "huge rarity": ("text", set_at(("reader_", "rarity", "1", "n"), -1e308), "too large"),
    "versions of nothing": ("views", other_versions, "versions: got"),
    "beyond 64 bits": ("text", set_at(("history_", "patience"), 10**40), "beyond 64 bits"),
}


@pytest.mark.parametrize("forgery", FORGED)
def test_forged_models_are_refused_before_they_do_harm(forgery, sound, tmp_path):
    name, edit, message = FORGED[forgery]
    manifest, arrays = unpack(sound[name])
    edit(manifest, arrays)
    (tmp_path / "m").write_bytes(pack(manifest, arrays))
    with pytest.raises(ModelFileError, match=message):
        load(tmp_path / "m")


def test_a_limit_can_be_lifted(sound, tmp_path):
    manifest, arrays = unpack(sound["map"])
    set_at(("members_", "style", "smooth"), 17_001)(manifest, arrays)
    (tmp_path / "m").write_bytes(pack(manifest, arrays))
    with pytest.raises(ModelFileError, match=r"limits=False"):
        load(tmp_path / "m")
    assert load(tmp_path / "m", limits=False).members_.style.smooth == 17_001


def rezipped(data, change):
    """Return a skops archive with the arrays changed by their place in the schema."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(files["schema.json"])
    change(schema["content"]["content"], files, schema)
    files["schema.json"] = json.dumps(schema).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def inner_array(attribute, change):
    def edit(held, files, schema):
        name = held[attribute]["file"]
        buffer = io.BytesIO()
        np.save(buffer, change(np.load(io.BytesIO(files[name]))))
        held[attribute]["file"] = "changed.npy"
        files["changed.npy"] = buffer.getvalue()

    return edit


def word(attribute, text):
    def edit(held, files, schema):
        held[attribute]["content"] = json.dumps(text)

    return edit


def long_header(held, files, schema):
    """Claim 8 GB in the header of one small array."""
    name = held["support_"]["file"]
    head = {"descr": "<f8", "fortran_order": False, "shape": (10**9,)}
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, head)
    files[name] = buffer.getvalue()


def named_often(held, files, schema):
    """Ask for one array of a megabyte a hundred times."""
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(1 << 17))
    files["big.npy"] = buffer.getvalue()
    node = {**held["support_vectors_"], "file": "big.npy"}
    held["many"] = {**held["shape_fit_"], "content": [node] * 100}


ARCHIVES = {
    "few vectors": ("svm", inner_array("support_vectors_", lambda a: a[:2])),
    "no vectors": ("svm", inner_array("support_vectors_", lambda a: a[:0])),
    "narrow vectors": ("svm", inner_array("support_vectors_", lambda a: a[:, :1])),
    "few coefficients": ("svm", inner_array("_dual_coef_", lambda a: a[:, :1])),
    "many classes": ("svm", inner_array("_n_support", lambda a: a * 1000)),
    "many of the one": ("svm", inner_array("_n_support", lambda a: a * [1000, 1])),
    "no intercept": ("svm", inner_array("_intercept_", lambda a: a[:0])),
    "precomputed": ("svm", word("kernel", "precomputed")),
    "long header": ("svm", long_header),
    "one array named often": ("svm", named_often),
    "few neighbours": ("lof", inner_array("_fit_X", lambda a: a[:1])),
    "narrow neighbours": ("lof", inner_array("_fit_X", lambda a: a[:, :1])),
    "few densities": ("lof", inner_array("_lrd", lambda a: a[:1])),
    "too many asked for": ("lof", word("n_neighbors_", 10**6)),
    "short middle": ("ellipse", inner_array("location_", lambda a: a[:1])),
    "no middle": ("ellipse", inner_array("location_", lambda a: a * np.nan)),
    "flat ellipse": ("ellipse", inner_array("precision_", lambda a: a[:1])),
    "no ellipse": ("ellipse", inner_array("precision_", lambda a: a * np.inf)),
    "whole numbers": ("ellipse", inner_array("covariance_", lambda a: a.astype(int))),
}


@pytest.mark.parametrize("forgery", ARCHIVES)
def test_arrays_of_foreign_detectors_are_held_against_each_other(forgery, sound, tmp_path):
    """The first of them ended the process, or read what lay beside the array."""
    name, change = ARCHIVES[forgery]
    manifest, arrays = unpack(sound[name])
    place = "learnt.members_.parts.0.detectors.0"
    arrays[place] = np.frombuffer(rezipped(arrays[place].tobytes(), change), np.uint8)
    (tmp_path / "m").write_bytes(pack(manifest, arrays))
    with pytest.raises(ModelFileError, match=r"detectors\.0"):
        load(tmp_path / "m")


def sparse(held, files, schema):
    """Have a matrix made whose column numbers C code trusts; skops does not compare its class."""
    matrix = scipy.sparse.csr_matrix(np.ones((40, 3)))
    matrix.indices += 10**8
    buffer = io.BytesIO()
    scipy.sparse.save_npz(buffer, matrix)
    files["sparse.npz"] = buffer.getvalue()
    held["_fit_X"] = {
        "__class__": "spmatrix",
        "__module__": "scipy.sparse._matrix",
        "__loader__": "SparseMatrixNode",
        "type": "scipy",
        "file": "sparse.npz",
    }


def endless_generator(held, files, schema):
    """Have a generator of random numbers made, which takes a time that grows with a square."""
    with zipfile.ZipFile(io.BytesIO(dumps(np.random.default_rng(0)))) as archive:
        node = json.loads(archive.read("schema.json"))
    node["content"]["seed_seq"]["content"]["pool_size"]["content"] = "200000"
    held["more"] = {
        name: node[name] for name in ("__class__", "__module__", "__loader__", "content")
    }


@pytest.mark.parametrize("change", [sparse, endless_generator])
def test_only_what_is_known_to_be_safe_is_made_from_a_skops_archive(change, sound, tmp_path):
    """The first ended the process while it was loaded, the second took minutes."""
    manifest, arrays = unpack(sound["lof"])
    place = "learnt.members_.parts.0.detectors.0"
    arrays[place] = np.frombuffer(rezipped(arrays[place].tobytes(), change), np.uint8)
    (tmp_path / "m").write_bytes(pack(manifest, arrays))
    with pytest.raises(ModelFileError, match=r"detectors\.0.* which is not safe"):
        load(tmp_path / "m")


def test_what_would_not_be_loaded_is_not_saved():
    X = np.random.default_rng(0).normal(size=(40, 3))
    machine = SGDOneClassSVM().fit(X)
    assert archive(machine, "here")
    machine.more = np.random.default_rng(0)
    with pytest.raises(ModelFileError, match="here: SGDOneClassSVM holds Generator, which is not"):
        archive(machine, "here")


def test_a_device_that_torch_does_not_know_is_told(tmp_path):
    images = np.random.default_rng(0).random((4, 1, 16, 16))
    model = SpatialAE(train_steps=1, batch_size=2, random_state=0).fit(images)
    save(model, tmp_path / "m")
    manifest, arrays = unpack((tmp_path / "m").read_bytes())
    manifest["estimator"]["params"]["device"] = "nan"
    (tmp_path / "m").write_bytes(pack(manifest, arrays))
    with pytest.raises(ModelFileError, match="no device of the name 'nan'"):
        load(tmp_path / "m")
    for name, words in (("gpu", "no device of the name 'gpu'"), ("meta", "cannot compute on")):
        with pytest.raises(ArgumentError, match=words):
            clone(model).set_params(device=name).fit(images)


def test_a_large_file_that_is_no_model_is_not_read(tmp_path):
    path = tmp_path / "m.aberra"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a terabyte of nothing
    with pytest.raises(ModelFileError, match="not an Aberra model"):
        load(path)


def test_compiled_views_have_no_place_for_nan():
    """A number that is none would become a place far outside of the table."""
    views = np.array([[np.nan, 0.0, -np.inf, np.inf]])
    one, none = np.ones(1), np.zeros(1)
    found = pooled_nats(views, none, one, 0.4, np.arange(3073.0), one, none)
    assert np.isnan(found[0])
    assert np.isfinite(found[1:3]).all()


RECIPE = Recipe("table", "rows.csv", 10, columns=["a"]).notes()["recipe"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"data": 3},
        {"n_samples": "many"},
        {"n_samples": True},
        {"columns": "abc"},
        {"dropped": []},
        {"id_column": 7},
        {"preparation": None},
        {"metrics": {"auroc": "high"}},
        {"quantiles": [2.0, 1.0]},
        {"quantiles": [float("nan")]},
        {"quantiles": [10**400]},  # whole, and beyond all floats
        {"metrics": {"auroc": -(10**400)}},
        {"map_threshold": 10**400},
        {"map_threshold": "inf"},
        {"pattern": None},
        {"looks": {"middle": [1.0], "largest": 1.0}},
        {"looks": {"x": 1}},
        {"healthy": {"scores": [10**400], "largest": [1.0]}},
        {"healthy": {"scores": [1], "largest": [1], "heights": {"first": 0, "table": [10**400]}}},
        {"doubts": [{"row": 0, "name": "a", "trust": float("nan"), "score": 1, "reasons": []}]},
    ],
)
def test_recipes_with_other_things_in_them_are_refused(wrong):
    assert Recipe.of({"recipe": RECIPE}) is not None
    with pytest.raises(ModelFileError, match="recipe"):
        Recipe.of({"recipe": {**RECIPE, **wrong}})


def test_slices_of_a_recipe_take_no_more_memory_than_a_head_needs():
    recipe = Recipe("volumes", "heads", 10)
    for wrong in (
        {"size": 10**6},
        {"size": 64.5},
        {"step": 1e-9},
        {"field": float("inf")},
        {"below_top": [8, 1e300]},
        {"headroom": 10**400},
    ):
        with pytest.raises(ModelFileError, match="preparation of scans is wrong"):
            replace(recipe, preparation=wrong).scan_preparation()


def test_a_recipe_of_something_else_than_the_model_takes_is_refused(sound, tmp_path):
    manifest, arrays = unpack(sound["map"])
    manifest["notes"] = Recipe("volumes", "heads", 10, preparation={"size": 64}).notes()
    (tmp_path / "m").write_bytes(pack(manifest, arrays))
    with pytest.raises(ModelFileError, match=r"images of shape \(1, 16, 16\)"):
        info(tmp_path / "m")


@pytest.mark.parametrize("side", [40_000, 8, -1, "x", 10**400], ids=lambda side: str(side)[:6])
def test_pictures_are_not_enlarged_to_what_a_recipe_asks_for(side, sound, tmp_path):
    """Each was drawn at this size before the model refused it, and then called damaged."""
    manifest, arrays = unpack(sound["map"])
    preparation = {"height": side, "width": 16, "channels": 1}
    manifest["notes"] = Recipe("images", "pictures", 10, preparation=preparation).notes()
    (tmp_path / "m").write_bytes(pack(manifest, arrays))
    with pytest.raises(ModelFileError, match=r"images of shape \(1, 16, 16\). They do not fit"):
        opened(tmp_path / "m")


def test_a_model_that_draws_maps_has_all_that_it_takes(sound, tmp_path):
    """The first was found by fuzzing: it loaded, and then had no threshold to show."""
    images = np.random.default_rng(0).random((12, 1, 16, 16)).astype(np.float32)
    model = ADC(IntensityThreshold(), n_members=2, random_state=0).fit(images)
    save(model, tmp_path / "m")
    drawn = unpack((tmp_path / "m").read_bytes())
    detector = drawn[0]["estimator"]["params"]["detector"]
    del drawn[0]["learnt"]["map_threshold_"]
    rows = unpack(sound["text"])
    rows[0]["estimator"]["params"]["detector"] = detector
    rows[0]["learnt"]["map_threshold_"] = 1.0
    for (manifest, arrays), why in ((drawn, "map_threshold_: it is missing"), (rows, "no maps")):
        (tmp_path / "m").write_bytes(pack(manifest, arrays))
        with pytest.raises(ModelFileError, match=why):
            load(tmp_path / "m")


@pytest.mark.parametrize("setting", [{"missing": "impute"}, {"encode": "auto"}])
def test_a_model_of_images_has_no_settings_of_tables(setting, tmp_path):
    """Found by fuzzing: it loaded, and then refused all images."""
    images = np.random.default_rng(0).random((12, 1, 16, 16)).astype(np.float32)
    save(ADC(IntensityThreshold(), n_members=2, random_state=0).fit(images), tmp_path / "m")
    manifest, arrays = unpack((tmp_path / "m").read_bytes())
    manifest["estimator"]["params"].update(setting)
    (tmp_path / "m").write_bytes(pack(manifest, arrays))
    with pytest.raises(ModelFileError, match="are for tables, and this is a model of images"):
        load(tmp_path / "m")


def test_a_chart_has_room_for_any_finite_score():
    bins = score_bins([np.array([-1e308, 0.0, 1.0, 2.0, 1e308])], 1.5)
    assert np.isfinite(bins.edges).all()
    assert np.isfinite(bins.scale.ticks()).all()
    assert bins.counts[0].sum() == 5


def test_a_model_never_answers_with_nan(dirty_blob):
    model = MultiView(random_state=0).fit(dirty_blob[0])
    model.members_.members[0].middle[:] = np.nan
    with pytest.raises(DataError, match="220 of 220 samples have no finite score"):
        model.anomaly_score(dirty_blob[0])
