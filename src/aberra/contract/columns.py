"""What to do where the columns of new rows are not those of the fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from aberra.errors import DataError

OTHER = "The feature names should match"  # how scikit-learn begins
MISSING = "yet now missing"  # what no choice of columns can mend
ADVICE = "Give X[model.feature_names_in_]: the columns of the fit, in their order."


@contextmanager
def columns_as_fitted() -> Iterator[None]:
    """Add to scikit-learn's error about other columns, or another order, what to do."""
    try:
        yield
    except ValueError as error:
        said = str(error).rstrip()
        if not said.startswith(OTHER) or MISSING in said or ADVICE in said:
            raise
        raise DataError(f"{said}\n{ADVICE}") from error
