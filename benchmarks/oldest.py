"""The tests of tables with the oldest versions that pyproject.toml allows, or with the newest.

    python -m benchmarks.oldest [--newest] [--python PATH] [--keep FOLDER] [--tests PATH ...]

A new environment gets exactly the lower bounds of the core's dependencies, together with the newest
pytest, and runs the tests named; torch is not there. With `--newest` it gets what the installer
finds; with `--python` it is that Python's. The result goes to versions.jsonl, and the last one of
each kind to versions.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as Xml
from pathlib import Path
from typing import Any

from benchmarks.records import append, environment, read

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


SHOWN = ("numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "numba")


def counted(report: Path) -> dict[str, int]:
    """Return how many tests passed, failed and were skipped, by pytest's own report."""
    (suite,) = Xml.parse(report).getroot().iter("testsuite")
    n_tests, skipped = int(suite.attrib["tests"]), int(suite.attrib["skipped"])
    failed = int(suite.attrib["failures"]) + int(suite.attrib["errors"])
    return {"passed": n_tests - failed - skipped, "failed": failed, "skipped": skipped}


def tested(python: Path, tests: list[str], workers: int) -> dict[str, int]:
    """Run the tests with this Python, and count how they ended."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        words = ["-q", "-n", str(workers), *QUIET, f"--junit-xml={report}"]
        place = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        subprocess.run([python, "-m", "pytest", *words, *tests], cwd=ROOT, env=place, check=False)
        return counted(report)


def said(*words: str | Path) -> str:
    """Return what a command says."""
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def page(lines: list[dict[str, Any]]) -> str:
    """Return the last result of each kind as Markdown."""
    last = {(line["kind"], line["python"].rpartition(".")[0]): line for line in lines}
    text = ["# Oldest and newest versions", "", (__doc__ or "").split("\n\n", 2)[2].strip(), ""]
    columns = ["versions", "Python", *SHOWN, "passed", "failed", "skipped", "commit"]
    text += [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for line in last.values():
        held = [line["versions"][name] for name in SHOWN]
        ends = [str(line[name]) for name in ("passed", "failed", "skipped", "commit")]
        text.append(f"| {' | '.join([line['kind'], line['python'], *held, *ends])} |")
    return "\n".join([*text, ""])


def main() -> None:
    """Make the environment, run the tests in it, and write down what it held."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, help="folder of the environment; temporary by default")
    parser.add_argument("--newest", action="store_true", help="take what the installer finds")
    parser.add_argument("--python", default=sys.executable, help="the Python to try")
    parser.add_argument("--tests", nargs="*", default=TESTS, help="what to run")
    parser.add_argument("--workers", type=int, default=2, help="how many processes run them")
    parser.add_argument("--out", type=Path, default=ROOT / "results", help="folder of the results")
    asked, commit = parser.parse_args(), environment()["commit"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bounds = project["dependencies"]
    pins = bounds if asked.newest else oldest(bounds)
    with tempfile.TemporaryDirectory() as folder:
        home = (asked.keep or Path(folder)).resolve()
        subprocess.run([asked.python, "-m", "venv", home], check=True)
        python = home / "bin" / "python"
        pip = [python, "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", *pins, *TOOLS], check=True)
        held = json.loads(said(*pip, "list", "--format=json"))
        result = {
            "kind": "newest" if asked.newest else "oldest",
            "python": said(python, "-c", "import platform; print(platform.python_version())"),
            "versions": {line["name"]: line["version"] for line in held},
            **tested(python, asked.tests, asked.workers),
            "commit": commit,
        }
    append(asked.out / "versions.jsonl", result)
    (asked.out / "versions.md").write_text(page(list(read(asked.out / "versions.jsonl"))))
    print(result)
    sys.exit(bool(result["failed"]))


if __name__ == "__main__":
    main()
