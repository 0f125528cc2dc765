"""Settings shared by all tests.

Properties are tried on the same examples on every run; `HYPOTHESIS_PROFILE=explore pytest` tries
new ones each time.
"""

import functools
import gc
import os
import re

import numpy as np
import pytest


def pytest_configure(config):
    """Prepare a process that runs tests; the one that only hands them out loads nothing."""
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        return
    import torch
    import typer.testing
    from hypothesis import settings

    torch.set_num_threads(1)
    settings.register_profile("same", derandomize=True)
    settings.register_profile("explore", derandomize=False)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
    # The commands stay the same while tests run, and building them takes longer than some.
    typer.testing._get_command = functools.cache(typer.testing._get_command)


# Cases of tests whose other cases are quick, and stay among the fast ones.
SLOW_CASES = re.compile(
    r"""
    test_examples_in_docstrings\[aberra\.(data\.mri|localise|workflow)
    | test_scikit_learn_contract\[(?!OCSVM\(\)|AutoEncoder)
    | test_same_numbers\[(.*,\ colour|.*,\ harmonised|IADC\(AutoEncoder\)\ on|IADC\(IsolationForest)
    | test_same_numbers\[(DDPM|AnoDDPM|ADDM,\ other|HybridOCSVM\ on\ images)
    | test_a_localiser_answers_as_every_scorer_does\[PatchFinder
    | test_a_failure_after_the_training_does_not_cost_it\[(?!SpatialAE)
    | test_training_and_scoring_take_one_thread_and_leave_the_others\[(?!SpatialAE)
    | test_thresholds_of_other_settings_are_refused\[(?!change0)
    | test_a_dead_sensor_is_odd_although_it_is_in_the_middle\[(?!0\.05)
    | test_ensembles_of_scikit_learn_detectors\[(?!ADC.*OneClassSVM\(nu=0\.3\)\])
    | test_scikit_learn_detectors\[(?!IsolationForest|LocalOutlierFactor)
    """,
    re.VERBOSE,
)


def pytest_collection_modifyitems(items):
    """Mark the slow cases."""
    for item in items:
        if SLOW_CASES.search(item.nodeid):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish():
    """Leave what was imported out of every later search for garbage; it is most of the memory."""
    gc.collect()
    gc.freeze()


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
