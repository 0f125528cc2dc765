"""The demonstration, from the command line."""

from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from aberra.cli import app
from aberra.demo import (
    N_MALIGNANT,
    OURS,
    best,
    broken_digits,
    compared,
    damaged_breast_cancer,
    dirty_breast_cancer,
    plain_detectors,
)
from aberra.robust.iadc import IADC


def test_demo_data_are_what_they_say():
    X, y = dirty_breast_cancer()
    assert X.shape == (420, 30)
    assert y.sum() == N_MALIGNANT
    assert X.index.is_unique
    again, _ = dirty_breast_cancer()
    pd.testing.assert_frame_equal(X, again)


def test_a_tenth_of_the_rows_is_damaged():
    X, y = damaged_breast_cancer()
    assert X.shape == (357, 30)
    assert y.sum() == 36


@pytest.mark.slow
def test_the_default_is_clearly_ahead_on_damaged_rows():
    X, y = damaged_breast_cancer()
    ours, *others = compared({OURS: IADC(random_state=0), **plain_detectors()}, X, y)
    assert ours.rightly <= ours.flagged < len(X)
    assert ours.auroc > best(others).auroc + 0.1


@pytest.mark.slow
def test_demo_prints_a_table_and_ends_with_two_reports(tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("Welcome to Aberra")
    said = (
        "AUROC",
        "malignant",
        "trust.png",
        "localised.png",
        "On damaged rows the default is ahead",
    )
    for word in said:
        assert word in result.output
    for name in ("trust.png", "localised.png"):
        assert (tmp_path / name).stat().st_size > 10_000
    table, image = (f"{tmp_path}/{name}-report.html" for name in ("table", "image"))
    shown = result.output.replace("\n", "")
    assert f"Open in a browser:  {table}  {image}Try next" in shown
    page = Path(table).read_text("utf-8")
    assert "IADC around MultiView was trained on 357 rows" in page
    assert "mean radius" in page
    page = Path(image).read_text("utf-8")
    assert "Of 40 images in the broken digits" in page
    assert page.count("restored by the model") == 24


def test_broken_digits_lack_just_what_they_say():
    digits = broken_digits()
    assert len(digits.whole) + len(digits.broken) == 178
    assert (digits.broken[:, 0][digits.missing] == 0).all()
    assert digits.missing.any(axis=(1, 2)).all()
