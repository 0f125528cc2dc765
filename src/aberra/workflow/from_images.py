"""A localiser from pictures, or from an array of images."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from aberra.data.sources.arrays import ARRAYS, main_array
from aberra.data.sources.images import find_images, read_usable, shape_for
from aberra.recipe import Recipe, score_quantiles
from aberra.watching import watching
from aberra.workflow.choices import LookFor, Preset, check_choices
from aberra.workflow.image_source import as_images
from aberra.workflow.localisers import Learnt, about_alarms, about_map, learnt_from, prepared
from aberra.workflow.outcome import Fitted, carried_out
from aberra.workflow.plan import Plan, pixels_for, plan_for

SHOWN = 3  # pictures that were left out


def fit_images(
    path: str | Path,
    output: str | Path | None = None,
    *,
    detector: Any = None,
    robust: str = "none",
    preset: Preset | None = None,
    look_for: LookFor | None = None,
    seed: int = 0,
    time_budget: float | None = None,
    watch: str | Path | None = None,
) -> Fitted:
    """Learn what healthy images look like, so that the model can show where others differ.

    Parameters
    ----------
    path : path
        A folder of pictures (.png, .jpg, .tif, .bmp, ...), one picture, or an npy or npz file with
        an array of images, (n, height, width) or (n, channels, height, width). At least four
        images are needed.
    output : path, optional
        The model file to write. Training that is interrupted is kept beside it, and the same call
        continues it. By default nothing is written.
    detector : str or estimator, optional
        Name of a method for images, such as "spatial-ae" or "SpatialAE", or an unfitted localiser
        with settings of your own. By default "addm".
    robust : {"iadc", "adc", "none"}, default="none"
        How to cope with images that are not healthy: an ensemble that learns in rounds how far to
        trust each image, an ensemble that trusts all of them, or the localiser alone, which trains
        once.
    preset : {"small", "medium", "paper"}, optional
        Networks for images of 64, 128 or 256 pixels a side; larger pictures are reduced to that.
        By default what the localiser has, which is "small".
    look_for : {"darker", "brighter", "both"}, optional
        What counts as odd: pixels that are darker than the model would have them, brighter ones,
        or both. By default what is best for the localiser.
    seed : int, default=0
        The same seed and images give the same model.
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
        If the images cannot be used, or the model could not be written to `output`.
    ArgumentError
        If an argument makes no sense, for example a time budget for a localiser that cannot stop
        early.

    See Also
    --------
    fit_scans : The same for scans of the brain.
    score : Draw maps of other images with the model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from aberra.workflow import fit_images
    >>> digits = load_digits()
    >>> zeros = digits.images[digits.target == 0]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "zeros.npy", zeros)
    ...     fitted = fit_images(Path(folder) / "zeros.npy", detector="intensity")
    >>> fitted.model.anomaly_map(zeros[:2, None]).shape
    (2, 8, 8)
    """
    source, target = Path(path), None if output is None else Path(output)
    check_choices(preset=(preset, Preset), look_for=(look_for, LookFor))
    plan = plan_for("images", detector, robust, seed, time_budget)

    def learn() -> tuple[Any, Recipe]:
        model = prepared(plan, preset, look_for, target)
        training = _read(source, pixels_for(plan.detector, preset))
        learnt = learnt_from(model, training.images, plan, source)
        return model, _recipe(source, training, learnt, plan, model.map_threshold_)

    with nullcontext() if watch is None else watching(watch):
        return carried_out(learn, source, target)


@dataclass(frozen=True)
class ImagesToLearn:
    """Images in memory, what they are called, and how they were brought to one shape."""

    images: NDArray[Any]
    names: Sequence[str]
    preparation: dict[str, Any]  # of pictures; empty for an array, which is taken as it is
    unusable: Sequence[str] = ()  # why pictures were left out, one sentence each

    @property
    def about(self) -> str:
        """How many there are, of which size."""
        channels, height, width = self.images.shape[1:]
        size = f"{height} x {width} pixels, {'grey' if channels == 1 else 'colour'}"
        if not self.preparation:
            return f"{len(self.images):,} images of {size}, as they are"
        left = f"; {len(self.unusable):,} left out: " if self.unusable else ""
        named = f"{left}{' '.join(self.unusable[:SHOWN])}"
        return f"{len(self.images):,} pictures, brought to {size} (read with Pillow){named}"


def _read(path: Path, longest: int) -> ImagesToLearn:
    """Read the images of a path; pictures are brought to one shape."""
    if path.name.lower().endswith(ARRAYS):
        images = as_images(main_array(path))
        return ImagesToLearn(images, [f"image {k}" for k in range(len(images))], {})
    errors: dict[Path, str] = {}
    paths = find_images(path)
    shape, root = shape_for(paths, longest, errors), path if path.is_dir() else path.parent
    images, used = read_usable(paths, shape, errors)
    names = [str(p.relative_to(root)) for p in used]
    return ImagesToLearn(images, names, shape.keywords(), list(errors.values()))


def _recipe(
    source: Path, training: ImagesToLearn, learnt: Learnt, plan: Plan, height: float
) -> Recipe:
    alarms = about_alarms(plan.detector, "pixels")
    about = f"{about_map(plan.detector)}; flagged above {height:.4g}, {alarms}"
    return Recipe(
        "images",
        str(source),
        len(training.names),
        preparation=training.preparation,
        choices=[("data", training.about), *learnt.choices, ("map", about)],
        doubts=learnt.doubts(training.names),
        quantiles=score_quantiles(learnt.scores),
        map_threshold=height,
    )
