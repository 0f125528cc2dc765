"""The tests of tables with the oldest versions that pyproject.toml allows, or with the newest.

    python -m benchmarks.oldest [--newest] [--python PATH] [--keep FOLDER] [--tests PATH ...]

A new environment gets exactly the lower bounds of the core's dependencies, together with the newest
pytest, and runs the tests named; torch is not there. It ends with the versions and the result. With
`--newest` it gets what the installer finds; with `--python` it is that Python's.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOOLS = [
    "pytest>=8",
    "pytest-xdist>=3.6",
    "hypothesis>=6.100",
    "matplotlib>=3.9",
    "Jinja2>=3.1.6",
]
# Old libraries beside new neighbours warn of what will change; what is asked is whether they work.
QUIET = ["-p", "no:cacheprovider", "-W", "ignore::DeprecationWarning", "--noconftest"]
QUIET += ["--hypothesis-profile=ci"]  # its deadlines are for machines that do nothing else
# Tables, from files to flags, with nothing but the core. The tests' common settings need torch.
UNITS = """csv_check drift evidence far_cells feedback metrics multiview ocsvm resampling scaling
    scenarios sources tables thresholds weighting"""
TESTS = [
    "tests/integration/test_old_files.py",
    "tests/integration/test_second_day.py",
    *[f"tests/unit/test_{name}.py" for name in UNITS.split()],
]


def oldest(bounds: list[str]) -> list[str]:
    """Return the lower bounds as exact versions."""
    found = []
    for bound in bounds:
        matched = re.fullmatch(r"([\w.-]+)>=([\w.]+)", bound)
        if matched is None:
            raise SystemExit(f"{bound} in pyproject.toml has no plain lower bound.")
        found.append(f"{matched[1]}=={matched[2]}")
    return found


def main() -> None:
    """Make the environment, run the tests in it, and say what it held."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, help="folder of the environment; temporary by default")
    parser.add_argument("--newest", action="store_true", help="take what the installer finds")
    parser.add_argument("--python", default=sys.executable, help="the Python to try")
    parser.add_argument("--tests", nargs="*", default=TESTS, help="what to run")
    asked = parser.parse_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bounds = project["dependencies"]
    pins = bounds if asked.newest else oldest(bounds)
    with tempfile.TemporaryDirectory() as folder:
        home = (asked.keep or Path(folder)).resolve()
        subprocess.run([asked.python, "-m", "venv", home], check=True)
        python = home / "bin" / "python"
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, *pins, *TOOLS], check=True)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        freeze = [python, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"]
        held = subprocess.run(freeze, capture_output=True, text=True, check=True).stdout.split()
        command = [python, "-m", "pytest", "-q", *QUIET, *asked.tests]
        done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    print(", ".join(held), "->", "passed" if not done.returncode else "FAILED")
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
