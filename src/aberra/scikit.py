"""The private parts of scikit-learn that Aberra uses, gathered in one place.

scikit-learn may change these without notice, so a new release of it is checked here and nowhere
else. Every other import from scikit-learn in Aberra is public.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# Ranges of constructor parameters. `BaseEstimator._validate_params` reads them at the start of
# every fit and words the error; there is no public way to declare them.
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils._param_validation import Interval as _Interval

# Checks and completes `sample_weight`. Its public copy appeared only in recent releases.
from sklearn.utils.validation import _check_sample_weight as check_sample_weight

__all__ = ["HasMethods", "Interval", "StrOptions", "check_sample_weight"]


class Interval(_Interval):
    """A range of numbers; True and False are none, although Python counts with them."""

    def is_satisfied_by(self, val: Any) -> bool:
        """Say whether a value is a number of the range."""
        return not isinstance(val, bool | np.bool_) and bool(super().is_satisfied_by(val))
