"""Settings shared by all tests.

Properties are tried on the same examples on every run; `HYPOTHESIS_PROFILE=explore pytest` tries
new ones each time.
"""

import os

import numpy as np
import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("same", derandomize=True)
settings.register_profile("explore", derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture(scope="module", autouse=True)
def fixtures_draw_the_same():
    """Seed what `random_state=None` draws from, before a module's fixtures are made."""
    np.random.seed(0)


@pytest.fixture(autouse=True)
def tests_draw_the_same():
    """Seed it for every test, so that a failure does not depend on which tests came before."""
    np.random.seed(0)


@pytest.fixture
def dirty_blob():
    """200 normal rows around zero, 20 odd rows far from them; labels for evaluation."""
    generator = np.random.default_rng(7)
    X = generator.normal(size=(220, 5))
    X[:20] += 6
    return X, np.repeat([1, 0], [20, 200])
