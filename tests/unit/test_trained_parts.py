"""What a trained model consists of is said by the types of its parts, and they tell the truth."""

import dataclasses
import types
import typing
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import IsolationForest

from aberra import (
    ADDM,
    DAGPR,
    DDPM,
    OCSVM,
    RSRAE,
    AutoEncoder,
    DeepSVDD,
    DenseVAE,
    FAnoGAN,
    HybridOCSVM,
    IntensityThreshold,
    MultiView,
    NearestHealthy,
    PatchFinder,
    SpatialAE,
    VQTransformer,
)
from aberra.contract.members import member_scores
from aberra.data.tables import TableReader
from aberra.declare import AnyShape, Size, Within, learnt_by
from aberra.detectors.foreign import ForeignTrainer
from aberra.model_file.derive import learnt_kinds

rng = np.random.default_rng(0)
TABLE, WIDE = rng.normal(size=(60, 5)), rng.normal(size=(12, 20))
IMAGES = rng.integers(0, 256, size=(20, 1, 9, 8)).astype(np.uint8)
SHORT = {"random_state": 0, "batch_size": 16}
DETECTORS = [
    MultiView(random_state=0),
    OCSVM(),
    OCSVM(solver="nystroem", n_landmarks=8, random_state=0),
    HybridOCSVM(pretrain_epochs=1, **SHORT),
    AutoEncoder(epochs=1, **SHORT),
    DeepSVDD(epochs=1, pretrain_epochs=1, **SHORT),
    RSRAE(epochs=1, **SHORT),
    DAGPR(pretrain_epochs=1, **SHORT),
]
BRIEF = {"train_steps": 1, "batch_size": 2, "random_state": 0}
LOCALISERS = [
    DDPM(**BRIEF),
    ADDM(style="printed", **BRIEF),
    SpatialAE(**BRIEF),
    DenseVAE(**BRIEF),
    FAnoGAN(encoder_steps=1, **BRIEF),
    VQTransformer(transformer_steps=1, **BRIEF),
    PatchFinder(**BRIEF),
    IntensityThreshold(random_state=0),
    NearestHealthy(random_state=0),
]
CASES = [(d, X) for d in DETECTORS for X in (TABLE, IMAGES)] + [(MultiView(random_state=0), WIDE)]


def kept(part):
    """Return the type and the value of everything that a model file has to keep of a part."""
    hints = get_type_hints(type(part), include_extras=True)
    return {
        f.name: (hints[f.name], getattr(part, f.name)) for f in dataclasses.fields(part) if f.init
    }


def check(hint, value, sizes):
    """Compare a value with its type; `sizes` are the dimensions of this part and of the model."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated and isinstance(inner[1], Size):
        assert value == sizes[inner[1].name]
    elif origin is Annotated and isinstance(inner[1], Within):
        assert type(value) is int
        assert inner[1].low <= value <= inner[1].high
    elif origin is Annotated:
        check_array(inner[0], inner[1], value, sizes)
    elif origin is Literal:
        assert value in inner
    elif origin in (typing.Union, types.UnionType):
        fitting = [one for one in inner if type(value) is plain(one)]
        assert len(fitting) == 1, (hint, value)
        check(fitting[0], value, sizes)
    else:
        assert type(value) is (origin or hint)
        for one, item in held_in(inner, value):
            check(one, item, sizes)
        if dataclasses.is_dataclass(hint):
            check_part(value, sizes)


def plain(hint):
    return get_args(hint)[0] if get_origin(hint) is Annotated else get_origin(hint) or hint


def held_in(inner, value):
    """Return what a list, tuple or dictionary holds, each with its type."""
    if isinstance(value, dict):
        return [pair for entry in value.items() for pair in zip(inner, entry, strict=True)]
    if isinstance(value, list) or inner[1:] == (...,):
        return [(inner[0], item) for item in value]
    return zip(inner, value, strict=True) if isinstance(value, tuple) else ()


def check_array(hint, shape, value, sizes):
    assert isinstance(value, get_origin(hint) or hint)
    assert str(value.dtype).removeprefix("torch.") == shape.dtype
    if isinstance(shape, AnyShape):
        return
    assert value.ndim == len(shape.dims)
    for size, dim in zip(value.shape, shape.dims, strict=True):
        if dim is not None:
            assert size == (dim if isinstance(dim, int) else sizes.setdefault(dim, size))


def check_part(part, sizes):
    own = {name: size for name, size in sizes.items() if name.isupper()}
    for hint, value in kept(part).values():
        check(hint, value, own)
    sizes.update({name: size for name, size in own.items() if name.isupper()})


def made_again(value):
    """Make a part again from what is kept of it."""
    if dataclasses.is_dataclass(value):
        return type(value)(**{name: made_again(held) for name, (_, held) in kept(value).items()})
    if isinstance(value, list | tuple):
        return type(value)(made_again(item) for item in value)
    if isinstance(value, dict):
        return {name: made_again(item) for name, item in value.items()}
    return value.clone() if isinstance(value, torch.Tensor) else value


@pytest.mark.slow
@pytest.mark.parametrize(("detector", "X"), CASES, ids=str)
def test_types_of_a_trained_model_hold_and_are_all_it_needs(detector, X):
    model = detector.fit(X)
    check_part(model.members_, {"D": int(np.prod(X.shape[1:]))})
    rows = X.reshape(len(X), -1)
    scores = member_scores(made_again(model.members_), rows)
    np.testing.assert_array_equal(scores, member_scores(model.members_, rows))


@pytest.mark.parametrize("detector", DETECTORS, ids=str)
def test_learnt_attributes_are_declared_with_types_that_can_be_read(detector):
    model = detector.fit(TABLE)
    hints = get_type_hints(type(model), include_extras=True)
    declared = {field.name: field.metadata["optional"] for field in learnt_by(type(model))}
    found = set(vars(model)) - set(model.get_params())
    assert found - set(declared) == set()
    assert {name for name, optional in declared.items() if not optional} <= found
    assert type(model.members_) is hints["members_"]
    for name in found:
        if name != "n_features_in_":  # the size D itself
            check(hints[name], getattr(model, name), {"D": 5})


@pytest.mark.slow
@pytest.mark.parametrize("localiser", LOCALISERS, ids=lambda one: type(one).__name__)
def test_types_of_a_trained_localiser_hold_and_are_all_it_needs(localiser):
    model = localiser.fit(IMAGES)
    check_part(model.members_, {})
    again = made_again(model.members_)
    np.testing.assert_array_equal(again.maps(IMAGES), model.members_.maps(IMAGES))
    hints = get_type_hints(type(model), include_extras=True)
    assert {field.name for field in learnt_by(type(model))} == set(vars(model)) - set(
        model.get_params()
    )
    assert type(model.members_) is hints["members_"]
    learnt_kinds(type(model))  # the model file can read these types


def test_reader_of_tables_is_made_again_from_its_fields():
    table = pd.DataFrame({"a": [1.0, None, 3.0], "b": ["x", "y", "x"]})
    reader = TableReader("impute", "auto")
    reader.fit(table)
    check_part(reader, {})
    again = made_again(reader)
    np.testing.assert_array_equal(again.transform(table), reader.transform(table))


def test_foreign_members_keep_their_detectors():
    trainer = ForeignTrainer(IsolationForest(n_estimators=2))
    members = trainer._train(TABLE, np.arange(60)[None], np.ones((1, 60)), [0])
    assert kept(members) == {"detectors": (list[Any], members.detectors)}


def test_parts_of_different_numbers_of_members_are_refused():
    for detector, name in (
        (DeepSVDD(epochs=1, pretrain_epochs=1), "centre"),
        (RSRAE(epochs=1), "A"),
        (RSRAE(epochs=1), "decoder"),
        (AutoEncoder(epochs=1), "decoder"),
        (DAGPR(pretrain_epochs=1), "regressions"),
        (HybridOCSVM(pretrain_epochs=1), "machines"),
        (HybridOCSVM(pretrain_epochs=1), "code_scalings"),
    ):
        members = detector.set_params(**SHORT).fit(TABLE).members_
        part = getattr(members, name)
        if name == "decoder":
            twice = dataclasses.replace(
                part, weights=[np.concatenate([w] * 2) for w in part.weights]
            )
        else:
            twice = part * 2 if isinstance(part, list) else np.concatenate([part] * 2)
        with pytest.raises(ValueError, match="1 members, but parts of 2"):
            dataclasses.replace(members, **{name: twice})
