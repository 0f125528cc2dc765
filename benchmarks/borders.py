"""What Aberra does with bad input: tried, refused cleanly, failed.

    python -m benchmarks.borders run                     every campaign; about an hour
    python -m benchmarks.borders run models --share 0.1  a tenth of one
    python -m benchmarks.borders table                   writes results/borders.md

Figures go to results/borders.json. A case fails if it raises anything but one of Aberra's errors,
gives a result that is not finite, takes more than a minute or 2 GB, or leaves half a file.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.borders_harness import MEMORY, SECONDS, Campaign, run, work
from benchmarks.records import environment

STORE, PAGE = Path("results/borders.json"), Path("results/borders.md")
CAMPAIGNS = {
    "models": "benchmarks.borders_models:ForgedModels",
    "nifti": "benchmarks.borders_scans:MutatedNifti",
    "dicom": "benchmarks.borders_scans:MutatedDicom",
    "tables": "benchmarks.borders_tables:DamagedTables",
    "pictures": "benchmarks.borders_tables:DamagedPictures",
    "image arrays": "benchmarks.borders_tables:DamagedImageArrays",
    "viewer": "benchmarks.borders_viewer:StrangeRequests",
    "kills": "benchmarks.borders_kills:Kills",
}
ABOUT = {
    "models": "model files with forged contents and a checksum that fits",
    "nifti": "NIfTI headers changed field by field",
    "dicom": "DICOM series with a changed file",
    "tables": "damaged CSV, Parquet and NumPy tables",
    "pictures": "folders of pictures with a damaged one",
    "image arrays": "damaged arrays of images",
    "viewer": "requests that no page of the viewer sends",
    "kills": "`kill -9` in fit, score, report, marks, reproduce and data get, then run again",
}


BEFORE = [
    "At commit 31a39a0, before the borders were mended, 180 of the first 3,580 forged model files",
    "failed; of the first 400 it was 15: 12 scores that were not finite, 2 foreign errors while",
    "explaining, 1 case of too much memory. Memory was then counted from the start of the process,",
    "so up to 13 of the 180 may be due to earlier cases. The other campaigns have no count before.",
    "",
    "The rows above are parts of the campaigns, on a busy machine: `run` without `--share` tries",
    "10,000 model files, 5,000 of each kind of scan and 600 kills.",
]


def campaign(name: str) -> Campaign:
    """Return a campaign by its name."""
    module, _, cls = CAMPAIGNS[name].partition(":")
    made: Callable[[], Campaign] = getattr(import_module(module), cls)
    return made()


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("names", nargs="*", default=list(CAMPAIGNS))
    running.add_argument("--share", type=float, default=1.0)
    running.add_argument("--dry", action="store_true", help="print the figures, keep none")
    working = commands.add_parser("work")
    working.add_argument("name")
    working.add_argument("sound", type=Path)
    working.add_argument("start", type=int)
    working.add_argument("stop", type=int)
    commands.add_parser("table")
    asked = parser.parse_args()
    if asked.command == "work":
        work(campaign(asked.name), asked.sound, asked.start, asked.stop)
    elif asked.command == "run":
        for name in asked.names:
            keep(name, asked.share, asked.dry)
    else:
        PAGE.write_text(page(json.loads(STORE.read_text())))


def keep(name: str, share: float, dry: bool) -> None:
    """Run one campaign and note what came of it."""
    started = time.time()
    n = max(1, round(share * campaign(name).n))
    with tempfile.TemporaryDirectory() as sound:
        record = run(name, n, Path(sound)).record()
    record["seconds"] = round(time.time() - started)
    print(json.dumps({name: record}, indent=1))
    if not dry:
        held = json.loads(STORE.read_text()) if STORE.exists() else {}
        held[name] = record
        held["environment"] = environment()
        STORE.write_text(json.dumps(held, indent=1) + "\n")


def page(held: dict[str, Any]) -> str:
    """Return the table of all campaigns."""
    lines = [
        "# Borders: what bad input does",
        "",
        f"`python -m benchmarks.borders run`; the limits are {SECONDS:g} s and "
        f"{MEMORY >> 30} GB for each case.",
        "",
        "| campaign | tried | used | refused cleanly | failed | slowest case |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, r in held.items():
        if name != "environment":
            figures = f"{r['tried']:,} | {r['fine']:,} | {r['refused']:,} | {r['failed']:,}"
            lines.append(f"| {ABOUT[name]} | {figures} | {r['slowest']:.1f} s |")
    return "\n".join([*lines, "", *BEFORE]) + "\n"


if __name__ == "__main__":
    main()
