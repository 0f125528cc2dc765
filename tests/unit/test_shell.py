"""Commands end with a sentence and a code, not with a traceback."""

import errno
import json
import subprocess
import sys

import pyarrow as pa
import pytest
import typer
from typer.testing import CliRunner

from aberra.cli import root
from aberra.cli.shell import Exit, Shell, command, shell
from aberra.data.sources.standard_input import standard_input
from aberra.errors import DataError, MissingExtraError


def failing(error):
    app = typer.Typer()
    app.callback()(root)

    @app.command()
    @command
    def go() -> None:
        shell().say("hello")
        raise error

    return app


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DataError("Column a is text. Drop it."), Exit.DATA),
        (MissingExtraError("Needs x."), Exit.MISSING),
        (KeyboardInterrupt(), Exit.INTERRUPTED),
        (MemoryError(), Exit.DATA),
        (pa.ArrowMemoryError("realloc of size 3276800000 failed"), Exit.DATA),
        (RuntimeError("oops"), Exit.BUG),
    ],
)
def test_errors_have_codes(error, code):
    result = CliRunner().invoke(failing(error), ["go"])
    assert result.exit_code == code
    assert "hello" in result.stdout
    assert result.stderr.startswith("Error: ")
    assert "Traceback" not in result.output
    assert ("bug in Aberra" in result.stderr) == (code is Exit.BUG)


def test_scripts_get_json():
    result = CliRunner().invoke(failing(DataError("No.")), ["--json", "go"])
    assert json.loads(result.stdout) == {"error": "No.", "kind": "DataError", "exit": 3}


def test_debug_shows_where():
    result = CliRunner().invoke(failing(DataError("No.")), ["--debug", "go"])
    assert "Traceback" in result.stderr


def test_quiet_says_nothing():
    assert CliRunner().invoke(failing(DataError("No.")), ["-q", "go"]).stdout == ""


def test_version():
    assert CliRunner().invoke(failing(DataError("No.")), ["--version"]).stdout.startswith("aberra ")


def test_python_runs_the_same_shell_as_a_module():
    """The other codes are those of the commands that the slow tests run in this way."""
    words = [sys.executable, "-m", "aberra", "scor"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (Exit.USAGE, "")
    assert "Usage: python -m aberra" in done.stderr
    assert "Did you mean 'score'?" in done.stderr


def test_a_full_standard_output_is_told_on_standard_error(monkeypatch, capsys):
    """The message itself went there as well, and ended in a traceback."""

    class Full:
        def write(self, text):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(typer.Exit):
        raise Shell(json=True).fail(DataError("There is no file."), Exit.DATA)
    assert "There is no file." in capsys.readouterr().err


def test_a_closed_standard_input_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError, match="Standard input is closed"):
        standard_input(tmp_path)
