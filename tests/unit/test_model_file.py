"""Saved and loaded models are the same models, to the last bit."""

import errno
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDOneClassSVM
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, QuantileTransformer, StandardScaler
from sklearn.svm import OneClassSVM

from aberra import (
    ADC,
    DAGPR,
    IADC,
    OCSVM,
    RSRAE,
    AutoEncoder,
    DeepSVDD,
    HybridOCSVM,
    MultiView,
    load,
    save,
)
from aberra.errors import ModelFileError
from aberra.model_file import load_notes
from aberra.model_file.derive import CLASSES, learnt_kinds

NETWORKS = [
    AutoEncoder(epochs=2, random_state=0),
    DeepSVDD(epochs=1, pretrain_epochs=1, random_state=0),
    HybridOCSVM(pretrain_epochs=1, random_state=0),
    RSRAE(epochs=1, random_state=0),
    DAGPR(pretrain_epochs=1, random_state=0),
]
OURS = [*NETWORKS, OCSVM(), OCSVM(solver="nystroem", n_landmarks=20, random_state=1)]
OURS += [MultiView(random_state=3)]
SAFE_FOREIGN = [
    OneClassSVM(nu=0.3),
    EllipticEnvelope(),
    LocalOutlierFactor(novelty=True, algorithm="brute"),
    make_pipeline(StandardScaler(), SGDOneClassSVM()),
    make_pipeline(
        QuantileTransformer(n_quantiles=20), FunctionTransformer(np.log1p), OneClassSVM()
    ),
]
SHORT = {"n_members": 2, "random_state": 0}

pytestmark = pytest.mark.filterwarnings("ignore::aberra.errors.RoundsExhaustedWarning")


@pytest.fixture
def rows(dirty_blob):
    return dirty_blob[0]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.aberra"


def round_trip(model, path):
    save(model, path)
    first = path.read_bytes()
    again = load(path)
    save(again, path)
    assert path.read_bytes() == first
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    return again


def leaves(value, place=""):
    """Yield everything a model holds, by place, down to the bits."""
    if hasattr(value, "numpy"):
        value = value.numpy()
    if isinstance(value, np.ndarray) and value.dtype != object:
        yield place, (value.dtype, value.shape, value.flags.c_contiguous, value.tobytes())
    elif isinstance(value, list | tuple | dict | np.ndarray):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        yield place, (type(value), len(value))
        for key, item in items:
            yield from leaves(item, f"{place}.{key!r}")
    elif type(value).__module__.startswith("aberra"):
        yield place, type(value)
        yield from leaves(vars(value), place)
    else:
        yield place, repr(value)


def check_same_model(model, again, X):
    assert dict(leaves(model)) == dict(leaves(again))
    assert model.anomaly_score(X).tobytes() == again.anomaly_score(X).tobytes()
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    assert model.threshold_ == again.threshold_
    assert repr(model) == repr(again)
    assert repr(clone(model)) == repr(clone(again))


@pytest.mark.parametrize("detector", OURS, ids=str)
def test_detectors_on_tables(detector, rows, path):
    model = clone(detector).fit(rows)
    again = round_trip(model, path)
    check_same_model(model, again, rows)
    assert again.fit(rows).anomaly_score(rows).tobytes() == model.anomaly_score(rows).tobytes()


@pytest.mark.parametrize("detector", OURS, ids=str)
@pytest.mark.parametrize("ensemble", [ADC(**SHORT), IADC(max_rounds=2, **SHORT)], ids=str)
def test_ensembles_of_our_detectors(detector, ensemble, rows, path):
    model = clone(ensemble).set_params(detector=clone(detector)).fit(rows)
    check_same_model(model, round_trip(model, path), rows)


@pytest.mark.slow
@pytest.mark.parametrize("detector", [*NETWORKS, OCSVM()], ids=str)
@pytest.mark.parametrize("shape", [(1, 28, 28), (2, 11, 9)])
def test_images(detector, shape, path):
    images = np.random.default_rng(0).integers(0, 256, size=(20, *shape)).astype(np.uint8)
    model = clone(detector).fit(images)
    check_same_model(model, round_trip(model, path), images)


def test_ensemble_on_images_with_an_engine(path):
    images = np.random.default_rng(0).random((20, 1, 8, 8))
    model = ADC(AutoEncoder(epochs=1), engine="threading", **SHORT).fit(images)
    check_same_model(model, round_trip(model, path), images)


@pytest.mark.parametrize("detector", SAFE_FOREIGN, ids=str)
@pytest.mark.parametrize("ensemble", [ADC(**SHORT), IADC(max_rounds=2, **SHORT)], ids=str)
def test_ensembles_of_scikit_learn_detectors(detector, ensemble, rows, path):
    model = clone(ensemble).set_params(detector=clone(detector)).fit(rows)
    again = round_trip(model, path)
    check_same_model(model, again, rows)
    assert again.fit(rows).anomaly_score(rows).tobytes() == model.anomaly_score(rows).tobytes()


@pytest.mark.parametrize("detector", [MultiView(), AutoEncoder(epochs=1), None], ids=str)
def test_data_frames_keep_their_names(detector, rows, path):
    frame = pd.DataFrame(rows, columns=["a", "b b", "ç", "\u2028", "\0"])
    model = IADC(detector, max_rounds=2, **SHORT).fit(frame)
    again = round_trip(model, path)
    check_same_model(model, again, frame)
    assert again.feature_names_in_.dtype == object
    with pytest.raises(ValueError, match="feature names"):
        again.anomaly_score(frame.rename(columns={"a": "z"}))


def test_text_and_gaps(rows, path):
    frame = pd.DataFrame(rows).astype({1: object})
    frame[1] = np.where(rows[:, 1] > 1, "über\0", "\u2028 usual")
    frame.loc[3, [1, 2]] = None
    frame.columns = list("abcde")
    model = IADC(encode="auto", missing="impute", max_rounds=2, **SHORT).fit(frame)
    again = round_trip(model, path)
    check_same_model(model, again, frame)
    assert again.explain(frame[:3]).equals(model.explain(frame[:3]))


@pytest.mark.slow
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_odd_layouts_and_types(order, dtype, path):
    X = np.asarray(np.random.default_rng(0).normal(size=(150, 40)) * 9, dtype=dtype, order=order)
    for detector in (MultiView(), OCSVM(), AutoEncoder(epochs=1)):
        model = ADC(detector, **SHORT).fit(X)
        check_same_model(model, round_trip(model, path), X)


def test_one_column_and_constant_columns(path):
    X = np.zeros((30, 1))
    X[0] = 5
    for model in (MultiView(random_state=0).fit(X), AutoEncoder(epochs=1, random_state=0).fit(X)):
        check_same_model(model, round_trip(model, path), X)


@pytest.mark.parametrize(
    "detector",
    [None, OneClassSVM(), AutoEncoder(epochs=9), OCSVM(nu=np.float64(0.3))],
    ids=str,
)
def test_warm_start_goes_on_with_the_same_bytes(detector, rows, path):
    settings = {"patience": 9, "warm_start": True, "n_members": 2, "random_state": 5}
    settings["trust"] = "median"  # under our own rule the rounds would end before
    model = IADC(detector, max_rounds=2, **settings).fit(rows)
    again = round_trip(model, path)
    for one in (model, again):
        one.set_params(max_rounds=4).fit(rows)
        assert len(one.history_) == 4
    whole = IADC(detector, max_rounds=4, **settings).fit(rows)
    for one in (again, whole):
        assert one.anomaly_score(rows).tobytes() == model.anomaly_score(rows).tobytes()
        assert one.weights_.tobytes() == model.weights_.tobytes()
        assert one.history_.crossings() == model.history_.crossings()


@pytest.mark.parametrize(
    "params",
    [
        {"hidden": (4, 2)},
        {"hidden": [4, 2]},
        {"hidden": np.array([4, 2])},
        {"hidden": (np.int64(4), 2), "learning_rate": np.float64(0.01)},
        {"weight_decay": 0, "batch_size": np.int32(32)},
    ],
    ids=str,
)
def test_parameters_keep_value_and_type(params, rows, path):
    model = AutoEncoder(epochs=1, random_state=0, **params).fit(rows)
    loaded = round_trip(model, path).get_params()
    for name, value in model.get_params().items():
        assert type(loaded[name]) is type(value) or isinstance(value, np.generic)
        np.testing.assert_array_equal(loaded[name], value)


def test_a_random_state_goes_on_where_it_stood(rows, path):
    state = np.random.RandomState(4)
    state.normal()  # leaves half a pair of normal numbers behind
    model = MultiView(random_state=state).fit(rows)
    again = round_trip(model, path)
    assert again.random_state is not state
    assert again.random_state.normal(size=9).tobytes() == state.normal(size=9).tobytes()
    assert (
        again.fit(rows).anomaly_score(rows).tobytes()
        == model.fit(rows).anomaly_score(rows).tobytes()
    )


def test_infinite_numbers(rows, path):
    model = OCSVM().fit(rows)
    model.threshold_, model.contamination_ = np.inf, np.nan
    again = round_trip(model, path)
    assert again.threshold_ == np.inf
    assert np.isnan(again.contamination_)


@pytest.mark.slow
def test_another_process_writes_the_same_bytes(rows, path):
    model = IADC(make_pipeline(StandardScaler(), OneClassSVM()), max_rounds=1, **SHORT).fit(rows)
    save(model, path)
    code = "import sys; from aberra import load, save; save(load(sys.argv[1]), sys.argv[2])"
    other = path.with_name("other.aberra")
    subprocess.run([sys.executable, "-c", code, path, other], check=True)
    assert other.read_bytes() == path.read_bytes()


def test_every_estimator_of_the_package_can_be_saved():
    import aberra

    public = {name for name in aberra.__all__ if isinstance(getattr(aberra, name), type)}
    public.remove("Stream")  # whose `model_` is saved: what it remembers is no model
    assert public == set(CLASSES)
    for name in public:
        always, _ = learnt_kinds(CLASSES[name])
        assert {"members_", "threshold_", "image_shape_"} <= set(always)


def test_unfitted_and_unknown_models_are_refused(rows, path):
    for estimator in (OCSVM(), IADC(), ADC(OneClassSVM())):
        with pytest.raises(NotFittedError):
            save(estimator, path)

    class Mine(OCSVM):
        pass

    for model in (Mine().fit(rows), IsolationForest(n_estimators=2).fit(rows), "text", None):
        with pytest.raises(TypeError, match="save takes IADC"):
            save(model, path)
    assert not path.exists()


@pytest.mark.filterwarnings("ignore")  # PyOD's own
def test_pyod_members_are_refused_before_anything_is_written(rows, path):
    ecod = pytest.importorskip("pyod.models.ecod").ECOD()
    path.write_bytes(b"what was here")
    for detector in (ecod, make_pipeline(StandardScaler(), ecod)):
        with pytest.raises(ModelFileError, match=r"PyOD.*cannot be loaded safely"):
            save(ADC(detector, **SHORT).fit(rows), path)
    assert path.read_bytes() == b"what was here"
    assert len(list(path.parent.iterdir())) == 1


class Unknown(OneClassSVM):
    """A detector that only this file knows."""


@pytest.mark.parametrize(
    ("detector", "reason"),
    [
        (IsolationForest(n_estimators=2), "IsolationForest"),
        (LocalOutlierFactor(novelty=True, algorithm="kd_tree"), "KDTree"),
        (Unknown(), "Unknown"),
        (make_pipeline(FunctionTransformer(abs), OneClassSVM()), "abs"),
    ],
    ids=str,
)
def test_members_that_skops_does_not_trust_are_refused(detector, reason, rows, path):
    with pytest.raises(ModelFileError, match=reason) as caught:
        save(ADC(detector, **SHORT).fit(rows), path)
    assert "Use one of Aberra's detectors" in str(caught.value)
    assert not list(path.parent.iterdir())


def test_attributes_nobody_knows_are_refused(rows, path):
    model = OCSVM().fit(rows)
    model.note_ = "mine"
    with pytest.raises(ModelFileError, match="note_"):
        save(model, path)


def test_name_and_links_mean_nothing(rows, path):
    model = OCSVM().fit(rows)
    save(model, str(path))
    moved = path.with_name("weights.txt")
    path.rename(moved)
    check_same_model(model, load(moved), rows)
    path.symlink_to(moved)
    save(MultiView(random_state=0).fit(rows), path)
    assert path.is_symlink()
    assert isinstance(load(moved), MultiView)


def test_file_gets_the_usual_permissions(rows, path):
    save(OCSVM().fit(rows), path)
    plain = path.with_name("plain")
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize("broken", ["write", "fsync", "replace"])
def test_failed_write_leaves_the_old_file_and_nothing_else(broken, rows, path, monkeypatch):
    old = OCSVM().fit(rows)
    save(old, path)

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if broken == "write":
        monkeypatch.setattr("aberra.files.open", opener(full), raising=False)
    else:
        monkeypatch.setattr(f"aberra.files.os.{broken}", full)
    with pytest.raises(ModelFileError, match=r"No space left on device.*space"):
        save(MultiView(random_state=0).fit(rows), path)
    monkeypatch.undo()
    check_same_model(old, load(path), rows)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def opener(fail):
    """Return an `open` whose files take half of what is written, then fail."""

    def fake(name, mode):
        file = open(name, mode, buffering=0)  # noqa: SIM115
        proxy = type("Proxy", (), {"flush": lambda self: None, "fileno": lambda self: 0})()

        def write(self, data):
            file.write(data[: len(data) // 2])
            fail()

        type(proxy).write = write
        type(proxy).__enter__ = lambda self: self
        type(proxy).__exit__ = lambda self, *args: file.close()
        return proxy

    return fake


@pytest.mark.skipif(sys.platform == "win32", reason="no resource limits")
@pytest.mark.slow
def test_real_limit_on_the_size_of_files(rows, path):
    save(OCSVM().fit(rows), path)
    before = path.read_bytes()
    code = """if True:
        import resource, sys
        import aberra
        model = aberra.load(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            aberra.save(model, sys.argv[1])
        except aberra.errors.ModelFileError as error:
            print(error)
    """
    out = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert "File too large" in out.stdout, out.stderr
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_interrupted_write_leaves_the_old_file(rows, path, monkeypatch):
    save(OCSVM().fit(rows), path)
    before = path.read_bytes()

    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("aberra.files.os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save(MultiView(random_state=0).fit(rows), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("place", ["missing/model.aberra", ".", "file/model.aberra", "nul\0"])
def test_impossible_paths(place, rows, tmp_path):
    (tmp_path / "file").touch()
    model = OCSVM().fit(rows)
    for action in (lambda path: save(model, path), load):
        with pytest.raises(ModelFileError, match="Cannot"):
            action(tmp_path / place)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_notes_travel_with_the_model(rows, path):
    model = MultiView(random_state=0).fit(rows)
    notes = {"source": "a.csv", "columns": ["a", "b"], "metrics": {"auroc": 0.9}, "gap": None}
    save(model, path, notes)
    assert load_notes(path) == notes
    assert (load(path).anomaly_score(rows) == model.anomaly_score(rows)).all()
    save(model, path)
    assert load_notes(path) == {}


def test_notes_that_json_cannot_hold_are_refused(rows, path):
    with pytest.raises(ModelFileError, match="JSON"):
        save(MultiView(random_state=0).fit(rows), path, {"what": object()})
    assert not path.exists()
