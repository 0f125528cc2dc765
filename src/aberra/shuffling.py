"""The order in which a training goes through its rows: the one loop that NumPy has no word for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aberra.compiled import compiled


@compiled
def swapped(order: NDArray[np.int64], drawn: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Swap each place in turn with a drawn one behind it, in place; the last has none."""
    n = len(order)
    for i in range(len(drawn)):
        other = i + np.int64(drawn[i]) % (n - i)
        order[i], order[other] = order[other], order[i]
    return order
