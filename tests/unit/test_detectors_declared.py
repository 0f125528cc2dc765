"""The constructors of detectors and localisers, and that what they share is written once."""

import inspect

import numpy as np
import pytest

from aberra import (
    ADC,
    ADDM,
    DAGPR,
    DDPM,
    IADC,
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
    Stream,
    VQTransformer,
)
from aberra.declare import parameters_of
from aberra.errors import DataError
from aberra.localise.base import Localiser

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


# A number that is another one here changes the scores of everybody who left it open.
NETWORK = {"batch_size": 128, "learning_rate": 1e-3, "weight_decay": 1e-6}
MACHINE = {"nu": 0.5, "n_landmarks": 256}
NUMBERS = {
    ADC: {"n_members": 5, "fdr": 0.1},
    IADC: {"n_members": 5, "fdr": 0.1, "outlier_ratio": 0.5, "max_rounds": 30, "temperature": 0.5,
           "patience": 2, "warm_start": False},
    Stream: {"n_rows": 2048, "half_life": 2048, "refit_every": 256, "follow": True},
    MultiView: {"n_trees": 32, "n_landmarks": 128, "ridge": 0.02, "fdr": 0.1},
    OCSVM: MACHINE | {"fdr": 0.1},
    HybridOCSVM: MACHINE | NETWORK | {"pretrain_epochs": 100, "fdr": 0.1},
    AutoEncoder: NETWORK | {"epochs": 100, "fdr": 0.1},
    DeepSVDD: NETWORK | {"pretrain_epochs": 100, "epochs": 50, "fdr": 0.1},
    RSRAE: NETWORK | {"epochs": 100, "lambda1": 0.1, "lambda2": 0.1, "fdr": 0.1},
    DAGPR: NETWORK | {"pretrain_epochs": 100, "n_refinements": 1, "n_inducing": 512, "fdr": 0.1},
    NearestHealthy: {"n_neighbours": 200, "fdr": 0.1, "smooth": 5, "holdout": 0.1,
                     "false_alarm_rate": 0.01, "n_kept": 2000, "relative": True,
                     "harmonise": False},
    PatchFinder: {"fdr": 0.1, "holdout": 0.1, "false_alarm_rate": 0.01, "checkpoint_minutes": 5.0,
                  "contrast": 0.5},
}  # fmt: skip


@pytest.mark.parametrize("cls", NUMBERS, ids=lambda cls: cls.__name__)
def test_numbers_that_are_left_open_stay_what_they_were(cls):
    given = {p.name: p.default for p in parameters_of(cls)}
    found = {name: value for name, value in given.items() if isinstance(value, int | float)}
    assert found == NUMBERS[cls]


TABLE, IMAGES = np.zeros((8, 3)), np.zeros((8, 1, 8, 8))


def some_for(cls):
    return IMAGES if issubclass(cls, Localiser) else TABLE


@pytest.mark.parametrize("cls", [ADC, IADC, *POSITIONAL], ids=lambda cls: cls.__name__)
def test_a_setting_out_of_its_range_is_refused_before_anything_is_learnt(cls):
    with pytest.raises(ValueError, match=f"'fdr' parameter of {cls.__name__}"):
        cls(fdr=2.0).fit(some_for(cls))
    if cls not in (ADC, IADC):
        with pytest.raises(ValueError, match=f"'fdr' parameter of {cls.__name__}"):
            ADC(cls(fdr=2.0)).fit(some_for(cls))
    if issubclass(cls, Localiser):
        with pytest.raises(ValueError, match=f"'fdr' parameter of {cls.__name__}"):
            cls(fdr=2.0).adapt(IMAGES)


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


WAYS = {  # of a detector by itself: what it draws, sees and goes by, as docs and docstrings say
    MultiView(): (True, "equal", True, "apart", "fdr"),
    OCSVM(): (False, "equal", False, "median", "knee"),
    HybridOCSVM(): (False, "informed", False, "median", "knee"),
    AutoEncoder(): (False, "advised", False, "median", "knee"),
    DeepSVDD(): (False, "advised", False, "median", "knee"),
    RSRAE(): (False, "advised", False, "median", "knee"),
    DAGPR(): (False, "equal", False, "median", "knee"),
}


def test_detectors_and_ensembles_go_by_the_rules_that_suit_them():
    for model, ways in WAYS.items():
        own = model.sees_gaps, model.trust_rule, model.flag_rule
        assert (model.draws_rows, model.own_start, *own) == ways
        assert not model.localises
        assert not model.stops_early
        for ensemble in (ADC(model), IADC(model)):
            ensemble.image_shape_ = None
            assert (ensemble.sees_gaps, ensemble.trust_rule, ensemble.flag_rule) == own
            assert not ensemble.localises
            assert ensemble.stops_early == isinstance(ensemble, IADC)
    for ensemble in (ADC(), IADC()):  # of MultiView on tables, of HybridOCSVM on images
        ensemble.image_shape_ = None
        own = ensemble.sees_gaps, ensemble.trust_rule, ensemble.flag_rule
        assert own == (True, "apart", "fdr")
        ensemble.image_shape_ = (1, 8, 8)
        own = ensemble.sees_gaps, ensemble.trust_rule, ensemble.flag_rule
        assert own == (False, "median", "knee")
    for kind in (IntensityThreshold, NearestHealthy, PatchFinder, ADDM, DenseVAE):
        assert kind().localises
        assert ADC(kind()).localises
        assert kind().stops_early == (kind not in (IntensityThreshold, NearestHealthy))


@pytest.mark.parametrize("detector", [AutoEncoder, DeepSVDD, RSRAE, DAGPR, HybridOCSVM])
def test_a_network_for_images_has_no_widths_and_needs_eight_pixels(detector):
    with pytest.raises(ValueError, match="leave it None for images"):
        detector(hidden=(4,), random_state=0).fit(np.zeros((6, 1, 8, 8)))
    with pytest.raises(DataError, match="at least 8 x 8"):
        detector(random_state=0).fit(np.zeros((6, 1, 7, 8)))
