"""The Python examples of the documentation's pages run, from top to bottom."""

import re
import shlex
import sys
import types
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from aberra.cli import app

ROOT = Path(__file__).parents[2]
ELSEWHERE = {"second-day"}  # its blocks are files of their own; test_second_day.py runs them
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


FENCE = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
TYPED = re.compile(r"^(?:\$ )?aberra (.*)$", re.MULTILINE)


def own_pages():
    """Return the pages; copies of files from elsewhere are not among them."""
    made = {"_build", "api", "gallery", "project", "results"}
    every = (ROOT / "docs").rglob("*.md")
    return [path for path in every if path.relative_to(ROOT / "docs").parts[0] not in made]


def pages():
    """Return the pages that hold Python."""
    held = [path for path in own_pages() if BLOCK.search(path.read_text("utf-8"))]
    return sorted(path for path in held if path.stem not in ELSEWHERE)


@pytest.mark.slow
@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_examples_of_a_page_run(page, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("page")  # importable, as registered classes have to be
    monkeypatch.setitem(sys.modules, "page", module)
    monkeypatch.setattr("aberra.methods._METHODS", list(registered()))
    for code in BLOCK.findall(page.read_text("utf-8")):
        exec(compile(code, str(page), "exec"), vars(module))


def commands():
    """Yield every command of the pages, as words, up to where its output goes."""
    for page in [*own_pages(), ROOT / "README.md"]:
        for block in FENCE.findall(page.read_text("utf-8")):
            for line in TYPED.findall(block):
                yield shlex.split(line.partition(" > ")[0], comments=True)


def test_commands_of_the_pages_have_the_options_that_they_name():
    typed, every = list(commands()), typer.main.get_command(app)
    assert len(typed) >= 30
    for words in typed:
        command = every
        while isinstance(command, typer.core.TyperGroup):
            command = command.commands[words.pop(0)]
        command.make_context(command.name, words)  # raises an error where an option is unknown


@pytest.mark.slow
def test_the_five_minutes_at_the_shell(tmp_path, monkeypatch):
    pytest.importorskip("jinja2")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "start" / "five-minutes.md").read_text("utf-8")
    exec(compile(BLOCK.findall(text)[0], "five-minutes", "exec"), {})
    commands = re.findall(r"^aberra (.*)$", text, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["fit", "report", "score"]
    for command in commands:
        result = CliRunner().invoke(app, command.split())
        assert result.exit_code == 0, result.output
    assert {"patients.aberra", "report.html", "scores.csv"} <= {p.name for p in tmp_path.iterdir()}
    assert "left out" in CliRunner().invoke(app, commands[0].split()).output


def registered():
    from aberra.methods import methods

    return methods()


def test_there_are_examples_to_run():
    assert len(pages()) >= 8
