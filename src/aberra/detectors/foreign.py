"""Any scikit-learn or PyOD detector as a member of an ensemble.

They see the rows as given: whoever wants scaling puts the detector in a pipeline.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from aberra.contract.members import Data, Members, Rows
from aberra.detectors.base import Detector
from aberra.errors import ArgumentError, DataError
from aberra.rng import seed_estimator

Array = NDArray[np.float64]

FEWEST_ROWS = 2


class Trainer(Protocol):
    """What an ensemble needs of a detector: prepare once, train members again and again."""

    draws_rows: ClassVar[bool]
    own_start: ClassVar[str]

    @property
    def trust_rule(self) -> str:
        """How trust follows from its scores."""

    def _prepare(self, data: Data) -> Any: ...

    def _train(
        self, prepared: Any, rows: Rows, weights: Array, seeds: Sequence[int]
    ) -> Members: ...


@runtime_checkable
class ImageTrainer(Trainer, Protocol):
    """A localiser, which trains members on images alone."""

    def _validate_params(self) -> None: ...

    def anomaly_map(self, images: ArrayLike) -> Any:
        """Return how odd each pixel is."""


def as_trainer(detector: Any, image: tuple[int, int, int] | None) -> Trainer:
    """Return a fresh trainer for one of our detectors or for anybody else's."""
    _check_copyable(detector)
    fresh = clone(detector, safe=False)
    if isinstance(fresh, Detector):
        fresh._validate_params()
        if (fresh.missing, fresh.encode, fresh.threshold) != ("error", "error", "auto"):
            raise ValueError(
                f"`missing`, `encode` and `threshold` of {type(fresh).__name__} have no effect "
                "inside an ensemble. Set them on the ensemble instead."
            )
        fresh.image_shape_ = image
        return fresh
    if isinstance(fresh, ImageTrainer):
        fresh._validate_params()
        if image is None:
            raise DataError(
                f"{type(fresh).__name__} looks at images of shape (n, channels, height, width), "
                "but got a table."
            )
        vars(fresh)["image_shape_"] = image
        return fresh
    if image is not None:
        raise DataError(
            f"{type(fresh).__name__} looks at tables, but got images. Flatten them to (n, pixels), "
            "or use one of Aberra's own detectors."
        )
    _check_needs_no_labels(fresh)
    return ForeignTrainer(fresh)


def _check_copyable(detector: Any) -> None:
    """Refuse what cannot be copied and seeded by scikit-learn's rules, and say what to change."""
    if isinstance(detector, type):
        raise ArgumentError(
            "detector",
            f"`detector` is the class {detector.__name__}, not a detector. Make one: "
            f"{detector.__name__}().",
        )
    for name in ("get_params", "set_params"):
        if not callable(getattr(detector, name, None)):
            raise ArgumentError(
                "detector",
                f"{type(detector).__name__} has no {name}, by which an ensemble copies and seeds "
                "its members. Let the class inherit from sklearn.base.BaseEstimator, with all "
                "settings as keywords of its constructor.",
            )


def _check_needs_no_labels(detector: Any) -> None:
    last = _last_step(detector)
    if isinstance(last, BaseEstimator) and (is_classifier(last) or is_regressor(last)):
        kind = "classifier" if is_classifier(last) else "regressor"
        raise ArgumentError(
            "detector",
            f"{type(last).__name__} is a {kind}, which learns from labels. Give an anomaly "
            "detector, such as IsolationForest().",
        )


class ForeignTrainer:
    """Trains copies of a foreign detector, one per member.

    Weights go to `fit(sample_weight=...)` where the detector takes them. Where it does not, each
    drawn row is kept, once, with probability weight / largest weight. A row is never repeated,
    because a detector that looks at neighbours would take its copy for a close one.
    """

    trust_rule = "median"
    draws_rows: ClassVar[bool] = False
    own_start: ClassVar[str] = "equal"

    def __init__(self, detector: Any) -> None:
        self.detector = detector
        self.weight_argument = _weight_argument(detector)

    def _prepare(self, data: Data) -> Data:
        return data

    def _train(self, prepared: Data, rows: Rows, weights: Array, seeds: Sequence[int]) -> Members:
        return ForeignMembers(
            [
                self._fit_member(prepared, drawn, w, seed)
                for drawn, w, seed in zip(rows, weights, seeds, strict=True)
            ]
        )

    def _fit_member(self, data: Data, drawn: NDArray[np.int64], weights: Array, seed: int) -> Any:
        member = clone(self.detector, safe=False)
        seed_estimator(member, seed)
        if self.weight_argument is not None:
            return member.fit(rows_of(data, drawn), **{self.weight_argument: weights[drawn]})
        member.fit(rows_of(data, thinned(drawn, weights, np.random.default_rng(seed))))
        return member


def rows_of(data: Any, chosen: NDArray[np.int64]) -> Any:
    """Return some rows of an array or a data frame."""
    return data.iloc[chosen] if isinstance(data, pd.DataFrame) else data[chosen]


def thinned(
    drawn: NDArray[np.int64], weights: Array, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Keep each distinct drawn row with a probability proportional to its weight."""
    drawn = np.unique(drawn)
    chance = weights[drawn] / weights[drawn].max()
    kept = drawn[generator.random(len(drawn)) < chance]
    if len(kept) < FEWEST_ROWS:
        return np.argsort(-weights, kind="stable")[:FEWEST_ROWS]
    return kept


@dataclass(eq=False)
class ForeignMembers(Members):
    """Fitted foreign detectors, brought to one sign: high = anomalous.

    They get all rows in one call: some of PyOD's (ECOD, COPOD, COF) score a row by the others in
    the call, and would see the edges of tiles.
    """

    detectors: list[Any]

    tile_rows = None

    def __post_init__(self) -> None:
        self.n_members = len(self.detectors)

    def scores(self, tile: Data) -> Array:
        """Return (m, n) scores."""
        return np.stack([foreign_score(detector, tile) for detector in self.detectors])

    def why_not_finite(self, model: str) -> str:
        """Name the detector that returned such scores."""
        return (
            f"{_name(self.detectors[0])} returned scores that are not finite. Check its settings, "
            "look for columns of extreme scale, or choose another detector."
        )

    def why_all_equal(self) -> str:
        """Name the detector that returned such scores."""
        return f"They come from {_name(self.detectors[0])}. Check its settings."

    def probe(self, n_features: int, image_shape: tuple[int, int, int] | None) -> None:
        """Leave them alone: a row of zeros may be no valid row for them."""

    def probe_finite(self, rows: Data) -> None:
        """Let them refuse such rows, which may be no valid ones, but not score them with NaN."""
        with suppress(DataError):
            super().probe_finite(rows)


def foreign_score(detector: Any, rows: Data) -> Array:
    """Score rows with any detector, high = anomalous.

    PyOD's `decision_function` has that sign already; scikit-learn's has the other one, and so has
    `score_samples`, which is preferred because no threshold is taken off it.
    """
    if is_pyod(detector):
        return _answer(detector, detector.decision_function, rows)
    method = getattr(detector, "score_samples", None) or getattr(
        detector, "decision_function", None
    )
    if method is None:
        raise TypeError(
            f"{type(detector).__name__} cannot score new rows: it has neither score_samples nor "
            "decision_function. LocalOutlierFactor needs novelty=True."
        )
    return -_answer(detector, method, rows)


def _answer(detector: Any, method: Callable[[Data], Any], rows: Data) -> Array:
    """Return what a foreign method says about rows; an error of its own becomes one of ours."""
    try:
        scores = np.asarray(method(rows), dtype=np.float64).ravel()
    except Exception as error:  # whatever it raises, its name belongs to the message
        said = f"{type(error).__name__}: {str(error).strip().rstrip('.')}"
        raise DataError(f"{_name(detector)} cannot score these rows ({said}).") from error
    if scores.shape != (len(rows),):
        raise DataError(f"{_name(detector)} gave {len(scores)} scores for {len(rows)} rows.")
    return scores


def is_pyod(detector: Any) -> bool:
    """Say whether the detector is PyOD's, without importing PyOD."""
    kinds = type(_last_step(detector)).__mro__
    return any(cls.__module__.split(".")[0] == "pyod" for cls in kinds)


def _last_step(detector: Any) -> Any:
    """Return the detector itself, without the pipeline that may be around it."""
    return detector.steps[-1][1] if isinstance(detector, Pipeline) else detector


def _name(detector: Any) -> str:
    return type(_last_step(detector)).__name__


def _weight_argument(detector: Any) -> str | None:
    if isinstance(detector, Pipeline):
        name, last = detector.steps[-1]
        return f"{name}__sample_weight" if has_fit_parameter(last, "sample_weight") else None
    return "sample_weight" if has_fit_parameter(detector, "sample_weight") else None
