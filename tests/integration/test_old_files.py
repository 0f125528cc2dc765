"""Model files of every release load for ever, and give the scores that they gave then."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from aberra import load
from aberra.model_file import load_card, load_versions

DATA = Path(__file__).parents[1] / "data"
FILES = sorted(DATA.glob("models-*/*.aberra"))


def rows_of(name):
    spec = importlib.util.spec_from_file_location("write_models", DATA / "write_models.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.models()[name][1]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_an_old_file_gives_the_scores_it_gave(path):
    model = load(path)
    before = json.loads((path.parent / "scores.json").read_text())[path.stem]
    scores = model.anomaly_score(rows_of(path.stem))
    # Other versions of NumPy may round differently; another way of scoring is no rounding.
    np.testing.assert_allclose(scores, before["scores"], rtol=1e-8, atol=1e-10)
    assert model.threshold_ == pytest.approx(before["threshold"], rel=1e-12)
    assert f"models-{load_versions(path)['aberra']}" == path.parent.name
    assert load_card(path)


def test_every_release_is_there():
    assert {path.parent.name for path in FILES} >= {"models-0.2.0"}
    assert {path.stem for path in FILES} >= {"iadc", "deep_svdd"}
