"""Reproduction: cells are what one fit gives, survive, and become the papers' tables."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from typer.testing import CliRunner

from aberra import IADC, OCSVM, AutoEncoder, DeepSVDD, HybridOCSVM, MultiView
from aberra.cli import app
from aberra.methods import in_paper, named
from aberra.reproduce import unseen, unseen_tables
from aberra.reproduce.claims import claims_text, verdicts
from aberra.reproduce.experiment import Experiment
from aberra.reproduce.experiments import EXPERIMENTS
from aberra.reproduce.mri_models import MRI_ROWS, mri_settings
from aberra.reproduce.mri_table import mri_targets
from aberra.reproduce.odds import (
    KEPT_RATIO,
    OUTLIER_RATIOS,
    OddsSize,
    odds_jobs,
    odds_settings,
    own_jobs,
)
from aberra.reproduce.odds_tables import odds_rows
from aberra.reproduce.page import page
from aberra.reproduce.profiles import profiles
from aberra.reproduce.seeds import run_seeds
from aberra.reproduce.settings import detector_names, detector_of, ensemble_of, settings_of
from aberra.reproduce.spread import spread_falls, spread_rows, spreads, why_withheld
from aberra.reproduce.store import Store, append_line, identity_of, key_of, read_lines
from aberra.reproduce.tables import Row, as_csv, as_latex, as_markdown, targets
from aberra.reproduce.unseen_tables import unseen_rows
from aberra.reproduce.work import Job, finished, stale

SMOKE = profiles()["smoke"]


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).normal(size=(80, 4))
    X[:8] += 4
    return X


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The ranking had not settled")
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("resample", [True, False, "subsample"])
@pytest.mark.parametrize(
    "detector",
    [
        MultiView(),
        OCSVM(),
        AutoEncoder(epochs=3, batch_size=32),
        HybridOCSVM(pretrain_epochs=3, batch_size=32),
    ],
    ids=["multiview", "ocsvm", "autoencoder", "hybrid"],
)
def test_seeds_run_together_are_the_bytes_of_one_fit_each(detector, resample, weighted, rows):
    weight = np.linspace(0, 2, len(rows)) if weighted else None
    settings = {"n_members": 3, "max_rounds": 4, "resample": resample}
    trials = run_seeds(IADC(detector, **settings), rows, [3, 7], sample_weight=weight)
    for trial in trials:
        alone = IADC(detector, random_state=trial.seed, **settings)
        history = alone.fit(rows, sample_weight=weight).history_
        assert len(history) == len(trial.history)
        for ours, theirs in zip(trial.history, history, strict=True):
            assert ours.scores.tobytes() == theirs.scores.tobytes()
            assert ours.crossings == theirs.crossings
        single = clone(detector).set_params(random_state=trial.seed)
        single.fit(rows, sample_weight=weight)
        np.testing.assert_array_equal(trial.single, single.anomaly_score(rows))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The ranking had not settled")
@pytest.mark.parametrize("start", ["gentle", "informed", "advised"])
def test_seeds_run_together_begin_as_one_fit_does(start, rows):
    settings = {"n_members": 2, "max_rounds": 3, "start": start}
    weight = np.linspace(0, 2, len(rows))
    for trial in run_seeds(IADC(OCSVM(), **settings), rows, [3, 7], sample_weight=weight):
        alone = IADC(OCSVM(), random_state=trial.seed, **settings).fit(rows, sample_weight=weight)
        for ours, theirs in zip(trial.history, alone.history_, strict=True):
            assert ours.scores.tobytes() == theirs.scores.tobytes()


def test_rounds_go_on_until_every_ratio_has_settled(rows):
    model = IADC(OCSVM(), n_members=2, max_rounds=12)
    (short,) = run_seeds(model, rows, [0], ratios=(0.5,))
    (long,) = run_seeds(model, rows, [0], ratios=(0.5, 0.1, 0.05))
    assert len(long.history) >= len(short.history)
    assert long.history.replay(0.5) == short.history.kept
    (all_rounds,) = run_seeds(model, rows, [0], rounds_at_least=12)
    assert len(all_rounds.history) == 12


def test_unseen_rows_are_scored_by_the_members_of_each_round(rows):
    (trial,) = run_seeds(IADC(OCSVM(), n_members=2, max_rounds=3), rows, [0], unseen=rows)
    np.testing.assert_array_equal(trial.single_unseen, trial.single)
    for new, line in zip(trial.unseen, trial.history, strict=True):
        np.testing.assert_allclose(new, line.scores)


def test_keys_tell_every_setting_apart():
    setting = odds_settings(SMOKE, "AE", "cardio", True)[0]
    assert key_of(setting) == key_of(dict(reversed(setting.items())))
    for name in setting:
        assert key_of({**setting, name: "other"}) != key_of(setting)
    deeper = {**setting, "params": {**setting["params"], "epochs": 99}}
    assert key_of(deeper) != key_of(setting)


def test_a_line_that_was_cut_short_costs_only_itself(tmp_path):
    path = tmp_path / "cells.jsonl"
    append_line(path, {"key": "a"})
    with path.open("a") as file:
        file.write('{"key": "b", "val')
    append_line(path, {"key": "c"})
    assert [line["key"] for line in read_lines(path)] == ["a", "c"]


@pytest.mark.slow
def test_many_processes_write_whole_lines(tmp_path):
    code = (
        "import sys; from pathlib import Path; from aberra.reproduce.store import append_line\n"
        "for k in range(200): append_line(Path(sys.argv[1]), {'who': sys.argv[2], 'x': 'y' * 3000})"
    )
    path = tmp_path / "cells.jsonl"
    running = [subprocess.Popen([sys.executable, "-c", code, path, str(k)]) for k in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert len(list(read_lines(path))) == 600


def test_a_claim_keeps_others_out_and_ends_with_its_process(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from aberra.reproduce.store import Store\n"
        "with Store(Path(sys.argv[1])).claim('job') as mine:\n"
        "    print(mine, flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline().strip() == "True"
    store = Store(tmp_path)
    with store.claim("job") as mine:
        assert not mine
    other.kill()
    other.wait()
    other.stdout.close()
    with store.claim("job") as mine:
        assert mine


def test_arrays_are_kept_beside_the_numbers(tmp_path):
    store, setting = Store(tmp_path), {"seed": 0}
    store.add("odds", setting, {"auroc": 1.0}, {"ADC": np.arange(3.0)})
    record = store.read("odds")[key_of(setting)]
    assert record["setting"] == setting
    assert record["torch"]
    assert record["processor"]
    if "cpu family" in (known.read_text() if (known := Path("/proc/cpuinfo")).exists() else ""):
        assert "cpu family" in record["processor"]  # kinds that round otherwise share a name
    np.testing.assert_array_equal(store.arrays("odds", record["key"])["ADC"], [0, 1, 2])
    assert store.arrays("odds", "nothing") is None


@pytest.mark.parametrize(
    ("mean", "std", "paper", "paper_std", "less", "verdict"),
    [
        (90.0, 0.5, 88.0, 1.0, False, "ahead"),
        (90.0, 2.5, 88.0, 1.0, False, "level"),
        (90.0, 0.5, 88.0, 2.0, False, "level"),
        (86.0, 0.5, 88.0, 1.0, False, "behind"),
        (86.0, 0.5, 88.0, 1.0, True, "ahead"),
        (86.0, 0.5, None, None, False, "paper had none"),
        (None, None, 88.0, 1.0, False, "not run"),
    ],
)
def test_verdicts(mean, std, paper, paper_std, less, verdict):
    row = Row("t", "AE", "ADC", "cardio", mean, std, 5, paper, paper_std, less_is_better=less)
    assert row.verdict == verdict
    compared = verdict in ("ahead", "level", "behind")
    assert replace(row, withheld="why").verdict == ("withheld" if compared else verdict)
    assert replace(row, withheld="why", stale=True).verdict == ("stale" if compared else verdict)


def test_spreads_are_judged_where_the_ranks_agree():
    spread = {
        "Single": {"mean": 0.2, "ranks": 0.2},
        "ADC": {"mean": 0.1, "ranks": 0.1},
        "IADC": {"mean": 0.1, "ranks": 0.3},
    }
    said = {variant: why_withheld(spread, variant) for variant in spread}
    assert said["ADC"] == ""
    assert "scale" in said["Single"]
    assert "opposite" in said["IADC"]


def test_reduced_images_get_no_verdict():
    smoke = profiles()["smoke"]
    said = unseen_tables.why_withheld(smoke, "cifar10")
    assert said == "2 of 10 classes, 16 instead of 32 pixels a side"
    assert unseen_tables.why_withheld(smoke, "mnist") == "2 of 10 classes"
    for whole in (profiles()["small"], profiles()["paper"]):
        assert unseen_tables.why_withheld(whole, "mnist") == ""
        assert unseen_tables.why_withheld(whole, "cifar10") == ""


def test_withheld_verdicts_are_counted_by_their_reason():
    row = Row("t", "AE", "ADC", "a", 90.0, 0.5, 5, 88.0, 1.0)
    spread = replace(row, less_is_better=True, withheld="scale")
    rows = {"unseen": [row, replace(row, withheld="pixels")], "spread": [spread, spread, spread]}
    said = verdicts(rows)
    assert "| spread | 0 | 0 | 0 | 3 | 0 | 0 | 0 |" in said
    assert "| **all** | 1 | 0 | 0 | 4 | 0 | 0 | 0 |" in said
    assert "withheld on 3 spreads" in said
    assert "on 1 cells of images" in said


def test_what_contamination_costs_is_a_mean_of_cells_whatever_their_seeds(tmp_path):
    store, profile = Store(tmp_path), profiles()["smoke"].with_seeds(2)
    found = {("AE", 0): (0.8, 0.9), ("AE", 1): (0.9, 1.0), ("RSRAE", 0): (0.6, 0.7)}
    found |= {("RSRAE", 1): (0.1,), ("OCSVM", 0): (0.3, 0.3)}  # a class lacks; no network
    for job in unseen.image_jobs(profile, "mnist"):
        (s,) = job.settings
        values = found.get((s["detector"], s["seed"]), ())
        if s["contamination"] == 0.1 and s["class"] < len(values):
            auroc = {"Single": values[s["class"]], "ADC": 0.5, "IADC": 0.75}
            cost = {"seconds": 1.0, "single_seconds": 1.0, "member_epochs": 1}
            store.add("unseen", s, {"auroc": auroc, **cost})
    (said,) = unseen_tables.cost_of_contamination(store, profile, "mnist")
    assert said.splitlines()[4:] == ["| 10% | 2 | 77.5 | 50.0 | 75.0 |"]
    nothing = unseen_tables.cost_of_contamination(store, profile, "cifar10")
    assert nothing == ["- **cifar10**: not run."]


def test_a_cell_of_an_earlier_version_is_shown_as_stale_and_computed_again(tmp_path):
    store, profile = Store(tmp_path), profiles()["smoke"]
    job = next(job for job in odds_jobs(profile) if job.title == "AE on cardio")
    old, new = ({**job.settings[0], "engine": version} for version in (1, 2))
    record = {"auroc": dict.fromkeys(("Single", "ADC", "IADC"), 0.7), "seconds": 1.0}
    record |= {"single_seconds": 1.0, "member_epochs": 1}
    store.add("odds", old, record)
    assert new in job.missing(store)
    (found,) = finished(store, [job])
    assert found["stale"]
    (row,) = (r for r in odds_rows(store, profile, "IADC") if r.mean and r.variant == "IADC")
    assert (row.verdict, row.note) == ("stale", "computed by an earlier version of the code")
    assert "70.0†" in as_markdown([row])
    store.add("odds", new, {**record, "auroc": dict.fromkeys(record["auroc"], 0.8)})
    assert new not in job.missing(store)
    assert not stale(finished(store, [job]))


def test_every_cell_of_the_papers_has_a_row(tmp_path):
    store, found = Store(tmp_path), {}
    for name, experiment in EXPERIMENTS.items():
        if experiment.rows:
            for row in experiment.rows(store, SMOKE):
                found[name, row.detector, row.variant, row.case] = row
    tables = {
        "odds_adc_auc": "odds-adc",
        "odds_iadc_auc": "odds-iadc",
        "odds_score_std": "odds-spread",
        "mnist_unseen_auc": "mnist-unseen",
        "cifar10_unseen_auc": "cifar10-unseen",
    }
    cells = [(table, cell) for file, table in tables.items() for cell in targets(file)]
    for table, cell in cells:
        row = found[table, cell.detector, cell.variant, cell.case]
        assert (row.paper_mean, row.paper_std, row.mean) == (cell.mean, cell.std, None)
    scans = mri_targets()
    for cell in scans:
        row = found["addm-mri", cell.detector, cell.variant, cell.case]
        assert (row.paper_mean, row.mean) == (cell.mean, None)
    assert len(cells) + len(scans) == 423


def test_tables_in_three_languages():
    rows = [
        Row("t", "AE", "ADC", "a_1", 90.04, 0.5, 5, 88.0, 1.0),
        Row("t", "AE", "ADC", "b&2", 80.0, 0.0, 1),
        Row("t", "AE", "IADC", "a_1"),
    ]
    assert as_markdown(rows).splitlines()[2] == "| AE | ADC | 90.0 ± 0.5 (88.0) | 80.0 |"
    assert r"b\&2" in as_latex(rows)
    assert r"90.0 $\pm$ 0.5 (88.0) & 80.0 \\" in as_latex(rows)
    lines = as_csv(rows).splitlines()
    assert lines[1] == "t,AE,ADC,a_1,90.04,0.5,5,88,1,2.04,ahead,0,0,"
    html = page({"t": ("<b>", rows, 1, ("method", "protocol"))}, {"f": ("x", b"<svg/>")})
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert ">protocol<" in html


def test_contamination_is_the_share_of_the_whole(tmp_path):
    fake_digits(tmp_path)
    for ratio in (0.2, 0.0):
        setting = {"images": "mnist", "class": 1, "contamination": ratio, "normal": 16, "test": 3}
        scene = unseen.scenario({**setting, "seed": 0, "pixels": 28}, tmp_path)
        assert scene.dirty.mean() == ratio
        assert (~scene.dirty).sum() == 16
        assert len(scene.test) == 30
        assert scene.odd.sum() == 27
        # Training images are even numbers of grey, test images odd: none has crossed over.
        assert (np.round(scene.train * 255) % 2 == 0).all()
        assert (np.round(scene.test * 255) % 2 == 1).all()
    small = unseen.scenario({**setting, "seed": 0, "pixels": 14}, tmp_path)
    assert small.train.shape == (16, 1, 14, 14)
    np.testing.assert_allclose(small.train.mean(), scene.train.mean(), rtol=1e-5)


def test_every_cell_is_judged_on_the_same_test_images(tmp_path):
    fake_digits(tmp_path)
    setting = {"images": "mnist", "contamination": 0.1, "normal": 16, "test": 3, "pixels": 28}
    first, *others = (
        unseen.scenario({**setting, "class": label, "seed": seed}, tmp_path)
        for label, seed in ((1, 0), (1, 1), (2, 0))
    )
    for scene in others:
        np.testing.assert_array_equal(scene.test, first.test)
        assert not np.array_equal(scene.train, first.train)


def fake_digits(folder):
    rng = np.random.default_rng(0)
    (folder / "images").mkdir()
    held = {}
    for part, odd in (("train", 0), ("test", 1)):
        held[f"x_{part}"] = (rng.integers(0, 120, (200, 28, 28)) * 2 + odd).astype(np.uint8)
        held[f"y_{part}"] = np.repeat(np.arange(10), 20).astype(np.uint8)
    np.savez(folder / "images" / "mnist.npz", **held)


def test_profiles_say_what_they_reduce():
    paper, small = (profiles()[name].size("odds", OddsSize) for name in ("paper", "small"))
    assert paper.seeds == 10
    assert paper.epochs == small.epochs == 1.0
    more = profiles()["small"].with_seeds(7)
    assert more.size("odds", OddsSize).few_seeds == 7
    assert {len(mri_settings(more, name)) for name in MRI_ROWS} == {1, 7}
    assert json.dumps(odds_settings(profiles()["paper"], "DAGPR", "shuttle", False))


def test_a_cheap_detector_may_have_more_images():
    cells = [s for job in unseen.image_jobs(profiles()["small"], "mnist") for s in job.settings]
    found = {(s["detector"] == "OCSVM", s["normal"]) for s in cells}
    assert found == {(True, 1500), (False, 1000)}


def test_image_tables_say_what_was_reduced_and_what_is_not_our_default():
    words = unseen.image_reduced(profiles()["small"], "mnist")
    assert "16% of the epochs (RSRAE 8%, DAGPR 2%), 16 images a step" in words
    assert "1000 normal images (OCSVM 1500) of 28 x 28 pixels" in words
    assert words.endswith("; OCSVM with gamma 0.0625, Deep SVDD with learning_rate 0.0001.")
    cifar = unseen.image_reduced(profiles()["small"], "cifar10")
    assert cifar.endswith("16 images a step; Deep SVDD with learning_rate 0.0001.")
    assert unseen.image_reduced(profiles()["smoke"], "cifar10").endswith("images a step.")
    settings = dict(unseen.variants(profiles()["small"].size("mnist", unseen.ImageSize))[-3:])
    assert settings["Deep SVDD"]["learning_rate"] == 1e-4
    assert settings["Deep SVDD"]["pretrain_epochs"] == 16
    assert (settings["RSRAE"]["epochs"], settings["DAGPR"]["pretrain_epochs"]) == (8, 2)
    assert settings["RSRAE"]["learning_rate"] == 1e-3


def test_best_and_worst_machine_are_chosen_for_each_contamination():
    def record(nu, contamination, auroc):
        setting = {"detector": "OCSVM", "contamination": contamination, "params": {"nu": nu}}
        return {"setting": setting, "auroc": {"Single": auroc}}

    records = [record(0.1, 0, 0.9), record(0.5, 0, 0.8), record(0.1, 0.2, 0.6)]
    records += [record(0.5, 0.2, 0.7), {"setting": {"detector": "AE"}}]
    for which, expected in (("Best", [0.9, 0.7]), ("Worst", [0.8, 0.6])):
        found = unseen_tables._of_detector(records, f"OCSVM ({which})")
        assert [r["auroc"]["Single"] for r in found] == expected


def test_detectors_are_those_of_the_register_by_the_papers_names():
    names = ["OCSVM", "OCSVM-H", "AE", "Deep SVDD", "RSRAE", "DAGPR"]
    assert detector_names() == names
    setting = {"detector": "Deep SVDD", "params": settings_of("Deep SVDD", 0.1, batch_size=7)}
    detector = detector_of(setting)
    assert type(detector) is DeepSVDD
    assert (detector.epochs, detector.pretrain_epochs, detector.batch_size) == (5, 10, 7)
    with pytest.raises(KeyError):
        in_paper("")


WHERE_IT_RUNS = {"fdr", "device", "precision", "checkpoint", "checkpoint_minutes", "random_state"}


@pytest.mark.parametrize("profile", ["smoke", "small", "paper"])
@pytest.mark.parametrize("name", MRI_ROWS)
def test_rows_of_the_mri_table_state_every_setting(name, profile):
    setting = mri_settings(profiles()[profile], name)[0]
    model = named(MRI_ROWS[name].kind).load()(**setting["params"])
    model._validate_params()
    assert set(model.get_params()) - set(setting["params"]) <= WHERE_IT_RUNS


def test_a_new_table_is_one_entry(tmp_path, monkeypatch):
    toy = Experiment(
        "toy",
        "A toy",
        lambda profile: [Job("toy", "toy", ({"experiment": "toy", "seed": 0},), compute_toy)],
        rows=lambda store, profile: [
            Row("toy", "AE", "ADC", "a", held["auroc"]) for held in store.read("toy").values()
        ],
        claims=lambda store, profile: [f"- **Toys are {len(store.read('toy'))}**."],
        chapter="Toys",
    )
    monkeypatch.setitem(EXPERIMENTS, "toy", toy)
    words = ["--json", "reproduce", "toy", "--profile", "smoke", "--out", str(tmp_path)]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert "| AE | ADC | 90.0 |" in (tmp_path / "toy.md").read_text()
    assert "toy,AE,ADC,a,90," in (tmp_path / "TABLE.csv").read_text()
    assert "## Toys\n\n- **Toys are 1**." in (tmp_path / "claims.md").read_text()
    assert 'id="toy"' in (tmp_path / "index.html").read_text()


def compute_toy(settings, store, data_dir):
    for setting in settings:
        store.add("toy", setting, {"auroc": 90.0})


@pytest.mark.slow
def test_stored_cells_are_found_by_the_settings_of_today():
    store = Store(Path(__file__).parents[2] / "results")
    jobs = [
        job
        for profile in (profiles()["small"], profiles()["paper"])
        for experiment in EXPERIMENTS.values()
        for job in experiment.jobs(profile)
    ]
    known = {identity_of(setting) for job in jobs for setting in job.settings}
    for family in {job.family for job in jobs}:
        lost = [r for r in store.read(family).values() if identity_of(r["setting"]) not in known]
        assert not lost, f"{family}: the settings of {len(lost)} stored cells have changed"


def test_our_rows_begin_in_our_way_and_the_papers_in_theirs(tmp_path):
    (theirs,) = {ensemble_of(s).start for job in odds_jobs(SMOKE) for s in job.settings}
    ours = {s["detector"]: ensemble_of(s).start for job in own_jobs(SMOKE) for s in job.settings}
    networks = dict.fromkeys(("AE", "Deep SVDD", "RSRAE"), "advised")
    assert (theirs, ours) == ("equal", {"OCSVM-H": "informed", **networks})
    store, job = (
        Store(tmp_path),
        next(j for j in own_jobs(SMOKE) if j.settings[0]["set"] == "cardio"),
    )
    for setting in job.settings:
        aurocs = {"Single": 0.5, "ADC": 0.6, "IADC": 0.9}
        record = {"auroc": aurocs, "seconds": 1.0, "single_seconds": 1.0, "member_epochs": 1}
        store.add("odds", setting, record)
    rows = {r.variant: r for r in odds_rows(store, SMOKE, "IADC") if r.mean is not None}
    assert list(rows) == ["IADC, our start"]
    assert rows.popitem()[1].verdict == "paper had none"


def test_only_the_figure_pays_for_every_outlier_ratio():
    ways = {way: odds_settings(SMOKE, "AE", "cardio", way)[0]["ratios"] for way in (True, False)}
    assert ways == {True: list(OUTLIER_RATIOS), False: [KEPT_RATIO]}


def _add_cells(store, detector, name, resample, aurocs, rng):
    """Add made-up cells whose rounds and spreads are known."""
    for setting, (single, adc, iadc) in zip(
        odds_settings(SMOKE, detector, name, resample), aurocs, strict=True
    ):
        record = {
            "auroc": {"Single": single, "ADC": adc, "IADC": iadc},
            "rounds": [adc, iadc, iadc - 0.1],
            "crossings": {str(r): [10, 30] for r in setting["ratios"]},
            "kept": {str(r): 1 for r in setting["ratios"]},
            "seconds": 1.0,
            "single_seconds": 1.0,
            "member_epochs": 10,
        }
        steady, restless = np.arange(40.0), rng.permutation(np.arange(40.0))
        arrays = {"Single": restless, "ADC": steady, "IADC": 50 * steady}
        store.add("odds", setting, record, arrays)


def test_claims_count_pairs_and_name_the_exceptions(tmp_path):
    store, rng = Store(tmp_path), np.random.default_rng(0)
    up, down = [(0.5, 0.6, 0.7), (0.5, 0.6, 0.8)], [(0.9, 0.8, 0.85), (0.9, 0.8, 0.85)]
    _add_cells(store, "AE", "cardio", True, up, rng)
    _add_cells(store, "AE", "cardio", False, down, rng)
    _add_cells(store, "RSRAE", "thyroid", True, down, rng)
    rows = [Row("t", "AE", "IADC", "a", 75.0, 1.0, 2, 70.0, 2.0), Row("t", "AE", "IADC", "b")]
    text = claims_text(EXPERIMENTS.values(), store, SMOKE, {"t": rows})
    assert "| t | 1 | 0 | 0 | 0 | 0 | 0 | 1 |" in text
    assert "**ADC over Single**: ahead in 1 of 2 pairs, +0.0 on average" in text
    assert "It fails for: RSRAE on thyroid (-10.0)." in text
    assert "**Resampling helps ADC**: ahead in 0 of 1 pairs, -20.0" in text
    assert "the first (ADC) 70.0, the last that was run 70.0, the best in hindsight" in text
    assert "round that is kept has 80.0" in text
    assert "patience 1 80.0, the round of the stop instead of the calmest 70.0, always" in text
    steadier = "(1 pairs), deviation of the ranks over seeds: ADC spreads less with it in 0"
    assert steadier in text
    ranks = text[text.index("Deviation of the ranks") :]
    assert "ADC has less than Single in 2, median ratio 0.00" in ranks
    assert "**cifar10**: not run." in text


def test_a_single_detector_that_does_not_spread_at_all_can_be_compared(tmp_path):
    store = Store(tmp_path)
    for setting in odds_settings(SMOKE, "AE", "cardio", True):
        same, moved = np.arange(40.0), np.roll(np.arange(40.0), setting["seed"])
        store.add("odds", setting, {}, {"Single": same, "ADC": same, "IADC": moved})
    told = spread_falls(store, SMOKE)
    assert "ADC has less than Single in 0, median ratio 1.00; IADC has less than" in told
    assert "IADC has more for: AE on cardio" in told


def test_a_spread_takes_as_many_seeds_as_have_their_scores(tmp_path):
    store, profile = Store(tmp_path), SMOKE.with_seeds(4)
    settings = odds_settings(profile, "AE", "cardio", True)
    for setting in settings:
        moved = np.roll(np.arange(40.0), setting["seed"])
        arrays = None if setting["seed"] == 3 else dict.fromkeys(("Single", "ADC", "IADC"), moved)
        store.add("odds", setting, {}, arrays)
    first = spreads(store, profile)["AE", "cardio"]
    assert first["setting"]["seeds"] == [0, 1, 2]
    # Kept once, it needs no scores any longer; one seed has no spread.
    for path in (tmp_path / "arrays" / "odds").iterdir():
        path.unlink()
    assert spreads(store, profile)["AE", "cardio"]["spread"] == first["spread"]
    (row,) = (r for r in spread_rows(store, profile) if r.mean is not None and r.variant == "ADC")
    assert row.seeds == 3
    store.add("odds", odds_settings(profile, "AE", "thyroid", True)[0], {}, arrays)
    assert list(spreads(store, profile)) == [("AE", "cardio")]


def test_a_spread_that_depends_on_the_scale_gets_no_verdict(tmp_path):
    store, rng = Store(tmp_path), np.random.default_rng(0)
    for setting in odds_settings(SMOKE.with_seeds(3), "AE", "cardio", True):
        drawn = np.roll(np.sort(rng.normal(size=40)), setting["seed"])
        far = 50 + np.arange(40.0)[::-1]  # at the end of the sigmoid: no spread whatever the ranks
        ranks = rng.permutation(far) if setting["seed"] else far
        store.add("odds", setting, {}, {"Single": drawn, "ADC": ranks, "IADC": far})
    rows = spread_rows(store, SMOKE.with_seeds(3))
    seen = {r.variant: r for r in rows if r.mean is not None}
    assert {name: r.verdict == "withheld" for name, r in seen.items()} == {
        "Single": True, "ADC": True, "IADC": False,
    }  # fmt: skip
    assert seen["ADC"].mean < seen["Single"].mean


def test_a_seed_of_the_image_tables_counts_when_all_its_classes_are_there(tmp_path):
    store = Store(tmp_path)
    settings = [
        job.settings[0]
        for job in unseen.image_jobs(SMOKE, "mnist")
        if job.settings[0]["detector"] == "AE" and job.settings[0]["contamination"] == 0.2
    ]
    means = []
    for setting, value in zip(settings, (0.6, 0.9), strict=True):
        record = {
            "auroc": dict.fromkeys(("Single", "ADC", "IADC"), value),
            "transductive": dict.fromkeys(("Single", "ADC", "IADC"), value),
            "seconds": 1.0,
            "single_seconds": 1.0,
            "member_epochs": 1,
        }
        store.add("unseen", setting, record)
        cell = next(
            row
            for row in unseen_rows(store, SMOKE, "mnist")
            if (row.detector, row.variant, row.case) == ("AE", "IADC", "0.20")
        )
        means.append(cell.mean)
    assert means == [None, pytest.approx(75.0)]
