"""How much of a paper's protocol to run: data in `profiles.toml`, not code."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

TableSize = TypeVar("TableSize")
SEEDS = ("seeds", "few_seeds")


@dataclass(frozen=True)
class Profile:
    """One profile: how much of each kind of table to run.

    Parameters
    ----------
    name : str
        Its name in the shell.
    note : str
        What it is for.
    parts : mapping
        From the kind of table to its numbers, as the file has them.
    """

    name: str
    note: str
    parts: Mapping[str, Mapping[str, Any]]

    def size(self, part: str, kind: type[TableSize]) -> TableSize:
        """Return the numbers of one kind of table as the class that explains them."""
        return kind(**self.parts[part])

    def with_seeds(self, n: int | None) -> Profile:
        """Return the profile with another number of seeds everywhere."""
        if n is None:
            return self
        parts = {
            part: {name: n if name in SEEDS else value for name, value in held.items()}
            for part, held in self.parts.items()
        }
        return replace(self, parts=parts)


@cache
def profiles() -> dict[str, Profile]:
    """Return the profiles by name."""
    text = files("aberra.reproduce").joinpath("profiles.toml").read_text("utf-8")
    return {
        name: Profile(name, held.pop("note"), held) for name, held in tomllib.loads(text).items()
    }
