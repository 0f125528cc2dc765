"""Dates with offsets from UTC, through fit, score and report."""

import numpy as np
import pandas as pd
import pytest

from aberra.workflow import fit_table, report, score

N = 200
RNG = np.random.default_rng(0)


def written(path, start):
    at = pd.date_range(start, periods=N, freq="h", tz="Europe/Paris")
    texts = [moment.isoformat() for moment in at]
    pd.DataFrame({"x": RNG.normal(size=N), "at": texts}).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("way", ["file", "folder", "report"])
def test_their_drift_is_told_in_utc(tmp_path, way):
    fitted = fit_table(written(tmp_path / "train.csv", "2026-01-01"), robust="none")
    (tmp_path / "new").mkdir()
    new = written(tmp_path / "new" / "new.csv", "2026-02-01")
    sentence = (
        "at goes on until 2026-02-09T06:00:00 UTC; the training data end at 2026-01-09T06:00:00 UTC"
    )
    if way == "report":
        page = report(fitted, new, tmp_path / "page.html").path.read_text("utf-8")
        assert sentence in page
        return
    data, output = (new, "s.csv") if way == "file" else (tmp_path / "new", "scores")
    found = score(fitted, data, tmp_path / output)
    assert any(sentence in said for said in found.drift.why), found.drift.why
