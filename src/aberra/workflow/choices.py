"""What can be asked of `fit`: methods by their names in the register, and the other choices.

Nothing heavy is imported here, because the help of the shell lists these choices.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, get_args

from aberra.errors import ArgumentError
from aberra.methods import Method, Takes, methods, named

if TYPE_CHECKING:
    from aberra.recipe import Source

Missing = Literal["impute", "error"]
Preset = Literal["small", "medium", "paper"]
LookFor = Literal["darker", "brighter", "both"]
OnError = Literal["stop", "skip"]

ALONE = "none"  # no ensemble: the detector is trained once, and every sample counts fully
TAKES: dict[Source, Takes] = {"table": "table", "images": "images", "volumes": "images"}
# Rules for the threshold, that of the default detector first. A test compares them with those of
# aberra.thresholds, which would take long to import for a page of help.
FLAGGING = ("fdr", "robust_z", "knee", "mixture", "tail", "target_rate", "consensus")
DETECTOR: dict[Source, str] = {"table": "multiview", "images": "addm", "volumes": "patch-finder"}
ROBUST: dict[Source, str] = {"table": "iadc", "images": ALONE, "volumes": ALONE}
CALLED: dict[Source, str] = {"table": "a table", "images": "images", "volumes": "scans"}


def detectors(kind: Source) -> list[Method]:
    """Return the methods that can be asked for by name, for this kind of data."""
    return [m for m in methods() if m.shell and m.takes == TAKES[kind]]


def ensembles() -> dict[str, Method]:
    """Return the ways to train a detector robustly, by the names that `robust` may have."""
    return {m.name.lower(): m for m in methods() if m.takes == "anything"}


def check_blockwise(
    possible: bool, on_error: str | None, engine: str | None, address: str | None
) -> None:
    """Refuse what is for tables that are read file by file, where the data are not such a table."""
    for name, value in (("on_error", on_error), ("engine", engine), ("address", address)):
        if value is not None and not possible:
            words = f"{name} is for tables in files with a header, and not with a query."
            raise ArgumentError(name, words)
    if address is not None and engine != "ray":
        raise ArgumentError("address", 'address belongs to engine="ray".')


def detector_for(kind: Source, name: str | None = None) -> Method:
    """Return the method of that name, or the default for this kind of data.

    Raises
    ------
    ArgumentError
        If there is no such method, or it is for another kind of data.
    """
    known = detectors(kind)
    with suppress(KeyError):
        method = named(name or DETECTOR[kind])
        if method in known:
            return method
    names = ", ".join(m.shell for m in known)
    raise ArgumentError("detector", f"{name} does not take {CALLED[kind]}. Choose from {names}.")


def ensemble_for(kind: Source, name: str | None = None) -> Method | None:
    """Return the ensemble of that name, or the default for this kind of data; None for none.

    Raises
    ------
    ArgumentError
        If there is no such ensemble.
    """
    asked = (name or ROBUST[kind]).lower()
    if asked == ALONE:
        return None
    if asked not in ensembles():
        names = ", ".join([ALONE, *ensembles()])
        raise ArgumentError("robust", f"There is no ensemble called {name!r}. Choose from {names}.")
    return ensembles()[asked]


def check_choices(**given: tuple[str | None, Any]) -> None:
    """Raise an error unless each value is None or one of its choices, `name=(value, Choices)`."""
    for name, (value, choices) in given.items():
        known = get_args(choices)
        if value is not None and value not in known:
            words = ", ".join(known)
            raise ArgumentError(name, f"{name} is {value!r}, but it must be one of {words}.")


def checked_axes(axes: str) -> str:
    """Return where the axes of scans point, in capitals, or say what is wrong with it."""
    from aberra.data.mri.volume import direction_matrix

    try:
        direction_matrix(axes)
    except ValueError as error:
        raise ArgumentError("axes", str(error)) from error
    return axes.upper()
