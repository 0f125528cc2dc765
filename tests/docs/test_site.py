"""The site builds without a warning, and every link within it leads somewhere.

The gallery's examples are shown but not run here: test_gallery.py runs them, and `make docs` does
both. Nothing is built again as long as no file that the site is made of has changed since it last
passed.
"""

import hashlib
import importlib.util
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MADE = ("_build", "api", "gallery", "project", "results")  # by the build, in docs/
PASSED = ROOT / "docs" / "_build" / "passed"


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("build", ROOT / "docs" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ingredients():
    """Return every file that the site is made of."""
    kept = [*ROOT.glob("*.md"), *(ROOT / "results").glob("*.md")]
    for folder in ("docs", "examples", "src"):
        kept += [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    made = [ROOT / "docs" / name for name in MADE]
    return sorted(
        path
        for path in kept
        if "__pycache__" not in path.parts and not any(map(path.is_relative_to, made))
    )


def digest():
    found = hashlib.sha256()
    for path in ingredients():
        found.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


@pytest.mark.slow
def test_site_builds_without_a_warning(build, tmp_path):
    for name in ("sphinx", "numpydoc", "myst_parser", "sphinx_gallery", "pydata_sphinx_theme"):
        pytest.importorskip(name)
    pytest.importorskip("monai")  # its pages tell what localisers do
    now = digest()
    if PASSED.exists() and PASSED.read_text() == now:
        return
    for name in ("docs", "examples", "results"):
        ignored = shutil.ignore_patterns(*MADE, "*.jsonl", "cells", "default_study", "__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    for path in ROOT.glob("*.md"):
        shutil.copy(path, tmp_path)
    icon = "src/aberra/viewer/static/icon.svg"
    (tmp_path / icon).parent.mkdir(parents=True)
    shutil.copy(ROOT / icon, tmp_path / icon)
    build.sphinx(tmp_path / "docs", tmp_path / "html", gallery=False)
    assert list(build.broken_links(tmp_path / "html")) == []
    assert (tmp_path / "html" / "api" / "IADC.html").exists()
    PASSED.parent.mkdir(parents=True, exist_ok=True)
    PASSED.write_text(now)


def test_a_link_that_leads_nowhere_is_found(build, tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#here">b</a> <a href="gone.html">c</a>')
    (tmp_path / "b.html").write_text('<p id="there"></p><a href="a.html">a</a> <a href="#there">')
    assert sorted(build.broken_links(tmp_path)) == ["a.html: b.html#here", "a.html: gone.html"]
