"""The constructors of detectors and localisers, and that what they share is written once."""

import inspect

import pytest

from aberra import (
    ADDM,
    DAGPR,
    DDPM,
    OCSVM,
    RSRAE,
    AnoDDPM,
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
from aberra.declare import parameters_of

POSITIONAL = {
    MultiView: ["n_trees", "n_landmarks", "ridge"],
    OCSVM: ["nu", "gamma"],
    HybridOCSVM: ["hidden", "nu", "gamma"],
    AutoEncoder: ["hidden"],
    DeepSVDD: ["hidden"],
    RSRAE: ["hidden"],
    DAGPR: ["hidden"],
    ADDM: ["preset"],
    DDPM: ["preset"],
    AnoDDPM: ["preset"],
    SpatialAE: ["preset"],
    DenseVAE: ["preset"],
    FAnoGAN: ["preset"],
    VQTransformer: ["preset"],
    PatchFinder: ["preset"],
    IntensityThreshold: ["side"],
    NearestHealthy: ["n_neighbours"],
}


@pytest.mark.parametrize("cls", POSITIONAL, ids=lambda cls: cls.__name__)
def test_positional_parameters_keep_their_order(cls):
    kinds = inspect.signature(cls).parameters.values()
    assert [p.name for p in kinds if p.kind is p.POSITIONAL_OR_KEYWORD] == POSITIONAL[cls]


@pytest.mark.parametrize("cls", POSITIONAL, ids=lambda cls: cls.__name__)
def test_every_parameter_is_explained_with_its_default(cls):
    for field in parameters_of(cls):
        assert len(field.metadata["doc"].split()) > 4, field.name
        assert field.metadata["allowed"], field.name
        lines = cls.__doc__.splitlines()
        entry = next(line for line in lines if line.startswith(f"{field.name} :"))
        shown = f'"{field.default}"' if isinstance(field.default, str) else repr(field.default)
        assert entry.endswith(f"default={shown}")


def test_no_text_of_a_parameter_is_written_twice():
    seen = {}
    for cls in POSITIONAL:
        for field in parameters_of(cls):
            text = field.metadata["doc"]
            assert seen.setdefault(text, text) is text, f"{cls.__name__}: {field.name}"
