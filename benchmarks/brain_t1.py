"""The model `brain-t1` that comes with the package: how it was made, and what it finds.

ABERRA_DATA=... python -m benchmarks.brain_t1 make        the model file of the package
ABERRA_DATA=... python -m benchmarks.brain_t1 note        how it scores healthy scans, into the file
ABERRA_DATA=... python -m benchmarks.brain_t1 measure     results/brain_t1.jsonl; --seed: lesions
ABERRA_DATA=... python -m benchmarks.brain_t1 across --seed 11      results/brain_across.jsonl

The model keeps averages of slices of healthy IXI subjects, prepared as `aberra score` prepares
scans. The subjects of the eight whole volumes train nothing and place no threshold: they are
measured, once as they are and twelve times with a lesion pasted in world coordinates.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from aberra import NearestHealthy, load
from aberra.contract.maps import TOP_SHARE
from aberra.data.mri.brain import brain_mask
from aberra.data.mri.files import read_volume
from aberra.data.mri.grid import covered, cut, put_back
from aberra.data.mri.prepare import Preparation, place_slices, prepare
from aberra.data.mri.volume import Volume
from aberra.localise.healthy import CalmScan, HealthyScans, healthy_scans
from aberra.localise.likeness import Looks, look_of
from aberra.localise.relative import SliceMaps
from aberra.localise.volumes import ScoredVolume, across_slices, score_volume
from aberra.metrics import best_dice
from aberra.model_file import load_notes
from aberra.recipe import Recipe
from aberra.workflow.outcome import save_with_recipe
from benchmarks.records import append, data_folder, environment

MODEL = Path("src/aberra/pretrained/brain-t1.aberra")
RESULTS = Path("results/brain_t1.jsonl")
ACROSS = Path("results/brain_across.jsonl")
PREPARATION = Preparation(normalise="slice", headroom=1.5)
IN_STACK = replace(PREPARATION, below_top=(0.0, 70.0))  # the first slice is the top
STACK = np.array([[0, 0, 2.0, 0], [0, -2.0, 0, 0], [-2.0, 0, 0, 0], [0, 0, 0, 1.0]])
AXES = "SPR"  # the headers of the IXI volumes are wrong
N_CALM = 20  # subjects that place the thresholds
RATE = 0.01
N_LESIONS = 12
MILLILITRES = (2.0, 20.0)
SHADES = {"dark": (0.2, 0.7), "bright": (1.25, 1.6)}  # times the tissue around

Images = NDArray[np.float32]
Flags = NDArray[np.bool_]

JOINED: dict[str, Callable[[Images], Images]] = {  # maps of slices 2 mm apart
    "alone": lambda maps: maps,
    "Gaussian, 2 mm": lambda maps: ndimage.gaussian_filter1d(maps, 1, axis=0),
    "Gaussian, 3 mm": lambda maps: ndimage.gaussian_filter1d(maps, 1.5, axis=0),
    "Gaussian, 4 mm": lambda maps: ndimage.gaussian_filter1d(maps, 2, axis=0),
    "median of 3": lambda maps: ndimage.median_filter(maps, (3, 1, 1)),
    "median of 5": lambda maps: ndimage.median_filter(maps, (5, 1, 1)),
}


def volumes() -> list[Path]:
    """Return the whole heads that nothing is learnt from."""
    return sorted((data_folder() / "mri" / "nifti").glob("*_t1w.nii.gz"))


def slices_of(names: NDArray[Any], held: Any) -> tuple[Images, Flags, NDArray[Any]]:
    """Return the slices of subjects as scoring sees them, their brains, and whose they are."""
    images, brains, owners = [], [], []
    for name in names:
        own = held["subject"] == name
        stack = Volume(held["img"][own].astype(np.float32), STACK)
        x, grid = prepare(stack, held["brain"][own], IN_STACK)
        mask = Volume(held["brain"][own].astype(np.float32), STACK)
        images.append(x)
        brains.append(cut(mask, grid, 0.0) > 0.5)
        owners += [name] * len(x)
    return np.concatenate(images), np.concatenate(brains), np.array(owners)


def all_names(held: Any) -> NDArray[Any]:
    """Return the subjects in a random order, those of the whole heads left out."""
    unseen = {path.name.removesuffix("_t1w.nii.gz") for path in volumes()}
    names = np.array([n for n in np.unique(held["subject"]) if n not in unseen])
    return np.random.default_rng(0).permutation(names)


def make(args: argparse.Namespace) -> None:
    """Learn from the IXI slices, and save model and recipe."""
    file = np.load(data_folder() / "mri" / "ixi185_t1_axial128.npz")
    held = {name: file[name] for name in file.files}
    names = all_names(held)
    images, _, owners = slices_of(names[N_CALM:], held)
    calm, brains, _ = slices_of(names[:N_CALM], held)
    model = NearestHealthy(
        40, n_kept=args.kept, keep="averages", holdout=0.0, false_alarm_rate=RATE, random_state=0
    )
    model.fit(images, groups=owners).calibrate(calm, brains)
    n = len(model.members_.nets[0].images)
    recipe = Recipe(
        "volumes",
        "IXI",
        len(images),
        preparation=asdict(PREPARATION),
        choices=[
            ("data", f"{len(names) - N_CALM} healthy subjects of IXI, {len(images):,} slices"),
            ("detector", f"NearestHealthy with {n} averages, 40 neighbours"),
            ("threshold", f"{RATE:.0%} of the brain of {N_CALM} other healthy subjects is flagged"),
        ],
        map_threshold=model.map_threshold_,
        looks=asdict(Looks.of([look_of(images[owners == name]) for name in names[N_CALM:]])),
    )
    save_with_recipe(model, recipe, MODEL)
    noted(args)
    print(MODEL, MODEL.stat().st_size / 1e6, "MB", n, "averages", model.map_threshold_)


def noted(args: argparse.Namespace) -> None:
    """Place the height on healthy subjects that did not train, and note how these were scored."""
    model, recipe = load(MODEL), Recipe.of(load_notes(MODEL))
    assert recipe is not None
    file = np.load(data_folder() / "mri" / "ixi185_t1_axial128.npz")
    held = {name: file[name] for name in file.files}
    seen = [calm_scan(model, name, held) for name in all_names(held)[:N_CALM]]
    height = float(np.quantile(np.concatenate([one.values for one in seen]), 1 - RATE))
    model.map_threshold_ = height
    recipe = replace(
        recipe,
        map_threshold=height,
        preparation=asdict(PREPARATION),
        healthy=asdict(healthy_scans(seen, height)),
    )
    save_with_recipe(model, recipe, MODEL)
    print(height, recipe.healthy["scores"], recipe.healthy["largest"])


def calm_scan(model: Any, name: str, held: Any) -> CalmScan:
    """Return the map of a subject's slices, on the grid of the slices."""
    own = held["subject"] == name
    stack = Volume(held["img"][own].astype(np.float32), STACK)
    images, grid = prepare(stack, held["brain"][own], IN_STACK)
    inside = cut(Volume(held["brain"][own].astype(np.float32), STACK), grid, 0.0) > 0.5
    maps = across_slices(model.anomaly_map(images).astype(np.float32), PREPARATION)
    values = maps[inside]
    k = max(1, round(TOP_SHARE * values.size))
    score = float(np.partition(values, values.size - k)[-k:].mean(dtype=np.float64))
    slices = SliceMaps(maps, inside, grid.below_top)
    return CalmScan(values, np.packbits(inside), inside.shape, grid.affine, score, slices)


def with_lesion(
    scan: Volume, brain: Flags, seen: Flags, kind: str, rng: np.random.Generator
) -> tuple[Volume, Flags, float]:
    """Return a scan with an ellipsoid in its brain, where it is, and its millilitres."""
    size = float(np.exp(rng.uniform(*np.log(MILLILITRES))))
    radius = (3000 * size / (4 * np.pi)) ** (1 / 3)  # mm
    depth = ndimage.distance_transform_edt(brain & seen, sampling=scan.spacing)
    places = np.argwhere(depth >= min(0.8 * radius, 0.7 * depth.max()))
    centre = scan.to_world(places[rng.integers(len(places))])
    grid = np.argwhere(np.ones(scan.array.shape, bool))
    stretch = rng.permutation([1.3, 1.0, 1 / 1.3])
    away = np.linalg.norm((scan.to_world(grid) - centre) / stretch, axis=1)
    mask = (away.reshape(scan.array.shape) <= radius) & brain
    cover = ndimage.gaussian_filter(mask.astype(np.float32), 0.8) * brain
    level = np.median(scan.array[mask]) * rng.uniform(*SHADES[kind])
    array = scan.array + cover * (level - scan.array)
    return Volume(array, scan.affine, axes=scan.axes), mask, size


def measure(args: argparse.Namespace) -> None:
    """Score the unseen heads, healthy and with lesions, as `aberra score` does."""
    model, recipe = load(MODEL), Recipe.of(load_notes(MODEL))
    assert recipe is not None
    across = recipe.scan_preparation().across
    for line in measured(model, recipe, args.seed):
        append(args.out, {"seed": args.seed, "across": across, **line, **environment()})
        print(line, flush=True)


def measured(model: Any, recipe: Recipe, seed: int) -> Iterator[dict[str, Any]]:
    """Yield one line for each healthy head and each lesion."""
    rng = np.random.default_rng(seed)
    usual = recipe.healthy_scans()
    paths = volumes()
    calm: list[tuple[Volume, Flags, ScoredVolume]] = []
    for path in paths:
        scan = read_volume(path, AXES)
        brain = brain_mask(scan)
        found = scored(model, recipe, scan, brain)
        share = float(found.segmentation.sum() / (found.scored & brain).sum())
        unscored = float((brain & ~found.scored).sum() / brain.sum())
        calm.append((scan, brain, found))
        yield {
            "head": path.name, "lesion": None, "score": round(found.score, 3),
            "flagged ml": round(found.millilitres, 1), "share": round(share, 4),
            "brain below": round(unscored, 3), "remark": remark(recipe, found),
        }  # fmt: skip
    for k in range(N_LESIONS):
        scan, brain, healthy = calm[k % len(calm)]
        kind = ("dark", "bright")[k % 2]
        sick, mask, size = with_lesion(scan, brain, healthy.scored, kind, rng)
        found = scored(model, recipe, sick, brain_mask(sick))
        head = {"head": paths[k % len(calm)].name, "lesion": kind, "ml": round(size, 1)}
        yield {**head, **outcome(found, mask, healthy, usual)}


def remark(recipe: Recipe, found: ScoredVolume) -> str:
    """Return what is said about a scan that looks unlike the training scans."""
    looks = recipe.training_looks()
    return "" if looks is None or found.look is None else looks.remark(found.look)


def scored(model: Any, recipe: Recipe, scan: Volume, brain: Flags) -> ScoredVolume:
    """Score a scan with its automatic mask."""
    return score_volume(model, scan, recipe.scan_preparation(), brain, recipe.map_threshold)


def outcome(
    found: ScoredVolume, mask: Flags, healthy: ScoredVolume, usual: HealthyScans | None
) -> dict[str, Any]:
    """Say whether a lesion was found, by the map and by its deviations from healthy scans."""
    assert usual is not None
    assert usual.heights is not None
    _, z = found.relative(usual.heights)
    peak, z_peak = (np.unravel_index(int(m.argmax()), mask.shape) for m in (found.anomaly_map, z))
    seen, wide = found.looked_at, ndimage.binary_dilation(mask)
    overlap = 2 * (found.segmentation & mask).sum() / (found.segmentation.sum() + mask.sum())
    return {
        "peak inside": bool(wide[peak]),
        "z peak inside": bool(wide[z_peak]),
        "best dice": round(best_dice(mask[seen], found.anomaly_map[seen])[0], 3),
        "z best dice": round(best_dice(mask[seen], z[seen])[0], 3),
        "above healthy": bool(found.score > healthy.score),
        "dice": round(float(overlap), 3),
        "flagged": round(float(found.segmentation[mask].mean()), 3),
    }


def across(args: argparse.Namespace) -> None:
    """Compare ways of joining the maps of neighbouring slices, on lesions of a seed of its own."""
    model, recipe = load(MODEL), Recipe.of(load_notes(MODEL))
    assert recipe is not None
    alone = replace(recipe, preparation={**recipe.preparation, "across": 0.0})
    rng, paths = np.random.default_rng(args.seed), volumes()
    for k in range(args.lesions):
        scan = read_volume(paths[k % len(paths)], AXES)
        brain = brain_mask(scan)
        seen = covered(place_slices(brain, scan.anatomy, PREPARATION), scan)
        kind = ("dark", "bright")[k % 2]
        sick, mask, size = with_lesion(scan, brain, seen, kind, rng)
        found = scored(model, alone, sick, brain_mask(sick))
        for name, way in JOINED.items():
            line = {"seed": args.seed, "number": k, "lesion": kind, "ml": round(size, 1)}
            line |= {"way": name, **_found_by(way(found.maps), found, mask)}
            append(ACROSS, {**line, **environment()})
            print(line, flush=True)


def _found_by(maps: Images, found: ScoredVolume, mask: Flags) -> dict[str, Any]:
    joined = np.where(found.looked_at, put_back(maps, found.grid, found.scan), 0)
    peak = np.unravel_index(int(joined.argmax()), mask.shape)
    best = best_dice(mask[found.looked_at], joined[found.looked_at])[0]
    inside = bool(ndimage.binary_dilation(mask)[peak])
    return {"peak inside": inside, "best dice": round(best, 3)}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=("make", "note", "measure", "across"))
    parser.add_argument("--kept", type=int, default=290)
    parser.add_argument("--lesions", type=int, default=16, help="of the task across")
    parser.add_argument("--seed", type=int, default=7, help="of the pasted lesions")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    {"make": make, "note": noted, "measure": measure, "across": across}[args.task](args)


if __name__ == "__main__":
    main()
