"""Numbers that every estimator and command must go on giving for fixed seeds.

A case fits one model, or runs one command, on small made-up data. `fingerprints.json` holds what
came out, and `test_fingerprints.py` compares with it. Run from the root of the project, with
`PYTHONPATH` naming the `src` of the checkout to look at::

    python tests/contract/fingerprints.py                      SHA-256 of the bytes of each case
    python tests/contract/fingerprints.py --compare OLD NEW    two checkouts, byte by byte
    python tests/contract/fingerprints.py --write              make fingerprints.json again

Words after that choose the cases whose names contain one of them. Use `--write` only for numbers
that are meant to change, and say in the commit why they do.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import fingerprint_commands
import fingerprint_estimators
from fingerprint_estimators import Case, Found

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("fingerprints.json")
CASES: dict[str, Case] = {**fingerprint_estimators.CASES, **fingerprint_commands.CASES}
PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "numba", "monai", "pyod")
MOST = 40  # numbers of an array that are kept one by one
# Results that one comparison decides: a difference in the last digit may turn them over. They are
# compared between checkouts, and with the file where everything is computed in double precision.
DECIDED = {"predicted", "contamination", "segmented", "percentile", "flag", "reasons", "rounds",
           "doubted", "doubted_trust", "doubted_score", "doubted_columns", "doubted_shares",
           "millilitres", "segmentation", "auroc"}  # fmt: skip


def kept(case: Case, found: Found) -> dict[str, list[Any]]:
    """Return what the file keeps of the results of a case."""
    exact = case.rtol <= fingerprint_estimators.DOUBLE
    return {name: sample(found[name]) for name in found if exact or name not in DECIDED}


def sample(values: Any) -> list[Any]:
    """Return what the file keeps of an array or of words: all of a small one, else an extract.

    The extract is mean, deviation and extremes, then evenly spread elements.
    """
    array = np.asarray(values)
    flat = array.ravel()
    if len(flat) <= MOST:
        return flat.tolist()
    if array.dtype.kind == "U":
        return [digest(array)]
    exact = flat.astype(np.float64)
    some = exact[np.linspace(0, len(flat) - 1, MOST).astype(int)]
    return [exact.mean(), exact.std(), exact.min(), exact.max(), *some.tolist()]


def digest(values: Any) -> str:
    """Return the SHA-256 of an array: its type, its shape and its bytes."""
    array = np.ascontiguousarray(values)
    about = f"{array.dtype.str} {array.shape} ".encode()
    return hashlib.sha256(about + array.tobytes()).hexdigest()


def digest_of(found: Found) -> str:
    """Return the SHA-256 of everything that a case gave."""
    each = "".join(f"{name} {digest(found[name])}\n" for name in sorted(found))
    return hashlib.sha256(each.encode()).hexdigest()


@cache
def versions() -> dict[str, str]:
    """Return the versions of what computes, as far as it is installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def chosen(words: list[str]) -> dict[str, Case]:
    """Return the cases that can run here and whose names contain one of the words."""
    return {
        name: case
        for name, case in CASES.items()
        if find_spec(case.needs) and (not words or any(word in name for word in words))
    }


def computed(words: list[str]) -> dict[str, Found]:
    """Run cases; one that fails gives the error, so that the others can still be compared."""
    import torch

    torch.set_num_threads(1)
    every = {}
    for name, case in chosen(words).items():
        started = time.perf_counter()
        try:
            every[name] = case.run()
        except Exception as error:
            every[name] = {"error": [f"{type(error).__name__}: {error}"]}
        say(f"{name}: {time.perf_counter() - started:.1f} s", sys.stderr)
    return every


def write(words: list[str]) -> None:
    """Make the file again, or the chosen cases of it."""
    made = computed(words)
    if failed := {name: found for name, found in made.items() if "error" in found}:
        raise SystemExit(f"Nothing was written, because of errors: {failed}")
    held = json.loads(FILE.read_text())["cases"] if words else {}
    held |= {name: kept(CASES[name], found) for name, found in made.items()}
    lines = [f" {json.dumps(name)}: {json.dumps(held[name])}" for name in CASES if name in held]
    body = ",\n".join(lines)
    FILE.write_text(f'{{"versions": {json.dumps(versions())},\n"cases": {{\n{body}\n}}}}\n')


def compare(old: Path, new: Path, words: list[str]) -> int:
    """Say which cases differ between two checkouts; return how many do."""
    before, after = (seen_by(checkout, words) for checkout in (old, new))
    n_different = 0
    for name in before:
        different = differences(before[name], after[name])
        n_different += bool(different)
        say(f"{'DIFFERS' if different else 'same   '}  {name}{''.join(different)}")
    say(f"{n_different} of {len(before)} cases differ.")
    return n_different


def seen_by(checkout: Path, words: list[str]) -> dict[str, Found]:
    """Run the cases of this file on the code of a checkout, in a process of its own."""
    source = checkout.resolve() / "src"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "found"
        command = [sys.executable, __file__, "--dump", str(file), *words]
        say(f"Running {checkout}", sys.stderr)
        subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(source)}, check=True)
        package, found = pickle.loads(file.read_bytes())  # written by ourselves just now
    if not Path(package).is_relative_to(source):
        raise SystemExit(f"aberra was imported from {package}, not from {source}.")
    return found


def differences(one: Found, other: Found) -> list[str]:
    """Return a line for each result of a case that is not the same bytes."""
    said = []
    for key in sorted(one.keys() | other.keys()):
        if key not in one or key not in other:
            said.append(f"\n           {key}: only {'before' if key in one else 'after'}")
        elif digest(one[key]) != digest(other[key]):
            said.append(
                f"\n           {key}: {how_far(np.asarray(one[key]), np.asarray(other[key]))}"
            )
    return said


def how_far(a: np.ndarray, b: np.ndarray) -> str:
    """Describe how two arrays differ."""
    if a.shape != b.shape or "U" in (a.dtype.kind, b.dtype.kind):
        return f"{a.ravel()[:3].tolist()} {a.shape} and {b.ravel()[:3].tolist()} {b.shape}"
    gap = np.abs(a.astype(float) - b.astype(float)).max() / max(np.abs(a).max(), 1e-300)
    return f"up to {gap:.1e} of the largest value ({a.dtype} and {b.dtype})"


def say(text: str, where: Any = None) -> None:
    (where or sys.stdout).write(f"{text}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="cases whose names contain one of these")
    parser.add_argument("--write", action="store_true", help="make fingerprints.json again")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"))
    parser.add_argument("--dump", type=Path, help=argparse.SUPPRESS)
    wishes = parser.parse_args()
    if wishes.compare:
        sys.exit(1 if compare(*wishes.compare, wishes.words) else 0)
    if wishes.write:
        write(wishes.words)
    elif wishes.dump:
        import aberra

        wishes.dump.write_bytes(pickle.dumps((aberra.__file__, computed(wishes.words))))
    else:
        for name, found in computed(wishes.words).items():
            say(f"{digest_of(found)}  {name}{found.get('error', '')}")


if __name__ == "__main__":
    main()
