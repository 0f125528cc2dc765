"""What fit and report say: counts beside shares, and lists that fit on a screen."""

import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from aberra import IADC, OCSVM
from aberra.cli import app
from aberra.errors import DataError
from aberra.explain.rounds import STOPPED
from aberra.explain.subject import Subject
from aberra.recipe import Recipe
from aberra.viewer.models import _shown_facts
from aberra.workflow import fit_table, report

RNG = np.random.default_rng(0)


def written(folder, n, d):
    table = pd.DataFrame(RNG.normal(size=(n, d)), columns=[f"gene_{j}" for j in range(d)])
    table.iloc[0] = 9.0
    table.to_csv(folder / "train.csv", index=False)
    return folder / "train.csv"


def words_of(page):
    text = re.sub(r"<(style|script).*?</\\1>", "", page.read_text("utf-8"), flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def test_the_number_of_flagged_rows_stands_beside_the_share(tmp_path):
    fitted = fit_table(written(tmp_path, 2000, 2), contamination=0.0005, robust="none")
    said = dict(fitted.recipe.choices)["threshold"]
    assert said.endswith(": 1 of 2,000 training rows (0.05 %) lie above it")
    page = words_of(report(fitted, None, tmp_path / "page.html").path)
    assert "It estimates that 1 of them (0.05 %) do not belong" in page


def test_of_many_columns_the_first_are_shown_and_the_recipe_keeps_all(tmp_path):
    data, model = written(tmp_path, 30, 50), tmp_path / "m.aberra"
    words = ["fit", str(data), "-o", str(model), "--robust", "none"]
    dropped = [name for j in range(22) for name in ("--drop", f"gene_{j}")]
    said = " ".join(CliRunner().invoke(app, [*words, *dropped]).output.split())
    assert "gene_40, gene_41 and 8 more" in said
    assert "gene_18, gene_19 and 2 more (left out as asked)" in said
    fitted = fit_table(data, robust="none", drop=[f"gene_{j}" for j in range(22)])
    assert "gene_41 and 8 more" in words_of(report(fitted, None, tmp_path / "page.html").path)
    assert len(fitted.recipe.columns) == 28
    assert dict(fitted.recipe.choices)["columns used"].endswith("gene_48, gene_49")


def test_the_viewer_shows_the_first_columns_too():
    names = [f"x{j}" for j in range(21)]
    said = [("columns used", ", ".join(names))]
    recipe = Recipe("table", "t.csv", 9, columns=names, choices=said)
    subject = Subject(OCSVM().fit(RNG.normal(size=(20, 2))), recipe)
    (value,) = [value for name, value, _ in _shown_facts(subject, recipe) if name[0] == "C"]
    assert value.endswith("x18, x19 and 1 more")
    short = Recipe("table", "t.csv", 9, columns=names[:20], choices=[("a", ", ".join(names[:20]))])
    assert short.shown_choices() == short.choices


def test_no_sentence_says_that_nothing_stood_apart_beside_flagged_rows(tmp_path):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 3)), columns=list("abc"))
    table.to_csv(tmp_path / "train.csv", index=False)
    fitted = fit_table(tmp_path / "train.csv", contamination=0.05)
    assert (fitted.model.history_.reason, fitted.model.portrait_.n_flagged) == ("clean", 5)
    assert dict(fitted.recipe.choices)["rounds"].endswith(STOPPED["clean"])
    assert "stood apart" not in STOPPED["clean"]
    assert "stood apart" not in words_of(report(fitted, None, tmp_path / "page.html").path)


@pytest.mark.parametrize("model", [OCSVM(), IADC(OCSVM(), n_members=2, random_state=0)])
def test_columns_in_another_order_are_told_what_to_do(model):
    X = pd.DataFrame(RNG.normal(size=(40, 3)), columns=list("abc"))
    model.fit(X)
    order = r"same order as they were in fit\.\nGive X\[model\.feature_names_in_\]"
    for way in (model.anomaly_score, model.predict, model.explain):
        with pytest.raises(DataError, match=order):
            way(X[["b", "a", "c"]])
    more = X.assign(d=1.0)
    with pytest.raises(DataError, match=r"unseen at fit time:\n- d\nGive X\[model\."):
        model.anomaly_score(more)
    with pytest.raises(ValueError, match="yet now missing") as missing:
        model.anomaly_score(X[["a", "b"]])
    assert "Give X" not in str(missing.value)
    found = model.anomaly_score(more[model.feature_names_in_])
    np.testing.assert_array_equal(found, model.anomaly_score(X))
