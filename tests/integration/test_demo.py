"""The demonstration, from the command line."""

import numpy as np
import pytest
from typer.testing import CliRunner

from aberra.cli import app
from aberra.demo import N_MALIGNANT, broken_digits, compare, dirty_breast_cancer
from aberra.detectors.multiview import MultiView


def test_demo_data_are_what_they_say():
    X, y = dirty_breast_cancer()
    assert X.shape == (420, 30)
    assert y.sum() == N_MALIGNANT
    again, _ = dirty_breast_cancer()
    np.testing.assert_array_equal(X, again)


def test_comparison_counts_the_rows_that_lost_trust():
    X, y = dirty_breast_cancer()
    lines, model = compare("MultiView", MultiView(), X, y)
    assert [line.variant for line in lines] == ["Single", "ADC", "IADC"]
    lost, malignant = lines[-1].lost_trust
    assert lost == (model.weights_ < 0.25).sum()
    assert malignant <= min(lost, N_MALIGNANT)
    assert all(line.auroc > 0.8 for line in lines)


@pytest.mark.slow
def test_demo_prints_a_table_and_saves_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    for word in ("IADC", "AUROC", "lost", "trust.png", "localised.png"):
        assert word in result.output
    for name in ("trust.png", "localised.png"):
        assert (tmp_path / name).stat().st_size > 10_000


def test_broken_digits_lack_just_what_they_say():
    digits = broken_digits()
    assert len(digits.whole) + len(digits.broken) == 178
    assert (digits.broken[:, 0][digits.missing] == 0).all()
    assert digits.missing.any(axis=(1, 2)).all()
