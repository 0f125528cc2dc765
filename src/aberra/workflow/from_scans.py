"""A localiser from scans: slices train it, and whole scans that were held out place its height."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from aberra.data.mri.brain import brain_mask
from aberra.data.mri.files import read_volume
from aberra.data.mri.prepare import Preparation
from aberra.errors import DataError
from aberra.localise.collect import CollectedSlices, collect_slices
from aberra.localise.healthy import CalmScan, healthy_scans
from aberra.localise.likeness import Looks, look_of
from aberra.localise.volumes import score_volume
from aberra.progress import advance
from aberra.recipe import Choices, Recipe
from aberra.watching import watching
from aberra.words import count
from aberra.workflow.choices import LookFor, Preset, check_choices, checked_axes
from aberra.workflow.localisers import Learnt, about_alarms, about_map, learnt_from, prepared
from aberra.workflow.outcome import Fitted, carried_out
from aberra.workflow.plan import Plan, pixels_for, plan_for
from aberra.workflow.start import Start, start
from aberra.workflow.training_scans import Scans, slice_name, thinned

DEEPEST = 250.0  # mm; no brain reaches so far down, and slices below its end are left out


def fit_scans(
    path: str | Path,
    output: str | Path | None = None,
    *,
    detector: Any = None,
    robust: str = "none",
    preset: Preset | None = None,
    look_for: LookFor | None = None,
    pattern: str = "*",
    axes: str | None = None,
    whole_brain: bool = False,
    start_from: str | Path | None = None,
    seed: int = 0,
    time_budget: float | None = None,
    watch: str | Path | None = None,
) -> Fitted:
    """Learn what healthy brains look like, so that the model can show where others differ.

    Scans are cut into slices, which train the localiser. A tenth of the scans (at most 16) does
    not train: they decide above which height of the map a voxel is flagged. Memory holds one scan
    and the slices; where there are more slices than fit into 1 GB, evenly spread ones train.

    Parameters
    ----------
    path : path
        A NIfTI file, or a folder with NIfTI files or DICOM series at any depth.
    output : path, optional
        The model file to write. Training that is interrupted is kept beside it, and the same call
        continues it. By default nothing is written.
    detector : str or estimator, optional
        Name of a method for images, such as "ddpm" or "DDPM", or an unfitted localiser with
        settings of your own. By default "patch-finder", which finds most on tumours of another
        scanner and on pasted lesions (results/brain_pieces.md).
    robust : {"iadc", "adc", "none"}, default="none"
        How to cope with slices that are not healthy: an ensemble that learns in rounds how far to
        trust each slice, an ensemble that trusts all of them, or the localiser alone, which trains
        once.
    preset : {"small", "medium", "paper"}, optional
        Networks for slices of 64, 128 or 256 pixels a side. By default what the localiser has,
        which is "small".
    look_for : {"darker", "brighter", "both"}, optional
        What counts as odd: tissue that is darker than the model would have it, brighter tissue, or
        both. By default what is best for the localiser.
    pattern : str, default="*"
        Which names in a folder are scans, such as `*_t1w.nii.gz`.
    axes : str, optional
        Where the axes of the arrays really point, such as "SPR", for scans whose headers are
        wrong. By default the headers are believed.
    whole_brain : bool, default=False
        Whether slices go down to the end of the brain, cerebellum and brain stem included. By
        default they end 78 mm below its top, as in the tables of the papers, and what lies below
        is not looked at. A model that `start_from` names has decided that already.
    start_from : path or str, optional
        A model of scans to go on from, such as "brain-t1", which comes with Aberra: for the few
        healthy scans that one has of one's own scanner. It decides the localiser and how scans are
        prepared. By default training begins with nothing.
    seed : int, default=0
        The same seed and scans give the same model.
    time_budget : float, optional
        Minutes that training may take; it then stops with what has been learnt. No limit by
        default.
    watch : path, optional
        A folder that gets the losses and a few restored images as training goes; see
        `aberra.watching.watching`. By default nothing is shown.

    Returns
    -------
    fitted : Fitted
        The model, its recipe, how long it took, and the path of the model file.

    Raises
    ------
    DataError
        If no scan can be used, or the model could not be written to `output`. Single scans that
        cannot be used are left out and named in the recipe.
    ArgumentError
        If an argument makes no sense.

    See Also
    --------
    fit_images : The same for pictures.
    score : Write maps and segmentations of other scans with the model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from aberra.data.mri.nifti import write_nifti
    >>> from aberra.data.mri.phantom import head_phantom
    >>> from aberra.workflow import fit_scans
    >>> scan, _ = head_phantom()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_nifti(Path(folder) / "healthy.nii.gz", scan.array, scan)
    ...     fitted = fit_scans(folder, detector="intensity")
    >>> fitted.recipe.kind, fitted.model.image_shape_
    ('volumes', (1, 64, 64))
    """
    source, target = Path(path), None if output is None else Path(output)
    check_choices(preset=(preset, Preset), look_for=(look_for, LookFor))
    begin: Start | None = None
    if start_from is None:
        plan = plan_for("volumes", detector, robust, seed, time_budget)
    else:
        asked = {"detector": detector, "preset": preset, "whole_brain": whole_brain or None}
        begin = start(start_from, seed, time_budget, robust, **asked)
        plan = begin.plan
    axes = None if axes is None else checked_axes(axes)

    def learn() -> tuple[Any, Recipe]:
        scans = Scans.at(source, pattern, axes, seed)
        model = prepared(plan, preset, look_for, target)
        if "holdout" in plan.detector.get_params(deep=False):
            plan.detector.set_params(holdout=0.0)  # whole scans are held out instead
        preparation = Preparation(size=pixels_for(plan.detector, preset))
        if whole_brain:
            preparation = replace(preparation, below_top=(preparation.below_top[0], DEEPEST))
        if begin is not None:
            preparation = begin.preparation
        slices = _train(model, scans, preparation, plan, None if target is None else target.parent)
        calm = _calm_scans(model, scans, preparation)
        height = _height(calm, plan)
        model.map_threshold_ = height
        # Scans that trained would say little about what is usual.
        healthy = asdict(healthy_scans(calm, height)) if scans.held else {}
        recipe = replace(_recipe(scans, slices, plan, preparation, height), healthy=healthy)
        if begin is not None:
            recipe.choices.insert(0, ("started from", begin.name))
        return model, recipe

    with nullcontext() if watch is None else watching(watch):
        return carried_out(learn, source, target)


@dataclass(frozen=True)
class TrainedSlices:
    """What came out of training on slices, the slices themselves left out."""

    learnt: Learnt
    names: list[str]
    n_slices: int  # of which as many trained as have names
    errors: dict[Path, str]  # scans that could not be cut into slices
    looks: Looks


def _train(
    model: Any, scans: Scans, preparation: Preparation, plan: Plan, folder: Path | None
) -> TrainedSlices:
    """Cut scans into slices, kept in a file in that folder while they train, and train."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=".aberra-slices-") as place:
        slices = collect_slices(
            scans.train, Path(place) / "slices.npy", preparation, axes=scans.axes, on_error="skip"
        )
        some = thinned(slices.images)
        learnt = learnt_from(model, slices.images[some], plan, scans.source)
        names = [slice_name(slices, int(k), scans.source) for k in some]
        trained = TrainedSlices(
            learnt, names, len(slices.images), slices.errors, looks_of_scans(slices)
        )
        del slices  # lets go of the file
    return trained


def _calm_scans(model: Any, scans: Scans, preparation: Preparation) -> list[CalmScan]:
    """Draw maps of the scans that place the height, exactly as scoring will."""
    seen = []
    for k, path in enumerate(scans.for_height):
        try:
            scan = read_volume(path, scans.axes)
            brain = brain_mask(scan)
            scored = score_volume(model, scan, preparation, brain, threshold=np.inf)
        except DataError:  # a training scan, named when the slices were collected
            continue
        seen.append(CalmScan.of(scored, brain))
        advance("threshold", (k + 1) / len(scans.for_height), path.name)
    if not seen:
        raise DataError("None of the scans could be used to place the threshold of the map.")
    return seen


def _height(calm: list[CalmScan], plan: Plan) -> float:
    """Place the height of the map on the brains of scans."""
    values = np.concatenate([one.values for one in calm])
    return float(np.quantile(values, 1 - plan.detector.false_alarm_rate))


def _recipe(
    scans: Scans, slices: TrainedSlices, plan: Plan, preparation: Preparation, height: float
) -> Recipe:
    return Recipe(
        "volumes",
        str(scans.source),
        len(slices.names),
        preparation=asdict(preparation),
        choices=[
            *_about_data(scans, slices, preparation),
            *slices.learnt.choices,
            ("map", about_map(plan.detector)),
            ("threshold", _about_height(height, scans, plan)),
        ],
        doubts=slices.learnt.doubts(slices.names),
        map_threshold=height,
        pattern=scans.pattern,
        axes=scans.axes,
        looks=asdict(slices.looks),
    )


def looks_of_scans(slices: CollectedSlices) -> Looks:
    """Return how the scans look as the model sees them."""
    owners = np.array([str(path) for path in slices.sources])
    return Looks.of([look_of(slices.images[owners == name]) for name in np.unique(owners)])


def _about_data(scans: Scans, slices: TrainedSlices, preparation: Preparation) -> Choices:
    n_train, used, n = len(scans.train) - len(slices.errors), len(slices.names), slices.n_slices
    thinning = "all used" if used == n else f"{used:,} used to fit into memory"
    size = f"{preparation.size} pixels of {preparation.pixel:.2g} mm, every {preparation.step:g} mm"
    errors = {**scans.errors, **slices.errors}
    return [
        ("data", f"{n_train} of {count(scans.n_scans, 'scan')} train, {n:,} slices"),
        *[("left out", f"{path.name}: {why}") for path, why in errors.items()],
        ("slices", f"{size}, {thinning}"),
    ]


def _about_height(height: float, scans: Scans, plan: Plan) -> str:
    n = len(scans.held)
    placed = f"{count(n, 'scan')} held out" if n else "training scans: too few to hold any out"
    return f"{height:.4g}, {about_alarms(plan.detector, 'brain')}, on {placed}"
