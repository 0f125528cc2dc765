"""The shape of the package: imports point one way, equations have one home, imports stay light."""

import ast
import importlib.util
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "aberra"
MODULES = sorted(PACKAGE.rglob("*.py"))

# A module imports only from lower layers, or from its own folder.
LAYERS = {
    "errors": -2,  # names only
    "terminal": -2,
    "scikit": -2,  # what is private in scikit-learn
    "extras": -1,
    "progress": -1,
    "impatient": -1,
    "locks": -1,
    "compiled": -0.75,
    "shuffling": -0.5,
    "declare": 0,
    "words": 0,
    "rng": 0,
    "twister": 0,
    "files": 0,
    "metrics": 1,
    "thresholds": 1,
    "ordinary": 0,
    "watching": 0.25,
    "ray_cluster": 0.25,
    "ray_engine": 0.5,
    "engine": 1,
    "data": 1,
    "nets": 1,
    "contract": 2,
    "loop": 2,
    "detectors": 3,
    "diffusion": 3,
    "robust": 4,
    "localise": 4,
    "adapters": 5,
    "methods": 5,
    "explain": 6,
    "model_file": 6.5,  # its card says what a model is, in the words of explain
    "pretrained": 7,
    "plots": 7,
    "recipe": 7,
    "export": 7,
    "scoring": 7,
    "report": 8,
    "service": 8,
    "viewer": 8,
    "reproduce": 8,
    "workflow": 9,  # everything that people do with files, reports and the viewer included
    "demo": 10,
    "cli": 11,
    "__main__": 12,
}


@cache
def nodes_of(path):
    return tuple(ast.walk(ast.parse(path.read_text())))


def imports_of(path):
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("aberra"):
            names = [node.module] if node.module != "aberra" else []
            if node.module == "aberra":
                names = [f"aberra.{alias.name}" for alias in node.names]
            yield from names


@pytest.mark.slow
def test_imports_point_to_lower_layers():
    assert len(MODULES) > 200
    for path in MODULES:
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts == ("__init__",):
            continue  # the public names, resolved when used
        here = LAYERS[parts[0]]
        for name in imports_of(path):
            there = name.split(".")[1]
            if there in LAYERS and there != parts[0]:
                assert LAYERS[there] < here, f"{path} imports {name}"


@pytest.mark.parametrize(
    "name",
    ["demo", "evaluate", "export", "feedback", "fit", "info", "report", "score", "serve", "view"],
)
def test_commands_only_parse_call_and_print(name):
    """What a command does with files is a function of the workflow, so that Python has it too."""
    allowed = ("__version__", "cli", "demo", "extras", "methods", "scoring", "words", "workflow")
    for module in imports_of(PACKAGE / "cli" / f"{name}.py"):
        assert module.split(".")[1] in allowed, module


LONGEST = 400


def test_modules_can_be_read_in_one_sitting():
    lengths = {path: len(path.read_text().splitlines()) for path in MODULES}
    assert {path: n for path, n in lengths.items() if n > LONGEST} == {}


@pytest.mark.slow
def test_private_parts_of_scikit_learn_are_used_in_one_place():
    found = set()
    for path in MODULES:
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn"):
                words = [*node.module.split("."), *(alias.name for alias in node.names)]
                if any(word.startswith("_") for word in words):
                    found.add(path.name)
    assert found == {"scikit.py"}


def test_import_of_the_package_loads_nothing_heavy():
    code = (
        "import sys, aberra; "
        "print([m for m in ('torch', 'numba', 'sklearn', 'scipy', 'pandas', 'matplotlib', 'numpy') "
        "if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_every_public_name_resolves_and_is_documented():
    import aberra

    for name in aberra.__all__:
        assert "Examples" in (getattr(aberra, name).__doc__ or ""), name
    assert set(aberra.__all__) <= set(dir(aberra))
    with pytest.raises(AttributeError, match="nonsense"):
        _ = aberra.nonsense


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_stub_of_the_package_is_up_to_date():
    names = script("names")
    assert names.STUB.read_text() == names.stub(), "run python docs/names.py"


def test_figures_on_pages_are_those_of_the_tables():
    figures = script("figures")
    for path, text in figures.pages(ROOT).items():
        assert path.read_text("utf-8") == text, f"{path.name}: run python docs/figures.py"
        assert figures.MARKED.search(text), path
    cells = {("a", "ahead"): 3, ("a", "level"): 2, ("addm-mri", "behind"): 4, ("a", "not run"): 7}
    lines = [{"table": t, "verdict": v} for (t, v), n in cells.items() for _ in range(n)]
    lines.append({"table": figures.SPREADS, "verdict": "ahead"})
    words = figures.told(lines)
    assert words["a"] == "Of 5 cells 3 are ahead, 2 level and 0 behind"
    assert words["cells"] == (
        "Of the 9 cells that can be compared, spreads left out, 3 are ahead, 2 level and 4 behind; "
        "4 of the latter are of brain MRI"
    )
    page = "x <!-- figures: a -->old\nwords<!-- end --> y"
    assert figures.filled(page, words) == page.replace("old\nwords", words["a"])


@pytest.fixture(scope="module")
def equations():
    return script("equations")


@pytest.mark.slow
def test_equations_file_is_up_to_date(equations):
    expected = equations.table(PACKAGE, ROOT / "tests")
    assert (ROOT / "EQUATIONS.md").read_text() == expected, "run python docs/equations.py"


@pytest.mark.slow
def test_every_equation_has_one_home(equations):
    found = defaultdict(list)
    for tag, where in equations.homes(PACKAGE):
        found[tag].append(where)
    assert {tag: where for tag, where in found.items() if len(where) > 1} == {}
    assert found.keys() | equations.ABSENT.keys() == equations.EQUATIONS.keys()
    assert found.keys().isdisjoint(equations.ABSENT)


@pytest.mark.slow
def test_compiled_functions_need_no_place_to_be_kept():
    code = (
        "from numba.core.caching import CacheImpl; CacheImpl._locator_classes = []; "
        "from aberra.detectors.compiled_forest import path_length; print(path_length(2))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "1.0"
