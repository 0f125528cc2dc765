"""The wheel, installed alone and with each extra, and what each installation can do and weighs.

    python -m benchmarks.wheel [--extras report view ...] [--torch torch==2.13.0+cpu]

The wheel is built from this checkout and installed into a new environment with nothing else. Every
extra gets a copy of that environment, so that only the extra itself is installed again. In each of
them the shell is used as a person would: fit, score and info everywhere, and what the extra is for.
Sizes are those of the installed files, without Python's byte code, pip and setuptools. Times are
processor seconds, because these hardly depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import HTTPCookieProcessor

import numpy as np
import pandas as pd

from benchmarks.records import data_folder, environment

ROOT = Path(__file__).parents[1]
SHELL = "import sys; from aberra.cli import main; sys.argv[0] = 'aberra'; main()"
TOOLS = ("pip", "setuptools", "_distutils_hack", "pkg_resources")
LARGEST = 8
CLEAN = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@dataclass
class Place:
    """An environment, and a folder with a table in it."""

    home: Path
    folder: Path

    @property
    def python(self) -> Path:
        """Its Python."""
        return self.home / "bin" / "python"

    def pip(self, *words: str | Path) -> None:
        """Install something."""
        quiet = ["install", "--quiet", "--disable-pip-version-check", "--no-input"]
        run([self.python, "-m", "pip", *quiet, *words], self.folder)

    def aberra(self, *words: str) -> str:
        """Use the shell, and return what it says."""
        return run([self.python, "-c", SHELL, *words], self.folder)

    def does(self, code: str) -> str:
        """Run some Python, and return what it prints."""
        return run([self.python, "-c", code], self.folder)


def run(command: list[Any], folder: Path) -> str:
    """Run a command that has to succeed, and return what it says."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=CLEAN,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{command[-4:]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def everywhere(place: Place) -> None:
    """Do what needs no extra."""
    place.aberra("fit", "patients.csv", "-o", "model.aberra")
    place.aberra("score", "model.aberra", "patients.csv", "-o", "scores.csv")
    scores = pd.read_csv(place.folder / "scores.csv").set_index("id")["score"]
    assert set(scores.nlargest(3).index) == {"P000", "P001", "P002"}
    place.aberra("info", "model.aberra")
    given = ["--data-dir", str(data_folder())] if "ABERRA_DATA" in os.environ else ["--draw"]
    place.aberra("reproduce", "odds-iadc", "--profile", "smoke", "--out", "results", *given)


def report(place: Place) -> None:
    """Write a report, and run the demonstration."""
    place.aberra("report", "model.aberra", "patients.csv", "-o", "report.html")
    assert "P000" in (place.folder / "report.html").read_text("utf-8")
    place.aberra("demo", "--out", "demo")


def answers(place: Place, command: list[str], path: str) -> None:
    """Start a server, and ask it for a page."""
    given = [str(place.python), "-c", SHELL, "--json", *command]
    with subprocess.Popen(given, stdout=subprocess.PIPE, cwd=place.folder, env=CLEAN) as process:
        assert process.stdout is not None
        try:
            base, _, query = json.loads(process.stdout.readline())["url"].partition("?")
            asked_for(base.rstrip("/") + path + (f"?{query}" if query else ""))
        finally:
            process.terminate()


def asked_for(url: str) -> None:
    """Ask for a page until the server listens, for at most a minute."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}), HTTPCookieProcessor())
    for _ in range(60):
        try:
            with direct.open(url) as answer:
                assert answer.status == 200
            return
        except urllib.error.URLError as error:
            if isinstance(error, urllib.error.HTTPError):
                raise
            time.sleep(1)
    raise SystemExit(f"Nobody answers at {url}.")


def view(place: Place) -> None:
    """Open the viewer."""
    answers(place, ["view", "scores.csv", "--no-browser"], "/")


def serve(place: Place) -> None:
    """Start the service."""
    answers(place, ["serve", "model.aberra", "--port", "0"], "/health")


def files(place: Place) -> None:
    """Fit an Excel file, and score what a query finds."""
    place.does("import pandas; pandas.read_csv('patients.csv').to_excel('p.xlsx', index=False)")
    place.aberra("fit", "p.xlsx", "-o", "excel.aberra")
    query = "select * from 'patients.csv'"
    place.does(f"import duckdb; assert len(duckdb.sql({query!r}).df()) == 120")


def pyod(place: Place) -> None:
    """Wear PyOD's clothes."""
    place.does("import aberra, numpy; aberra.as_pyod().fit(numpy.random.rand(50, 3)).labels_")


def onnx(place: Place) -> None:
    """Write an ONNX graph."""
    place.aberra("export", "model.aberra", "-o", "model.onnx")


def images(place: Place) -> None:
    """Train a localiser on a few small pictures."""
    place.does(
        "import numpy, aberra; X = numpy.random.rand(8, 1, 8, 8).astype('float32');"
        "print(aberra.SpatialAE(random_state=0).fit(X).anomaly_map(X).shape)"
    )


def mri(place: Place) -> None:
    """Read a scan that nibabel wrote."""
    place.does(
        "import nibabel, numpy; rows = numpy.arange(64.0).reshape(4, 4, 4);"
        "nibabel.save(nibabel.Nifti1Image(rows, numpy.eye(4)), 's.nii.gz');"
        "from aberra.data.mri.nifti import read_nifti; read_nifti('s.nii.gz')"
    )


USES: dict[str, Callable[[Place], None]] = {
    "report": report,
    "view": view,
    "serve": serve,
    "files": files,
    "pyod": pyod,
    "onnx": onnx,
    "images": images,
    "mri": mri,
}


def built(folder: Path) -> Path:
    """Return a wheel of this checkout."""
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    code = "import setuptools.build_meta as b; b.build_wheel('..')"
    run([sys.executable, "-c", code], copy)
    return next(folder.glob("*.whl"))


def core(folder: Path, wheel: Path) -> Place:
    """Return a new environment with the wheel alone, and a table with three odd rows."""
    place = Place(folder / "core", folder / "place")
    place.folder.mkdir(exist_ok=True)
    held = pd.DataFrame(np.random.default_rng(0).normal(size=(120, 3)), columns=list("abc"))
    held.loc[:2, "c"] += 12
    held.insert(0, "patient", [f"P{k:03d}" for k in range(len(held))])
    held.to_csv(place.folder / "patients.csv", index=False)
    held[:10].to_csv(place.folder / "ten.csv", index=False)
    if not place.python.exists():
        venv.create(place.home, with_pip=True, symlinks=True)
        place.pip(wheel)
    place.pip("--force-reinstall", "--no-deps", wheel)
    return place


def with_extra(place: Place, wheel: Path, extra: str, first: str) -> Place:
    """Return a copy of the environment with an extra besides; torch comes first if it is needed."""
    made = Place(place.home.with_name(extra), place.folder)
    shutil.copytree(place.home, made.home, symlinks=True, copy_function=os.link)
    wanted = [first] if first and extra in ("images", "mri") else []
    made.pip(*wanted, f"aberra[{extra}] @ {wheel.as_uri()}")
    return made


def weight(place: Place) -> dict[str, float]:
    """Return the megabytes of each installed package, the heaviest first."""
    held = next(place.home.glob("lib/*/site-packages"))
    found: dict[str, float] = {}
    for path in held.rglob("*"):
        first = path.relative_to(held).parts[0]
        name = re.split(r"[.-]", first)[0]
        if path.is_file() and path.suffix != ".pyc" and name not in TOOLS:
            found[name] = found.get(name, 0.0) + path.stat().st_size / 1e6
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def seconds(action: Callable[[], object]) -> float:
    """Return the processor seconds of the second run; the first one fills caches."""
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        action()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def page(sizes: dict[str, dict[str, float]], took: dict[str, float]) -> str:
    """Return the figures as Markdown."""
    alone = sizes["(none)"]
    lines = ["# The wheel", "", (__doc__ or "").split("\n\n", 2)[2].strip(), ""]
    lines += ["| extra | installed, MB | more than the core, MB |", "|---|---|---|"]
    base = sum(alone.values())
    for extra, held in sizes.items():
        lines.append(f"| {extra} | {sum(held.values()):.0f} | {sum(held.values()) - base:.0f} |")
    parts = [f"{name} {size:.0f}" for name, size in list(alone.items())[:LARGEST]]
    rest = base - sum(list(alone.values())[:LARGEST])
    lines += ["", f"The core in MB: {', '.join(parts)}, all others {rest:.0f}.", ""]
    lines += [f"- `{name}`: {value:.2f} s" for name, value in took.items()]
    return "\n".join([*lines, "", f"Made with {environment()}.", ""])


def main() -> None:
    """Build, install, use and weigh."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--extras", nargs="*", default=list(USES), choices=list(USES))
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "wheel.md")
    parser.add_argument("--torch", default="", help="which torch, such as torch==2.13.0+cpu")
    parser.add_argument("--keep", type=Path, help="folder of the environments, to be used again")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = (asked.keep or Path(folder)).resolve()
        home.mkdir(parents=True, exist_ok=True)
        wheel = built(home)
        alone = core(home, wheel)
        sizes = {"(none)": weight(alone)}
        everywhere(alone)
        ten = ["score", "model.aberra", "ten.csv", "-o", "ten-scores.csv"]
        took = {
            "aberra --help": seconds(lambda: alone.aberra("--help")),
            "aberra score, ten rows": seconds(lambda: alone.aberra(*ten)),
        }
        asked.out.write_text(page(sizes, took))
        for extra in asked.extras:
            place = with_extra(alone, wheel, extra, asked.torch)
            sizes[extra] = weight(place)
            USES[extra](place)
            print(extra, "works", flush=True)
            shutil.rmtree(place.home)
            asked.out.write_text(page(sizes, took))
    print(asked.out.read_text())


if __name__ == "__main__":
    main()
