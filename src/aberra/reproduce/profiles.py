"""How much of a paper's protocol to run: data in `profiles.toml`, not code."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Profile:
    """One section of `profiles.toml`, where the fields are explained."""

    name: str
    note: str
    seeds: int
    few_seeds: int
    members: int
    rounds: int
    epochs: float
    rows: int
    classes: tuple[int, ...]
    image_seeds: int
    image_members: int
    image_rounds: int
    image_epochs: float
    image_batch: int
    normal: int
    test: int
    cifar_normal: int
    cifar_epochs: float
    cifar_members: int
    cifar_rounds: int
    cifar_pixels: int
    mri_seeds: int
    mri_preset: str
    mri_size: int
    mri_steps: int
    mri_rival_steps: int
    mri_slices: int

    def with_seeds(self, n: int | None) -> Profile:
        """Return the profile with another number of seeds everywhere."""
        if n is None:
            return self
        return replace(self, seeds=n, few_seeds=n, image_seeds=n, mri_seeds=n)


@cache
def profiles() -> dict[str, Profile]:
    """Return the profiles by name."""
    text = files("aberra.reproduce").joinpath("profiles.toml").read_text("utf-8")
    return {
        name: Profile(name=name, **{**held, "classes": tuple(held["classes"])})
        for name, held in tomllib.loads(text).items()
    }
