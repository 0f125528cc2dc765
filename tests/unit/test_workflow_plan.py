"""What is trained is what was asked for; everything else is the class's own default."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from aberra import IADC, IntensityThreshold, MultiView, NearestHealthy
from aberra.errors import ArgumentError
from aberra.methods import Method, named, register
from aberra.robust.ensemble import default_detector
from aberra.thresholds import RULES
from aberra.workflow import choices, fit
from aberra.workflow.choices import FLAGGING, check_blockwise
from aberra.workflow.localisers import about_map, prepared
from aberra.workflow.plan import flag_settings, pixels_for, plan_for, set_up

IMAGES = [method.shell for method in choices.detectors("images")]
TABLES = [method.shell for method in choices.detectors("table")]


class ToyDetector(MultiView):
    """A detector that nobody but this test knows."""


class ToyLocaliser(IntensityThreshold):
    """A localiser that nobody but this test knows."""


@pytest.fixture
def toys(monkeypatch):
    home = sys.modules["aberra.methods"]
    monkeypatch.setattr(home, "_METHODS", list(home._METHODS))
    register(Method("ToyDetector", __name__, "Guesses rows.", shell="toy"))
    register(Method("ToyLocaliser", __name__, "Guesses pixels.", shell="toy-map", takes="images",
                    localises=True))  # fmt: skip


@pytest.mark.parametrize("name", IMAGES)
def test_no_command_changes_a_localiser(name):
    cls = named(name).load()
    model = prepared(plan_for("images", name, None, 7, None), None, None, None)
    assert type(model) is cls
    assert model.get_params() == cls(random_state=7).get_params()
    inside = prepared(plan_for("volumes", name, "iadc", 7, None), None, None, None)
    assert inside.detector.get_params() == cls().get_params()
    assert inside.get_params(deep=False) | {"detector": None} == IADC(random_state=7).get_params()


@pytest.mark.parametrize("name", TABLES)
def test_no_command_changes_a_detector(name):
    cls = named(name).load()
    alone = plan_for("table", name, "none", 7, None).model(missing="impute", encode="auto")
    assert alone.get_params() == cls(missing="impute", encode="auto", random_state=7).get_params()
    inside = plan_for("table", name, None, 7, None).model(missing="impute", encode="auto")
    assert inside.detector.get_params() == cls().get_params()


def test_anoddpm_has_its_own_noise():
    assert (
        prepared(plan_for("images", "anoddpm", None, 0, None), None, None, None).noise == "simplex"
    )


@pytest.mark.parametrize("name", IMAGES)
def test_what_is_asked_for_is_set(name, tmp_path):
    usual = named(name).load()(random_state=0).get_params()
    plan = plan_for("images", name, None, 0, None)
    model = prepared(plan, "medium", "brighter", tmp_path / "m.aberra")
    changed = {k: v for k, v in model.get_params().items() if v != usual[k]}
    asked = {"preset": "medium", "checkpoint": str(tmp_path / "m.aberra.training")}
    asked = {k: v for k, v in asked.items() if k in usual}
    assert changed == asked | ({"side": "bright"} if "side" in usual else {"error": "brighter"})
    assert "brighter than" in about_map(model)
    assert "darker" not in about_map(model)
    assert pixels_for(model, "medium") == 128


def test_the_defaults_are_those_of_the_classes():
    assert type(default_detector()).__name__ == named(choices.DETECTOR["table"]).name
    assert type(plan_for("table", None, None, 0, None).model()).__name__ == "IADC"


@pytest.mark.parametrize("name", IMAGES)
def test_a_time_budget_needs_a_training_that_can_stop(name):
    stops = name in ("addm", "ddpm", "anoddpm", "spatial-ae", "dense-vae", "patch-finder")
    assert plan_for("images", name, "iadc", 0, 1.0).minutes == 1.0
    for robust in ("none", "adc"):
        if stops and robust == "none":
            plan_for("images", name, robust, 0, 1.0)
        else:
            with pytest.raises(ArgumentError, match="cannot stop early"):
                plan_for("images", name, robust, 0, 1.0)


def test_new_methods_can_be_asked_for(toys, tmp_path):
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc")).to_csv(tmp_path / "t.csv")
    np.save(tmp_path / "i.npy", rng.random((6, 8, 8)))
    fitted = fit(tmp_path / "t.csv", detector="toy")
    assert type(fitted.model.detector) is ToyDetector
    assert type(fit(tmp_path / "i.npy", detector="toy-map").model) is ToyLocaliser
    with pytest.raises(ArgumentError, match=r"toy-map does not take a table.*dagpr, toy\."):
        fit(tmp_path / "t.csv", detector="toy-map")


@pytest.mark.slow
def test_new_methods_are_in_the_help():
    code = (
        "from aberra.methods import Method, register\n"
        "register(Method('Toy', 'toys', 'Guesses which rows are odd.', shell='toy'))\n"
        "from typer.testing import CliRunner\n"
        "from aberra.cli import app\n"
        "print(CliRunner().invoke(app, ['fit', '--help']).stdout)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "toy: Guesses which rows are odd." in said.stdout


@pytest.mark.slow
def test_help_waits_for_nothing_heavy():
    code = (
        "import sys; from typer.testing import CliRunner; from aberra.cli import app\n"
        "for word in ('fit', 'score', 'report', 'view', 'demo'):\n"
        "    assert CliRunner().invoke(app, [word, '--help']).exit_code == 0\n"
        "print([m for m in ('torch', 'numba', 'sklearn', 'scipy', 'pandas', 'pyarrow', 'numpy') "
        "if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_a_map_that_shows_both_is_left_alone_when_both_are_looked_for():
    near = NearestHealthy()
    set_up(near, preset=None, look_for="both", checkpoint=None)
    assert near.error == "net"
    set_up(near, preset=None, look_for="darker", checkpoint=None)
    assert near.error == "darker"


def test_the_shell_names_every_threshold_rule():
    assert set(FLAGGING) == set(RULES)
    assert FLAGGING[0] == MultiView().flag_rule


@pytest.mark.parametrize(
    ("asked", "settings"),
    [
        ((None, None, None), {}),
        (("knee", None, None), {"threshold": "knee"}),
        ((None, 0.02, None), {"threshold": 0.02}),
        (("fdr", None, 0.3), {"threshold": "fdr", "fdr": 0.3}),
        ((None, None, 0.3), {"threshold": "fdr", "fdr": 0.3}),
    ],
)
def test_what_decides_the_flags(asked, settings):
    assert flag_settings(*asked) == settings


@pytest.mark.parametrize(
    "asked",
    [("knee", 0.1, None), ("knee", None, 0.1), (None, 0.1, 0.1), ("guess", None, None),
     (None, 1.5, None), (None, None, 0.0)],
)  # fmt: skip
def test_flags_that_make_no_sense(asked):
    with pytest.raises(ArgumentError):
        flag_settings(*asked)


@pytest.mark.parametrize(
    ("possible", "given", "wrong"),
    [
        (False, {"engine": "loky"}, "engine"),
        (False, {"on_error": "skip"}, "on_error"),
        (True, {"address": "auto"}, "address"),
        (True, {"engine": "loky", "address": "auto"}, "address"),
    ],
)
def test_options_of_long_tables_are_never_ignored_in_silence(possible, given, wrong):
    asked = {"on_error": None, "engine": None, "address": None}
    with pytest.raises(ArgumentError) as raised:
        check_blockwise(possible, **(asked | given))
    assert raised.value.argument == wrong
    check_blockwise(True, on_error="skip", engine="ray", address="auto")
    check_blockwise(False, **asked)
