"""The papers' detectors by the papers' names, and the ensembles around them.

A setting is everything that decides the numbers of a cell, defaults included, as plain values that
JSON can hold. So a changed default is a new cell, and an old result is never taken for it.
"""

from __future__ import annotations

from typing import Any

from aberra.methods import in_paper, methods
from aberra.reproduce.store import Setting
from aberra.robust.iadc import IADC

PASSES = ("epochs", "pretrain_epochs")
PAPERS_START = "equal"
UNUSED = ("random_state", "fdr")  # the seed of a cell is its own; no table of the papers has flags


def detector_names() -> list[str]:
    """Return the names of the papers' detectors of tables, in the order of the register."""
    return [method.paper for method in methods() if method.paper and method.takes == "table"]


def own_starts() -> dict[str, str]:
    """Return how the rounds of those begin that do not begin as in the papers by default."""
    starts = {name: in_paper(name).load().own_start for name in detector_names()}
    return {name: start for name, start in starts.items() if start != PAPERS_START}


def settings_of(name: str, epochs: float = 1.0, **params: Any) -> dict[str, Any]:
    """Return all parameters of a detector, with a share of its epochs, its seed left out."""
    found = {**in_paper(name).load()().get_params(deep=False), **params}
    for unused in UNUSED:
        found.pop(unused, None)
    for part in PASSES:
        if part in found:
            found[part] = max(1, round(epochs * found[part]))
    return found


def ensemble_settings() -> dict[str, Any]:
    """Return the parameters of `IADC` that every cell leaves at their defaults."""
    ensemble = IADC()
    return {"temperature": ensemble.temperature, "patience": ensemble.patience}


def detector_of(setting: Setting) -> Any:
    """Return the detector of a setting."""
    return in_paper(setting["detector"]).load()(**setting["params"])


def ensemble_of(setting: Setting) -> IADC:
    """Return the ensemble of a setting."""
    return IADC(
        detector_of(setting),
        n_members=setting["members"],
        max_rounds=setting["rounds"],
        resample=setting["resample"],
        temperature=setting["temperature"],
        patience=setting["patience"],
        trust="median",  # the papers' rule
        start=setting.get("start", PAPERS_START),
    )


def member_epochs_of(setting: Setting, n_rounds: int) -> int:
    """Return the passes over the data that all members of all rounds take."""
    passes = sum(int(setting["params"].get(part, 0)) for part in PASSES)
    return n_rounds * int(setting["members"]) * passes
