"""Where each equation of the papers lives, read from the tags in the docstrings.

`python docs/equations.py` writes EQUATIONS.md; a test keeps it true.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

DEVIATION = re.compile(r"^Deviation:(.*?)(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)
TAG = re.compile(r"\[((?:IADC|ADDM|IAD)-\w+(?:\.\d+)?)\]")

EQUATIONS = {
    "ADDM-1": "forward process",
    "ADDM-2": "reverse process",
    "ADDM-3": "variational bound",
    "ADDM-4": "DDPM loss",
    "ADDM-5": "ADDM objective",
    "IADC-1": "OC-SVM",
    "IADC-2": "OC-SVM, weighted",
    "IADC-2s": "OC-SVM score",
    "IADC-3": "autoencoder",
    "IADC-4": "autoencoder, weighted",
    "IADC-4s": "autoencoder score",
    "IADC-5": "Deep SVDD",
    "IADC-6": "Deep SVDD, weighted",
    "IADC-6s": "Deep SVDD score",
    "IADC-7": "RSRAE",
    "IADC-8": "RSRAE, weighted",
    "IADC-8s": "RSRAE score",
    "IADC-9": "spread of the scores over trials",
    "IADC-A1": "Algorithm 1",
    "IADC-A1.3": "Algorithm 1, resampling",
    "IAD-w": "importance weights",
    "IAD-h": "crossings",
}

ABSENT = {
    "ADDM-3": "a bound that nobody computes",
    "IADC-1": "IADC-2 with w = 1",
    "IADC-3": "IADC-4 with w = 1",
    "IADC-5": "IADC-6 with w = 1",
    "IADC-7": "IADC-8 with w = 1",
    "IADC-8s": "the same formula as IADC-4s",
}

HEAD = """# Equations

Generated from the tags in the docstrings by `python docs/equations.py`; do not edit by hand.
ADDM numbers are those of Yu et al. 2023, IADC numbers those of the ADC/IADC supplement; `s` marks
the score below an equation, A1 the algorithm. IAD is Kim et al., IEEE TNNLS 2024, the source of the
weights and of the crossings. Networks of tables and digits train in compiled loops
(`detectors/compiled_training.py`, `compiled_convolutions.py`) that are tested against the functions
named here, value and gradient; with more than 2,000 rows the one-class machine is solved on
landmarks.

| tag | what | home | tests |
|---|---|---|---|
"""


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return everything in a module."""
    return tuple(ast.walk(ast.parse(path.read_text())))


def functions(folder: Path) -> Iterator[tuple[Path, ast.FunctionDef]]:
    """Yield every function below a folder with its file."""
    for path in sorted(folder.rglob("*.py")):
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef):
                yield path, node


def homes(package: Path) -> Iterator[tuple[str, str]]:
    """Yield each tag with the function that carries it."""
    for path, node in functions(package):
        for tag in TAG.findall(ast.get_docstring(node) or ""):
            yield tag, f"{path.relative_to(package).as_posix()}: `{node.name}`"


def deviations(package: Path) -> Iterator[tuple[str, str]]:
    """Yield each `Deviation:` paragraph with its place."""
    for path in sorted(package.rglob("*.py")):
        for node in nodes(path):
            if not isinstance(node, ast.FunctionDef | ast.ClassDef):
                continue
            for paragraph in DEVIATION.findall(ast.get_docstring(node) or ""):
                where = f"{path.relative_to(package).as_posix()}: `{node.name}`"
                yield where, " ".join(paragraph.split())


@cache
def test_names(tests: Path) -> list[str]:
    """Return the names of all functions in the tests; reading them takes a while."""
    return [node.name for _, node in functions(tests)]


def tests_of(tag: str, tests: Path) -> str:
    """Name the tests whose name carries the tag's number."""
    stem = "test_" + tag.lower().replace("-", "_").replace(".", "_")
    found = sorted({n for n in test_names(tests) if n == stem or n.startswith(stem + "_")})
    return ", ".join(f"`{name}`" for name in found)


def table(package: Path, tests: Path) -> str:
    """Return the text of EQUATIONS.md."""
    found = dict(homes(package))
    lines = [
        f"| {tag} | {what} | {found.get(tag, ABSENT.get(tag, ''))} | {tests_of(tag, tests)} |"
        for tag, what in EQUATIONS.items()
    ]
    notes = [f"- {where}. {text}" for where, text in deviations(package)]
    return (
        HEAD + "\n".join(lines) + "\n\n## Where the code departs from print\n\n" + "\n".join(notes)
    ) + "\n"


def main() -> None:
    """Write EQUATIONS.md at the root of the checkout."""
    root = Path(__file__).parents[1]
    (root / "EQUATIONS.md").write_text(table(root / "src" / "aberra", root / "tests"))


if __name__ == "__main__":
    main()
