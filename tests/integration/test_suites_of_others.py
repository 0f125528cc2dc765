"""The tests of other libraries, run on our models: PyOD's of a detector, skops' of what it saved.

PyOD leaves its tests out of its packages. With a checkout of its repository they run from there:
ABERRA_PYOD_TESTS=pyod/pyod/test python -m pytest tests/integration/test_suites_of_others.py
"""

import importlib.util
import os
import unittest
from pathlib import Path

import numpy as np
import pytest

import aberra
from aberra.methods import methods

pyod_tests = Path(os.environ.get("ABERRA_PYOD_TESTS", ""), "test_ecod.py")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of what PyOD deprecates, and of its own defaults
@pytest.mark.skipif(not pyod_tests.is_file(), reason="PyOD's test_ecod.py is not there")
def test_pyods_tests_of_ecod_pass_with_our_model(monkeypatch):
    ecod = pytest.importorskip("pyod.models.ecod")

    def ours(contamination, n_jobs=1):
        return aberra.as_pyod(aberra.IADC(random_state=0), contamination)

    monkeypatch.setattr(ecod, "ECOD", ours)
    spec = importlib.util.spec_from_file_location("pyods_test_ecod", pyod_tests)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromModule(module).run(found)
    assert found.testsRun >= 32
    assert found.failures == found.errors == []


@pytest.mark.parametrize("name", [method.name for method in methods()])
def test_skops_keeps_every_estimator(name):
    compared = pytest.importorskip("skops.io.tests._utils")
    model = getattr(aberra, name)()
    again = through_skops(model)
    compared.assert_params_equal(model.get_params(), again.get_params())


@pytest.mark.parametrize("name", ["MultiView", "OCSVM"])
def test_skops_keeps_what_was_learnt(name):
    compared = pytest.importorskip("skops.io.tests._utils")
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = getattr(aberra, name)(random_state=0).fit(X)
    again = through_skops(model)
    compared.assert_params_equal(vars(model), vars(again))
    compared.assert_method_outputs_equal(model, again, X)


def through_skops(model):
    from skops.io import dumps, get_untrusted_types, loads

    written = dumps(model)
    return loads(written, trusted=get_untrusted_types(data=written))
