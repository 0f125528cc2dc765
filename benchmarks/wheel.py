"""The wheel, installed alone and with each extra, and what each installation can do and weighs.

    python -m benchmarks.wheel [--extras report view ...] [--torch torch==2.13.0] [--keep FOLDER]

The wheel is built from this checkout and installed into a new environment with nothing else. Every
extra gets a copy of that environment, so that only the extra itself is installed again. In each of
them the shell is used as a person would: fit, score and info everywhere, a paper's table in small
(`aberra reproduce`) with the core alone, and what the extra is for. Sizes are those of the
installed files, without byte code, pip and setuptools. Times are processor seconds, which
depend less on what else the machine does. With `--keep` a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import sys
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.records import append, environment, read
from benchmarks.wheel_uses import ROOT, USES, Place, a_paper, a_table, run

TOOLS = ("pip", "setuptools", "_distutils_hack", "pkg_resources")
MADE_WHEN_RUN = (".pyc", ".nbi", ".nbc")  # by Python and by numba
WITH_TORCH = ("images", "mri", "dicom")
LARGEST = 8
AIM = 500  # megabytes of the core
NAMED = ("llvmlite", "pyarrow", "scipy", "numpy", "pandas", "sklearn", "numba")


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
    shutil.rmtree(made.home, ignore_errors=True)
    shutil.copytree(place.home, made.home, symlinks=True, copy_function=os.link)
    wanted = [first] if first and extra in WITH_TORCH else []
    made.pip(*wanted, f"aberra[{extra}] @ {wheel.as_uri()}")
    return made


def weight(place: Place) -> dict[str, float]:
    """Return the megabytes of each installed package, the heaviest first."""
    held = next(place.home.glob("lib/*/site-packages"))
    found: dict[str, float] = {}
    for path in held.rglob("*"):
        first = path.relative_to(held).parts[0]
        name = re.split(r"[.-]", first)[0]
        if path.is_file() and path.suffix not in MADE_WHEN_RUN and name not in TOOLS:
            found[name] = found.get(name, 0.0) + path.stat().st_size / 1e6
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def seconds(action: Callable[[], object]) -> float:
    """Return the processor seconds of the second run; the first one fills caches."""
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        action()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def page(core: dict[str, Any], *lines: dict[str, Any]) -> str:
    """Return the figures as Markdown: the core's, and those of each extra."""
    held = core["sizes"]
    base = sum(held.values())
    text = ["# The wheel", "", (__doc__ or "").split("\n\n", 2)[2].strip(), ""]
    text += ["| extra | installed, MB | more than the core, MB | scores of a table |"]
    text += ["|---|---|---|---|", f"| (none) | {base:.0f} | 0 | |"]
    for line in lines:
        size = sum(line["sizes"].values())
        same = "the same bytes" if line["scores"] == core["scores"] else "other bytes"
        text.append(f"| {line['extra']} | {size:.0f} | {size - base:.0f} | {same} |")
    text += ["", *floor(held), ""]
    text += [f"- `{name}`: {value:.2f} s" for name, value in core["took"].items()]
    return "\n".join([*text, "", f"Made with {core['environment']}.", ""])


def floor(held: dict[str, float]) -> list[str]:
    """Say what the core is made of, and how light it could be at most."""
    base, needed = sum(held.values()), sum(held.get(name, 0.0) for name in NAMED)
    parts = [f"{name} {size:.0f}" for name, size in list(held.items())[:LARGEST]]
    rest = base - sum(list(held.values())[:LARGEST])
    small = [f"{name} {size:.1f}" for name, size in list(held.items())[LARGEST : 2 * LARGEST]]
    return [
        f"The core in MB: {', '.join(parts)}, all others {rest:.0f} ({', '.join(small)} and less).",
        f"The libraries that tables are computed with ({', '.join(NAMED)}) have {needed:.0f} MB. "
        f"That is the floor: all that could still be left out is {base - needed:.0f} MB. The aim "
        f"of {AIM} MB is {'reached' if base <= AIM else 'missed'}.",
    ]


def measured(place: Place) -> dict[str, Any]:
    """Use and weigh the core."""
    sizes, scores = weight(place), a_table(place)
    a_paper(place)
    ten = ["score", "model.aberra", "ten.csv", "-o", "ten-scores.csv"]
    took = {
        "aberra --help": seconds(lambda: place.aberra("--help")),
        "aberra score, ten rows": seconds(lambda: place.aberra(*ten)),
    }
    return {"sizes": sizes, "scores": scores.decode(), "took": took, "environment": environment()}


def tried(place: Place, extra: str) -> dict[str, Any]:
    """Use and weigh an environment with an extra."""
    sizes, scores = weight(place), a_table(place)
    USES[extra](place)
    return {"extra": extra, "sizes": sizes, "scores": scores.decode()}


def main() -> None:
    """Build, install, use and weigh."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--extras", nargs="*", default=list(USES), choices=list(USES))
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "wheel.md")
    parser.add_argument("--torch", default="", help="which torch, such as torch==2.13.0+cpu")
    parser.add_argument("--keep", type=Path, help="folder of the environments, to go on in")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = (asked.keep or Path(folder)).resolve()
        home.mkdir(parents=True, exist_ok=True)
        wheel = built(home)
        alone = core(home, wheel)
        # Whoever changes the library starts anew; whoever mends this script goes on.
        done = home / f"done-{run(['git', 'rev-parse', '--short', 'HEAD:src'], ROOT).strip()}.jsonl"
        if not done.exists():
            append(done, measured(alone))
        for extra in asked.extras:
            if extra in [line.get("extra") for line in read(done)]:
                continue
            place = with_extra(alone, wheel, extra, asked.torch)
            append(done, tried(place, extra))
            print(extra, "works", flush=True)
            shutil.rmtree(place.home)
            asked.out.write_text(page(*read(done)))
        asked.out.write_text(page(*read(done)))
    print(asked.out.read_text())


if __name__ == "__main__":
    main()
