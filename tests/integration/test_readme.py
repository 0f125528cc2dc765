"""What the README and the docstrings promise."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import aberra

ROOT = Path(__file__).parents[2]


def example(heading):
    """Return the Python code below a heading of the README."""
    text = (ROOT / "README.md").read_text()
    section = re.split(r"^#+ ", text.split(f"# {heading}\n", maxsplit=1)[1], flags=re.M)[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.S)
    return code


def test_first_result_runs_and_is_short(capsys):
    code = example("A first result")
    assert len(code.strip().splitlines()) <= 15
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["scores"].shape == (420,)
    assert "settled" in capsys.readouterr().out


@pytest.mark.slow
def test_image_example_runs():
    pytest.importorskip("monai")
    names = {}
    exec(compile(example("Images"), "README.md", "exec"), names)
    assert names["flagged"].shape == (4, 8, 8)
    assert names["model"].map_threshold_ > 0


@pytest.mark.parametrize("path", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(path):
    text = (ROOT / path).read_text()
    headings = {
        re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in text.splitlines()
        if line.startswith("#")
    }
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("#"):
            assert target[1:] in headings, target
        else:
            assert (ROOT / target).exists(), target


MODULES = [m.name for m in pkgutil.walk_packages(aberra.__path__, "aberra.")]


@pytest.mark.filterwarnings("ignore::aberra.errors.RoundsExhaustedWarning")
@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner()
    for found in doctest.DocTestFinder().find(module):
        if found.examples:
            assert runner.run(found).failed == 0
