"""The hints how to install what is missing: every one of them would bring what it promises."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
PACKAGES = {"PIL": "Pillow", "jinja2": "Jinja2", "sqlalchemy": "SQLAlchemy"}  # where names differ


def calls():
    """Yield where `need` is called, the module it wants, and the extra it names."""
    texts = {path: path.read_text("utf-8") for path in sorted((ROOT / "src").rglob("*.py"))}
    for path, text in texts.items():
        for node in ast.walk(ast.parse(text)) if "need(" in text else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "need":
                given = [one.value if isinstance(one, ast.Constant) else None for one in node.args]
                yield f"{path.stem}:{node.lineno}", given[0], given[1]


def brings(extra):
    """Return the packages of an extra, with those of the extras that it takes in."""
    found = set()
    for line in EXTRAS[extra]:
        inner = re.fullmatch(r"aberra\[(\w+)\]", line)
        found |= brings(inner[1]) if inner else {re.split(r"[<>=]", line)[0]}
    return found


@pytest.mark.parametrize(("place", "module", "extra"), list(calls()))
def test_a_hint_names_an_extra_that_brings_the_library(place, module, extra):
    if module is not None:  # a name that is looped over stands beside its extra
        package = module.partition(".")[0]
        assert PACKAGES.get(package, package) in brings(extra), place
    assert extra in EXTRAS, place


def test_pages_name_extras_that_exist():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    pages = [page for page in pages if "_build" not in page.parts]
    named = {
        extra.strip()
        for page in pages
        for group in re.findall(r"aberra\[([a-z, ]+)\]", page.read_text("utf-8"))
        for extra in group.split(",")
    }
    assert named
    assert named <= set(EXTRAS)
