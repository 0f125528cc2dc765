"""Marks of a reviewer move the scores of rows like the marked ones, and nothing else."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from aberra import ADC, IADC, OCSVM, MultiView, load, save
from aberra.cli import app
from aberra.contract.feedback import Feedback
from aberra.errors import DataError
from aberra.workflow import feedback, fit, score


@pytest.fixture(scope="module")
def rows():
    """500 rows: ten are high in column 0, twenty are low in column 3."""
    X = np.random.default_rng(0).normal(size=(500, 4))
    X[:10, 0] += 6
    X[10:30, 3] -= 5
    return X


@pytest.fixture
def model(rows):
    return MultiView(random_state=0).fit(rows)


def test_rejected_rows_and_their_like_rise_and_accepted_ones_fall(model, rows):
    before = model.anomaly_score(rows)
    model.feedback(rows[:2], [1, 1]).feedback(rows[10:12], ["accept", "accept"])
    after = model.anomaly_score(rows)
    assert (after[:10] > before[:10]).mean() >= 0.9
    assert (after[10:30] < before[10:30]).mean() >= 0.9
    assert np.median(after[:10]) > after[10:30].max()


def test_one_mark_moves_scores_as_is_written_out():
    middle, spread, usual = np.array([1.0, 0.0]), np.array([2.0, 1.0]), np.array([3.0, 5.0, 11.0])
    data = np.random.default_rng(0).normal(size=(600, 2))  # more than are looked at in one go
    scores = np.linspace(1, 12, 600)
    row, score = np.array([[5.0, -1.0]]), np.array([4.0])
    held = Feedback.empty(middle, spread, usual).with_marks(row, np.array([1]), score)
    place, places = (np.arcsinh((x - middle) / spread) for x in (row, data))
    both = [np.concatenate([np.maximum(p, 0), np.maximum(-p, 0)], axis=1) for p in (place, places)]
    (way,), ways = (b / np.linalg.norm(b, axis=1, keepdims=True) for b in both)
    alike = np.exp(-((places - place) ** 2).mean(axis=1) / 0.2) + 0.2 * ways @ way
    bent = lambda s: np.arcsinh((s - 3.0) / 2.0)  # noqa: E731
    pull = max(1.0, bent(11.0) - bent(4.0)) / (1.2 + 0.1)  # a row is 1 + 0.2 like itself
    wanted = 3.0 + 2.0 * np.sinh(bent(scores) + pull * alike)
    np.testing.assert_allclose(held.adjusted(scores, data), wanted, rtol=1e-9)


def test_a_mark_replaces_only_one_of_the_same_row():
    none = Feedback.empty(np.zeros(2), np.ones(2), np.array([0.0, 1.0, 2.0]))
    first = none.with_marks(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 1]), np.ones(2))
    then = first.with_marks(np.array([[1.0, 4.0], [3.0, 4.0]]), np.array([0, 0]), np.zeros(2))
    assert then.rows.tolist() == [[1, 2], [1, 4], [3, 4]]
    assert (then.labels.tolist(), then.calls.tolist()) == ([1, 0, 0], [1, 2, 2])
    assert then.scores.tolist() == [1, 0, 0]


def test_rows_unlike_all_marks_keep_their_order(model, rows):
    before = model.anomaly_score(rows)[30:]
    after = model.feedback(rows[:1], [1]).anomaly_score(rows)[30:]
    assert np.corrcoef(before, after)[0, 1] > 0.95


def test_without_marks_scores_are_the_same_bytes_and_a_new_fit_forgets(model, rows):
    before = model.anomaly_score(rows)
    model.feedback(rows[:3], [1, 0, 1])
    assert (model.anomaly_score(rows) != before).any()
    assert (model.fit(rows).anomaly_score(rows) == before).all()
    assert model.review_marks() is None


def test_marks_are_no_drift(model, rows):
    new = np.random.default_rng(1).normal(size=(500, 4))
    model.feedback(rows[:3], [1, 1, 1]).feedback(new[:40], [1] * 40)
    drift = model.compare(new)
    assert drift.verdict == "steady", drift
    assert "Marks of a review have changed the scores" in drift.why[1]
    assert drift.n_flagged > 30
    assert model.compare(new + np.array([0, 3, 0, 0])).moved == ["column 1"]


def test_a_row_scores_the_same_alone_and_among_others(model, rows):
    model.feedback(rows[:20:4], [1, 1, 0, 0, 0])
    after = model.anomaly_score(rows)
    alone = [model.anomaly_score(rows[k : k + 1])[0] for k in range(0, 60, 7)]
    assert (after[:60:7] == alone).all()


def test_marks_are_kept_in_the_file_and_a_new_mark_replaces_an_old_one(model, rows, tmp_path):
    model.feedback(rows[:4], [1, 1, 0, 0]).feedback(rows[3:5], [1, 0])
    save(model, tmp_path / "m.aberra")
    again = load(tmp_path / "m.aberra")
    held = again.review_marks()
    assert held.labels.tolist() == [1, 1, 0, 1, 0]
    assert held.calls.tolist() == [1, 1, 1, 2, 2]
    assert (again.anomaly_score(rows) == model.anomaly_score(rows)).all()


def test_the_order_of_marks_does_not_matter(rows):
    one, two = (MultiView(random_state=0).fit(rows) for _ in range(2))
    one.feedback(rows[[0, 12, 40]], [1, 0, 0])
    two.feedback(rows[[40]], [0]).feedback(rows[[12, 0]], [0, 1])
    np.testing.assert_allclose(one.anomaly_score(rows), two.anomaly_score(rows), rtol=1e-9)


@pytest.mark.parametrize("model", [IADC(OCSVM(), max_rounds=1, random_state=0), ADC(OCSVM())])
def test_ensembles_take_feedback_too(model, rows):
    before = model.fit(rows).anomaly_score(rows)
    after = model.feedback(rows[10:14], [0, 0, 0, 0]).anomaly_score(rows)
    assert after[14:30].mean() < before[14:30].mean()


def test_a_reviewer_finds_more_with_feedback_than_without(rows):
    """Of two groups that look equally odd, only one interests the reviewer."""
    labels = np.zeros(500, int)
    labels[:10] = 1
    found = {}
    for learns in (False, True):
        model, shown = MultiView(random_state=0).fit(rows), []
        for _ in range(14):
            scores = model.anomaly_score(rows)
            scores[shown] = -np.inf
            shown.append(int(scores.argmax()))
            if learns:
                model.feedback(rows[shown[-1:]], labels[shown[-1:]])
        found[learns] = labels[shown].sum()
    assert found[True] > found[False]


def test_bad_marks_end_in_a_sentence(model, rows):
    with pytest.raises(DataError, match="A mark is 'maybe'"):
        model.feedback(rows[:1], ["maybe"])
    with pytest.raises(DataError, match="2 rows, but 1 marks"):
        model.feedback(rows[:2], [1])
    images = OCSVM().fit(np.random.default_rng(0).normal(size=(20, 1, 3, 3)))
    with pytest.raises(DataError, match="models of tables"):
        images.feedback(np.zeros((1, 1, 3, 3)), [1])


# With files


@pytest.fixture
def files(rows, tmp_path):
    table = pd.DataFrame(rows, columns=list("abcd"))
    table.insert(0, "patient", [f"p{k:03d}" for k in range(500)])
    table.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


@pytest.mark.slow
def test_marks_of_the_viewer_change_the_model_file(files):
    fit(files / "rows.csv", files / "m.aberra", robust="none")
    held = {f"p{k:03d}": {"mark": "accept", "when": ""} for k in range(10, 16)}
    held["p001"] = {"mark": "reject", "when": ""}
    marks = files / "aberra-marks.json"
    marks.write_text(json.dumps({"format": 1, "marks": {"scores.csv": held}}))
    run("feedback", files / "m.aberra", files / "rows.csv", marks, "-o", files / "n.aberra")
    scores = {}
    for name in ("m", "n"):
        score(files / f"{name}.aberra", files / "rows.csv", files / f"{name}.csv")
        scores[name] = pd.read_csv(files / f"{name}.csv", index_col="id")["score"]
    assert (scores["n"] < scores["m"])[10:30].mean() > 0.9
    assert scores["n"]["p001"] > scores["m"]["p001"]
    assert "7 marks" in run(
        "feedback", files / "n.aberra", files / "rows.csv", marks, "-o", files / "n.aberra"
    ).output  # fmt: skip


def test_fit_takes_marks_and_says_so(files):
    (files / "marks.csv").write_text("id,mark\np000,1\np010,0\np011,accept\n")
    fitted = fit(files / "rows.csv", robust="none", marks=files / "marks.csv")
    assert fitted.model.review_marks().labels.tolist() == [1, 0, 0]
    said = dict(fitted.recipe.choices)
    assert said["marks"].startswith("1 row rejected, 2 accepted")


def test_marks_by_position_and_marks_of_other_rows(files):
    pd.read_csv(files / "rows.csv").drop(columns="patient").to_csv(files / "r.csv", index=False)
    (files / "marks.csv").write_text("row,mark\n3,reject\n499,accept\n")
    found = feedback(fit(files / "r.csv", robust="none"), files / "r.csv", files / "marks.csv")
    assert (found.n_rejected, found.n_accepted) == (1, 1)
    (files / "marks.csv").write_text("row,mark\n3,reject\n5000,accept\n")
    with pytest.raises(DataError, match=r"marks '5000', but .* no such row "):
        feedback(fit(files / "r.csv", robust="none"), files / "r.csv", files / "marks.csv")
    (files / "marks.json").write_text("{}")
    with pytest.raises(DataError, match="not written by aberra view"):
        feedback(fit(files / "r.csv", robust="none"), files / "r.csv", files / "marks.json")
