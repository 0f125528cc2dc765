"""What each estimator has learnt, part by part: the whole of format 2.

These tables are the only way from a name in a file to a class. A change here that old files do
not fit needs a new format number in `container.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_origin, get_type_hints

import numpy as np

from aberra.data.tables import TableReader
from aberra.detectors.autoencoder import AutoEncoder, Reconstructors
from aberra.detectors.dagpr import DAGPR, Regression, Regressions
from aberra.detectors.deep_svdd import DeepSVDD, Spheres
from aberra.detectors.foreign import ForeignMembers
from aberra.detectors.hybrid import CodeExpansions, HybridOCSVM
from aberra.detectors.multiview import (
    N_VIEWS,
    Lenses,
    MultiView,
    Precision,
    View,
    Views,
    WidePrecision,
)
from aberra.detectors.ocsvm import OCSVM, Expansions, KernelExpansion
from aberra.detectors.rsrae import RSRAE, Subspaces
from aberra.detectors.scaling import Scaling
from aberra.localise.diffusion import ADDM, DDPM, AnoDDPM
from aberra.localise.fanogan import AnoGANNets, FAnoGAN
from aberra.localise.frame import Frame
from aberra.localise.healing import CodeHealers, Healing
from aberra.localise.intensity import IntensityThreshold, Level, LevelPlan, Levels
from aberra.localise.reconstruction import DenseNets, DenseVAE, SpatialAE, SpatialNets
from aberra.localise.restorers import MapStyle
from aberra.localise.vqvae_transformer import VQTransformer
from aberra.localise.walk import Denoisers, Walk
from aberra.model_file.composite import NamedBy, Networks, OneOf, Part
from aberra.model_file.foreign import Foreign
from aberra.model_file.kinds import Array, As, Count, Kind, ListOf, Maybe, Scalar
from aberra.nets.anogan import AnoGANNet, AnoGANPlan
from aberra.nets.baur import DenseNet, DensePlan, SpatialNet, SpatialPlan
from aberra.nets.conv import ConvLayer, ConvPlan, FrozenConv
from aberra.nets.stacked import FrozenMLP
from aberra.nets.unet import Denoiser, UNetPlan
from aberra.nets.vq import VQNet, VQPlan
from aberra.robust.adc import ADC
from aberra.robust.committee import Committee
from aberra.robust.history import History, Round
from aberra.robust.iadc import IADC

INT, FLOAT, TEXT, BOOL = Scalar(int), Scalar(float), Scalar(str), Scalar(bool)


def array(*dims: int | str | None) -> Array:
    """Doubles. Dimensions: D columns and N rows are the same in the whole file."""
    return Array(dims)


def tensor(*dims: int | str | None) -> Array:
    """Doubles that torch works with."""
    return Array(dims, tensor=True)


def ints(length: int) -> As:
    """So many integers, as a tuple."""
    return As(tuple, ListOf(INT), length)


def _names(items: list[str]) -> Any:
    return np.array(items, dtype=object)


SCALING = Part(Scaling, {"shift": array("k"), "factor": array("k")})

READER = Part(
    TableReader,
    {
        "missing": TEXT,
        "encode": TEXT,
        "kinds": ListOf(TEXT),
        "medians": ListOf(FLOAT),
        "rarity": NamedBy(NamedBy(FLOAT), int),
        "unseen": FLOAT,
    },
)

# Networks
LAYER = Part(
    ConvLayer,
    {
        **dict.fromkeys(("n_in", "n_out", "kernel", "padding", "stride"), INT),
        **dict.fromkeys(("size", "output_padding"), ints(2)),
        **dict.fromkeys(("transposed", "pool", "linear"), BOOL),
        "upsample_to": Maybe(ints(2)),
    },
)
PLAN = Part(
    ConvPlan,
    {
        "image": ints(3),
        "layers": As(tuple, ListOf(LAYER)),
        "n_code": INT,
        "inner": ints(3),
        "decodes": BOOL,
        "dense": BOOL,
    },
)
NETWORK = OneOf(
    Part(
        FrozenMLP,
        {
            "weights": ListOf(tensor(None, None, None)),
            "biases": ListOf(tensor(None, None)),
            "linear_output": BOOL,
        },
    ),
    Part(FrozenConv, {"plan": PLAN, "arrays": NamedBy(Array(None, "float32", tensor=True))}),
)

# Members
EXPANSION = Part(
    KernelExpansion,
    {"vectors": array("s", "k"), "coefficients": array("s"), "rho": FLOAT, "gamma": FLOAT},
)
EXPANSIONS = Part(Expansions, {"scaling": SCALING, "machines": ListOf(EXPANSION)})
CODE_EXPANSIONS = Part(
    CodeExpansions,
    {
        "scaling": SCALING,
        "encoder": NETWORK,
        "code_scalings": ListOf(SCALING),
        "machines": ListOf(EXPANSION),
    },
)
RECONSTRUCTORS = Part(Reconstructors, {"scaling": SCALING, "encoder": NETWORK, "decoder": NETWORK})
SPHERES = Part(Spheres, {"scaling": SCALING, "encoder": NETWORK, "centre": tensor(None, None, 1)})
SUBSPACES = Part(
    Subspaces,
    {
        "scaling": SCALING,
        "encoder": NETWORK,
        "A": tensor(None, None, None),
        "decoder": NETWORK,
    },
)
REGRESSION = Part(Regression, {"vectors": array("s", "k"), "coefficients": array("s")})
REGRESSIONS = Part(
    Regressions, {"scaling": SCALING, "encoder": NETWORK, "regressions": ListOf(REGRESSION)}
)
LENSES = Part(Lenses, {"robust": SCALING, "unit": SCALING, "grid": SCALING, "n_bins": INT})
PRECISION = OneOf(
    Part(Precision, {"matrix": array("D", "D")}),
    Part(WidePrecision, {"level": FLOAT, "basis": array("s", "D")}),
)
VIEW = Part(
    View,
    {
        "mean": array("D"),
        "precision": PRECISION,
        "robust_landmarks": array("s", "D"),
        "unit_landmarks": array("s", "D"),
        "surprise": array("D", None),
        "n_neighbours": INT,
        "middle": array(N_VIEWS, 1),
        "spread": array(N_VIEWS, 1),
    },
)
VIEWS = Part(Views, {"lenses": LENSES, "members": ListOf(VIEW)})
FOREIGN = Part(ForeignMembers, {"detectors": ListOf(Foreign())})
# Localisers
SIMPLE: dict[Any, Kind] = {
    int: INT,
    float: FLOAT,
    bool: BOOL,
    str: TEXT,
    int | None: Maybe(INT),
    tuple[int, ...]: As(tuple, ListOf(INT)),
    tuple[bool, ...]: As(tuple, ListOf(BOOL)),
    tuple[int, int]: ints(2),
    tuple[int, int, int]: ints(3),
}


def plain(cls: type) -> Part:
    """Return the part of a dataclass of simple fields."""
    hints = get_type_hints(cls)
    kinds = {name: SIMPLE[str if get_origin(t) is Literal else t] for name, t in hints.items()}
    return Part(cls, kinds)


NETS = ListOf(
    Networks(
        (AnoGANNet, plain(AnoGANPlan)),
        (DenseNet, plain(DensePlan)),
        (Denoiser, plain(UNetPlan)),
        (Level, plain(LevelPlan)),
        (SpatialNet, plain(SpatialPlan)),
        (VQNet, plain(VQPlan)),
    )
)
RESTORERS: dict[str, Kind] = {"frame": plain(Frame), "style": plain(MapStyle), "nets": NETS}
DENOISERS = Part(Denoisers, {**RESTORERS, "way": plain(Walk)})
SPATIAL, DENSE, ANOGAN = (Part(cls, RESTORERS) for cls in (SpatialNets, DenseNets, AnoGANNets))
HEALERS = Part(CodeHealers, {**RESTORERS, "healing": plain(Healing)})
LEVELS = Part(Levels, RESTORERS)
ANY_MEMBERS = OneOf(
    EXPANSIONS,
    CODE_EXPANSIONS,
    RECONSTRUCTORS,
    SPHERES,
    SUBSPACES,
    REGRESSIONS,
    VIEWS,
    FOREIGN,
    LEVELS,
    HEALERS,
    SPATIAL,
    DENSE,
    ANOGAN,
    DENOISERS,
)
COMMITTEE = Part(Committee, {"parts": ListOf(ANY_MEMBERS)})

# Rounds
ROUND = Part(Round, {"scores": array("N"), "seconds": FLOAT, "crossings": Maybe(INT)})
HISTORY = Part(
    History,
    {
        "outlier_ratio": FLOAT,
        "patience": INT,
        "temperature": FLOAT,
        "fingerprint": TEXT,
        "rounds": ListOf(ROUND),
        "reason": TEXT,
    },
)

# Estimators: the attributes that `fit` sets
COMMON: dict[str, Kind] = {
    "n_features_in_": Count("D"),
    "image_shape_": Maybe(ints(3)),
    "threshold_": FLOAT,
    "threshold_rule_": TEXT,
    "contamination_": FLOAT,
    "references_": array(3, "D"),
}
OPTIONAL: dict[str, Kind] = {  # set for some data only
    "feature_names_in_": As(_names, ListOf(TEXT)),
    "reader_": Maybe(READER),
    "map_threshold_": FLOAT,
}
LOSSES: dict[str, Kind] = {"losses_": ListOf(FLOAT)}
SOLVER: dict[str, Kind] = {"solver_": TEXT}

LOCALISER: dict[str, Kind] = {
    "image_shape_": ints(3),
    "threshold_": FLOAT,
    "threshold_rule_": TEXT,
    "contamination_": FLOAT,
    "map_threshold_": FLOAT,
    "calibrated_for_": TEXT,
}

LEARNT: Mapping[type, Mapping[str, Kind]] = {
    ADC: {**COMMON, "members_": COMMITTEE, "round_": ROUND},
    ADDM: {**LOCALISER, "members_": DENOISERS},
    AnoDDPM: {**LOCALISER, "members_": DENOISERS},
    DDPM: {**LOCALISER, "members_": DENOISERS},
    DenseVAE: {**LOCALISER, "members_": DENSE},
    FAnoGAN: {**LOCALISER, "members_": ANOGAN},
    IntensityThreshold: {**LOCALISER, "members_": LEVELS},
    SpatialAE: {**LOCALISER, "members_": SPATIAL},
    VQTransformer: {**LOCALISER, "members_": HEALERS},
    AutoEncoder: {**COMMON, **LOSSES, "members_": RECONSTRUCTORS},
    DAGPR: {**COMMON, **LOSSES, "members_": REGRESSIONS},
    DeepSVDD: {**COMMON, **LOSSES, "members_": SPHERES},
    HybridOCSVM: {**COMMON, **LOSSES, **SOLVER, "members_": CODE_EXPANSIONS},
    IADC: {
        **COMMON,
        "members_": COMMITTEE,
        "history_": HISTORY,
        "weights_": array("N"),
        "entropy_": INT,
    },
    MultiView: {**COMMON, "members_": VIEWS},
    OCSVM: {**COMMON, **SOLVER, "members_": EXPANSIONS},
    RSRAE: {**COMMON, **LOSSES, "members_": SUBSPACES},
}
CLASSES: Mapping[str, Any] = {cls.__name__: cls for cls in LEARNT}
