"""What the README and the docstrings promise."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import aberra

ROOT = Path(__file__).parents[2]


@pytest.mark.filterwarnings("ignore::aberra.errors.RoundsExhaustedWarning")
def test_quick_start_runs_and_is_short(capsys):
    (code,) = re.findall(
        r"## Quick start\n\n```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S
    )
    assert len(code.strip().splitlines()) <= 15
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["scores"].shape == (420,)
    assert "settled" in capsys.readouterr().out


@pytest.mark.slow
def test_image_example_runs():
    pytest.importorskip("monai")
    (code,) = re.findall(
        r"## Where in an image\n\n```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S
    )
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["model"].threshold_ > 0


MODULES = [m.name for m in pkgutil.walk_packages(aberra.__path__, "aberra.")]


@pytest.mark.filterwarnings("ignore::aberra.errors.RoundsExhaustedWarning")
@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
