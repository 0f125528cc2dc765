"""What comes from a file is held against itself: every part that does not fit is refused."""

import io
import json
from copy import copy
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Annotated
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.ensemble import VotingRegressor
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsTransformer,
    LocalOutlierFactor,
    NearestNeighbors,
)
from sklearn.neural_network import BernoulliRBM
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer, OneHotEncoder
from sklearn.svm import SVC, OneClassSVM

from aberra import ADC, IADC, IntensityThreshold, MultiView
from aberra.contract.feedback import Feedback
from aberra.declare import Within
from aberra.errors import ModelFileError
from aberra.localise.healing import CodeHealers, Healing
from aberra.localise.intensity import Level, LevelPlan
from aberra.model_file.archives import check_contents, check_detector
from aberra.model_file.soundness import check_marks, check_ranges, check_reader, check_sound

X = np.random.default_rng(0).normal(size=(40, 3))


def spoilt(part, **changes):
    """Return a copy with some attributes changed, each by a function."""
    other = copy(part)
    for name, change in changes.items():
        setattr(other, name, change(vars(part)[name]))
    return other


def shorter(array):
    return array[..., :-1]


def one_more(value):
    return value + 1


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("_sparse", lambda _: True),
        ("kernel", lambda _: "precomputed"),
        ("n_features_in_", one_more),
        ("support_", shorter),
        ("dual_coef_", shorter),
        ("_dual_coef_", shorter),
        ("dual_coef_", np.transpose),
        ("intercept_", lambda _: np.zeros(2)),
        ("_intercept_", lambda _: np.zeros(2)),
        ("_probA", lambda _: np.zeros(1)),
        ("_probB", lambda _: np.zeros(1)),
        ("_n_support", lambda n: np.append(n, 0)),
        ("_n_support", lambda n: n.astype(float)),
        ("_n_support", lambda n: n - 1),
        ("support_vectors_", shorter),
        ("support_vectors_", lambda v: v[:0]),
    ],
)
def test_a_machine_whose_arrays_do_not_fit_is_refused(name, change):
    machine = OneClassSVM().fit(X)
    check_detector(machine, "here")
    check_detector(OneClassSVM().fit(X[:1]), "here")  # one support vector
    check_detector(OneClassSVM(), "here")  # a template
    with pytest.raises(ModelFileError, match="support vector machine do not fit"):
        check_detector(make_pipeline(spoilt(machine, **{name: change})), "here")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("_fit_method", lambda _: "kd_tree"),
        ("_tree", lambda _: 1),
        ("n_features_in_", one_more),
        ("n_samples_fit_", one_more),
        ("n_neighbors_", lambda _: 0),
        ("n_neighbors_", lambda _: 41),
        ("n_neighbors_", float),
        ("_lrd", shorter),
        ("_distances_fit_X_", shorter),
        ("_fit_X", shorter),
    ],
)
def test_neighbours_whose_arrays_do_not_fit_are_refused(name, change):
    near = LocalOutlierFactor(n_neighbors=5, novelty=True, algorithm="brute").fit(X)
    check_detector(near, "here")
    check_detector(NearestNeighbors(algorithm="brute").fit(X[:1]), "here")
    with pytest.raises(ModelFileError, match="nearest neighbours do not fit"):
        check_detector({"inner": [spoilt(near, **{name: change})]}, "here")
    with pytest.raises(ModelFileError, match="learns from labels"):
        check_detector([SVC()], "here")


def in_object_array(part):
    held = np.empty((1, 1), dtype=object)
    held[0, 0] = part
    return held


def nested(part):
    """Hide a part deeper than a person would put it: pipelines call what is inside."""
    for _ in range(10):
        part = Pipeline([("inner", part)])
    return part


@pytest.mark.parametrize("hidden", [nested, in_object_array, lambda part: {part}])
def test_what_is_hidden_in_a_detector_is_looked_at_too(hidden):
    machine = OneClassSVM().fit(X)
    check_detector(hidden(machine), "here")
    with pytest.raises(ModelFileError, match="support vector machine do not fit"):
        check_detector(hidden(spoilt(machine, support_=shorter)), "here")


def test_a_distance_whose_matrix_has_another_size_is_refused():
    """SciPy reads beyond the end of it."""
    keywords = {"algorithm": "brute", "metric": "mahalanobis"}
    check_detector(NearestNeighbors(**keywords, metric_params={"VI": np.eye(3)}).fit(X), "here")
    for size in (1, 4):
        near = NearestNeighbors(**keywords, metric_params={"VI": np.eye(size)}).fit(X)
        with pytest.raises(ModelFileError, match="nearest neighbours do not fit"):
            check_detector(near, "here")


def test_what_learns_from_labels_or_is_unknown_is_refused():
    """Labels become places of a sparse matrix, and neighbours such a matrix, without a look."""
    for part, why in (
        (KNeighborsClassifier(algorithm="brute"), "learns from labels"),
        (VotingRegressor([("a", KMeans(2))]), "learns from labels"),
        (MultiLabelBinarizer(), "MultiLabelBinarizer is not known to be safe"),
        (KNeighborsTransformer(algorithm="brute"), "KNeighborsTransformer is not known"),
    ):
        with pytest.raises(ModelFileError, match=why):
            check_detector(make_pipeline(part, OneClassSVM()), "here")


def test_a_generator_that_reads_beyond_its_state_is_refused():
    """A Boltzmann machine draws from it when it scores, and the process ended."""
    machine = BernoulliRBM(2, n_iter=1, random_state=np.random.RandomState(0)).fit(np.abs(X))
    check_detector(machine, "here")
    state = machine.random_state.get_state(legacy=False)
    for place in (-1, 625):
        state["state"]["pos"] = place
        machine.random_state.set_state(state)
        with pytest.raises(ModelFileError, match="random state is malformed"):
            check_detector(machine, "here")


CODES = np.array([["a"], ["b"], ["b"], ["c"], ["c"]], dtype=object)


@pytest.mark.parametrize(
    ("settings", "name", "change"),
    [
        ({}, "_n_features_outs", lambda _: [2]),
        ({}, "_n_features_outs", np.array),
        ({}, "categories_", lambda _: [np.array([3.0, 2.0, 1.0])]),
        ({}, "categories_", lambda _: [np.array([1.0, np.nan, np.nan])]),
        ({"drop": "first"}, "_drop_idx_after_grouping", lambda _: np.array([-1], dtype=object)),
        ({"drop": "first"}, "_drop_idx_after_grouping", lambda _: np.array([3], dtype=object)),
        ({"drop": "first"}, "_drop_idx_after_grouping", lambda _: None),
        ({"min_frequency": 2}, "_default_to_infrequent_mappings", lambda _: [np.array([9, 0, 1])]),
        ({"min_frequency": 2}, "_default_to_infrequent_mappings", lambda _: [None]),
        ({"min_frequency": 2}, "_default_to_infrequent_mappings", lambda m: [m[0] - 1]),
        ({"min_frequency": 2}, "_default_to_infrequent_mappings", lambda m: [m[0][:2]]),
    ],
)
def test_codes_that_would_be_written_beside_their_column_are_refused(settings, name, change):
    """Columns of zeros and ones are made from a sparse matrix, which does not look either."""
    coder = OneHotEncoder(sparse_output=False, **settings).fit(CODES)
    check_detector([coder, OneHotEncoder(), OneHotEncoder().fit([[1.0], [2.0], [np.nan]])], "here")
    with pytest.raises(ModelFileError, match="codes of"):
        check_detector(spoilt(coder, **{name: change}), "here")


def archive(files, schema=(), kind=ZIP_STORED):
    """Return an archive of files, each of which the schema asks for so often."""
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", kind) as file:
        for name, content in files.items():
            file.writestr(name, content)
        file.writestr("schema.json", json.dumps([{"a": [{"file": name}]} for name in schema]))
    return buffer.getvalue()


def stored(array, version=None):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version=version)
    return buffer.getvalue()


def test_archives_that_take_more_than_they_say_are_refused(monkeypatch):
    monkeypatch.setattr("aberra.model_file.archives.MOST_UNPACKED", 1000)
    good = {"a.npy": stored(X), "b.npy": stored(X, (2, 0)), "c.txt": b"words"}
    check_contents(archive(good, list(good) * 5), "here")
    packed = [archive({"zeros": bytes(n - len("[]"))}, kind=ZIP_DEFLATED) for n in (1000, 1001)]
    check_contents(archive({"a.zip": packed[0]}, ["a.zip"]), "here")
    huge = stored(X).replace(b"(40, 3)", b"(40, 9)")
    for data, words in (
        (archive(good, good, ZIP_DEFLATED), "is compressed"),
        (archive(good, ["a.npy"] * 300), "again and again"),
        (archive({"a.npy": huge}, ["a.npy"]), "not as long as it says"),
        (archive({"a.npy": stored(X)[:-8]}, ["a.npy"]), "not as long as it says"),
        (archive({"a.zip": packed[1]}, ["a.zip"]), "too large"),
    ):
        with pytest.raises(ModelFileError, match=words):
            check_contents(data, "here")
    check_contents(archive({"a.npy": huge}), "here")  # nobody asks for it


def test_parts_that_cost_more_than_they_say_are_refused():
    """A name that is used again doubles with every level; a scalar of bytes says its own length."""
    scalar = {"__class__": "void", "__loader__": "NdArrayNode", "file": "n.npy"}
    again = {"__class__": "list", "__loader__": "ListNode", "content": [], "__id__": 1}
    for node, why in ((scalar, "void, which is not safe"), (again, "again and again")):
        buffer = io.BytesIO()
        with ZipFile(buffer, "w") as file:
            file.writestr("n.npy", stored(np.array(1 << 40)))
            file.writestr("schema.json", json.dumps({"content": [node]}))
        with pytest.raises(ModelFileError, match=why):
            check_contents(buffer.getvalue(), "here")


def claiming(size, files):
    """Return an archive whose directory says that its first file has so many bytes."""
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as file:
        for name, content in files.items():
            file.writestr(name, content)
        file.infolist()[0].file_size = size
    return buffer.getvalue()


def of_length(data, n):
    """Return an archive with a remark at its end, n bytes in all."""
    buffer = io.BytesIO(data)
    with ZipFile(buffer, "a") as file:
        file.comment = bytes(n - len(data))
    return buffer.getvalue()


def test_archives_at_the_borders_of_what_they_may_take():
    empty = {"a": b"", "schema.json": b"[]"}
    whole = len(claiming(0, empty))  # the files of an archive have no more bytes than it has itself
    packed = [archive({"a.zip": claiming(n, {"a": b""})}, ["a.zip"]) for n in (1 << 28, 1 + 2**28)]
    often = archive({"a": bytes(8000)}, ["a"] * 32)  # they are asked for sixteen times its bytes
    for fits, too_much, words in (
        (claiming(whole - 2, empty), claiming(whole - 1, empty), "overlap"),
        (*packed, "too large"),
        (of_length(often, 16_000), of_length(often, 15_999), "again and again"),
    ):
        check_contents(fits, "here")
        with pytest.raises(ModelFileError, match=words):
            check_contents(too_much, "here")


def test_marks_of_reviewers_at_the_borders_of_what_can_be_squared():
    names = ("rows", "scores", "middle", "spread", "usual")
    sound = Feedback(np.ones((2, 3)), np.array([0, 1]), np.ones(2), np.array([1, 1]),
                     np.ones(3), np.ones(3), np.ones(3))  # fmt: skip
    check_marks(replace(sound, rows=np.full((2, 3), np.nan)))  # a gap counts as the median

    def with_last(name, value):
        array = vars(sound)[name].copy()
        array[..., -1] = value
        return replace(sound, **{name: array})

    for name in names:
        check_marks(with_last(name, 1e150))
        for wrong in (1.001e150, -1.001e150, np.inf, *([] if name == "rows" else [np.nan])):
            with pytest.raises(ModelFileError, match="too large to be squared"):
                check_marks(with_last(name, wrong))
    for name, value in (("labels", 2), ("labels", -1), ("spread", 0.0), ("spread", -1.0)):
        with pytest.raises(ModelFileError, match="neither 0 nor 1, or a column has no spread"):
            check_marks(with_last(name, value))
    check_marks(with_last("spread", 5e-324))


@pytest.fixture(scope="module")
def model():
    rows = pd.DataFrame(X, columns=["a", "b", "c"])
    rows["day"] = pd.date_range("2024-01-01", periods=40, freq="7h")
    rows["word"] = ["x", "y"] * 20
    rows.loc[3, "a"] = np.nan
    return IADC(MultiView(n_trees=6), 2, encode="auto", missing="impute", random_state=0).fit(rows)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("kinds", lambda v: v[:-1], "kinds"),
        ("kinds", lambda v: ["colour", *v[1:]], "kinds"),
        ("parts", lambda v: v[:-1], "parts"),
        ("parts", lambda v: [["day"], *v[1:]], "parts"),
        ("parts", lambda v: [["value", "value"], *v[1:]], "comes twice"),
        ("parts", lambda v: [[] for _ in v], "comes twice, or none"),
        ("medians", lambda v: v[:-1], "medians"),
        ("medians", lambda v: [np.nan, *v[1:]], "not finite"),
        ("rarity", lambda v: {}, "other columns than those of text"),
        ("rarity", lambda v: {4: {"x": np.inf}}, "not finite"),
        ("latest", lambda v: {}, "every column of dates"),
        ("latest", lambda v: {3: [1.0]}, "every column of dates"),
        ("latest", lambda v: {3: [1.0, np.nan]}, "not finite"),
        ("unseen", lambda v: np.nan, "not finite"),
    ],
)
def test_a_reader_that_does_not_know_its_columns_is_refused(model, name, change, words):
    check_reader(model.reader_, 5)
    with pytest.raises(ModelFileError, match=words):
        check_reader(spoilt(model.reader_, **{name: change}), 5)
    with pytest.raises(ModelFileError, match="each of 6 columns"):
        check_reader(model.reader_, 6)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"threshold_": lambda _: np.nan}, "above NaN"),
        ({"references_": shorter}, "references_"),
        ({"feature_names_in_": lambda v: v[:-1]}, "4 names, not 5"),
        ({"feature_names_in_": lambda v: np.array([*v[:-1], v[0]], object)}, "5 names, not 5"),
        ({"image_shape_": lambda _: (1, 2, 3)}, "do not have 5 numbers"),
        ({"history_": lambda h: replace(h, rounds=[])}, "there are no rounds"),
        ({"members_": lambda m: spoilt(m, n_members=lambda _: 0)}, "no member"),
    ],
)
def test_a_model_whose_parts_do_not_fit_is_refused(model, change, words):
    check_sound(model, True)
    check_sound(spoilt(model, history_=lambda h: replace(h, rounds=h.rounds[:1])), True)
    with pytest.raises(ModelFileError, match=words):
        check_sound(spoilt(model, **change), True)


def test_a_localiser_whose_parts_do_not_fit_is_refused():
    model = IntensityThreshold(holdout=0).fit(np.random.default_rng(0).random((5, 1, 8, 8)))
    check_sound(model, True)
    members = model.members_
    smaller = [Level(LevelPlan(1, (4, 8)))]
    for change in (
        {"image_shape_": lambda _: (1, 8, 9)},
        {"members_": lambda _: replace(members, frame=replace(members.frame, grid=(9, 8)))},
        {"members_": lambda _: replace(members, nets=smaller)},
        {"map_threshold_": lambda _: np.nan},
    ):
        with pytest.raises((ModelFileError, ValueError, RuntimeError)):
            check_sound(spoilt(model, **change), True)


@pytest.mark.parametrize("grid", [(9, 8), (8, 9), (9, 9)])
def test_maps_are_drawn_on_no_larger_a_grid_than_the_images_have(grid):
    model = IntensityThreshold(holdout=0).fit(np.random.default_rng(0).random((5, 1, 8, 8)))
    frame = model.members_.frame
    larger = replace(model.members_, frame=replace(frame, grid=grid))
    with pytest.raises(ModelFileError, match="is larger than the images"):
        check_sound(spoilt(model, members_=lambda _: larger), True)
    for shape in ((1, 8, 9), (1, 9, 8), (2, 8, 8)):
        with pytest.raises(ModelFileError, match="but the frame has"):
            check_sound(spoilt(model, image_shape_=lambda _, shape=shape: shape), True)


@pytest.mark.parametrize("name", ["threshold_", "map_threshold_"])
def test_an_ensemble_of_localisers_has_its_thresholds_and_its_maps(name, model):
    images = np.random.default_rng(0).random((8, 1, 6, 6))
    maps = ADC(IntensityThreshold(holdout=0), n_members=2, random_state=0).fit(images)
    check_sound(maps, True)
    with pytest.raises(ModelFileError, match=f"{name}.*above NaN"):
        check_sound(spoilt(maps, **{name: lambda _: np.nan}), True)
    without = copy(maps)
    del without.map_threshold_
    with pytest.raises(ModelFileError, match="no pixel could be flagged"):
        check_sound(without, True)
    for parts in (model.members_.parts, [*maps.members_.parts, *model.members_.parts]):
        other = replace(maps.members_, parts=parts)
        with pytest.raises(ModelFileError, match="they draw no maps"):
            check_sound(spoilt(maps, members_=lambda _, other=other: other), True)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_scores_of_training_rows_are_finite_and_the_rounds_ended_for_a_reason(model, value):
    def with_scores(history):
        scores = history[-1].scores.copy()
        scores[7] = value
        rounds = [replace(one, scores=scores) for one in history]
        return replace(history, rounds=rounds)

    with pytest.raises(ModelFileError, match="scores of the training samples are not finite"):
        check_sound(spoilt(model, history_=with_scores), True)
    with pytest.raises(ModelFileError, match="'bored' is no reason"):
        check_sound(spoilt(model, history_=lambda h: replace(h, reason="bored")), True)


def test_settings_of_a_model_hold_as_those_of_a_fit_do(model):
    with pytest.raises(ValueError, match="'patience' parameter of IADC"):
        check_sound(spoilt(model, patience=lambda _: 0), True)
    images = np.random.default_rng(0).random((5, 1, 8, 8))
    localiser = IntensityThreshold(holdout=0).fit(images).set_params(smooth=(1 << 14) + 1)
    with pytest.raises(ModelFileError, match="16385 is not in 1 to 16384"):
        check_sound(localiser, True)


def test_networks_are_called_two_thousand_times_at_most_unless_limits_are_lifted(monkeypatch):
    model = IntensityThreshold(holdout=0).fit(np.random.default_rng(0).random((5, 1, 8, 8)))
    for n_calls, limits in ((2000, True), (2001, False)):
        monkeypatch.setattr(type(model.members_), "n_calls", n_calls)
        check_sound(model, limits)
    with pytest.raises(ModelFileError, match=r"2,001 times for a tile of images, more than 2,000"):
        check_sound(model, True)


def test_a_healer_is_asked_once_or_as_often_as_it_draws():
    for n_draws, calls in ((None, 1), (1, 1), (7, 7)):
        assert CodeHealers(None, None, [], Healing(0.1, n_draws, "none")).n_calls == calls


def test_without_emphasis_every_pixel_is_suspected_alike():
    plain = SimpleNamespace(
        _codes=lambda net, x: torch.zeros(2, 4, dtype=torch.long),
        _choices=lambda net: [],
        healing=Healing(0.1, None, "none"),
    )
    restored, suspicion = CodeHealers._healed(plain, None, torch.rand(2, 3, 5, 6))
    assert restored.shape == (2, 3, 5, 6)
    assert torch.equal(suspicion, torch.ones(2, 1, 5, 6))


def test_codes_are_suspected_as_often_as_draws_replace_them():
    likely = torch.tensor([0.01, 0.01, 0.9, 0.9])  # how likely the codes are that are there
    log_p = torch.stack([likely, 1 - likely], dim=1).log()[None]
    net = SimpleNamespace(
        log_probs=lambda codes: log_p,
        embedded=lambda codes: codes.float(),
        vqvae=SimpleNamespace(decode=lambda codes: codes.view(1, 1, 2, 2)),
    )
    replacing, keeping = torch.ones_like, torch.zeros_like
    healers = SimpleNamespace(
        _codes=lambda net, x: torch.zeros(1, 4, dtype=torch.long),
        _choices=lambda net: [
            lambda _, k=k: k(torch.zeros(1, 4, dtype=torch.long))
            for k in (replacing, keeping, keeping, replacing, replacing)
        ],
        _at_pixels=lambda net, values, x: values.view(1, 1, 2, 2),
        healing=Healing(0.1, 5, "replaced"),
    )
    restored, suspicion = CodeHealers._healed(healers, net, torch.rand(1, 1, 2, 2))
    expected = torch.tensor([[[[0.6, 0.6], [0.0, 0.0]]]])
    torch.testing.assert_close(restored, expected)
    torch.testing.assert_close(suspicion, expected)


@dataclass
class Inner:
    sides: Annotated[int, Within(1, 8)]


@dataclass
class Outer:
    inner: Inner
    draws: Annotated[int, Within(1, 3)] | None
    free: int = 10**9


def test_numbers_out_of_their_range_are_refused_however_deep():
    for sides, draws in ((1, None), (8, 3), (8, 1)):
        check_ranges(Outer(Inner(sides), draws), "here")
    for sides, draws, place in ((0, 1, "inner.sides"), (9, 1, "inner.sides"), (1, 4, "draws"),
                                (1, 0, "draws")):  # fmt: skip
        with pytest.raises(ModelFileError, match=place):
            check_ranges(Outer(Inner(sides), draws), "here")
