"""A new method is a module of its own and one entry in the register; everything else finds it.

The two modules below are all that somebody writes who adds a detector or a localiser. The test
then looks for them in the shell's help, in saved models, in the report and inside IADC.
"""

import importlib
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import aberra
from aberra.errors import ModelFileError
from aberra.report import html

DETECTOR = '''
"""How far a row is from the mean of all rows, added up over the columns."""

from dataclasses import dataclass
from numbers import Real
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from aberra.contract.members import Members
from aberra.declare import Shape, estimator, learnt, parameter
from aberra.detectors.base import Detector
from aberra.methods import Method, register
from aberra.scikit import Interval


@dataclass
class Means(Members):
    means: Annotated[NDArray[np.float64], Shape(None, "D")]
    power: float
    tile_rows = None

    @property
    def n_members(self):
        return len(self.means)

    def scores(self, tile):
        return np.stack([(np.abs(tile - mean) ** self.power).sum(axis=1) for mean in self.means])


@estimator
class ToyDistance(Detector):
    """Distance to the mean."""

    power: float = parameter(
        Interval(Real, 0, None, closed="neither"), default=1.0, doc="Exponent of each distance."
    )
    members_: Means = learnt()

    def _prepare(self, data):
        return data

    def _train(self, prepared, rows, weights, seeds):
        means = [
            np.average(prepared[drawn], axis=0, weights=w[drawn])
            for drawn, w in zip(rows, weights, strict=True)
        ]
        return Means(np.stack(means), self.power)


register(Method("ToyDistance", __name__, "Rows far from the mean are odd.", shell="toy-distance"))
'''

LOCALISER = '''
"""How far a pixel is from the mean grey of all healthy images."""

from dataclasses import dataclass

import torch
from torch import nn

from aberra.declare import estimator, learnt, parameter
from aberra.localise.base import Localiser
from aberra.localise.frame import Frame
from aberra.localise.restorers import MapStyle, Restorers
from aberra.methods import Method, register


@dataclass(frozen=True)
class GreyPlan:
    channels: int


class Grey(nn.Module):
    plan: GreyPlan

    def __init__(self, plan: GreyPlan) -> None:
        super().__init__()
        self.plan = plan
        self.register_buffer("level", torch.zeros(plan.channels, 1, 1))


@dataclass
class Greys(Restorers):
    frame: Frame
    style: MapStyle
    nets: list[Grey]

    def restore(self, x):
        return torch.stack([net.level.expand_as(x) for net in self.nets])


@estimator
class ToyGrey(Localiser):
    """Difference from the mean grey."""

    members_: Greys = learnt()

    def _size_and_multiple(self):
        return self.image_size or 4096, 1

    def _map_style(self):
        return MapStyle("absolute", self.smooth or 1)

    def _train_one(self, images, weights, seed):
        net = Grey(GreyPlan(images.shape[1]))
        every = images[torch.arange(len(images))]
        level = (every.mean(dim=(2, 3)) * weights[:, None]).sum(dim=0) / weights.sum()
        net.level.copy_(level[:, None, None])
        return net.eval()

    def _members(self, frame, nets):
        return Greys(frame, self._map_style(), nets)


register(
    Method(
        "ToyGrey",
        __name__,
        "Pixels that differ from the mean grey are odd.",
        shell="toy-grey",
        takes="images",
        localises=True,
    )
)
'''


@pytest.fixture
def toys(tmp_path, monkeypatch):
    """Write the two modules, import them, and forget them afterwards."""
    (tmp_path / "toy_distance.py").write_text(DETECTOR)
    (tmp_path / "toy_grey.py").write_text(LOCALISER)
    register = sys.modules["aberra.methods"]
    monkeypatch.setattr(register, "_METHODS", list(register._METHODS))
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("toy_distance", "toy_grey"):
        monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.import_module(name)
    yield tmp_path
    for name in ("toy_distance", "toy_grey"):
        sys.modules.pop(name, None)


def rows():
    X = np.random.default_rng(0).normal(size=(80, 3))
    X[:5] += 8
    return pd.DataFrame(X, columns=["a", "b", "c"])


def images():
    images = np.random.default_rng(0).normal(0.5, 0.05, size=(24, 1, 8, 8))
    images[0, 0, 2:4, 2:4] = 2.0
    return images


@pytest.mark.filterwarnings("ignore::aberra.errors.RoundsExhaustedWarning")
def test_a_new_detector_is_everywhere(toys):
    X = rows()
    alone = aberra.ToyDistance(random_state=0).fit(X)
    robust = aberra.IADC(aberra.ToyDistance(power=2.0), random_state=0).fit(X)
    for model in (alone, robust):
        aberra.save(model, toys / "model.aberra")
        again = aberra.load(toys / "model.aberra")
        assert (again.anomaly_score(X) == model.anomaly_score(X)).all()
        assert "Rows far from the mean are odd." in html(model, X)
    assert set(np.argsort(robust.weights_)[:5]) == set(range(5))
    assert again.detector.power == 2.0
    assert "power : float, default=1.0" in aberra.ToyDistance.__doc__


@pytest.mark.filterwarnings("ignore::aberra.errors.RoundsExhaustedWarning")
def test_a_new_localiser_is_everywhere(toys):
    sick = images()
    alone = aberra.ToyGrey(random_state=0).fit(sick[1:])
    robust = aberra.IADC(aberra.ToyGrey(), n_members=2, max_rounds=2, random_state=0).fit(sick)
    for model in (alone, robust):
        aberra.save(model, toys / "model.aberra")
        again = aberra.load(toys / "model.aberra")
        assert (again.anomaly_map(sick) == model.anomaly_map(sick)).all()
        assert (again.segment(sick) == model.segment(sick)).all()
        assert model.segment(sick)[0, 2:4, 2:4].all()
        assert "Pixels that differ from the mean grey are odd." in html(model, sick)
    assert int(robust.weights_.argmin()) == 0


@pytest.mark.slow
def test_the_shell_offers_and_trains_them(toys):
    rows().to_csv(toys / "rows.csv", index=False)
    np.save(toys / "images.npy", images())

    def aberra_shell(*words):
        code = "import toy_distance, toy_grey; from aberra.cli import main; main()"
        command = [sys.executable, "-c", code, *words]
        return subprocess.run(command, cwd=toys, capture_output=True, text=True)

    said = " ".join(aberra_shell("fit", "--help").stdout.split())
    assert "toy-distance: Rows far from the mean are odd." in said
    assert "toy-grey" in said
    for name, data in (("toy-distance", "rows.csv"), ("toy-grey", "images.npy")):
        done = aberra_shell("fit", data, "-o", f"{name}.aberra", "--detector", name)
        assert done.returncode == 0, done.stderr
        assert (toys / f"{name}.aberra").exists()


def test_what_is_not_registered_cannot_be_loaded(toys, monkeypatch):
    aberra.save(aberra.ToyDistance(random_state=0).fit(rows()), toys / "model.aberra")
    register = sys.modules["aberra.methods"]
    known = [method for method in register._METHODS if method.name != "ToyDistance"]
    monkeypatch.setattr(register, "_METHODS", known)
    with pytest.raises(ModelFileError, match="ToyDistance"):
        aberra.load(toys / "model.aberra")
