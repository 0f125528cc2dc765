"""Types the commands of walkthrough.md again, and writes down what they print.

    python docs/walk.py FOLDER [--only TEXT]

The page's Python makes the data in this folder. Then every command after a `$` runs there, and what
it prints replaces what stands below it. The viewer is left when it has started, and the papers'
tables are not computed, because they take hours. `--only` types the blocks with such a command.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parent / "walkthrough.md"
DATA = re.compile(r"^```(?:\{code-block\} )?python\n(.*?)^```", re.MULTILINE | re.DOTALL)
TYPED = re.compile(r"^```\n(\$ .*?)^```", re.MULTILINE | re.DOTALL)
SILENT = ("aberra view", "aberra reproduce")
COLUMNS = "110"


def place(folder: Path) -> dict[str, str]:
    """Return the variables of a terminal in which `aberra` is this checkout's."""
    shim = folder / "bin" / "aberra"
    shim.parent.mkdir(exist_ok=True)
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m aberra "$@"\n')
    shim.chmod(0o755)
    path = f"{shim.parent}{os.pathsep}{os.environ['PATH']}"
    source = str(PAGE.parents[1] / "src")
    return {**os.environ, "PATH": path, "PYTHONPATH": source, "COLUMNS": COLUMNS}


def printed(command: str, folder: Path, terminal: dict[str, str]) -> str:
    """Run a command that has to succeed, and return what it prints."""
    done = subprocess.run(
        command, shell=True, cwd=folder, env=terminal, stdout=subprocess.PIPE, text=True, check=True
    )
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())


def opened(command: str, folder: Path, terminal: dict[str, str]) -> None:
    """Start the viewer, and leave it when it has said where it is."""
    words = [*command.replace("aberra", "aberra --json", 1).split(), "--no-browser"]
    with subprocess.Popen(words, cwd=folder, env=terminal, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert b"url" in process.stdout.readline(), command
        process.terminate()


def commands(block: str) -> list[str]:
    """Return what is typed in a block."""
    return re.findall(r"^\$ (.*)$", block, re.MULTILINE)


def typed(block: str, folder: Path, terminal: dict[str, str]) -> str:
    """Return a block of commands with what they print now."""
    lines = []
    for command in commands(block):
        sys.stderr.write(f"$ {command}\n")
        lines.append(f"$ {command}")
        if command.startswith(SILENT[0]):
            opened(command, folder, terminal)
        elif not command.startswith(SILENT):
            lines.append(printed(command, folder, terminal))
    return "".join(f"{line}\n" for line in lines if line)


def main() -> None:
    """Make the data, type the commands, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where to work")
    parser.add_argument("--only", default="", help="only blocks that hold this text")
    asked = parser.parse_args()
    folder = asked.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    text, terminal = PAGE.read_text("utf-8"), place(folder)
    for code in DATA.findall(text):
        subprocess.run([sys.executable, "-c", code], cwd=folder, env=terminal, check=True)
    for block in TYPED.findall(text):
        if any(asked.only in command for command in commands(block)):
            new = typed(block, folder, terminal)
            PAGE.write_text(PAGE.read_text("utf-8").replace(block, new), "utf-8")
    shutil.rmtree(folder / "bin")


if __name__ == "__main__":
    main()
