"""The viewer: what it lists, what it keeps, and how its command ends."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from aberra.cli import app as commands
from aberra.errors import DataError
from aberra.viewer.catalogue import SCAN_COLUMNS, catalogue
from aberra.viewer.held import LARGEST_FILE, Held
from aberra.viewer.marks import NAME, Marks, marks_in
from aberra.viewer.serve import Door
from aberra.viewer.tables import Query, ScoreTable


def write_scores(folder, rows):
    columns = ["scan", "map", "segmentation", "score", "millilitres", "error"]
    pd.DataFrame(rows, columns=columns).to_csv(folder / "scores.csv", index=False)


# --- what is listed -----------------------------------------------------------------------------


def test_scans_are_listed_by_score_with_their_layers(results):
    found = catalogue(*results)
    assert [s.name for s in found.scans] == [
        "two.nii.gz",
        "sub/three.nii.gz",
        "one.nii.gz",
        "four.nii.gz",
    ]
    first, last = found.scans[0], found.scans[-1]
    paths = [found.files[k].path.name for k in (first.scan, first.map, first.mask)]
    assert paths == ["two.nii.gz", "two_anomaly.nii.gz", "two_segmentation.nii.gz"]
    assert (first.score, first.millilitres) == (30.0, 2.5)
    assert (last.scan, last.score, last.error) == (None, None, "four.nii.gz is cut short.")
    assert [item.kind for item in found.items] == ["scans"]


def test_without_a_table_maps_are_found_by_name(results):
    maps, scans = results
    (maps / "scores.csv").unlink()
    found = catalogue(maps, scans)
    assert [s.name for s in found.scans] == ["one.nii.gz", "sub/three.nii.gz", "two.nii.gz"]
    assert all(None not in (s.scan, s.map, s.mask) for s in found.scans)
    assert [s.scan for s in catalogue(maps).scans] == [None] * 3  # only the maps are here
    plain = catalogue(scans, pattern="t*")
    assert [(s.name, s.map) for s in plain.scans] == [
        ("sub/three.nii.gz", None),
        ("two.nii.gz", None),
    ]


def test_the_columns_are_those_that_scoring_writes():
    scans = pytest.importorskip("aberra.scoring.scans")
    assert set(scans.COLUMNS) >= SCAN_COLUMNS


@pytest.mark.parametrize("way", ["..", "absolute", "link", "link to a folder"])
def test_nothing_outside_the_folder_is_listed(results, secret, way):
    maps, _ = results
    (maps / "link.nii").symlink_to(secret)
    (maps / "folder").symlink_to(secret.parent)
    named = {
        "..": os.path.relpath(secret, maps),
        "absolute": str(secret),
        "link": "link.nii",
        "link to a folder": "folder/secret.nii",
    }[way]
    write_scores(maps, [{"scan": named, "map": named, "segmentation": named, "score": 1}])
    found = catalogue(maps)
    assert found.files == []
    assert (found.scans[0].scan, found.scans[0].map, found.scans[0].mask) == (None, None, None)
    assert "secret.nii" in " ".join(found.remarks) or "link.nii" in " ".join(found.remarks)


def test_a_table_of_scans_cannot_name_other_kinds_of_files(results):
    maps, _ = results
    (maps / "notes.txt").write_text("private")
    write_scores(maps, [{"scan": "notes.txt", "score": 1}])
    assert catalogue(maps).files == []


def test_a_file_that_becomes_a_link_is_refused_when_opened(results, secret):
    maps, scans = results
    found = catalogue(maps, scans)
    held = found.files[found.scans[0].scan]
    held.path.unlink()
    held.path.symlink_to(secret)
    with pytest.raises(DataError, match="leads out of the folder"):
        held.open()


def test_only_plain_files_of_moderate_size_are_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.nii")
    with pytest.raises(DataError, match="not a regular file"):
        Held(tmp_path / "pipe.nii", tmp_path).open()
    with (tmp_path / "big.nii").open("wb") as file:
        file.truncate(LARGEST_FILE + 1)  # takes no room on the disk
    with pytest.raises(DataError, match="1024 MB"):
        Held(tmp_path / "big.nii", tmp_path).open()
    with pytest.raises(DataError, match="No such file"):
        Held(tmp_path / "missing.nii", tmp_path).open()


# --- what is kept -------------------------------------------------------------------------------


def test_marks_last_and_can_be_taken_back(tmp_path):
    Marks(tmp_path).set("scans", "one", "accept")
    Marks(tmp_path).set("scans", "two", "reject")
    Marks(tmp_path).set("table.csv", "one", "reject")
    assert Marks(tmp_path).of("scans") == {"one": "accept", "two": "reject"}
    assert Marks(tmp_path).set("scans", "one", None) == {"two": "reject"}
    assert Marks(tmp_path).of("table.csv") == {"one": "reject"}
    assert [p.name for p in tmp_path.iterdir()] == [NAME]


def test_two_servers_keep_each_others_marks(tmp_path):
    servers = [Marks(tmp_path), Marks(tmp_path)]  # each with a lock of its own, as two processes

    def review(which):
        for k in range(15):
            servers[which % 2].set("scans", f"{which}-{k}", "accept")

    threads = [threading.Thread(target=review, args=(which,)) for which in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Marks(tmp_path).of("scans")) == 60


@pytest.mark.parametrize("held", ["{", "[]", '{"format": 1, "marks": {"scans": {"a": 1}}}'])
def test_a_strange_marks_file_is_left_alone(tmp_path, held):
    (tmp_path / NAME).write_text(held)
    marks = Marks(tmp_path)
    assert "Move it away" in marks.trouble()
    with pytest.raises(DataError, match="Move it away"):
        marks.set("scans", "one", "accept")
    assert (tmp_path / NAME).read_text() == held


def test_a_huge_marks_file_is_not_read(tmp_path):
    """It takes no place on the disk, and would take all memory."""
    with (tmp_path / NAME).open("wb") as file:
        file.truncate(1 << 40)
    assert "more than 128 MB" in Marks(tmp_path).trouble()
    with pytest.raises(DataError, match="more than 128 MB"):
        marks_in(tmp_path / NAME)


def test_marks_are_not_written_through_a_link(tmp_path, secret):
    (tmp_path / NAME).symlink_to(secret)
    with pytest.raises(DataError, match="is a link"):
        Marks(tmp_path).set("scans", "one", "accept")
    assert secret.read_bytes() == b"SECRET"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_not_writable_is_reported(tmp_path):
    tmp_path.chmod(0o555)
    try:
        assert "not writable" in Marks(tmp_path).trouble()
        with pytest.raises(DataError, match="was not saved"):
            Marks(tmp_path).set("scans", "one", "accept")
    finally:
        tmp_path.chmod(0o755)


def test_a_folder_that_is_gone_is_reported(tmp_path):
    marks = Marks(tmp_path / "gone")
    assert "not writable" in marks.trouble()
    with pytest.raises(DataError, match="was not saved: No such file"):
        marks.set("scans", "one", "accept")


# --- tables -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scores():
    generator = np.random.default_rng(3)
    names = np.array(["age", "Income", "balance"])
    return pd.DataFrame(
        {
            "id": [f"c{k:03d}" for k in range(250)],
            "score": generator.permutation(250) / 10,
            "percentile": generator.uniform(0, 100, 250),
            "flag": generator.random(250) < 0.2,
            "reason_1": names[generator.integers(0, 3, 250)],
            "reason_2": [None, "age"] * 125,
            "reason_3": None,
        }
    )


@pytest.fixture(scope="module", params=["csv", "parquet"])
def score_table(scores, tmp_path_factory, request):
    path = tmp_path_factory.mktemp("table") / f"scores.{request.param}"
    if request.param == "csv":
        scores.to_csv(path, index=False)
    else:
        scores.to_parquet(path, row_group_size=60)
    return ScoreTable(Held(path, path.parent))


@pytest.mark.parametrize("column", ["id", "score", "percentile", "flag", "reason_1"])
@pytest.mark.parametrize("descending", [True, False])
def test_pages_are_sorted_as_pandas_sorts(score_table, scores, column, descending):
    query = Query(sort=column, descending=descending, offset=40, limit=70)
    page = score_table.page(query, {})
    wanted = scores.sort_values(column, ascending=not descending)[column].iloc[40:110]
    assert [line[column] for line in page["rows"]] == wanted.tolist()
    assert (page["total"], page["matching"]) == (250, 250)
    assert all(scores.id[line["row"]] == line["id"] for line in page["rows"])


@pytest.mark.slow
@pytest.mark.parametrize("find", ["inc", "C01", "age", "nothing", "%"])
@pytest.mark.parametrize("flagged", [True, False])
def test_rows_are_filtered_as_pandas_filters(score_table, scores, find, flagged):
    page = score_table.page(Query(find=find, flagged=flagged, limit=500), {})
    text = scores[["id", "reason_1", "reason_2"]].fillna("").agg(" ".join, axis=1)
    keep = text.str.contains(find, case=False, regex=False)
    keep &= scores.flag if flagged else True
    assert {line["id"] for line in page["rows"]} == set(scores.id[keep])
    assert page["matching"] == keep.sum()


def test_marked_rows_can_be_asked_for(score_table):
    marks = {"c003": "accept", "c200": "reject", "gone": "accept", "\ud800": "accept"}
    page = score_table.page(Query(marked="accept"), marks)
    assert [(line["id"], line["mark"]) for line in page["rows"]] == [("c003", "accept")]
    assert score_table.name(3) == "c003"


def test_identifiers_stay_as_they_are_written(tmp_path):
    for text, ids in (
        ("id,score\n0012,1\n13,2\n", ["0012", "13"]),
        ("id,score\n9,1\n10,2\n", [9, 10]),
    ):
        (tmp_path / "a.csv").write_text(text)
        page = ScoreTable(Held(tmp_path / "a.csv", tmp_path)).page(
            Query(sort="id", descending=False), {}
        )
        assert [line["id"] for line in page["rows"]] == ids


def test_short_tables_get_what_they_lack(tmp_path):
    (tmp_path / "a.csv").write_text("score\n1\nnan\n3\n")
    page = ScoreTable(Held(tmp_path / "a.csv", tmp_path)).page(Query(find="2"), {})
    assert page["columns"] == ["id", "score"]
    assert [(line["id"], line["score"]) for line in page["rows"]] == [(2, 3.0)]
    (tmp_path / "b.csv").write_text("image,score,flag\nx.png,2,true\ny.png,nan,false\n")
    page = ScoreTable(Held(tmp_path / "b.csv", tmp_path)).page(Query(), {})
    assert [(line["id"], line["score"]) for line in page["rows"]] == [("x.png", 2), ("y.png", None)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"id,x\n1,2\n", "no column score"),
        ("a.csv", b"id,score\n1,high\n", "wrong type"),
        ("a.csv", b"", "cannot be read as a table"),
        ("a.parquet", b"PAR1 no", "cannot be read as a table"),
    ],
)
def test_bad_tables_are_explained(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        ScoreTable(Held(tmp_path / name, tmp_path))


# --- the command --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing"], "There is no missing"),
        (["."], "nothing to show"),
        (["notes.txt"], "The viewer cannot show"),
        ([".", "--scans", "missing"], "Give --scans the folder"),
    ],
)
def test_the_command_says_what_is_wrong(tmp_path, monkeypatch, arguments, message):
    (tmp_path / "notes.txt").write_text("no")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(commands, ["view", *arguments, "--no-browser"])
    assert result.exit_code == 3
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_a_port_that_is_taken(results):
    taken = Door()
    with taken.socket:
        result = CliRunner().invoke(commands, ["view", str(results[0]), "--port", str(taken.port)])
    assert result.exit_code == 3
    assert f"Port {taken.port} cannot be used" in result.stderr


def test_the_missing_extra_is_named(results, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    result = CliRunner().invoke(commands, ["view", str(results[0])])
    assert result.exit_code == 4
    assert 'pip install "aberra[view]"' in result.stderr


def start_command(*arguments):
    command = [sys.executable, "-m", "aberra", "--json", "view"]
    process = subprocess.Popen(
        [*command, *arguments, "--no-browser"], stdout=subprocess.PIPE, text=True
    )
    line = process.stdout.readline()
    process.stdout.close()
    address = json.loads(line)["url"]
    return process, address


@pytest.mark.slow
def test_marks_survive_a_killed_server(results):
    maps, scans = results
    for index, mark in ((0, "accept"), (1, "reject")):
        process, address = start_command(str(maps), "--scans", str(scans))
        base = address.partition("/?")[0]
        origin = base.rpartition("/")[0]
        try:
            with httpx.Client(base_url=base, headers={"origin": origin}, trust_env=False) as client:
                client.get(address)
                answer = client.put(f"/api/0/marks/{index}", json={"mark": mark})
                assert answer.status_code == 200
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
    assert Marks(maps).of("scans") == {"two.nii.gz": "accept", "sub/three.nii.gz": "reject"}


@pytest.mark.slow
def test_the_command_listens_here_only_and_ends_quietly(results):
    process, address = start_command(str(results[0]))
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{16}/\?token=[\w-]{32}", address)
    try:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if httpx.get(address, trust_env=False).status_code == 200:
                break
        table = Path("/proc/net/tcp").read_text() if Path("/proc/net/tcp").exists() else ""
        number = int(re.search(r":(\d+)/", address)[1])
        port = f":{number:04X} "
        listening = [row.split()[1] for row in table.splitlines() if port in row and " 0A " in row]
        assert set(listening) <= {f"0100007F{port.strip()}"}
    finally:
        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=20)
    assert code == 0
