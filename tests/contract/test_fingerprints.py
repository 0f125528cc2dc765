"""Scores of every estimator and command are what they were: see `fingerprints.py`.

The committed numbers were made with the versions of constraints.txt. After a change that is meant
to change them: `python tests/contract/fingerprints.py --write`, and look at the difference.
"""

import json

import numpy as np
import pytest

import engines
from fingerprints import CASES, FILE, kept, versions

HELD = json.loads(FILE.read_text())
ENGINES = json.loads(engines.FILE.read_text())
ENGINES_HELP = "raise its version in aberra/reproduce/engines.py, then tests/contract/engines.py"
BYTES = {
    case: digest
    for held in ENGINES.values()
    if held["machine"] == engines.machine()
    for case, digest in held["bytes"].items()
}


def marks(name):
    return [pytest.mark.slow] if CASES[name].slow else []


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in CASES])
def test_same_numbers(name):
    case, expected = CASES[name], HELD["cases"][name]
    pytest.importorskip(case.needs)
    given = case.run()
    found = kept(case, given)
    assert found.keys() == expected.keys()
    for key, values in found.items():
        assert len(values) == len(expected[key]), key
        if any(isinstance(value, str) for value in values):
            assert values == expected[key], key
            continue
        # A value near zero is measured by the largest of its kind, a threshold by the scores.
        like = "scores" if key == "threshold" and "scores" in expected else key
        scale = max((abs(value) for value in expected[like]), default=0.0)
        np.testing.assert_allclose(
            values, expected[key], case.rtol, case.rtol * scale,
            err_msg=f"{key}: made with {HELD['versions']}, now {versions()}",
        )  # fmt: skip
    if name in BYTES:
        assert engines.bytes_of(given) == BYTES[name], f"other bytes than before: {ENGINES_HELP}"


def test_every_public_estimator_has_a_fingerprint():
    import aberra

    for name in set(aberra.__all__) - set(aberra.FUNCTIONS):
        assert any(name in case for case in HELD["cases"]), name
    assert HELD["cases"].keys() == CASES.keys()


def test_scores_change_only_with_the_version_of_their_engine():
    assert ENGINES.keys() == engines.guards().keys()
    for engine, held in ENGINES.items():
        assert held["version"] == engines.version_of(engine), f"{engine}: {ENGINES_HELP}"
        now = {case: engines.numbers(case) for case in engines.guards()[engine]}
        assert held["numbers"] == now, f"{engine} gives other numbers: {ENGINES_HELP}"
