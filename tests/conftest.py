"""Settings shared by all tests."""

import os

import numpy as np
import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture
def dirty_blob():
    """200 normal rows around zero, 20 odd rows far from them; labels for evaluation."""
    generator = np.random.default_rng(7)
    X = generator.normal(size=(220, 5))
    X[:20] += 6
    return X, np.repeat([1, 0], [20, 200])


@pytest.fixture
def odds():
    """Load one of the ODDS sets, where $ABERRA_DATA points to them."""
    folder = os.environ.get("ABERRA_DATA")
    if not folder:
        pytest.skip("set ABERRA_DATA to the folder that holds odds/*.npz")

    def load(name):
        with np.load(os.path.join(folder, "odds", f"{name}.npz")) as file:
            return file["X"], file["y"]

    return load
