"""The built wheel, not the checkout: installed into a new environment and used from a shell.

The new environment borrows the dependencies of the present one through a path file. Path files are
not followed twice, so an editable installation of Aberra in the present one is out of sight.
"""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import httpx
import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "aberra"
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
MADE_WHEN_RUN = {".pyc", ".nbi", ".nbc"}  # caches of Python and of numba
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def skip_unless_a_wheel_can_be_built():
    for name, fewest in (("pip", 23), ("setuptools", 77)):
        try:
            found = version(name)
        except PackageNotFoundError:
            pytest.skip(f"{name} is not installed, so no wheel can be built")
        if int(found.split(".")[0]) < fewest:
            pytest.skip(f"{name} {found} is too old to build the wheel, which takes {fewest}")


def pip(*words):
    quiet = ["--disable-pip-version-check", "--quiet", "--no-input"]
    command = [sys.executable, "-m", "pip", *quiet, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """Return a copy, so that nothing is left behind here, and nothing old is packed."""
    skip_unless_a_wheel_can_be_built()
    copy = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", copy / "src", ignore=ignored)
    for name in ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    return copy


@pytest.fixture(scope="module")
def wheel(checkout, tmp_path_factory):
    copy, out = checkout, tmp_path_factory.mktemp("wheel")
    pip("wheel", copy, "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", out)
    (made,) = out.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def programs(wheel, tmp_path_factory):
    """Return the folder of `python` and `aberra` in a new environment."""
    home = tmp_path_factory.mktemp("home") / "env"
    venv.create(home, symlinks=os.name != "nt")
    python = home / SCRIPTS / "python"
    pip("--python", python, "install", wheel, "--no-deps", "--no-index")
    (installed,) = home.rglob("site-packages")
    borrowed = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (installed / "borrowed.pth").write_text("\n".join(borrowed))
    return home / SCRIPTS


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """An empty folder, but for a table with three odd rows."""
    folder = tmp_path_factory.mktemp("place")
    rng = np.random.default_rng(0)
    held = pd.DataFrame(rng.normal(size=(120, 3)), columns=["height", "weight", "pulse"])
    held.loc[:2, "pulse"] += 12
    held.insert(0, "patient", [f"P{k:03d}" for k in range(len(held))])
    held.to_csv(folder / "patients.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def run(programs, place):
    """Return a function that runs a program of the new environment in that folder."""

    def run_it(name, *words):
        command = [programs / name, *words]
        done = subprocess.run(
            command, cwd=place, env=ENVIRONMENT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run_it


@pytest.fixture(scope="module")
def scored(run, place):
    run("aberra", "fit", "patients.csv", "-o", "model.aberra", "--id-column", "patient")
    run("aberra", "score", "model.aberra", "patients.csv", "-o", "scores.csv")
    return place


def files_of_the_package():
    files = [path for path in PACKAGE.rglob("*") if path.is_file()]
    wanted = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in files
        if path.suffix not in MADE_WHEN_RUN
    }
    assert len(wanted) > 100
    return wanted


def test_every_file_of_the_package_is_in_the_wheel(wheel):
    with zipfile.ZipFile(wheel) as packed:
        assert files_of_the_package() - set(packed.namelist()) == set()


def test_every_file_of_the_package_is_in_the_source_archive(checkout, tmp_path):
    code = f"import setuptools.build_meta as b; b.build_sdist({str(tmp_path)!r})"
    command = [sys.executable, "-c", code]
    subprocess.run(command, cwd=checkout, env=ENVIRONMENT, capture_output=True, check=True)
    (made,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(made) as packed:
        held = {name.split("/", 1)[-1] for name in packed.getnames()}
    assert {f"src/{name}" for name in files_of_the_package()} - held == set()


def test_the_new_environment_sees_the_wheel_alone(run, programs):
    where = run("python", "-c", "import aberra; print(aberra.__file__)").strip()
    assert Path(where).is_relative_to(programs.parent)


def test_help(run):
    assert "--out" in run("aberra", "demo", "--help")


def test_what_can_be_reproduced_is_listed(run):
    found = json.loads(run("aberra", "--json", "reproduce", "--list", "--profile", "smoke"))
    assert found["odds-iadc"]["cells"] > 0
    assert {"addm-mri", "mnist-unseen", "cifar10-unseen"} <= found.keys()


def test_the_papers_figures_came_along(run, place):
    run("aberra", "reproduce", "all", "--draw", "--profile", "smoke", "--out", "results")
    with (place / "results" / "TABLE.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    known = {line["table"] for line in lines if line["paper_mean"]}
    # What the papers print: the transductive table is ours alone.
    assert known == {line["table"] for line in lines} - {"mnist-transductive"}


def test_scores_find_the_odd_rows(scored):
    scores = pd.read_csv(scored / "scores.csv").set_index("id")["score"]
    assert len(scores) == 120
    assert set(scores.nlargest(3).index) == {"P000", "P001", "P002"}


def test_a_report_is_written_with_its_style_and_script(run, scored):
    run("aberra", "report", "model.aberra", "patients.csv", "-o", "report.html")
    page = (scored / "report.html").read_text("utf-8")
    assert all(word in page for word in ("P000", "pulse", "120 rows"))
    for name in ("page.css", "page.js"):
        text = (PACKAGE / "report" / name).read_text("utf-8")
        assert max(text.splitlines(), key=len).strip() in page, name


@contextmanager
def viewer(program, folder, target):
    """Run `aberra view`; yield the address that it prints."""
    command = [program, "--json", "view", target, "--no-browser"]
    with subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE) as process:
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()


def test_the_viewer_shows_the_scores(programs, scored):
    with viewer(programs / "aberra", scored, "scores.csv") as url:
        base = url.split("/?")[0]
        assert httpx.get(base, trust_env=False).status_code == 403
        with httpx.Client(base_url=base, trust_env=False) as client:
            page = client.get(url)
            assert page.status_code == 200
            assert "<title>Scores" in page.text
            parts = re.findall(r'static/([^"]+)"', page.text)
            assert {Path(name).suffix for name in parts} >= {".css", ".js", ".svg"}
            for name in parts:
                held = (PACKAGE / "viewer" / "static" / name).read_bytes()
                assert client.get(f"/static/{name}").content == held, name
            rows = client.get("/api/0/rows").json()
    assert "P000" in json.dumps(rows)
