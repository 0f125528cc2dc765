"""Model files of this release, to be kept for ever: `python tests/data/write_models.py`.

Run it once for every release and commit what it writes: small files, and the scores that their
models gave. `tests/integration/test_old_files.py` loads the files of all releases. A folder that is
there already is never written again, because then it would not be what that release wrote.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import aberra
from aberra import ADC, IADC, OCSVM, AutoEncoder, DeepSVDD

HERE = Path(__file__).parent


def table() -> pd.DataFrame:
    """Return forty rows with numbers, text, a date and a gap; it must never change."""
    k = np.arange(40)
    held = pd.DataFrame(
        {
            "length": 10 + np.sin(k),
            "width": 5 + np.cos(1.7 * k) + 0.1 * np.sin(k),
            "place": np.where(k % 3, "north", "south"),
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(7 * k, "h"),
        }
    )
    held.loc[3, "length"], held.loc[7, "width"], held.loc[11, "place"] = 99.0, np.nan, "east"
    return held


def models() -> dict[str, tuple[object, pd.DataFrame]]:
    """Return what is kept, each with the rows that it is fitted on."""
    mixed = table()
    numbers = mixed[["length", "width"]].fillna(5.0)
    short = {"epochs": 2, "random_state": 0}
    return {
        "iadc": (IADC(n_members=1, encode="auto", missing="impute", random_state=0), mixed),
        "deep_svdd": (DeepSVDD(hidden=(4, 2), pretrain_epochs=2, **short), numbers),
        "iadc_autoencoder": (
            IADC(AutoEncoder(hidden=(4, 2), **short), n_members=2, max_rounds=2, random_state=0),
            numbers,
        ),
        "adc_ocsvm": (ADC(OCSVM(), n_members=1, random_state=0), numbers),
    }


def main() -> None:
    """Write the files of this release."""
    folder = HERE / f"models-{aberra.__version__}"
    if folder.exists():
        sys.exit(f"{folder} is there already, and stays as it is.")
    folder.mkdir()
    scores = {}
    for name, (model, rows) in models().items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # two rounds are not enough to settle
            model.fit(rows)
        aberra.save(model, folder / f"{name}.aberra")
        scores[name] = {
            "scores": model.anomaly_score(rows).tolist(),
            "threshold": model.threshold_,
        }
    (folder / "scores.json").write_text(json.dumps(scores, indent=1) + "\n")


if __name__ == "__main__":
    main()
