"""The public names of the package as type checkers read them.

`python docs/names.py` writes src/aberra/__init__.pyi from the register; a test keeps it true.
"""

from __future__ import annotations

from pathlib import Path

import aberra
from aberra.methods import methods

STUB = Path(__file__).parents[1] / "src" / "aberra" / "__init__.pyi"


def stub() -> str:
    """Return the text of the stub."""
    homes = {method.name: method.module for method in methods()} | aberra.FUNCTIONS
    by_module: dict[str, list[str]] = {}
    for name, module in homes.items():
        by_module.setdefault(module, []).append(name)
    lines = ["# Written by docs/names.py from the register of methods; do not edit by hand."]
    for module in sorted(by_module):
        names = ", ".join(f"{name} as {name}" for name in sorted(by_module[module]))
        lines.append(f"from {module} import {names}")
    lines += ["", "__version__: str", "FUNCTIONS: dict[str, str]", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    STUB.write_text(stub())
