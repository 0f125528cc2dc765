"""What the package imports is declared in pyproject.toml, under the extra that errors name."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "src" / "aberra").rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def names(requirements):
    """Return the distributions of requirements such as "numpy>=2.0", spelt in one way."""
    found = (re.match(r"[\w.-]+", line) for line in requirements)
    return {re.sub(r"[-_.]+", "-", match[0]).lower() for match in found if match}


CORE = names(PROJECT["dependencies"])
EXTRAS = {extra: names(held) for extra, held in PROJECT["optional-dependencies"].items()}
EXTRAS["mri"] = (EXTRAS["mri"] - {"aberra"}) | EXTRAS["images"]  # who reads scans reads pictures
EXTRAS["dicom"] = (EXTRAS["dicom"] - {"aberra"}) | EXTRAS["mri"]
EXTRAS["dev"] -= {"aberra"}  # with its own extra, docs
USED = ("dicom", "report", "view", "serve", "pyod", "onnx", "ray")
FOR_USERS = CORE.union(*(EXTRAS[extra] for extra in USED))


def nodes():
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            yield path, node


def imported():
    """Yield every import of somebody else's module: the file and the module's first name."""
    for path, node in nodes():
        if isinstance(node, ast.Import):
            every = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            every = [node.module]
        else:
            continue
        for name in {module.split(".")[0] for module in every}:
            if name != "aberra" and name not in sys.stdlib_module_names:
                yield path.relative_to(ROOT).as_posix(), name


def asked_for():
    """Yield what `need` is called with: a module and the extra that its error names."""
    for _, node in nodes():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            words = [part.value for part in node.args if isinstance(part, ast.Constant)]
            named = all(isinstance(part, ast.Constant) for part in node.args[:2])
            if node.func.id == "need" and named:
                yield words[0].split(".")[0], words[1]


@pytest.fixture(scope="module")
def distributions():
    return {module: names(found) for module, found in packages_distributions().items()}


@pytest.mark.slow
def test_every_import_is_declared(distributions):
    found = set(imported())
    assert len(found) > 100
    missing = {
        (path, name) for path, name in found if not distributions.get(name, {name}) & FOR_USERS
    }
    assert missing == set()


@pytest.mark.slow
def test_an_extra_that_an_error_names_has_the_library(distributions):
    found = set(asked_for())
    assert ("PIL", "images") in found
    assert ("torch", "images") in found
    missing = {
        (name, extra)
        for name, extra in found
        if not distributions.get(name, {name}) & EXTRAS[extra]
    }
    assert missing == set()


def test_everything_declared_is_pinned_for_the_projects_own_set_up():
    pinned = names((ROOT / "constraints.txt").read_text().splitlines())
    assert CORE.union(*EXTRAS.values()) - pinned == set()
