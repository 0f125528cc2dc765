"""The demonstration, from the command line."""

from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from aberra.cli import app
from aberra.demo import N_MALIGNANT, broken_digits, compare, dirty_breast_cancer
from aberra.detectors.multiview import MultiView


def test_demo_data_are_what_they_say():
    X, y = dirty_breast_cancer()
    assert X.shape == (420, 30)
    assert y.sum() == N_MALIGNANT
    assert X.index.is_unique
    again, _ = dirty_breast_cancer()
    pd.testing.assert_frame_equal(X, again)


def test_comparison_counts_the_rows_that_lost_trust():
    X, y = dirty_breast_cancer()
    lines, model = compare("MultiView", MultiView(), X, y)
    assert [line.variant for line in lines] == ["Single", "ADC", "IADC"]
    lost, malignant = lines[-1].lost_trust
    assert lost == (model.weights_ < 0.25).sum()
    assert malignant <= min(lost, N_MALIGNANT)
    assert all(line.auroc > 0.8 for line in lines)


@pytest.mark.slow
def test_demo_prints_a_table_and_ends_with_two_reports(tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    for word in ("IADC", "AUROC", "malignant", "trust.png", "localised.png"):
        assert word in result.output
    for name in ("trust.png", "localised.png"):
        assert (tmp_path / name).stat().st_size > 10_000
    table, image = (f"{tmp_path}/{name}-report.html" for name in ("table", "image"))
    assert result.output.replace("\n", "").endswith(f"Open in a browser:  {table}  {image}")
    page = Path(table).read_text("utf-8")
    assert "IADC around MultiView was trained on 420 rows" in page
    assert "mean radius" in page
    page = Path(image).read_text("utf-8")
    assert "Of 40 images in the broken digits" in page
    assert page.count("restored by the model") == 24


def test_broken_digits_lack_just_what_they_say():
    digits = broken_digits()
    assert len(digits.whole) + len(digits.broken) == 178
    assert (digits.broken[:, 0][digits.missing] == 0).all()
    assert digits.missing.any(axis=(1, 2)).all()
