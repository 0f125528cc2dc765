"""Tables need no torch: everything about them runs in a process that cannot import it."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from aberra import (
    ADC,
    DAGPR,
    IADC,
    OCSVM,
    RSRAE,
    AutoEncoder,
    DeepSVDD,
    HybridOCSVM,
    MultiView,
    save,
)

ROWS = np.random.default_rng(0).normal(size=(60, 4))
SHORT = {"pretrain_epochs": 2, "random_state": 0}
SEVERAL = {"n_members": 2, "random_state": 0}

BARRED = """
import sys

class Barred:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "monai", "lightning_fabric"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Barred())
"""


def printed(code, *arguments):
    """Run a program and return what it printed."""
    command = [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    file = tmp_path_factory.mktemp("table") / "rows.csv"
    pd.DataFrame(ROWS, columns=list("abcd")).to_csv(file, index=False)
    return file


FIT_AND_LOAD = """
import pickle
import numpy as np
from pathlib import Path
from aberra import load, save

folder = Path(sys.argv[1])
models, rows = pickle.loads((folder / "models").read_bytes())
found = []
for k, model in enumerate(models):
    loaded = load(folder / f"{k}.aberra")
    save(loaded, folder / "again")
    every = model.fit(rows), loaded, load(folder / "again")
    found.append([each.anomaly_score(rows) for each in every])
np.save(folder / "scores.npy", found)
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::aberra.errors.RoundsExhaustedWarning")
def test_detectors_of_tables_give_the_same_bytes_without_torch(tmp_path):
    models = [
        AutoEncoder(epochs=2, random_state=0),
        DeepSVDD(epochs=2, **SHORT),
        RSRAE(epochs=2, random_state=0),
        HybridOCSVM(**SHORT),
        DAGPR(**SHORT),
        MultiView(random_state=0),
        IADC(max_rounds=2, **SEVERAL),
        IADC(DeepSVDD(epochs=2, **SHORT), max_rounds=2, **SEVERAL),
        ADC(OCSVM(), **SEVERAL),
    ]
    (tmp_path / "models").write_bytes(pickle.dumps((models, ROWS)))
    for k, model in enumerate(models):
        save(model.fit(ROWS), tmp_path / f"{k}.aberra")
    printed(BARRED + FIT_AND_LOAD, tmp_path)
    for model, found in zip(models, np.load(tmp_path / "scores.npy"), strict=True):
        for scores in found:  # of a new fit, of a loaded model, and of one that was saved again
            assert scores.tobytes() == model.anomaly_score(ROWS).tobytes(), model


SHELL = """
import sys
from aberra.cli import main

def aberra(*words):
    sys.argv = ["aberra", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code, words

table, folder = sys.argv[1:]
"""
COMMANDS = """
aberra("fit", table, "-o", f"{folder}/m", "--detector", "autoencoder", "--robust", "none")
aberra("score", f"{folder}/m", table, "-o", f"{folder}/scores.csv")
aberra("report", f"{folder}/m", table, "-o", f"{folder}/report.html")
aberra("reproduce", "odds-iadc", "--draw", "--profile", "smoke", "--out", f"{folder}/results")
"""


@pytest.mark.slow
def test_the_shell_fits_scores_and_reports_tables_without_torch(table, tmp_path):
    pytest.importorskip("jinja2")
    printed(BARRED + SHELL + COMMANDS, table, tmp_path)
    assert len(pd.read_csv(tmp_path / "scores.csv")) == len(ROWS)
    assert (tmp_path / "report.html").read_text("utf-8").startswith("<!doctype html>")
    assert (tmp_path / "results" / "odds-iadc.md").is_file()


@pytest.mark.slow
def test_scoring_a_table_loads_nothing_that_it_does_not_need(table, tmp_path):
    """Not even where torch is installed: loading it takes longer than scoring many rows."""
    save(DeepSVDD(epochs=2, **SHORT).fit(pd.read_csv(table)), tmp_path / "m")
    score = """aberra("score", f"{folder}/m", table, "-o", f"{folder}/scores.csv")\n"""
    heavy = ("torch", "aberra.data.mri", "aberra.localise", "aberra.detectors.compiled_training")
    heavy += ("sklearn.neighbors", "sklearn.svm")
    ask = f"print([name for name in sys.modules if name.startswith({heavy})])\n"
    searched = "import gc; print(gc.isenabled(), gc.get_freeze_count() > 100_000)"
    said = printed(SHELL + score + ask + searched, table, tmp_path).splitlines()
    assert said[-2:] == ["[]", "True True"]  # libraries are no longer searched for garbage


IMAGES = """
import numpy as np
import aberra

for what in (
    lambda: aberra.ADDM,
    lambda: aberra.IntensityThreshold,
    lambda: aberra.AutoEncoder().fit(np.random.default_rng(0).random((9, 1, 8, 8))),
    lambda: aberra.load(sys.argv[1]),
):
    try:
        what()
    except aberra.errors.MissingExtraError as error:
        print(error)
"""


@pytest.mark.slow
def test_images_say_in_one_sentence_what_to_install(tmp_path):
    images = np.random.default_rng(0).random((12, 1, 8, 8))
    save(AutoEncoder(epochs=1, random_state=0).fit(images), tmp_path / "m")
    said = printed(BARRED + IMAGES, tmp_path / "m").splitlines()
    install = 'needs torch, which is not installed: pip install "aberra[images]"'
    assert said == [f"A localiser {install}"] * 2 + [f"A network for images {install}"] * 2
