"""What ADC and IADC have in common: members of one detector, and what they answer together."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from aberra.contract.maps import CALIBRATION_IMAGES, foreground, masked, upper_quantile
from aberra.contract.members import Data, Scores, tiles
from aberra.contract.rows import RowScorer
from aberra.contract.scorer import Scorer
from aberra.declare import Shape, estimator, learnt, parameter
from aberra.detectors.foreign import as_trainer
from aberra.detectors.multiview import MultiView
from aberra.rng import single_thread
from aberra.robust.committee import Committee
from aberra.robust.resampling import Resample
from aberra.robust.rounds import Setup
from aberra.robust.sample import Sampled
from aberra.scikit import HasMethods, Interval, StrOptions

# Both ensembles have this parameter, but not at the same place of their constructors.
RESAMPLE = ("boolean", StrOptions({"auto", "subsample"}))
RESAMPLE_DOC = """How members draw the rows they train on. True draws as many rows as there are,
with replacement; "subsample" draws half of the rows without replacement; False gives every member
all rows. "auto" is False for `MultiView`, whose members draw rows for their trees and landmarks
themselves and lose by drawing twice, and True for all other detectors."""


@estimator
class Ensemble(RowScorer):
    """Several members of one detector, whose mean is the score."""

    detector: Any = parameter(
        HasMethods("fit"),
        None,
        default=None,
        kw_only=False,
        doc="""What the members are: one of Aberra's detectors or localisers, or any outlier
        detector or pipeline of scikit-learn or PyOD. None takes `MultiView` for tables and
        `HybridOCSVM` for images. The weights of the rows go to its `fit` as `sample_weight`;
        where it takes none, rows are left out at random, those of little weight more often.
        Members get seeds of their own, whatever its `random_state` says.""",
    )
    n_members: int = parameter(
        Interval(Integral, 1, None, closed="left"),
        default=5,
        kw_only=False,
        doc="Number of members.",
    )
    engine: str | None = parameter(
        str,
        None,
        default=None,
        doc="""Name of the joblib backend ("loky", "threading", ...) that spreads the members over
        workers. None trains them in this process. The result is the same bytes either way.""",
    )

    members_: Committee = learnt()
    map_threshold_: float = learnt(
        """Height of the map above which `segment` flags a pixel; only if the members are
        localisers.""",
        optional=True,
    )

    positions_: Annotated[NDArray[np.int64], Shape("N", dtype="int64")] = learnt(
        """Positions of the rows that were sampled from a longer table; scores and trust of the
        training rows are theirs. Only where the table was read block by block.""",
        optional=True,
    )

    @property
    def flag_rule(self) -> str:
        """The threshold rule that "auto" means: that of the members."""
        if self.detector is None and self.image_shape_ is None:
            return MultiView().flag_rule
        return self.detector.flag_rule if isinstance(self.detector, Scorer) else super().flag_rule

    @property
    def trust_rule(self) -> str:
        """How trust follows from the scores: as for the members alone."""
        if self.detector is None and self.image_shape_ is None:
            return MultiView().trust_rule
        return self.detector.trust_rule if isinstance(self.detector, Scorer) else super().trust_rule

    @property
    def sees_gaps(self) -> bool:
        """Whether gaps in a table reach the members, which make something of them."""
        if self.detector is None:
            return self.image_shape_ is None
        return isinstance(self.detector, RowScorer) and self.detector.sees_gaps

    @property
    def _takes_frames(self) -> bool:
        """Whether a pipeline prepares the columns itself, by their names, types and gaps."""
        plain = (self.missing, self.encode) == ("error", "error")
        return plain and isinstance(self.detector, Pipeline)

    @property
    def localises(self) -> bool:
        """Whether the members are localisers, so that the ensemble draws maps."""
        return isinstance(self.detector, Scorer) and self.detector.localises

    def _keep_positions(self, sample: Sampled | None) -> None:
        """Keep the positions of the rows that a file keeps, where a fit went by blocks."""
        if sample is not None and "positions_" in vars(self):
            self.positions_ = self.positions_[sample.rows]

    def maps_and_scores(self, X: ArrayLike) -> tuple[NDArray[np.float32], Scores]:
        """Return `anomaly_map` and `anomaly_score` for the price of one; for localisers.

        An image's score is the mean of its members' scores, not the score of their mean map.
        """
        check_is_fitted(self, "members_")
        data, members = self._validate(X, reset=False), self.members_
        parts = []
        for full, n in tiles(data, members.tile_rows or len(data)):
            maps, scores = members.maps_and_scores(full)
            parts.append((maps[:, :n].mean(axis=0, dtype=np.float32), scores[:, :n].mean(axis=0)))
        every_map, every_score = zip(*parts, strict=True)
        return np.concatenate(every_map), np.concatenate(every_score)

    def _maps(self, X: ArrayLike, mask: ArrayLike | None) -> NDArray[np.float32]:
        check_is_fitted(self, "members_")
        return masked(self._averaged(Committee.maps, self._validate(X, reset=False)), mask)

    def _restored(self, X: ArrayLike) -> NDArray[np.float32]:
        check_is_fitted(self, "members_")
        return self._averaged(Committee.restored, self._validate(X, reset=False))

    def _segmented(self, X: ArrayLike, mask: ArrayLike | None) -> NDArray[np.bool_]:
        return self._maps(X, mask) > self.map_threshold_

    def _averaged(
        self, ask: Callable[[Committee, Data], NDArray[np.float32]], data: Data
    ) -> NDArray[np.float32]:
        """Return the mean over the members of what each says about images."""
        parts = [
            ask(self.members_, full)[:, :n].mean(axis=0, dtype=np.float32)
            for full, n in tiles(data, self.members_.tile_rows or len(data))
        ]
        return np.concatenate(parts)

    def _fit_source(self, source: Any, sample_weight: ArrayLike | None) -> Self:
        """Fit on a table that is read block by block."""
        from aberra.data.blocks.opening import blocks_of
        from aberra.robust.by_blocks import fit_by_blocks

        if sample_weight is not None:
            raise ValueError("sample_weight is for tables in memory, not for paths and datasets.")
        found: Self = fit_by_blocks(self, blocks_of(source))
        return found

    def _setup(self, data: Data, resample: Resample) -> Setup:
        """Return what all rounds of this fit have in common."""
        default = self.detector is None
        detector = default_detector(self.image_shape_) if default else self.detector
        trainer = as_trainer(detector, self.image_shape_)
        with single_thread():
            prepared = trainer._prepare(data)
        drawn = not trainer.draws_rows if resample == "auto" else resample
        return Setup(trainer, prepared, data, self.n_members, drawn, self.engine)

    def _place_map_threshold(self, data: Data, trust: Scores) -> None:
        """Place `map_threshold_` on some training images, each counted by the trust in it.

        The share of their pixels above it is the localiser's `false_alarm_rate`; black background
        does not count.
        """
        if not self.localises:
            self.__dict__.pop("map_threshold_", None)  # of an earlier fit with another detector
            return
        trusted = np.flatnonzero(trust)
        n = min(len(trusted), CALIBRATION_IMAGES)
        some = trusted[np.unique(np.linspace(0, len(trusted) - 1, n).astype(np.int64))]
        maps = self._averaged(Committee.maps, data[some])
        seen = foreground(data[some].reshape(len(some), -1, *maps.shape[1:]))
        counts = trust[some][:, None, None] * seen
        self.map_threshold_ = upper_quantile(maps, counts, self.detector.false_alarm_rate)


def default_detector(image: tuple[int, int, int] | None = None) -> Any:
    """Return the detector used when none is given: `MultiView`, or `HybridOCSVM` for images."""
    if image is not None:
        from aberra.detectors.hybrid import HybridOCSVM

        return HybridOCSVM()
    return MultiView()
