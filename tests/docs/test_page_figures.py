"""Figures that pages tell in words or in tables of their own are those of results/."""

import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
OURS = {"IADC()": "IADC", "ADC()": "ADC", "IsolationForest": "IForest"}


def read(name):
    return (ROOT / name).read_text("utf-8")


def cells(line):
    return [cell.strip().strip("*") for cell in line.strip().strip("|").split("|")]


def table(text, head):
    """Return the first table whose head begins so: the first column of a row, and its cells."""
    lines = text[text.index(head) :].splitlines()
    body = [cells(line) for line in lines[2:]]
    rows = body[: next((k for k, row in enumerate(body) if row == [""]), len(body))]
    return cells(lines[0])[1:], {row[0]: row[1:] for row in rows}


def race(text):
    """Return AUROC, AP and rank of every method on the 402 tables, with the digits of the pages."""
    found = table(text, "| method | AUROC | AP | mean rank")[1]
    return {m: [f"{float(v):.1f}" for v in row[:3]] for m, row in found.items()}


@pytest.mark.parametrize("page", ["README.md", "docs/comparison.md"])
def test_the_race_on_real_tables_is_told_as_it_was_measured(page):
    measured = race(read("results/many_tables.md"))
    head = re.search(r"^\| \|.* isotree .*$", read(page), re.MULTILINE)[0]
    methods, rows = table(read(page), head)
    told = [row for name, row in rows.items() if name.startswith(("402", "mean"))]
    assert len(told) == 3
    for k, method in enumerate(methods):
        assert [row[k] for row in told] == measured[OURS.get(method, method)], method


def test_the_sets_of_the_paper_and_the_others_are_told_as_they_were_measured():
    methods, means = table(read("results/many_tables.md"), "| sets | n |")
    page = read("README.md")
    head = re.search(r"^\| \|.* isotree .*$", page, re.MULTILINE)[0]
    shown, rows = table(page, head)
    for name, line in (("six ODDS sets of the paper", "of the paper"), ("17 other", "others")):
        told = next(row for title, row in rows.items() if title.startswith(name))
        measured = dict(zip(methods, means[line], strict=True))
        assert told == [measured[OURS.get(method, method)] for method in shown]


@pytest.mark.parametrize("page", ["README.md", "docs/guide/scans.md"])
def test_what_localisers_find_is_told_as_it_was_measured(page):
    with (RESULTS / "addm-mri.csv").open(encoding="utf-8", newline="") as file:
        lines = {(r["method"], r["T"], r["protocol"]): r for r in csv.DictReader(file)}
    tuned, inside = "anoddpm, tuned on pasted lesions", "standard"
    best, floor = ("ADDM, pyramid noise, judged at x_0", "1000"), ("Intensity threshold", "")
    expected = [
        lines["ADDM", "1000", "anoddpm"]["auc"],
        lines["ADDM", "1000", "anoddpm"]["dice"],
        lines[*best, tuned]["auc"],
        lines["DDPM, pyramid noise", "1000", tuned]["auc"],
        lines[*floor, tuned]["auc"],
        lines[*best, inside]["auc"],
        lines["DDPM, pyramid noise", "1000", inside]["auc"],
        lines[*floor, inside]["auc"],
    ]
    text = read(page)
    text = text[text.index("as printed has a pixel") :][:1200]
    assert [figure for figure in expected if figure not in text] == []


def test_thresholds_are_told_as_they_were_measured():
    _, rules = table(read("results/thresholds.md"), "| rule | median")
    told = re.search(r"## Thresholds\n(.*?)\n## ", read("results/README.md"), re.DOTALL)[1]
    for rule in ("fdr (default of `IADC()`)", "knee (default of other models)"):
        error, f1, ahead, behind = rules[rule]
        for figure in (error, f1, ahead.partition(" ")[0], behind):
            assert figure in told, (rule, figure)


def test_the_dirt_zoo_is_told_as_it_was_measured():
    _, methods = table(read("results/dirt_zoo.md"), "| method | mean AUROC | cells kept")
    text = read("README.md")
    own, peers = methods["IADC"], {m: methods[m] for m in methods if m not in OURS.values()}
    peers.pop("MultiView")
    peers["IForest"] = methods["IForest"]
    most = max(peers, key=lambda m: int(peers[m][1].split()[0]))
    assert f"In {own[1]} cells" in text
    assert f"of the peers {most} does so most often, in {peers[most][1].split()[0]}" in text
    assert f"the mean AUROC is {float(own[0]):.2f}" in text
