"""Small changes to the heart of the library, and whether the fast tests notice them.

    python -m benchmarks.mutants run [--each 8] [--jobs 2] [--seed 0] [--modules robust/iadc.py ...]
    python -m benchmarks.mutants table [--out results/mutants.md]

A mutant is one change to one module: a comparison, an operator, a number or a truth value is
another one, or a statement is left out. `--each` of them are drawn from every module by the seed,
and the fast tests that belong to the module run on a copy of the source with this one change. A
mutant that they do not notice has survived: either a test is missing, or the change means nothing.
Lines go to results/mutants.jsonl as they come, and what is there is not run again.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from tempfile import mkdtemp

from benchmarks.records import append, environment, read

RESULTS, LONGEST = Path("results/mutants.jsonl"), 240  # seconds
PACKAGE = Path("src/aberra")
UNIT, REFERENCE = "tests/unit", "tests/reference"
MULTIVIEW = (f"{UNIT}/test_multiview.py", f"{UNIT}/test_evidence.py", f"{UNIT}/test_far_cells.py")
NETWORKS = (REFERENCE, f"{UNIT}/test_losses.py", f"{UNIT}/test_weights_arrive.py")
DIFFUSION = (
    f"{REFERENCE}/test_diffusion_steps.py", f"{UNIT}/test_diffusion.py", f"{UNIT}/test_noise.py",
    "tests/integration/test_diffusion_training.py",
)  # fmt: skip
ROUNDS = (
    f"{REFERENCE}/test_algorithm_1.py", f"{UNIT}/test_weighting.py", f"{UNIT}/test_resampling.py",
    "tests/integration/test_ensembles.py",
)  # fmt: skip
# Modules of the heart, and the tests that are to notice.
TESTS: dict[str, tuple[str, ...]] = {
    "robust/iadc.py": ROUNDS,
    "robust/history.py": ROUNDS,
    "robust/weighting.py": ROUNDS,
    "robust/resampling.py": ROUNDS,
    "robust/rounds.py": ROUNDS,
    "ordinary.py": (f"{UNIT}/test_thresholds.py", f"{UNIT}/test_weighting.py"),
    "thresholds.py": (f"{UNIT}/test_thresholds.py",),
    "metrics.py": (f"{UNIT}/test_metrics.py", f"{UNIT}/test_segmentation_metrics.py"),
    "detectors/multiview.py": MULTIVIEW,
    "detectors/evidence.py": MULTIVIEW,
    "detectors/robust_covariance.py": MULTIVIEW,
    "detectors/landmarks.py": MULTIVIEW,
    "detectors/column_tails.py": MULTIVIEW,
    "detectors/gain_forest.py": MULTIVIEW,
    "detectors/objectives.py": NETWORKS,
    "detectors/hybrid.py": NETWORKS,
    "detectors/deep_svdd.py": NETWORKS,
    "detectors/rsrae.py": NETWORKS,
    "detectors/dagpr.py": (f"{UNIT}/test_dagpr.py", *NETWORKS),
    "detectors/ocsvm.py": (f"{UNIT}/test_ocsvm.py", f"{UNIT}/test_weights_arrive.py"),
    "diffusion/training.py": DIFFUSION,
    "diffusion/losses.py": DIFFUSION,
    "diffusion/process.py": DIFFUSION,
    "localise/walk.py": (f"{UNIT}/test_diffusion.py", f"{UNIT}/test_localise.py"),
    "data/mri/grid.py": (f"{UNIT}/test_mri_volume.py", f"{UNIT}/test_mri_nifti.py"),
}

COMPARED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
            ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is}  # fmt: skip
COMPUTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
            ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr,
            ast.BitOr: ast.BitAnd, ast.MatMult: ast.Add}  # fmt: skip
EXCHANGED = {
    "max": "min", "min": "max", "maximum": "minimum", "minimum": "maximum", "argmax": "argmin",
    "argmin": "argmax", "any": "all", "all": "any", "mean": "sum",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change to one module."""

    module: str
    line: int
    what: str
    source: str


Change = Callable[[ast.AST], None]


def changes(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """Yield what can be changed about a node: words for it, and the change."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARED:
            yield _other(op, "ops", [COMPARED[type(op)]()])
        case ast.BinOp(op=sign) if type(sign) in COMPUTED:
            yield _other(sign, "op", COMPUTED[type(sign)]())
        case ast.Constant(value=bool() | int() | float() as value):
            new = not value if isinstance(value, bool) else value + max(1, abs(value))
            yield f"{value} -> {new}", _setting("value", new)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield "sign or not left out", _setting("op", ast.UAdd())
        case ast.Attribute(attr=name) if name in EXCHANGED:
            yield f"{name} -> {EXCHANGED[name]}", _setting("attr", EXCHANGED[name])
        case ast.Name(id=name, ctx=ast.Load()) if name in EXCHANGED:
            yield f"{name} -> {EXCHANGED[name]}", _setting("id", EXCHANGED[name])


def _other(before: ast.AST, field: str, after: ast.AST | list[ast.cmpop]) -> tuple[str, Change]:
    new = after[0] if isinstance(after, list) else after
    return f"{type(before).__name__} -> {type(new).__name__}", _setting(field, after)


def _setting(field: str, value: object) -> Change:
    return lambda node: setattr(node, field, value)


def left_out(body: list[ast.stmt]) -> Iterator[int]:
    """Yield the places of statements that can be left out and leave a program."""
    for k, statement in enumerate(body):
        called = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        if len(body) > 1 and (called or isinstance(statement, ast.AugAssign)):
            yield k


def mutants(module: str) -> list[Mutant]:
    """Return all mutants of a module."""
    text = (PACKAGE / module).read_text()
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    skipped = {id(x) for n in nodes for x in _not_run(n)}
    found = []
    for k, node in enumerate(nodes):
        if id(node) in skipped:
            continue
        for what, change in changes(node):
            found.append(_changed(module, tree, k, what, change))
        if isinstance(node, ast.FunctionDef | ast.For | ast.If):
            for place in left_out(node.body):
                words = f"left out: {ast.unparse(node.body[place])}"
                found.append(_changed(module, tree, k, words, _without(place)))
    return found


def _without(place: int) -> Change:
    def change(node: ast.AST) -> None:
        assert isinstance(node, ast.FunctionDef | ast.For | ast.If)
        del node.body[place]

    return change


def _not_run(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what says nothing about behaviour: annotations, words, and errors that are raised."""
    if isinstance(node, ast.AnnAssign):
        yield from ast.walk(node.annotation)
    if isinstance(node, ast.arg) and node.annotation is not None:
        yield from ast.walk(node.annotation)
    if isinstance(node, ast.FunctionDef) and node.returns is not None:
        yield from ast.walk(node.returns)
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr):
        yield from ast.walk(node)
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("warnings.warn", "parameter"):
        yield from ast.walk(node)


def _changed(module: str, tree: ast.Module, k: int, what: str, change: Change) -> Mutant:
    copy = deepcopy(tree)
    node = list(ast.walk(copy))[k]
    change(node)
    line = int(getattr(node, "lineno", 0))
    return Mutant(module, line, what, ast.unparse(ast.fix_missing_locations(copy)))


def drawn(args: argparse.Namespace) -> list[Mutant]:
    """Return the mutants of this seed that have not been tried."""
    done = {(m["module"], m["line"], m["what"]) for m in read(args.cells) if "module" in m}
    found = []
    for module in args.modules or TESTS:
        every = mutants(module)
        random.Random(f"{args.seed} {module}").shuffle(every)
        found += [m for m in every[: args.each] if (m.module, m.line, m.what) not in done]
    return found


def noticed(mutant: Mutant, copy: Path) -> str:
    """Run the tests of a module on a copy of the source; say whether they fail."""
    place = copy / "src/aberra" / mutant.module
    before = place.read_bytes()
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    command += ["-m", "not slow", *TESTS[mutant.module]]
    try:
        place.write_text(mutant.source)
        run = subprocess.run(
            command,
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy / "src"), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            timeout=LONGEST,
            check=False,
        )
        return "survived" if run.returncode == 0 else "killed"
    except subprocess.TimeoutExpired:
        return "killed"  # it never ends, which somebody would notice
    finally:
        place.write_bytes(before)


def run(args: argparse.Namespace) -> None:
    """Try all mutants of the seed, on as many copies of the source as there are jobs."""
    waiting, copies = drawn(args), Queue[Path]()
    append(args.cells, {"measured_with": environment()})
    folder = Path(mkdtemp(prefix="mutants-"))
    for k in range(args.jobs):
        for part in ("src", "tests", "pyproject.toml", "benchmarks", "results"):
            source, target = Path(part), folder / str(k) / part
            target.parent.mkdir(exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
        copies.put(folder / str(k))

    def work(mutant: Mutant) -> dict[str, object]:
        copy = copies.get()
        try:
            fate = noticed(mutant, copy)
        finally:
            copies.put(copy)
        return {"module": mutant.module, "line": mutant.line, "what": mutant.what, "fate": fate}

    with ThreadPoolExecutor(args.jobs) as pool:
        for line in pool.map(work, waiting):
            append(args.cells, line)
            print(line, flush=True)
    shutil.rmtree(folder)


def table(args: argparse.Namespace) -> None:
    """Write the score of every module, and the survivors."""
    tried = [line for line in read(args.cells) if "module" in line]
    rows = ["| module | mutants | killed | % |", "|---|---|---|---|"]
    for module in [*TESTS, None]:
        own = [line for line in tried if module in (line["module"], None)]
        killed = sum(line["fate"] == "killed" for line in own)
        if own:
            share = f"{100 * killed / len(own):.0f}"
            rows.append(f"| {module or 'all'} | {len(own)} | {killed} | {share} |")
    rows += ["", "## Survivors", "", "| module | line | change | why |", "|---|---|---|---|"]
    rows += [
        f"| {m['module']} | {m['line']} | `{m['what']}` | {m.get('why', '')} |"
        for m in tried
        if m["fate"] == "survived"
    ]
    args.out.write_text(f"# Mutants\n\n{__doc__}\n" + "\n".join(rows) + "\n")
    sys.stdout.write("\n".join(rows) + "\n")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("run", "table"))
    parser.add_argument("--each", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--modules", nargs="+", choices=list(TESTS))
    parser.add_argument("--cells", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=RESULTS.with_suffix(".md"))
    args = parser.parse_args()
    {"run": run, "table": table}[args.command](args)


if __name__ == "__main__":
    main()
