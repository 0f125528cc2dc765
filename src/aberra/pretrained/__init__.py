"""Models that come with the package, to start from without training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
SUFFIX = ".aberra"


def pretrained_names() -> list[str]:
    """Return the names of the models that come with the package."""
    return sorted(path.stem for path in FOLDER.glob(f"*{SUFFIX}"))


def model_path(model: str | Path) -> Path:
    """Return the path of a model file; the name of a model of the package leads to its file.

    A file of that name in the present folder goes first.
    """
    path = Path(model)
    if not path.exists() and str(model) in pretrained_names():
        return FOLDER / f"{model}{SUFFIX}"
    return path


def load_pretrained(name: str) -> Any:
    """Load a model that comes with the package.

    "brain-t1" looks for lesions in T1-weighted scans of adult heads. It shows where a scan differs
    from healthy ones and is no medical device. What it was made from, what it finds and what it
    misses stands in `pretrained_card`.

    Parameters
    ----------
    name : str
        One of `aberra.pretrained.pretrained_names()`.

    Returns
    -------
    model : estimator
        A fitted model. It takes slices as `aberra.data.mri.prepare` cuts them; to score scans, use
        `aberra score brain-t1 scans/ -o maps/` or `aberra.workflow.score("brain-t1", ...)`.

    Raises
    ------
    ValueError
        If there is no such model.

    Examples
    --------
    >>> import aberra
    >>> model = aberra.load_pretrained("brain-t1")
    >>> model.image_shape_
    (1, 64, 64)
    """
    from aberra import model_file

    return model_file.load(_known(name, SUFFIX))


def pretrained_card(name: str) -> str:
    """Return what is known about a model: data, preparation, measured figures, limits, licence."""
    return _known(name, ".md").read_text(encoding="utf-8")


def _known(name: str, suffix: str) -> Path:
    if name not in pretrained_names():
        known = ", ".join(pretrained_names())
        raise ValueError(f"There is no pretrained model {name!r}. There is: {known}.")
    return FOLDER / f"{name}{suffix}"
