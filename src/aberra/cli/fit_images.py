"""A localiser from pictures or scans: what it learns from, how, and what came out."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra.cli.budget import fit_in_rounds, fit_in_time
from aberra.cli.wishes import SIDES, Budget, DetectorName, LookFor, Robust, Wishes, image_model
from aberra.contract.maps import CALIBRATION_IMAGES, image_scores, upper_quantile
from aberra.data.mri.brain import brain_mask
from aberra.data.mri.files import find_volumes, read_volume
from aberra.data.mri.prepare import Preparation
from aberra.data.sources import Kind
from aberra.data.sources.arrays import ARRAYS, main_array
from aberra.data.sources.images import find_images, read_images, shape_for
from aberra.errors import DataError
from aberra.explain.doubts import doubts, trust_in
from aberra.explain.rounds import story_of
from aberra.localise.volumes import CollectedSlices, collect_slices, score_volume
from aberra.progress import advance, stopping_between_steps
from aberra.recipe import Recipe, score_quantiles
from aberra.rng import stream
from aberra.words import count

FEWEST_IMAGES = 4
HELD_OUT = 0.1  # of the scans, for the threshold
MOST_HELD = 16  # scans that place a threshold well enough
FALSE_ALARMS = {"images": 0.01, "volumes": 0.02}  # share of healthy pixels that may be flagged
MOST_BYTES = 1 << 30  # of training slices in memory
SCORED = 256  # training images that are scored afterwards, where training itself does not

Choices = list[tuple[str, str]]


@dataclass(frozen=True)
class Trained:
    """A fitted localiser and what is to be said about its training."""

    model: Any
    choices: Choices
    scores: NDArray[np.float64]
    rows: NDArray[np.int64]  # the images that have a score


def fit_images(wishes: Wishes) -> tuple[Any, Recipe]:
    """Fit a localiser on pictures, or on an array of images."""
    if wishes.data.name.lower().endswith(ARRAYS):
        array = main_array(wishes.data)
        images, names = as_images(array), [f"image {k}" for k in range(len(array))]
        preparation, about = {}, f"{len(images):,} images of {_size(images)}, as they are"
    else:
        paths = find_images(wishes.data)
        shape = shape_for(paths, SIDES[wishes.preset])
        root = wishes.data if wishes.data.is_dir() else wishes.data.parent
        images, names = read_images(paths, shape), [str(p.relative_to(root)) for p in paths]
        preparation = shape.keywords()
        about = f"{len(images):,} pictures, brought to {_size(images)} (read with Pillow)"
    look = wishes.look_for or LookFor.both
    model = image_model(wishes, look, 3, false_alarm_rate=FALSE_ALARMS["images"])
    trained = _train(model, images, wishes, "images")
    threshold = model.map_threshold_
    if wishes.robust_for("images") is not Robust.none:
        threshold = _ensemble_threshold(model, images, trust_in(model, trained.scores))
    about_map = f"{_about_map(look)}; flagged above {threshold:.4g}"
    choices = [("data", about), *trained.choices, ("map", f"{about_map}, {_alarms('images')}")]
    return model, _recipe(wishes, trained, names, "images", preparation, threshold, choices)


def fit_volumes(wishes: Wishes) -> tuple[Any, Recipe]:
    """Fit a localiser on the slices of scans, with memory for one scan and the slices."""
    folder = wishes.data.is_dir()
    scans = find_volumes(wishes.data, wishes.pattern) if folder else [wishes.data]
    train, held, unreadable = held_out(scans, wishes.seed, wishes.axes)
    preparation = Preparation(size=SIDES[wishes.preset])
    look = wishes.look_for or LookFor.darker
    model = image_model(wishes, look, 5, holdout=0.0)
    with tempfile.TemporaryDirectory(dir=wishes.output.parent, prefix=".aberra-slices-") as place:
        file = Path(place) / "slices.npy"
        slices = collect_slices(train, file, preparation, axes=wishes.axes, on_error="skip")
        some = thinned(slices.images)
        trained = _train(model, slices.images[some], wishes, "volumes")
        names = [_slice_name(slices, int(k), wishes.data) for k in some]
        n_slices = len(slices.images)
        errors = {**unreadable, **slices.errors}
        n_train = len(train) - len(slices.errors)
        del slices  # lets go of the file
    threshold = _brain_threshold(model, held or train[:MOST_HELD], preparation, wishes.axes)
    if wishes.robust_for("volumes") is Robust.none:
        model.map_threshold_ = threshold
    placed = (
        f"{count(len(held), 'scan')} held out"
        if held
        else "training scans: too few to hold any out"
    )
    choices = [
        ("data", f"{n_train} of {count(len(scans), 'scan')} train, {n_slices:,} slices"),
        *[("left out", f"{path.name}: {why}") for path, why in errors.items()],
        ("slices", f"{preparation.size} pixels of {preparation.pixel:.2g} mm, every "
                   f"{preparation.step:g} mm, {_used(len(some), n_slices)}"),
        *trained.choices,
        ("map", _about_map(look)),
        ("threshold", f"{threshold:.4g}, {_alarms('volumes')}, on {placed}"),
    ]  # fmt: skip
    kept = asdict(preparation)
    return model, _recipe(wishes, trained, names, "volumes", kept, threshold, choices)


def held_out(
    scans: Sequence[Path], seed: int, axes: str | None
) -> tuple[list[Path], list[Path], dict[Path, str]]:
    """Return the scans to train on, those that only place the threshold, and unusable ones.

    The threshold is placed after the training, so its scans are tried before: one that cannot be
    used gives its place to another.
    """
    n = min(round(HELD_OUT * len(scans)), MOST_HELD)
    held: set[Path] = set()
    errors: dict[Path, str] = {}
    for k in stream(seed, 3).permutation(len(scans)):
        if len(held) == n:
            break
        try:
            brain_mask(read_volume(scans[k], axes))
            held.add(scans[k])
        except DataError as error:
            errors[scans[k]] = str(error)
    train = [path for path in scans if path not in held and path not in errors]
    return train, [path for path in scans if path in held], errors


def thinned(images: NDArray[Any]) -> NDArray[np.int64]:
    """Return positions of images, evenly spread, that fit into memory."""
    most = max(1, MOST_BYTES // (images[0].size * 4))
    n = min(len(images), most)
    return np.unique(np.linspace(0, len(images) - 1, n).round().astype(np.int64))


def as_images(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array of images (n, h, w) or (n, c, h, w) with its axis of channels."""
    if array.ndim == 4 and array.shape[1] not in (1, 3) and array.shape[3] in (1, 3):
        return np.moveaxis(array, 3, 1)
    return array[:, None] if array.ndim == 3 else array


def _train(model: Any, images: NDArray[Any], wishes: Wishes, kind: Kind) -> Trained:
    if len(images) < FEWEST_IMAGES:
        raise DataError(
            f"{wishes.data} has {count(len(images), 'image')}. Give {FEWEST_IMAGES} or more."
        )
    robust = wishes.robust_for(kind)
    single = model if robust is Robust.none else model.detector
    default = ", the default" if wishes.detector is None else ", as asked"
    choices = [("detector", f"{type(single).__name__}{default}, preset {wishes.preset.value}")]
    choices.append(("robust training", _about_robust(robust)))
    with stopping_between_steps():
        if wishes.minutes is not None:
            choices.append(("time budget", _fit_in_time(model, images, wishes.minutes, robust)))
        else:
            model.fit(images)
    if robust is Robust.none and wishes.localiser is not DetectorName.intensity:
        model.set_params(checkpoint=None)
    choices.append(("seed", str(wishes.seed)))
    scores, rows = model.training_scores(), np.arange(len(images))
    if scores is None:
        rows = np.unique(np.linspace(0, len(images) - 1, min(len(images), SCORED)).astype(np.int64))
        scores = _scores(model, images[rows])
    return Trained(model, choices, scores, rows)


def _fit_in_time(model: Any, images: NDArray[Any], allowed: float, robust: Robust) -> str:
    minutes, budget = f"{allowed:g} min", Budget(allowed)
    if robust is Robust.iadc:
        ended = fit_in_rounds(model, images, budget)
        story = story_of(model, "the time was used" if ended else "")
        assert story is not None
        return f"{minutes}; rounds: {story.in_short()}"
    stopped = fit_in_time(model, images, budget)
    if stopped is None:
        return f"{minutes}: enough for all training steps"
    return f"{minutes} were used: training stopped after {100 * stopped:.0f} % of its steps"


def _scores(model: Any, images: NDArray[Any]) -> NDArray[np.float64]:
    parts = []
    for start in range(0, len(images), 64):
        parts.append(image_scores(model.anomaly_map(images[start : start + 64])))
        advance("scoring", min(1.0, (start + 64) / len(images)))
    return np.concatenate(parts)


def _ensemble_threshold(model: Any, images: NDArray[Any], weights: NDArray[np.float64]) -> float:
    """Place the threshold of the maps on training images, each by the trust in it."""
    n = min(len(images), CALIBRATION_IMAGES)
    rows = np.unique(np.linspace(0, len(images) - 1, n).astype(np.int64))
    maps = model.anomaly_map(images[rows])
    counts = np.broadcast_to(weights[rows][:, None, None], maps.shape)
    return upper_quantile(maps, counts, FALSE_ALARMS["images"])


def _brain_threshold(
    model: Any, scans: Sequence[Path], preparation: Preparation, axes: str | None
) -> float:
    """Place the threshold of the maps on the brains of scans, exactly as scoring will see them."""
    seen = []
    for k, path in enumerate(scans):
        try:
            scan = read_volume(path, axes)
            brain = brain_mask(scan)
            scored = score_volume(model, scan, preparation, brain, threshold=np.inf)
        except DataError:  # a training scan, said when the slices were collected
            continue
        seen.append(scored.anomaly_map[scored.scored & brain])
        advance("threshold", (k + 1) / len(scans), path.name)
    if not seen:
        raise DataError("None of the scans could be used to place the threshold.")
    return float(np.quantile(np.concatenate(seen), 1 - FALSE_ALARMS["volumes"]))


def _recipe(
    wishes: Wishes,
    trained: Trained,
    names: Sequence[str],
    kind: Kind,
    preparation: dict[str, Any],
    threshold: float,
    choices: Choices,
) -> Recipe:
    scored = [names[k] for k in trained.rows]
    found = doubts(trust_in(trained.model, trained.scores), trained.scores, scored)
    return Recipe(
        kind,
        str(wishes.data),
        len(names),
        preparation=preparation,
        choices=choices,
        doubts=found,
        quantiles=score_quantiles(trained.scores) if kind == "images" else [],
        map_threshold=threshold,
        pattern=wishes.pattern,
        axes=wishes.axes,
    )


def _about_robust(robust: Robust) -> str:
    return {
        Robust.iadc: "IADC: trust in each image is learnt in rounds",
        Robust.adc: "ADC: an ensemble, all images fully trusted",
        Robust.none: "none: one training; --robust iadc for images that are not all healthy",
    }[robust]


def _about_map(look: LookFor) -> str:
    if look is LookFor.both:
        return "difference from the restored image, darker or brighter"
    other = "brighter" if look is LookFor.darker else "darker"
    return f"where the image is {look.value} than restored; --look-for {other} or both for others"


def _alarms(kind: str) -> str:
    what = "brain" if kind == "volumes" else "pixels"
    return f"so that {100 * FALSE_ALARMS[kind]:g} % of healthy {what} is flagged"


def _used(n: int, total: int) -> str:
    return "all used" if n == total else f"{n:,} used to fit into memory"


def _size(images: NDArray[Any]) -> str:
    colour = "grey" if images.shape[1] == 1 else "colour"
    return f"{images.shape[2]} x {images.shape[3]} pixels, {colour}"


def _slice_name(slices: CollectedSlices, k: int, root: Path) -> str:
    source = slices.sources[k]
    name = source.relative_to(root).as_posix() if root.is_dir() else source.name
    return f"{name}, {slices.below_top[k]:g} mm below the top"
