"""What each piece of a brain map is worth, on pasted lesions; and, once, on Edinburgh's tumours.

ABERRA_DATA=... python -m benchmarks.brain_pieces train         results/models; resumes
ABERRA_DATA=... python -m benchmarks.brain_pieces run           results/brain_pieces.jsonl; resumes
ABERRA_DATA=... python -m benchmarks.brain_pieces edinburgh     the same file
python -m benchmarks.brain_pieces table                         results/brain_pieces.md

Settings were chosen on the scene "choose". "report" has other lesions in other subjects, and both
exist on another scanner, too: see `benchmarks.brain_scenes`. Networks that have not been trained
are left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from torch import Tensor

from aberra import ADDM, DDPM, IntensityThreshold, NearestHealthy, PatchFinder, load, save
from aberra.contract.maps import upper_quantile
from aberra.localise.protocols import anoddpm
from aberra.localise.restorers import MapStyle
from aberra.reproduce.mri_slices import Slices, head_mask, ixi, tumour_slices
from benchmarks.brain_contrast import Recontrasted
from benchmarks.brain_scenes import Scene, all_scenes, figures, judged
from benchmarks.map_defaults import COMMON, Judged, rounded
from benchmarks.records import append, environment, read

RESULTS, TABLE = Path("results/brain_pieces.jsonl"), Path("results/brain_pieces.md")
MODELS = Path("results/models")
TITLES = ("choose", "report", "choose, other scanner", "report, other scanner")
SEEDS = (0, 1, 2)
STEPS = 1000
NET, SIZE_ONLY, DARKER = MapStyle("net", 5), MapStyle("absolute", 5), MapStyle("darker", 5)
NETWORKS: dict[str, tuple[Callable[..., Any], int]] = {  # and its training steps
    "ADDM": (ADDM, STEPS),
    "DDPM": (DDPM, STEPS),
    "ADDM-other-contrasts": (Recontrasted, STEPS),
    "PatchFinder": (PatchFinder, STEPS),
    "PatchFinder, 5000 steps": (PatchFinder, 5 * STEPS),
}

Images = NDArray[np.float32]
Ways = list[tuple[Any, float | None]]  # networks, each with where a diffusion starts
Maps = Callable[[Images], Images]  # slices (n, 1, h, w) in, maps (n, h, w) out


def network_path(name: str, seed: int) -> Path:
    """Return where a trained network lies."""
    steps = NETWORKS[name][1]
    return MODELS / f"brain-{name.partition(',')[0]}-{seed}-{steps}.aberra"


def train(args: argparse.Namespace) -> None:
    """Train what is missing, the networks in turns."""
    slices = ixi()["train"]
    MODELS.mkdir(parents=True, exist_ok=True)
    for seed in args.seeds:
        for name in args.networks:
            kind, steps = NETWORKS[name]
            path = network_path(name, seed)
            if path.exists():
                continue
            model = kind(train_steps=steps, holdout=0.0, random_state=seed, checkpoint=str(MODELS))
            model.fit(slices.images, groups=slices.subject)
            save(model.plain() if isinstance(model, Recontrasted) else model, path)
            print(path, flush=True)


@dataclass
class Shared:
    """Blends and restorations that several rows have in common, each computed once a scene."""

    near: NearestHealthy
    blends: dict[int, list[tuple[Tensor, Tensor, Tensor]]] = field(default_factory=dict)
    restored: dict[tuple[int, int, float | None], Images] = field(default_factory=dict)
    seen: list[Images] = field(default_factory=list)  # keeps the arrays, so that ids stay theirs

    def compared(self, images: Images) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Return images, their blends and the spread of the nearest, on the scale [-1, 1]."""
        if id(images) not in self.blends:
            self.seen.append(images)
            atlas = self.near.members_
            self.blends[id(images)] = atlas.compared(atlas.nets[0], atlas.frame.inward(images))
        return self.blends[id(images)]

    def restoration(self, model: Any, start: float | None, images: Images) -> Images:
        """Return what a network makes of the images in [0, 1], a diffusion model from one start."""
        key = (id(model), id(images), start)
        if key not in self.restored:
            ready = model if start is None else model.set_params(start=start)
            self.restored[key] = ready.reconstruct(images)
        return self.restored[key]


def pieces(slices: Slices, seed: int) -> Iterator[tuple[str, Maps]]:
    """Yield every row with what draws its maps."""
    floor = IntensityThreshold(holdout=0.0, random_state=seed).fit(slices.images)
    yield "IntensityThreshold", floor.anomaly_map
    dark_floor = clone(floor).set_params(side="dark").fit(slices.images)
    yield "IntensityThreshold: looks for darker", dark_floor.anomaly_map
    near = NearestHealthy(holdout=0.0, random_state=seed).fit(slices.images)
    shared = Shared(near)
    yield "NearestHealthy: blend, size of the difference", blend_maps(shared, SIZE_ONLY, False)
    yield "NearestHealthy: + net difference", blend_maps(shared, NET, False)
    yield "NearestHealthy: + relative (the default)", blend_maps(shared, NET, True)
    same = clone(near).set_params(harmonise=True).fit(slices.images)
    yield "NearestHealthy: + harmonised", same.anomaly_map
    averages = NearestHealthy(40, n_kept=300, keep="averages", holdout=0.0, random_state=seed)
    yield "NearestHealthy: 300 averages", averages.fit(slices.images).anomaly_map
    yield "NearestHealthy: looks for darker", blend_maps(shared, DARKER, True)
    ready = {name: load(network_path(name, seed)) for name in NETWORKS
             if network_path(name, seed).exists()}  # fmt: skip
    for name, model in ready.items():
        yield from network_rows(shared, name, model)
    finders = ("PatchFinder", "PatchFinder, 5000 steps")
    for pair in [("ADDM", finder) for finder in finders]:
        if set(pair) <= set(ready):
            ways: Ways = [(ready[pair[0]], 0.1), (ready[pair[1]], None)]
            row = " with ".join(pair)
            yield f"{row}: net difference", joined(shared, ways, 0.0, relative=False)
            yield f"{row}: looks for darker", joined(shared, ways, 0.0, DARKER, relative=False)

    if seed == SEEDS[0]:
        yield from member_rows(shared, {"ADDM": 0.1, "PatchFinder": None})
        if "ADDM" in ready:
            white = load(network_path("ADDM", seed)).set_params(noise="gaussian")
            way = white.members_.way
            white.members_ = replace(white.members_, way=replace(way, noise="gaussian"))
            plain = joined(shared, [(white, 0.1)], 0.0, SIZE_ONLY, relative=False)
            yield "ADDM: scored with white noise", plain


def member_rows(shared: Shared, starts: dict[str, float | None]) -> Iterator[tuple[str, Maps]]:
    """Yield rows of the networks of all seeds together, once they have all been trained."""
    members: dict[str, Ways] = {}
    for name, start in starts.items():
        paths = [network_path(name, seed) for seed in SEEDS]
        if all(path.exists() for path in paths):
            members[name] = [(load(path), start) for path in paths]
    if len(members) == len(starts):
        members[" with ".join(starts)] = [way for ways in members.values() for way in ways]
    for name, ways in members.items():
        row = f"{name}: three networks"
        yield f"{row}, net difference", joined(shared, ways, 0.0, relative=False)
        yield f"{row}, looks for darker", joined(shared, ways, 0.0, DARKER, relative=False)


def network_rows(shared: Shared, name: str, model: Any) -> Iterator[tuple[str, Maps]]:
    """Yield the rows of one network, from the map as it comes to the map with every piece."""
    start = 0.1 if isinstance(model, DDPM) else None
    ways: Ways = [(model, start)]
    plain = joined(shared, ways, 0.0, style=SIZE_ONLY, relative=False)
    if name == "ADDM-other-contrasts":
        yield "ADDM: trained in other contrasts", plain
        return
    if isinstance(model, PatchFinder):
        yield name, model.anomaly_map
        yield f"{name}: averaged over 5 x 5", plain
    else:
        yield name, plain
    yield f"{name}: looks for darker", joined(shared, ways, 0.0, DARKER, relative=False)
    yield f"{name}: net difference", joined(shared, ways, 0.0, relative=False)
    yield f"{name}: + relative to the nearest healthy", joined(shared, ways, 0.0)
    yield f"{name}: + mean with NearestHealthy", joined(shared, ways, 0.5)
    if isinstance(model, DDPM):
        yield f"{name}: + starts 0.1 and 0.2", joined(shared, [*ways, (model, 0.2)], 0.5)


def blend_maps(shared: Shared, style: MapStyle, relative: bool) -> Maps:
    """Return maps of what a blend of the nearest healthy slices does not show."""
    return joined(shared, [], 1.0, style, relative)


def joined(
    shared: Shared,
    ways: Ways,
    share: float,
    style: MapStyle = NET,
    relative: bool = True,
) -> Maps:
    """Return maps of networks' mean restoration, mixed with the blends of the nearest healthy."""

    def maps(images: Images) -> Images:
        each = [shared.restoration(model, start, images) for model, start in ways]
        found, drawn = shared.compared(images), []
        frame = shared.near.members_.frame
        restored = frame.inward(np.mean(each, axis=0)) if each else [y for _, y, _ in found]
        for (x, blend, spread), y in zip(found, restored, strict=True):
            unit = spread if relative else torch.ones(())
            drawn.append(style(x[None] / unit, ((1 - share) * y + share * blend)[None] / unit))
        return torch.cat(drawn)[:, 0].numpy()

    return maps


def run(args: argparse.Namespace) -> None:
    """Judge every row that is not there yet on every scene."""
    slices, scenes = all_scenes()
    done = {(line["row"], line["seed"], line["scene"]) for line in read(args.out)}
    for seed in args.seeds:
        for name, draw in pieces(slices, seed):
            for title, scene in scenes.items():
                wanted = title in args.scenes and (not args.rows or name in args.rows)
                if wanted and (name, seed, title) not in done:
                    found = rounded(figures(drawn(draw, scene), scene))
                    note(args.out, name, seed, title, found)


def drawn(draw: Maps, scene: Scene) -> dict[str, Images]:
    """Return the maps of a scene."""
    return {kind: draw(one.images) for kind, one in scene.items()}


def note(out: Path, row: str, seed: int, scene: str, found: dict[str, float]) -> None:
    """Keep one line."""
    append(out, {"row": row, "seed": seed, "scene": scene, **found, **environment()})
    print(row, seed, scene, found, flush=True)


def edinburgh(args: argparse.Namespace) -> None:
    """Look at the tumours: nothing is chosen after this."""
    sick, parts = tumour_slices(), ixi()
    healthy = parts["healthy"]
    images = healthy.of(np.arange(0, len(healthy.images), 12)).images
    calm = Judged(images, None, head_mask(images[:, 0]))
    done = {(line["row"], line["seed"]) for line in read(args.out) if line["scene"] == "edinburgh"}
    for seed in args.seeds:
        for name, draw in pieces(parts["train"], seed):
            if (name, seed) not in done:
                height = upper_quantile(draw(calm.images), calm.head.astype(float), COMMON)
                maps = draw(sick.images)
                found = judged(maps, sick.lesion, sick.brain, height)
                whole = anoddpm(np.where(sick.brain, maps, 0), sick.lesion).metrics
                found["oracle"] = whole["dice_oracle"].mean
                found["all pixels"] = whole["auroc"].mean
                note(args.out, name, seed, "edinburgh", rounded(found))


# The page

FIGURES = ("auroc", "ap", "oracle", "common")
BY_HAND = "## What it says"
KEYS = [f"{kind} {what}" for kind in ("dark", "bright") for what in FIGURES]
HEAD = """# What each piece of a brain map is worth

`python -m benchmarks.brain_pieces` (IXI, 64 x 64 pixels; {steps} training steps where there is a
network). Everything is measured inside the head. "oracle" is the best Dice of one threshold for
all slices, "common" the mean Dice at the threshold that flags {common:.0%} of the pixels of
healthy heads, "mean" the mean of all eight figures. Settings were chosen on "choose" (tumour-like
lesions in 15 subjects that did not train); "report" has even ellipses in ten others. The other
scanner has another contrast in every slice, white cut off, and shade across the head. All lines
are in brain_pieces.jsonl; several seeds are averaged.
"""


def table(args: argparse.Namespace) -> None:
    """Write the Markdown page."""
    lines = list(read(args.out))
    text = [HEAD.format(steps=STEPS, common=COMMON)]
    for title in TITLES:
        text += ["", f"## {title}", "", "| map | seeds | " + " | ".join([*KEYS, "mean"]) + " |"]
        text += ["|---" * 11 + "|", *rows_of(lines, title, KEYS)]
    keys = ["all pixels", *FIGURES]
    text += ["", "## Edinburgh, looked at once", "", "| map | seeds | " + " | ".join(keys) + " |"]
    text += ["|---" * 7 + "|", *rows_of(lines, "edinburgh", keys)]
    TABLE.write_text("\n".join(text) + "\n" + written_by_hand())
    print(TABLE)


def written_by_hand() -> str:
    """Return the end of the page, which no program writes."""
    _, mark, rest = (TABLE.read_text() if TABLE.exists() else "").partition(BY_HAND)
    return f"\n{mark}{rest}" if mark else ""


def rows_of(lines: list[dict[str, Any]], scene: str, keys: list[str]) -> Iterator[str]:
    """Yield the lines of one scene, in the order in which they were made."""
    own = [line for line in lines if line["scene"] == scene]
    for name in dict.fromkeys(line["row"] for line in own):
        same = [line for line in own if line["row"] == name]
        means = [float(np.mean([line[key] for line in same])) for key in keys]
        shown = means if scene == "edinburgh" else [*means, float(np.mean(means))]
        yield f"| {name} | {len(same)} | " + " | ".join(f"{v:.3f}" for v in shown) + " |"


def main() -> None:
    """Read the command line."""
    tasks = {"train": train, "run": run, "edinburgh": edinburgh, "table": table}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=tasks)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), choices=NETWORKS)
    parser.add_argument("--rows", nargs="+", help="which rows to run; all by default")
    parser.add_argument("--scenes", nargs="+", default=list(TITLES), choices=TITLES)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    tasks[args.task](args)


if __name__ == "__main__":
    main()
