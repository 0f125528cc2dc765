"""What a noise image costs: our three kinds against one call of `opensimplex` per octave.

    python -m benchmarks.noise            writes results/noise.md

Batches of 16 images, one thread each; `opensimplex` is compiled by numba and warm. The times are
of the processor, not of the clock, medians over rounds in which every kind has its turn, so that
other work on the machine counts little and for all alike.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from aberra.diffusion.noise import CELL, N_OCTAVES, NOISES, PERSISTENCE, Noise
from aberra.rng import single_thread, torch_generator
from benchmarks.records import environment

BATCH, ROUNDS, SIZES = 16, 15, (64, 256)
RESULTS = Path("results/noise.md")


def ours(noise: Noise, size: int) -> Callable[[], object]:
    """Return a function that draws a batch of our noise."""
    generator = torch_generator(0)
    return lambda: noise((BATCH, 1, size, size), generator)


def opensimplex_image(seed: int, size: int) -> NDArray[np.float64]:
    """Return a noise image as AnoDDPM makes it."""
    from opensimplex import OpenSimplex  # type: ignore[import-untyped]

    table, pixel = OpenSimplex(seed), np.arange(size)
    octaves = [
        PERSISTENCE**k * table.noise3array(pixel / cell, pixel / cell, np.array([seed / cell]))[0]
        for k, cell in enumerate(CELL / 2.0 ** np.arange(N_OCTAVES))
    ]
    return np.sum(octaves, axis=0)


def theirs(size: int) -> Callable[[], object]:
    """Return a function that draws a batch of `opensimplex` images."""
    return lambda: [opensimplex_image(seed, size) for seed in range(BATCH)]


def milliseconds(draw: Callable[[], object]) -> float:
    """Return the processor's time for one image of a batch."""
    started = time.thread_time()
    draw()
    return 1e3 * (time.thread_time() - started) / BATCH


def main() -> None:
    """Time all kinds in turn and print the medians."""
    os.environ["NUMBA_NUM_THREADS"] = "1"  # read at import, so before the first image
    lines = ["| size | noise | ms an image | times as fast as opensimplex |", "|---|---|---|---|"]
    with single_thread():
        for size in SIZES:
            draws = {name: ours(noise, size) for name, noise in NOISES.items()}
            draws["opensimplex"] = theirs(size)
            times: dict[str, list[float]] = {name: [] for name in draws}
            for _ in range(ROUNDS + 1):
                for name, draw in draws.items():
                    times[name].append(milliseconds(draw))
            medians = {name: median(values[1:]) for name, values in times.items()}
            for name, value in medians.items():
                ratio = medians["opensimplex"] / value
                lines.append(f"| {size} | {name} | {value:.2f} | {ratio:.1f} |")
    print("\n".join(lines))
    head = (
        f"# Noise\n\n`python -m benchmarks.noise`, batches of {BATCH}, six octaves, one thread.\n\n"
    )
    RESULTS.write_text(f"{head}{chr(10).join(lines)}\n\nMade with {environment()}.\n")


if __name__ == "__main__":
    main()
