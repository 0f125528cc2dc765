"""Pasted lesions that a localiser finds as usual, and those that it finds worst; never the best.

ABERRA_DATA=... python -m benchmarks.brain_picture       results/brain_pieces.png

The slices are those of the scene "report" (see `benchmarks.brain_scenes`), ranked by their Dice at
the threshold that flags 2 % of the pixels of healthy heads. The model is one of
`benchmarks.brain_pieces train`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra import load
from aberra.contract.maps import upper_quantile
from aberra.metrics import dice
from benchmarks.brain_pieces import NETWORKS, network_path
from benchmarks.brain_scenes import report_scene
from benchmarks.map_defaults import COMMON, Judged

EACH = 3


def chosen(one: Judged, maps: NDArray[np.float32], height: float) -> list[tuple[str, int]]:
    """Return the slices in the middle and at the end of the ranking, and what to call them."""
    assert one.lesion is not None
    found = [dice(m, np.where(h, s, 0) > height)
             for m, s, h in zip(one.lesion, maps, one.head, strict=True)]  # fmt: skip
    order = np.argsort(found, kind="stable")
    middle = order[(len(order) - EACH) // 2 :][:EACH]
    return [
        *((f"usual, Dice {found[k]:.2f}", int(k)) for k in middle),
        *((f"worst, Dice {found[k]:.2f}", int(k)) for k in order[:EACH]),
    ]


def draw(args: argparse.Namespace) -> None:
    """Draw input, lesion, restored image, map and what is flagged."""
    import matplotlib.pyplot as plt

    scene = report_scene()
    model = load(network_path(args.model, args.seed))
    calm = scene["healthy"]
    height = upper_quantile(model.anomaly_map(calm.images), calm.head.astype(float), COMMON)
    columns: list[tuple[str, list[NDArray[Any]]]] = []
    for kind in ("dark", "bright"):
        one = scene[kind]
        assert one.lesion is not None
        maps, restored = model.anomaly_map(one.images), model.reconstruct(one.images)
        for title, k in chosen(one, maps, height):
            flagged = (maps[k] > height) & one.head[k]
            images = [one.images[k, 0], one.lesion[k], restored[k, 0], maps[k], flagged]
            columns.append((f"{kind}\n{title}", images))
    lines = ("input", "lesion", "restored", "map", "flagged at 2 %")
    figure, axes = plt.subplots(len(lines), len(columns), figsize=(1.3 * len(columns), 7))
    top = float(np.quantile([images[3] for _, images in columns], 0.99))
    for at, (title, images) in enumerate(columns):
        axes[0, at].set_title(title, fontsize=7)
        for line, (name, image) in enumerate(zip(lines, images, strict=True)):
            is_map = name == "map"
            axis = axes[line, at]
            axis.imshow(
                image, cmap="magma" if is_map else "gray", vmin=0, vmax=top if is_map else 1
            )
            axis.set(xticks=[], yticks=[])
            if at == 0:
                axis.set_ylabel(name, fontsize=7)
    figure.tight_layout(pad=0.2)
    figure.savefig(args.image, dpi=72)
    print(args.image)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="PatchFinder", choices=NETWORKS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--image", type=Path, default=Path("results/brain_pieces.png"))
    draw(parser.parse_args())


if __name__ == "__main__":
    main()
