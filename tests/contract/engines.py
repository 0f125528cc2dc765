"""The versions of `aberra.reproduce.engines`, and the bytes of the scores that each stands for.

Every version is guarded by some cases of `fingerprints.py`. `engines.json` holds the digests of
what these give, and `test_fingerprints.py` compares:

- on the kind of machine that wrote the file, the bytes of the scores;
- everywhere, the numbers that `fingerprints.json` holds of these cases.

If a test says that an engine gives other scores, raise its version, then run from the root::

    python tests/contract/engines.py --write

A version that was not raised keeps its digests, so the test goes on failing.
"""

from __future__ import annotations

import hashlib
import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

from aberra.reproduce.engines import ENGINES
from fingerprint_estimators import LOCALISERS, TABLES, Found
from fingerprints import CASES, digest_of, versions
from fingerprints import FILE as FINGERPRINTS

FILE = Path(__file__).with_name("engines.json")
PAPER = {"HybridOCSVM": "OCSVM-H", "AutoEncoder": "AE", "DeepSVDD": "Deep SVDD"}
LEARNT = ("scores", "first_round", "weights", "maps")  # what the tables of the papers rest on


def guards() -> dict[str, list[str]]:
    """Return the names of the cases that guard each engine."""
    found: dict[str, list[str]] = {f"{k}: {n}": [] for k, held in ENGINES.items() for n in held}
    for label, (name, *_) in TABLES.items():
        found[f"table: {PAPER.get(name, name)}"] += [label, f"IADC({label})"]
        if (images := f"{name} on images") in CASES:
            found[f"images: {PAPER.get(name, name)}"] = [images]
            digits = f"{name} on digits"
            found[f"digits: {PAPER.get(name, name)}"] = [digits if digits in CASES else images]
    found["table: MultiView"].append("MultiView, few rows")
    found["table: advised"].append("IADC(AutoEncoder), by default")
    found["table: informed"].append("IADC(HybridOCSVM), by default")
    found["images: AE"].append("IADC(AutoEncoder) on images")
    for label, (name, _) in LOCALISERS.items():
        if (engine := f"scans: {name}") in found:
            found[engine].append(label)
    return found


def bytes_of(found: Found) -> str:
    """Return the digest of the scores of a case."""
    return digest_of({name: found[name] for name in LEARNT if name in found})[:16]


@cache
def machine() -> str:
    """Return a mark of what decides the last digits: the processor, and what computes."""
    from llvmlite.binding import get_host_cpu_features, get_host_cpu_name

    about = (get_host_cpu_name(), get_host_cpu_features().flatten(), versions())
    return hashlib.sha256(repr(about).encode()).hexdigest()[:16]


def numbers(case: str) -> str:
    """Return the digest of what `fingerprints.json` holds of a case."""
    held = json.loads(FINGERPRINTS.read_text())["cases"][case]
    own = {name: held[name] for name in LEARNT if name in held}
    return hashlib.sha256(json.dumps(own).encode()).hexdigest()[:16]


def version_of(engine: str) -> int:
    """Return the version that the library states."""
    kind, name = engine.split(": ")
    return {str(k): held for k, held in ENGINES.items()}[kind][name]


def written(engine: str, cases: list[str]) -> dict[str, Any]:
    """Return what the file holds of an engine."""
    return {
        "version": version_of(engine),
        "machine": machine(),
        "bytes": {case: bytes_of(CASES[case].run()) for case in cases},
        "numbers": {case: numbers(case) for case in cases},
    }


def write() -> None:
    """Write the digests of engines that are new or whose version was raised."""
    held = json.loads(FILE.read_text()) if FILE.exists() else {}
    made = {
        engine: held[engine]
        if held.get(engine, {}).get("version") == version_of(engine)
        else written(engine, cases)
        for engine, cases in guards().items()
    }
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(made[name])}" for name in made)
    FILE.write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__" and "--write" in sys.argv:
    write()
