"""IADC: an ensemble retrained in rounds, with less and less trust in what looks odd."""

from __future__ import annotations

import logging
import warnings
from copy import copy
from dataclasses import replace
from hashlib import sha256
from numbers import Integral, Real
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from aberra.contract.members import Data, Scores
from aberra.contract.scorer import all_or_nothing, checked_weights
from aberra.data.blocks.given import is_source
from aberra.declare import Shape, estimator, learnt, parameter
from aberra.errors import DataError, RoundsExhaustedWarning
from aberra.progress import advance
from aberra.rng import entropy_of
from aberra.robust.ensemble import RESAMPLE, RESAMPLE_DOC, Ensemble
from aberra.robust.history import History, Round
from aberra.robust.resampling import Resample
from aberra.robust.rounds import Setup, Turn, train_round
from aberra.robust.start import ADVISED, STARTS, course_of
from aberra.scikit import Interval, StrOptions

logger = logging.getLogger(__name__)

# Settings that a warm start may change: they decide when to stop and what follows, not what is
# learnt in a round.
FREE = {"max_rounds", "patience", "engine", "warm_start", "random_state", "threshold", "fdr"}


@estimator
class IADC(Ensemble):
    """Learns from contaminated data: rows that look odd count less and less in the training.

    Several copies of a detector, the members, train in rounds. In each round they start from
    scratch on resampled rows, and the score of a row is the mean over the members. The trust in a
    row falls with its score (`aberra.robust.weighting.importance_weights`), and in the next round
    every row counts by the trust in it. The rounds end when the ranking of the rows has settled:
    when hardly any row still crosses from the lower to the upper part of it.
    `aberra.explain.glossary` explains these terms.

    See Also
    --------
    ADC : One round only, which trusts all rows the same.

    References
    ----------
    The weights and the crossings are those of Kim, Yu, Kim, Oh and Choi, "An Iterative Method for
    Unsupervised Robust Anomaly Detection Under Data Contamination", IEEE TNNLS 35(10), 2024, arXiv
    2309.09436.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import IADC, OCSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> X[:20] += 6
    >>> model = IADC(OCSVM(), random_state=0).fit(X)
    >>> bool(model.weights_[:20].max() < model.weights_[20:].min())
    True
    """

    outlier_ratio: float = parameter(
        Interval(Real, 0, 1, closed="neither"),
        default=0.5,
        kw_only=False,
        doc="""Which part of the ranking has to come to rest before training stops: the rows with
        the highest scores, as a share of all rows. It decides when to stop, and nothing else.""",
    )
    max_rounds: int = parameter(
        Interval(Integral, 1, None, closed="left"),
        default=30,
        kw_only=False,
        doc="Training stops after this many rounds, even if the ranking has not settled.",
    )
    resample: Resample = parameter(
        *RESAMPLE,
        default="auto",
        kw_only=False,
        doc=f"{RESAMPLE_DOC} They draw anew in every round.",
    )
    temperature: float = parameter(
        Interval(Real, 0, None, closed="neither"),
        default=0.5,
        kw_only=False,
        doc="""How gently the trust falls with the score. A small value trusts the rows below the
        median score fully and those above it not at all.""",
    )
    trust: str = parameter(
        StrOptions({"auto", "apart", "median"}),
        default="auto",
        doc="""How the trust in a row follows from its score. "median" is the papers' rule, a
        sigmoid around the median score: half of all rows lose some trust, whatever the data.
        "apart" trusts every row but those whose score lies apart from the bulk; where there are
        none, the first round is the last. "auto" takes "apart" for `MultiView` and "median" for
        other detectors.""",
    )
    start: str = parameter(
        StrOptions({"auto", *STARTS}),
        default="auto",
        doc="""How the rounds begin and go on. "equal" is the papers': in the first round all rows
        count the same, and each round decides alone about the trust in the next. "gentle": each
        round changes the trust by a quarter of that; it helps where the ranking swings from round
        to round. "informed": members of `MultiView` score the rows first, and the second round
        counts every row by the trust that follows; if that leads the ranking away from theirs,
        doubt in rows does harm, and the first round is kept, otherwise a third round goes by the
        second's scores and is kept. "advised": their trust counts in every
        round on top of what is learnt, their scores are added to those of the round before trust is
        learnt from both, and each round changes it by half; it helps detectors whose first
        round is little better than chance. "auto" is "advised" for `AutoEncoder`, `DeepSVDD` and
        `RSRAE` on tables, "informed" for `HybridOCSVM` on tables, and "equal" for all else.""",
    )
    patience: int = parameter(
        Interval(Integral, 1, None, closed="left"),
        default=2,
        doc="""Training stops when the number of crossings has had no new minimum for this many
        rounds, provided that the minimum is below a quarter of the crossings that two unrelated
        rankings would have.""",
    )
    warm_start: bool = parameter(
        "boolean",
        default=False,
        doc="Whether `fit` goes on from the rounds of the last fit instead of starting again.",
    )

    history_: History = learnt(
        """The scores, crossings and time of every round, which round was kept, and why training
        stopped."""
    )
    weights_: Annotated[NDArray[np.float64], Shape("N")] = learnt(
        """Final trust in each training row, between 0 and 1. A file keeps that of some rows if
        there are more than 10,000."""
    )
    entropy_: int = learnt()  # names the random streams, so that a warm start goes on with them

    @all_or_nothing
    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Train the ensemble and the trust in each row together [IADC-A1].

        Parameters
        ----------
        X : array-like of shape (n, n_features) or (n, channels, height, width), or a source
            Training rows; they may be contaminated. A path, a folder, a pattern such as
            `big/*.parquet`, an Arrow or Ray dataset, or a memory map of more than a million rows is
            read block by block (`aberra.data.blocks`). Of more than 262,144 rows the rounds then
            see a sample of that many, and all rows are scored once to place the threshold.
        y : ignored
            Present for scikit-learn's conventions.
        sample_weight : array-like of shape (n,) or None, default=None
            How much you trust each row yourself. It is multiplied with the trust that is learnt.
            None trusts all rows the same. Not for a source.

        Returns
        -------
        self : IADC
            Interrupting (Ctrl-C) after the first round leaves a model fitted on the finished
            rounds; with `warm_start=True` another `fit` goes on from there.
        """
        self._validate_params()
        if is_source(X):
            return self._fit_source(X, sample_weight)
        data = self._validate(X, reset=True)
        prior = checked_weights(sample_weight, data)
        setup = self._setup(data, self.resample)
        history = self._begin(data, prior, setup)
        course = course_of(self._start_of(setup), data, history, prior, self.entropy_)
        course.judge(history)  # of a warm start
        w = course.trust(history)  # A1.1
        while history.goes_on(self.max_rounds):  # A1.2, A1.21
            turn = Turn(self.entropy_, len(history), w * course.prior)
            try:
                members, (found,) = train_round(setup, [turn])  # A1.3 to A1.19
            except KeyboardInterrupt:
                if len(history) == 0:
                    raise
                history.reason = "interrupted"
                logger.warning("interrupted: keeping the %d finished rounds", len(history))
                break
            history.append(found)
            course.judge(history)
            w = course.trust(history)  # A1.20
            if history.kept == len(history) - 1:
                self.members_ = members
            advance("rounds", len(history) / self.max_rounds, history.note())
        return self._finish(data, course.prior)

    @property
    def stops_early(self) -> bool:
        """Whether training can end after any round."""
        return True

    def training_scores(self) -> Scores | None:
        """Return the scores of the training rows in their order, as of the round that was kept.

        None if the model comes from a file that does not keep all of them.
        """
        return None if self.history_.sampled else self.history_[self.history_.kept].scores

    def training_trust(self) -> Scores | None:
        """Return the final trust in each training row; None if not all are kept."""
        return None if self.history_.sampled else self.weights_

    def training_sample(self) -> Round | None:
        """Return the round that was kept, where a file has only some of its rows."""
        return self.history_[self.history_.kept] if self.history_.sampled else None

    def as_saved(self) -> Self:
        """Return the ensemble as a file keeps it: of a long table the oddest rows and some more."""
        kept = self.history_.as_saved()
        if kept is self.history_:
            return self
        saved = copy(self)
        saved.history_, saved.weights_ = kept, kept.weights(kept.kept)
        saved._keep_positions(kept[kept.kept].sample)
        return saved

    def training_rounds(self) -> History:
        """Return what happened in each round."""
        return self.history_

    def _begin(self, data: Data, prior: Scores, setup: Setup) -> History:
        """Start a history, or go on with a copy of the last one."""
        mark = self._fingerprint(data, prior)
        last: History | None = vars(self).get("history_")
        if not (self.warm_start and last):
            self.entropy_ = entropy_of(self.random_state)
            self.history_ = self._new_history(setup, mark)
            return self.history_
        if last.sampled:
            raise DataError(
                "warm_start needs what the last fit knew about every row, but the model comes from "
                "a file that keeps only some rows of a long table. Set warm_start=False."
            )
        if last.fingerprint != mark:
            raise DataError(
                "warm_start goes on with the rows and settings of the last fit, but these differ. "
                "Pass the same, or set warm_start=False."
            )
        rounds = list(last.rounds)
        self.history_ = replace(last, patience=self.patience, reason="", rounds=rounds)
        return self.history_

    def _start_of(self, setup: Setup) -> str:
        """Return what the first round goes by: as asked for, or what suits the detector."""
        if self.start == "auto":
            return setup.trainer.own_start if self.image_shape_ is None else "equal"
        if self.start in ADVISED:
            self._check_start()
        return self.start

    def _check_start(self) -> None:
        """Refuse rows about which `MultiView` has nothing to say."""
        if self.image_shape_ is not None:
            raise DataError(f"start={self.start!r} is for tables, but these are images.")
        if self._takes_frames:
            raise DataError(
                f"start={self.start!r} needs numbers, but the pipeline prepares the columns "
                "itself. "
                'Set encode="auto" or missing="impute", or leave start="equal".'
            )

    def _new_history(self, setup: Setup, fingerprint: str = "") -> History:
        rule = setup.trainer.trust_rule if self.trust == "auto" else self.trust
        return History(self.outlier_ratio, self.patience, self.temperature, rule, fingerprint)

    def _fingerprint(self, data: Data, prior: Scores) -> str:
        """Return a digest of rows, their weights and every setting that decides what is learnt."""
        settings = {
            name: value.item() if isinstance(value, np.generic) else value  # as a file keeps it
            for name, value in self.get_params().items()
            if name not in FREE and name != "detector"
        }
        digest = sha256(repr((type(self.detector), sorted(settings.items()), data.shape)).encode())
        digest.update(_content(data))
        digest.update(prior.data)
        return digest.hexdigest()

    def _finish(self, data: Data, prior: Scores) -> Self:
        """Say why training stopped, and learn what follows from the round that is kept."""
        history = self.history_
        advance("rounds", 1.0)
        if not history.reason:
            history.reason = "settled" if history.settled() else "max_rounds"
            history.reason = "clean" if history.clean else history.reason
        self.weights_ = history.weights(history.kept)
        self._conclude(history[history.kept].scores, data)
        self._place_map_threshold(data, self.weights_ * prior)
        if history.reason == "max_rounds" and self.max_rounds > 1:
            warnings.warn(
                f"The ranking had not settled after max_rounds={self.max_rounds} rounds "
                f"(crossings {history.crossings()[-3:]}). Raise max_rounds, or take the scores "
                "as they are: history_ shows how they moved.",
                RoundsExhaustedWarning,
                stacklevel=4,  # this, fit, the guard around it
            )
        return self


def _content(data: Any) -> Any:
    """Return the bytes of rows, or of the hashes of a data frame's rows."""
    if isinstance(data, pd.DataFrame):
        return pd.util.hash_pandas_object(data, index=False).to_numpy().data
    return np.ascontiguousarray(data).data
