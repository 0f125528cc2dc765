"""What a person may ask of `aberra fit`, and the estimators that answer to it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from aberra.data.sources import Kind


class DetectorName(StrEnum):
    """Detectors for tables, then localisers for images and volumes."""

    multiview = "multiview"
    ocsvm = "ocsvm"
    hybrid_ocsvm = "hybrid-ocsvm"
    autoencoder = "autoencoder"
    deep_svdd = "deep-svdd"
    rsrae = "rsrae"
    dagpr = "dagpr"
    addm = "addm"
    ddpm = "ddpm"
    anoddpm = "anoddpm"
    spatial_ae = "spatial-ae"
    dense_vae = "dense-vae"
    f_anogan = "f-anogan"
    vq_transformer = "vq-transformer"
    intensity = "intensity"


class Robust(StrEnum):
    """How the training copes with samples that do not belong."""

    none = "none"
    adc = "adc"
    iadc = "iadc"


class Missing(StrEnum):
    """What to do with gaps in a table."""

    impute = "impute"
    error = "error"


class Preset(StrEnum):
    """Network sizes of the localisers."""

    small = "small"
    medium = "medium"
    paper = "paper"


class LookFor(StrEnum):
    """What of the difference between an image and its restoration counts."""

    darker = "darker"
    brighter = "brighter"
    both = "both"


TABLE = {
    DetectorName.multiview: "MultiView",
    DetectorName.ocsvm: "OCSVM",
    DetectorName.hybrid_ocsvm: "HybridOCSVM",
    DetectorName.autoencoder: "AutoEncoder",
    DetectorName.deep_svdd: "DeepSVDD",
    DetectorName.rsrae: "RSRAE",
    DetectorName.dagpr: "DAGPR",
}
IMAGES = {
    DetectorName.addm: "ADDM",
    DetectorName.ddpm: "DDPM",
    DetectorName.anoddpm: "AnoDDPM",
    DetectorName.spatial_ae: "SpatialAE",
    DetectorName.dense_vae: "DenseVAE",
    DetectorName.f_anogan: "FAnoGAN",
    DetectorName.vq_transformer: "VQTransformer",
    DetectorName.intensity: "IntensityThreshold",
}
DIFFUSION = {DetectorName.addm, DetectorName.ddpm, DetectorName.anoddpm}
ONE_STAGE = {*DIFFUSION, DetectorName.spatial_ae, DetectorName.dense_vae}
SIDES = {Preset.small: 64, Preset.medium: 128, Preset.paper: 256}  # pixels that a network sees
ERRORS = {LookFor.darker: "darker", LookFor.brighter: "brighter", LookFor.both: "absolute"}
LEVELS = {LookFor.darker: "dark", LookFor.brighter: "bright", LookFor.both: "both"}


@dataclass(frozen=True)
class Budget:
    """Time that training may take, from now on."""

    minutes: float
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """All of it."""
        return 60.0 * self.minutes

    @property
    def used(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    @property
    def left(self) -> float:
        """Seconds to the end; negative when it is over."""
        return self.seconds - self.used


@dataclass(frozen=True)
class Wishes:
    """The options of `aberra fit`."""

    data: Path
    output: Path
    detector: DetectorName | None = None
    robust: Robust | None = None
    id_column: str | None = None
    drop: tuple[str, ...] = ()
    label_column: str | None = None
    missing: Missing = Missing.impute
    preset: Preset = Preset.small
    look_for: LookFor | None = None
    pattern: str = "*"
    seed: int = 0
    minutes: float | None = None
    axes: str | None = None

    def check(self, kind: Kind) -> None:
        """Raise an error for options that make no sense together."""
        known = TABLE if kind == "table" else IMAGES
        if self.detector is not None and self.detector not in known:
            names = ", ".join(known)
            raise typer.BadParameter(
                f"{self.detector.value} does not take {kind}. Choose one of {names}.",
                param_hint="--detector",
            )
        table_only = {
            "--id-column": self.id_column,
            "--label-column": self.label_column,
            "--drop": self.drop or None,
        }
        for option, value in table_only.items():
            if kind != "table" and value is not None:
                raise typer.BadParameter(f"{option} is for tables.", param_hint=option)
        self._check_budget(kind)

    def _check_budget(self, kind: Kind) -> None:
        robust = self.robust_for(kind)
        stops = robust is Robust.iadc or (robust is Robust.none and self.localiser in ONE_STAGE)
        if self.minutes is not None and kind != "table" and not stops:
            names = ", ".join(sorted(ONE_STAGE))
            raise typer.BadParameter(
                f"{self.localiser.value} with --robust {robust.value} cannot stop early. Use IADC, "
                f"or one of {names} alone, or leave the budget out.",
                param_hint="--time-budget",
            )

    def robust_for(self, kind: Kind) -> Robust:
        """Return the robust training: IADC for tables; localisers train once, it takes long."""
        if self.robust is not None:
            return self.robust
        return Robust.iadc if kind == "table" else Robust.none

    @property
    def localiser(self) -> DetectorName:
        """The localiser for images and volumes."""
        return self.detector or DetectorName.addm


def table_model(wishes: Wishes, encode: str) -> Any:
    """Return the unfitted model for a table."""
    import aberra

    name = wishes.detector or DetectorName.multiview
    detector = getattr(aberra, TABLE[name])
    own: dict[str, Any] = {
        "missing": wishes.missing.value,
        "encode": encode,
        "random_state": wishes.seed,
    }
    robust = wishes.robust_for("table")
    if robust is Robust.none:
        return detector(**own)
    return (aberra.IADC if robust is Robust.iadc else aberra.ADC)(detector(), **own)


def image_model(wishes: Wishes, look_for: LookFor, smooth: int, **more: Any) -> Any:
    """Return the unfitted localiser for images or slices, inside its robust training."""
    import aberra

    name, robust = wishes.localiser, wishes.robust_for("images")
    keywords: dict[str, Any] = {"smooth": smooth, "random_state": wishes.seed, **more}
    if name is DetectorName.intensity:
        keywords = {"side": LEVELS[look_for], **keywords}
    else:
        keywords |= {"preset": wishes.preset.value, "error": ERRORS[look_for]}
        if robust is Robust.none:
            keywords["checkpoint"] = str(checkpoint_folder(wishes.output))
    if name in DIFFUSION:
        # The settings that were best on pasted lesions: results/mri.md.
        keywords |= {"noise": "pyramid", "start": 0.15, "sampling_steps": 1, "n_draws": 4}
    if name is DetectorName.addm:
        # The discriminator sees the restored image itself: results/mri.md, "the adversarial term".
        keywords |= {"adversarial_stride": 500, "adversarial_weight": 0.5, "start": 0.1}
    localiser = getattr(aberra, IMAGES[name])(**keywords)
    if robust is Robust.none:
        return localiser
    wrap = aberra.IADC if robust is Robust.iadc else aberra.ADC
    return wrap(localiser.set_params(random_state=None), random_state=wishes.seed)


def checkpoint_folder(output: Path) -> Path:
    """Return where an unfinished training of a localiser is kept."""
    return output.with_name(f"{output.name}.training")
