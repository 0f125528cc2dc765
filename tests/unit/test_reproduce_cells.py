"""What a cell of the papers' tables holds, and what tables and claims make of cells."""

from dataclasses import replace

import numpy as np
import pytest

from aberra import IADC, OCSVM
from aberra.metrics import anomaly_std, auroc, rank_std
from aberra.reproduce import mri, mri_slices, odds, spread
from aberra.reproduce.claims import mean_auroc
from aberra.reproduce.mri_models import mri_settings
from aberra.reproduce.mri_table import mri_rows
from aberra.reproduce.odds_tables import odds_rows
from aberra.reproduce.profiles import profiles
from aberra.reproduce.seeds import Trial, run_seeds
from aberra.reproduce.store import Store, key_of
from aberra.reproduce.tables import Target, row
from aberra.robust.history import History, Round
from aberra.robust.start import Course
from aberra.robust.weighting import crossings, importance_weights

SMOKE = profiles()["smoke"]


def crossed(scores, k):
    """Return scores in which the k lowest rows have exchanged places with the k highest."""
    order, found = np.argsort(scores), scores.copy()
    low, high = order[:k], order[len(order) - k :]
    found[low], found[high] = scores[high], scores[low]
    return found


@pytest.fixture
def trial():
    """A trial whose third round settles it, that has a calmer round later, and went on."""
    rng = np.random.default_rng(0)
    rounds = [rng.permutation(np.arange(40.0))]
    for k in (1, 2, 2, 0, 3):
        rounds.append(2 * crossed(rounds[-1], k))
    history = History(0.5, 2, 0.5)
    for k, scores in enumerate(rounds):
        history.append(Round(scores, 1.0 + k))
    assert (history.replay(0.5), history.kept, len(history)) == (1, 4, 6)
    single = rng.normal(size=40)
    return Trial(0, history, 0, Course("equal", np.ones(40)), single, single_seconds=7.0)


def test_a_cell_holds_what_was_found_in_which_round(trial, tmp_path, monkeypatch):
    store, y = Store(tmp_path), (np.arange(40) < 9).astype(np.int8)
    monkeypatch.setattr(odds, "load_table", lambda name, folder: (np.zeros((40, 2)), y))
    monkeypatch.setattr(odds, "run_seeds", lambda *args, **kwargs: [trial])
    setting = odds.odds_settings(SMOKE, "AE", "cardio", True)[0]
    odds.compute_odds([setting], store, None)
    record, rounds = store.read("odds")[key_of(setting)], [line.scores for line in trial.history]
    scores = {"Single": trial.single, "ADC": rounds[0], "IADC": rounds[1]}
    assert record["auroc"] == {name: auroc(y, s) for name, s in scores.items()}
    assert record["rounds"] == [auroc(y, s) for s in rounds]
    pairs = list(zip(rounds[1:], rounds[:-1], strict=True))
    for r in setting["ratios"]:
        assert record["crossings"][str(r)] == [crossings(*pair, r) for pair in pairs]
        assert record["kept"][str(r)] == trial.history.replay(r)
    for told, s in zip(record["trust"], rounds, strict=True):
        for name, own in (("normal", y == 0), ("anomalous", y == 1)):
            w = importance_weights(s)[own]
            assert told[name] == pytest.approx([w.mean(), np.median(w), w.std()], abs=1e-5)
    assert (record["seconds"], record["single_seconds"], record["contamination"]) == (21, 7, 9 / 40)
    held = store.arrays("odds", record["key"])
    for name, s in scores.items():
        np.testing.assert_array_equal(held[name], s.astype(np.float32))


@pytest.mark.filterwarnings("ignore:The ranking had not settled")
def test_seeds_of_rows_with_weights_are_one_fit_each():
    X, weight = np.random.default_rng(0).normal(size=(60, 3)), np.linspace(0, 2, 60)
    settings = {"n_members": 2, "max_rounds": 3}
    for trial in run_seeds(IADC(OCSVM(), **settings), X, [3, 7], sample_weight=weight):
        alone = IADC(OCSVM(), random_state=trial.seed, **settings).fit(X, sample_weight=weight)
        for ours, theirs in zip(trial.history, alone.history_, strict=True):
            np.testing.assert_array_equal(ours.scores, theirs.scores)
        single = OCSVM(solver="nystroem", n_landmarks=8)
        (again,) = run_seeds(IADC(single, **settings), X, [trial.seed], sample_weight=weight)
        single.set_params(random_state=trial.seed).fit(X, sample_weight=weight)
        np.testing.assert_array_equal(again.single, single.anomaly_score(X))
    both = run_seeds(IADC(single, n_members=1, max_rounds=1), X, [3, 7])
    assert (both[0].single != both[1].single).any()


def test_rounds_end_when_the_last_ratio_has_settled():
    X, ratios = np.random.default_rng(1).normal(size=(80, 4)), (0.5, 0.1, 0.05)
    (trial,) = run_seeds(IADC(OCSVM(), n_members=2, max_rounds=12), X, [0], ratios=ratios)

    def at_rest(n):
        history = replace(trial.history, rounds=trial.history.rounds[:n])
        return [history.settled(r) for r in ratios]

    n = len(trial.history)
    assert all(at_rest(n)) or n == 12
    assert not any(all(at_rest(k)) for k in range(1, n))
    assert any(any(at_rest(k)) for k in range(1, n))  # one of them settled earlier


def test_a_row_has_the_mean_and_the_population_deviation_of_its_seeds():
    target = Target("AE", "ADC", "cardio", 88.0, 1.0)
    made = row("t", target, [70.0, 74.0, 78.0], 5.0, 6)
    assert (made.mean, made.seeds, made.paper_mean, made.paper_std) == (74, 3, 88, 1)
    assert made.std == pytest.approx(np.sqrt(32 / 3))
    assert (made.seconds, made.member_epochs, made.verdict) == (5, 6, "behind")
    assert mean_auroc([{"auroc": {"ADC": v}} for v in (0.1, 0.2, 0.6)], "ADC") == 30


def test_rows_of_members_that_see_all_rows_bear_the_papers_mark(tmp_path):
    store = Store(tmp_path)
    for way, gain in ((True, 0.0), (False, 0.05)):
        for setting in odds.odds_settings(SMOKE, "AE", "cardio", way):
            found = {"Single": 0.5 + gain, "ADC": 0.6 + gain, "IADC": 0.7 + gain}
            cost = {"seconds": 3.0, "single_seconds": 1.0, "member_epochs": 2}
            store.add("odds", setting, {"auroc": found, **cost})
    for variant, own in (("ADC", 60.0), ("IADC", 70.0)):
        rows = [r for r in odds_rows(store, SMOKE, variant) if r.mean is not None]
        means = {r.variant: round(r.mean, 6) for r in rows}
        assert means == {"Single": 50.0, f"{variant}-ns": own + 5, variant: own}
        seconds = {r.variant: r.seconds / r.seeds for r in rows}
        assert seconds == {"Single": 1.0, f"{variant}-ns": 3.0, variant: 3.0}


def test_a_row_of_the_scans_is_the_mean_over_seeds_of_each_metric(tmp_path):
    store, name = Store(tmp_path), "ADDM T=500"
    profile = SMOKE.with_seeds(2)
    settings = mri_settings(profile, name)
    for k, setting in enumerate(settings):
        found = {m: [0.1 * (j + 1) + 0.02 * k, 9.0, 3] for j, m in enumerate(METRICS)}
        ways = dict.fromkeys(("anoddpm", "best_anoddpm", "standard"), found)
        store.add("mri", setting, {**ways, "minutes": 2.0})
    rows = [r for r in mri_rows(store, profile) if r.mean is not None and r.variant == "standard"]
    assert [r.case for r in rows] == ["dice", "auc", "iou", "precision", "recall"]
    extra = 0.01 * (len(settings) - 1)
    wanted = [0.1 * (j + 1) + extra for j in range(5)]
    np.testing.assert_allclose([r.mean for r in rows], wanted)
    assert {(r.seeds, r.seconds) for r in rows} == {(len(settings), 120.0 * len(settings))}


METRICS = ("dice", "auroc", "iou", "precision", "recall")


def test_a_spread_is_that_of_the_sigmoids_and_that_of_the_ranks():
    rng = np.random.default_rng(0)
    scores = [{name: rng.normal(size=50) for name in spread.VARIANTS} for _ in range(3)]
    made = spread._spread_of(scores)
    for name in spread.VARIANTS:
        stacked = np.stack([own[name] for own in scores])
        assert made[name]["mean"] == pytest.approx(anomaly_std(stacked).mean(), rel=1e-5)
        assert made[name]["ranks"] == pytest.approx(rank_std(stacked).mean(), rel=1e-5)
        assert made[name]["quantiles"][2] == pytest.approx(np.median(anomaly_std(stacked)), 1e-5)


def test_what_resampling_does_to_the_spread_is_told_by_the_median(monkeypatch):
    with_it = {("AE", "a"): 0.1, ("AE", "b"): 0.5, ("AE", "c"): 3.0, ("OCSVM", "a"): 9.0}

    def made(store, profile, resample=True):
        ranks = with_it if resample else dict.fromkeys(with_it, 1.0)
        return {
            place: {"spread": {kind: {"ranks": value} for kind in ("ADC", "IADC")}}
            for place, value in ranks.items()
        }

    monkeypatch.setattr(spread, "spreads", made)
    told = spread.steadier_with_resampling(None, None)
    assert "(3 pairs)" in told
    assert "ADC spreads less with it in 2, median ratio 0.50" in told


def test_spreads_are_withheld_where_sigmoids_and_ranks_disagree_about_single():
    held = {"Single": {"mean": 0.2, "ranks": 0.05}, "ADC": {"mean": 0.1, "ranks": 0.04}}
    held["IADC"] = {"mean": 0.1, "ranks": 0.1}  # less than its sigmoid, but more than its ranks
    assert [spread.why_withheld(held, kind) == "" for kind in ("ADC", "IADC")] == [True, False]


def test_subjects_of_the_stored_slices_are_drawn_into_three_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(mri_slices, "N_TRAIN", 12)
    monkeypatch.setattr(mri_slices, "N_TUNE", 4)
    (tmp_path / "mri").mkdir()
    subject = np.repeat([f"s{k:02d}" for k in range(20)], 2)
    images = np.zeros((40, 128, 128), np.uint8)
    images[:, 40:80, 40:80] = 100
    mask = np.zeros((40, 128, 128), bool)
    mask[:, 40, 40] = mask[:, 60:62, 60] = mask[:, 60, 61] = True  # one, and three, of a 2 x 2
    held = {"img": images, "brain": images > 0, "mask": mask, "subject": subject}
    for name in ("ixi185_t1_axial128", "edinburgh22_t1_2mm128"):
        np.savez(tmp_path / "mri" / f"{name}.npz", **held)
    parts = mri_slices.ixi(52, tmp_path)
    names = {part: set(found.subject) for part, found in parts.items()}
    assert [len(names[part]) for part in ("train", "tune", "healthy")] == [12, 4, 4]
    assert set().union(*names.values()) == set(subject)
    assert names["train"] != set(sorted(set(subject))[:12])  # drawn, not in order
    sick = mri_slices.tumour_slices(52, tmp_path)
    assert np.argwhere(sick.lesion[0]).tolist() == [[24, 24]]  # most of a pixel, not a corner


@pytest.mark.filterwarnings("ignore:The ranking had not settled")
def test_new_rows_score_as_they_do_by_one_fit_per_seed():
    X, new = np.split(np.random.default_rng(0).normal(size=(70, 3)), [60])
    settings = {"n_members": 4, "max_rounds": 1}
    for trial in run_seeds(IADC(OCSVM(), **settings), X, [3, 7], unseen=new):
        model = IADC(OCSVM(), **settings, random_state=trial.seed).fit(X)
        np.testing.assert_allclose(trial.unseen[0], model.anomaly_score(new), rtol=1e-12)
        np.testing.assert_allclose(trial.single_unseen, OCSVM().fit(X).anomaly_score(new))


def test_the_first_ten_healthy_subjects_place_the_threshold_and_no_other_slices(monkeypatch):
    subject = np.repeat(np.arange(14), 6)[np.random.default_rng(0).permutation(84)]
    blank = np.zeros((84, 8, 8), bool)
    images = np.arange(84.0, dtype=np.float32)[:, None, None, None] * np.ones((1, 1, 8, 8))
    held = mri_slices.Slices(images, blank, blank, subject)
    same = dict.fromkeys(("train", "tune", "healthy"), held)
    monkeypatch.setattr(mri, "healthy_parts", lambda *_: same)
    monkeypatch.setattr(mri, "sick_slices", lambda *_: held)
    monkeypatch.setattr(mri, "pasted", lambda slices, n: slices)
    parts = mri.scene.__wrapped__(8, 0, None)
    assert set(parts.threshold.subject) <= set(range(10))
    assert set(parts.healthy.subject) <= {10, 11, 12, 13}
    for part, n in ((parts.threshold, 60), (parts.healthy, 24)):
        assert len(part.subject) == n / 3  # every third
        assert (subject[part.images[:, 0, 0, 0].astype(int)] == part.subject).all()
    few = mri.scene.__wrapped__(8, 5, None)
    assert [len(p.subject) for p in (few.threshold, few.healthy, few.sick)] == [5, 5, 5]
