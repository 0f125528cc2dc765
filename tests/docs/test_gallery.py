"""The gallery: every example runs and ends in a picture; three are notebooks too."""

import importlib.util
import runpy
from pathlib import Path

import pytest

import aberra

pytestmark = pytest.mark.slow
plt = pytest.importorskip("matplotlib.pyplot")

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def loaded(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


notebooks = loaded("notebooks")
SCRIPTS = sorted(path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("plot_*.py"))


def test_there_are_at_least_twelve():
    assert len(SCRIPTS) >= 12


# The three notebooks have the same code as their scripts, so they need not run twice.
@pytest.mark.parametrize("script", sorted(set(SCRIPTS) - set(notebooks.CHOSEN)))
def test_an_example_runs_and_ends_in_a_picture(script):
    if script.startswith("images/"):
        pytest.importorskip("monai")
    plt.switch_backend("agg")
    plt.close("all")
    try:
        runpy.run_path(str(EXAMPLES / script))
        assert plt.get_fignums()
    finally:
        plt.close("all")


@pytest.mark.parametrize("script", notebooks.CHOSEN)
def test_a_notebook_is_what_its_script_says(script):
    assert notebooks.place(script).read_text("utf-8") == notebooks.written(script)


@pytest.mark.parametrize("script", notebooks.CHOSEN)
@pytest.mark.filterwarnings("ignore")  # Jupyter's own
def test_a_notebook_runs_from_top_to_bottom(script, tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    if script.startswith("images/"):
        pytest.importorskip("monai")
    monkeypatch.setenv("PYTHONPATH", str(Path(aberra.__file__).parents[1]))
    found = nbformat.read(notebooks.place(script), as_version=4)
    nbformat.validate(found)
    context = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(found, timeout=300, resources=context).execute()
    shown = [out.get("data", {}) for cell in found.cells for out in cell.get("outputs", [])]
    assert any("image/png" in data for data in shown)
