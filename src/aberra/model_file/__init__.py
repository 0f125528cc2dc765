"""Save a fitted model to one file and load it back, to the last bit and without running its code.

`container` is the frame of the file, `derive` reads from the types of registered methods what each
of them consists of, and `kinds`, `composite`, `networks`, `values` and `foreign` write and read the
pieces.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

import aberra
from aberra.errors import DataError, MissingExtraError, ModelFileError
from aberra.files import write_atomically
from aberra.model_file import container
from aberra.model_file.card import card_of, checked_card
from aberra.model_file.composite import checked_keys, checked_object, decode_fields, encode_fields
from aberra.model_file.derive import CLASSES, learnt_kinds
from aberra.model_file.kinds import Kind, Reader, Writer, damaged
from aberra.model_file.soundness import check_sound
from aberra.model_file.values import Unfitted, Values

__all__ = ["load", "load_card", "load_notes", "load_versions", "save"]

ESTIMATOR = Unfitted(CLASSES, Values(CLASSES))
ENTRIES = {"format", "versions", "estimator", "learnt"}
COMPUTING = ("numpy", "scikit-learn", "scipy", "torch")  # what the bits of a score depend on
NOTES = "notes"  # optional: whatever the caller wants to find again
CARD = "card"  # optional: files of before the first release have none
WHEN_UNWRITABLE = (
    "An older file of that name is as it was. See to the folder, its permissions and the space "
    "left on its disk, or choose another one."
)


def save(model: Any, path: str | os.PathLike[str], notes: Mapping[str, Any] | None = None) -> None:
    """Save a fitted model to one file, all or nothing.

    The file holds a JSON manifest and arrays; nothing is pickled. In the manifest stands a card, a
    page of Markdown that says what the model is; `aberra info` shows it. If anything goes wrong, on
    a full disk for example, an older file of the same name is left as it was. Saving the same model
    twice gives the same bytes.

    Parameters
    ----------
    model : estimator
        Any fitted estimator of Aberra. Members of `ADC` and `IADC` may be scikit-learn's, as far
        as skops trusts their types; PyOD's and scikit-learn's trees cannot be loaded safely, so
        they are refused here. A `RandomState` among the parameters is saved as it stands now.
    path : str or path-like
        The file to write, by convention `*.aberra`. Its folder must exist.
    notes : mapping, optional
        Anything that JSON can hold, kept beside the model and returned by `load_notes`: where the
        data came from, what was measured.

    Raises
    ------
    NotFittedError
        If the model has not been fitted.
    TypeError
        If it is not one of Aberra's estimators.
    ModelFileError
        If a part of it cannot be saved, or the file cannot be written.

    See Also
    --------
    load : Load a model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from aberra import MultiView, load, save
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> model = MultiView(random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, Path(folder) / "model.aberra")
    ...     again = load(Path(folder) / "model.aberra")
    >>> bool((again.anomaly_score(X) == model.anomaly_score(X)).all())
    True
    """
    if type(model) is not CLASSES.get(type(model).__name__):
        raise TypeError(
            f"save takes {', '.join(CLASSES)}, but got {type(model).__name__}. Other detectors "
            "can be saved as members: ADC(detector, n_members=1, resample=False)."
        )
    check_is_fitted(model, ["members_", "threshold_"])
    with _explained("save to", path):
        manifest, arrays = _taken_apart(model)
        if notes is not None:
            manifest[NOTES] = dict(notes)
        write_atomically(Path(path), container.pack(manifest, arrays))


def load(path: str | os.PathLike[str], *, limits: bool = True) -> Any:
    """Load a model that `save` wrote; its scores are the same bytes as before.

    Nothing in the file is run: names are looked up in a list of known classes, and every part is
    checked before it is used. Bits can still differ with other versions of NumPy or torch.

    Parameters
    ----------
    path : str or path-like
        The file.
    limits : bool, default=True
        Whether to refuse numbers that would make the model take very much time or memory, such as
        a network that looks at more than 512 pixels a side or is asked 2,000 times about an image.
        Set it to False for such a model of your own.

    Returns
    -------
    model : estimator
        Fitted, and ready to score, to be saved again, or to go on with `warm_start`. Of a table of
        more than 10,000 rows the file of an ensemble keeps the scores of, and the trust in, about
        4,000 rows, the oddest hundred among them: `weights_` and `history_` are about these rows
        (`history_[0].sample.rows` says which), `training_scores` is None, and there is no going on.

    Raises
    ------
    ModelFileError
        If there is no such file, or it is damaged, of a newer format, or not a model.
    MissingExtraError
        If it is a model of images, and torch is not installed.

    See Also
    --------
    save : Save a model.

    Examples
    --------
    >>> from aberra import load
    >>> load("missing.aberra")
    Traceback (most recent call last):
    ...
    aberra.errors.ModelFileError: Cannot load missing.aberra: No such file or directory.
    """
    with _explained("load", path):
        return _put_together(*container.read_model(Path(path)), limits)


def load_notes(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the notes that were saved with a model; empty if there are none.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    notes : dict

    Raises
    ------
    ModelFileError
        If there is no such file, or it is damaged, of a newer format, or not a model.
    """
    with _explained("load", path):
        manifest = container.read_manifest(Path(path))
        return checked_object(manifest.get(NOTES, {}), NOTES)


def load_card(path: str | os.PathLike[str]) -> str | None:
    """Return the card that was saved with a model: Markdown; None for a file that has none.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    card : str or None

    Raises
    ------
    ModelFileError
        If there is no such file, or it is damaged, of a newer format, or not a model.
    """
    with _explained("load", path):
        manifest = container.read_manifest(Path(path))
        return checked_card(manifest[CARD]) if CARD in manifest else None


def load_versions(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return the versions of Aberra and of the libraries that wrote a model file.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    versions : dict

    Raises
    ------
    ModelFileError
        If there is no such file, or it is damaged, of a newer format, or not a model.
    """
    with _explained("load", path):
        manifest = container.read_manifest(Path(path))
        held = checked_object(manifest.get("versions", {}), "versions")
        return {str(name): str(version) for name, version in held.items()}


@contextmanager
def _explained(task: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn whatever goes wrong into one error that names the file."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        hint = "" if task == "load" else f" {WHEN_UNWRITABLE}"
        raise ModelFileError(f"Cannot {task} {os.fspath(path)}: {why}.{hint}") from error
    except (ModelFileError, DataError) as error:
        why = str(error).rstrip(".")
        raise ModelFileError(f"Cannot {task} {os.fspath(path)}: {why}.") from error
    except MemoryError as error:
        why = "there is not enough memory for what it holds"
        raise ModelFileError(f"Cannot {task} {os.fspath(path)}: {why}.") from error
    except MissingExtraError:  # the file is sound, and the message says what to install
        raise
    except Exception as error:  # parts that do not fit each other can fail anywhere
        why = f"{type(error).__name__}: {error}"
        raise ModelFileError(f"Cannot {task} {os.fspath(path)}: {why}") from error


def _taken_apart(model: Any) -> tuple[dict[str, Any], container.Arrays]:
    """Return the manifest and the arrays of a model."""
    model = model.as_saved()
    out, held = Writer(), vars(model)
    learnt = _learnt(model, held)
    if extra := sorted(set(held) - set(learnt) - set(model.get_params(deep=False))):
        damaged(type(model).__name__, f"{extra} have no place in the file; delete them first")
    versions = _versions()
    manifest = {
        "format": container.FORMAT,
        "versions": versions,
        "estimator": ESTIMATOR.encode(model, out, "params"),
        "learnt": encode_fields(learnt, held, out, "learnt"),
        CARD: card_of(model, versions),
    }
    return manifest, out.arrays


def _put_together(manifest: dict[str, Any], arrays: container.Arrays, limits: bool) -> Any:
    """Make the model again, and see that its parts fit."""
    wanted = {k: v for k, v in manifest.items() if k not in (NOTES, CARD)}
    checked_keys(wanted, ENTRIES, "manifest")
    checked_object(manifest["versions"], "versions")
    if CARD in manifest:
        checked_card(manifest[CARD])
    if manifest["format"] != container.FORMAT:
        damaged("manifest", f"format {manifest['format']!r} contradicts the header")
    file = Reader(arrays, limits)
    model = ESTIMATOR.decode(manifest["estimator"], file, "params")
    node = checked_object(manifest["learnt"], "learnt")
    vars(model).update(decode_fields(_learnt(model, node), node, file, "learnt"))
    if file.arrays:
        damaged("arrays", f"unknown entries {sorted(file.arrays)}")
    check_sound(model, limits)
    return model


def _learnt(model: Any, held: Mapping[str, Any]) -> dict[str, Kind]:
    """Return the kinds of all that this model has learnt."""
    cls: type = type(model)
    always, sometimes = learnt_kinds(cls)
    return {**always, **{name: kind for name, kind in sometimes.items() if name in held}}


@cache
def _versions() -> dict[str, str]:
    found = {"aberra": aberra.__version__, "python": platform.python_version()}
    for name in COMPUTING:
        with suppress(PackageNotFoundError):  # tables do without torch
            found[name] = version(name)
    return dict(sorted(found.items()))
