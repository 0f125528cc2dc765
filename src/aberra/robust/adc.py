"""ADC: the ensemble on resampled data, one round, every row fully trusted."""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from aberra.contract.members import Scores
from aberra.contract.scorer import all_or_nothing, checked_weights
from aberra.data.blocks.given import is_source
from aberra.declare import estimator, learnt, parameter
from aberra.rng import entropy_of
from aberra.robust.ensemble import RESAMPLE, RESAMPLE_DOC, Ensemble
from aberra.robust.history import Round
from aberra.robust.resampling import Resample
from aberra.robust.rounds import Turn, train_round
from aberra.robust.sample import MOST_ROWS, some_rows
from aberra.robust.weighting import importance_weights


@estimator
class ADC(Ensemble):
    """Several copies of a detector, trained on resampled rows; the score is their mean.

    This is the first round of `IADC`: all rows count the same. It makes the scores steadier, but
    it does not learn which rows to trust.

    See Also
    --------
    IADC : Goes on from here in rounds, and trusts odd rows less and less.

    References
    ----------
    Kim, Yu, Kim, Oh and Choi, "An Iterative Method for Unsupervised Robust Anomaly Detection Under
    Data Contamination", IEEE TNNLS 35(10), 2024, arXiv 2309.09436, is the published relative of
    this ensemble.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import ADC, OCSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> ADC(OCSVM(), random_state=0).fit(X).anomaly_score(X).shape
    (200,)
    """

    resample: Resample = parameter(*RESAMPLE, default="auto", kw_only=False, doc=RESAMPLE_DOC)

    round_: Round = learnt("The scores of the training rows, and the time it took.")

    @all_or_nothing
    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Train the ensemble.

        Parameters
        ----------
        X : array-like of shape (n, n_features) or (n, channels, height, width), or a source
            Training rows; they may be contaminated. Paths and datasets are read block by block, as
            `IADC.fit` says.
        y : ignored
            Present for scikit-learn's conventions.
        sample_weight : array-like of shape (n,) or None, default=None
            How much you trust each row yourself. Not for a source. None trusts all rows the same.

        Returns
        -------
        self : ADC
        """
        self._validate_params()
        if is_source(X):
            return self._fit_source(X, sample_weight)
        data = self._validate(X, reset=True)
        weights = checked_weights(sample_weight, data)
        turn = Turn(entropy_of(self.random_state), 0, weights)
        self.members_, (self.round_,) = train_round(self._setup(data, self.resample), [turn])
        self._conclude(self.round_.scores, data)
        # The map's threshold counts images as IADC's next round would: odd ones hardly.
        self._place_map_threshold(data, importance_weights(self.round_.scores) * weights)
        return self

    def training_scores(self) -> Scores | None:
        """Return the scores of the training rows in their order; None if not all are kept."""
        return self.round_.scores if self.round_.sample is None else None

    def training_sample(self) -> Round | None:
        """Return the round of some training rows, where a file kept no more."""
        return None if self.round_.sample is None else self.round_

    def as_saved(self) -> Self:
        """Return the ensemble as a file keeps it: of a long table the oddest rows and some more."""
        if self.round_.n_rows <= MOST_ROWS or self.round_.sample is not None:
            return self
        scores, saved = self.round_.scores, copy(self)
        saved.round_ = self.round_.of_rows(some_rows(scores), np.ones(len(scores)))
        saved._keep_positions(saved.round_.sample)
        return saved
