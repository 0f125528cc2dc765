"""One page about a model: right numbers, whole and safe, whatever the model is."""

import base64
import io
import json
import os
import re
import warnings
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from aberra import ADC, IADC, OCSVM, MultiView, save
from aberra.cli import app
from aberra.data.mri.nifti import write_nifti
from aberra.data.mri.phantom import head_phantom
from aberra.data.mri.prepare import Preparation
from aberra.data.mri.volume import reorient
from aberra.errors import DataError, RoundsExhaustedWarning
from aberra.explain.doubts import Doubt
from aberra.explain.glossary import GLOSSARY
from aberra.explain.subject import Subject
from aberra.localise.intensity import IntensityThreshold
from aberra.recipe import Recipe
from aberra.report import html
from aberra.report.charts import crossings_chart, histogram, tag
from aberra.report.findings import ImagesToReport, TableToReport, of_table
from aberra.report.pictures import data_uri, grey, heat, heat_table, png, reduced
from aberra.report.scans import ScansToReport, of_scans
from aberra.report.trust import rounds_of

pytest.importorskip("jinja2")
PIL = pytest.importorskip("PIL.Image")

NASTY = '<script>window.hacked = "column"</script>'


def dirty_table(n=120, n_odd=10):
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", NASTY])
    table.iloc[:n_odd, 1] += 9  # the odd ones are odd in b
    return table.set_axis([f"person {k}" for k in range(n)])


@pytest.fixture(scope="module")
def table():
    return dirty_table()


@pytest.fixture(scope="module")
def iadc(table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RoundsExhaustedWarning)
        return IADC(OCSVM(), n_members=3, max_rounds=4, random_state=0).fit(table)


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    healthy = rng.uniform(0.4, 0.6, size=(24, 1, 8, 8))
    sick = healthy[:4].copy()
    sick[2, 0, 5:, 5:] = 0.0
    return healthy, sick


@pytest.fixture(scope="module")
def localiser(images):
    return IntensityThreshold(smooth=1, random_state=0).fit(images[0])


def rows_of(page, caption):
    """Return the cells of the table with this caption, as text."""
    body = page.split(f"<caption>{caption}")[1].split("<tbody>")[1].split("</tbody>")[0]
    rows = body.split("</tr>")[:-1]
    return [[re.sub(r"<[^>]*>|\s+", " ", c) for c in re.split(r"</t[dh]>", row)] for row in rows]


def pixels_of(uri):
    head, data = uri.split(",")
    assert head == "data:image/png;base64"
    return np.asarray(PIL.open(io.BytesIO(base64.b64decode(data))))


# The page


def test_training_data_are_recognised_and_explained(iadc, table):
    page = html(iadc, table)
    rows = rows_of(page, "The 24 rows with the highest scores")
    assert [row[1].split()[-1] for row in rows[:10]] == [
        str(k) for k in np.argsort(-iadc.anomaly_score(table))[:10]
    ]
    assert {row[1].strip() for row in rows[:10]} == {f"person {k}" for k in range(10)}
    for row in rows[:10]:
        reason = re.search(r"(\d+) % \s*(\S+)\s* = ", row[5])
        assert reason[2] == "b"
        assert int(reason[1]) > 50
    assert "These are the data that the model was trained on. The rows with the highest" in page
    trust = [float(row[4]) for row in rows]
    np.testing.assert_allclose(trust, np.sort(iadc.weights_)[:24], atol=0.0051)


def test_nobody_is_said_to_be_doubted_where_all_are_trusted():
    table = pd.DataFrame({"a": [1.0] * 97 + [2.0] * 3})
    page = html(IADC(random_state=0).fit(table), table)
    assert "It trusts all of them." in page
    assert "trusts least" not in page


def test_numbers_on_top_are_those_of_the_model(iadc, table):
    page = html(iadc, table)
    figures = dict(re.findall(r"<div><dt>([^<]*)(?:<small>.*?)?</dt><dd>([^<]*)</dd></div>", page))
    assert figures["training rows"] == "120"
    assert figures["estimated contamination"] == f"{100 * iadc.contamination_:.1f} %"


def test_other_data_are_compared_with_the_training(iadc, table):
    other = table.iloc[5:25]
    page = html(iadc, other)
    above = int((iadc.anomaly_score(other) > iadc.threshold_).sum())
    assert f"Of 20 rows in the data, {above} lie above the threshold." in page
    assert "The outline shows the training rows, for comparison." in page
    # The training samples are not at hand, so only their trust is known.
    least = rows_of(page, "The 25 training rows with the least trust")
    assert least[0][1].strip() == f"row {np.argmin(iadc.weights_)}"


def test_same_input_same_bytes(iadc, table):
    assert html(iadc, table) == html(iadc, table)


def test_names_and_values_are_escaped(table):
    named = table.assign(c=np.arange(len(table)) % 7).set_axis(
        [f"<img src=x onerror=alert({k})>" for k in range(len(table))]
    )
    model = OCSVM(random_state=0).fit(named)
    recipe = Recipe(
        "table",
        "</title><script>1</script>.csv",
        len(named),
        dropped={"<b>": "<i>why</i>"},
        choices=[("<u>", "<s>")],
        doubts=[Doubt(0, "<em>", 0.1, 9.0, [("<h1>", 0.9)])],
    )
    page = html(model, named, recipe=recipe, title="</title><script>2</script>")
    assert page.count("<script") == 1
    for text in ("<img src=x", "<b>:", "<i>why", "<u>", "<s>", "<em>", "<h1></"):
        assert text not in page
    assert "&lt;script&gt;window.hacked" in page


def test_policy_allows_this_page_alone(iadc, table):
    page = html(iadc, table)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1].replace("&#39;", "'")
    assert policy.startswith("default-src 'none'; img-src data:; ")
    for name in ("style", "script"):
        text = re.search(rf"<{name}>(.*?)</{name}>", page, re.DOTALL)[1]
        digest = base64.b64encode(sha256(text.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    assert " style=" not in page  # the policy forbids them
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page


def test_low_trust_cannot_be_taken_for_contamination(iadc, table):
    summary, rest = html(iadc, table).split("<nav")
    assert f"of them ({100 * iadc.contamination_:.1f} %) do not belong: they score above" in summary
    assert "trust" not in summary.split("<body>")[1]
    n_low = (iadc.weights_ < 0.25).sum()
    assert n_low > (iadc.training_scores() > iadc.threshold_).sum()  # as in the large tables
    assert f"As a precaution, training relied little on {n_low} rows" in rest
    assert "Low trust alone does not mean that a row does not belong." in rest


def test_words_are_explained_where_they_are_used(iadc, table, localiser):
    def terms(page):
        section = page.split('<section id="words">')[1]
        return [term.lower() for term in re.findall(r"<dt>([^<]*)</dt>", section)]

    assert terms(html(iadc)) == [term for term in GLOSSARY if term != "map"]
    assert terms(html(OCSVM().fit(table))) == ["score", "threshold", "reason"]
    assert terms(html(localiser)) == ["score", "threshold", "map"]


@pytest.mark.parametrize(
    "make", [lambda: ADC(OCSVM(), n_members=2, random_state=0), lambda: MultiView(random_state=0)]
)
def test_models_without_rounds(make, table):
    model = make().fit(table)
    assert "Trust in the training data" not in html(model)
    page = html(model, table)
    assert "person 3" in page
    assert "low trust" not in page
    assert f"threshold {model.threshold_:.4g}" in page


def test_adc_shows_the_training_scores_and_knows_the_training_data(table):
    model = ADC(OCSVM(), n_members=2, random_state=0).fit(table)
    assert "share of training rows" in html(model)
    assert "These are the data that the model was trained on" in html(model, table)


def test_one_round_has_no_crossings(table):
    model = IADC(OCSVM(), n_members=2, max_rounds=1, random_state=0).fit(table)
    rounds = rounds_of(Subject(model))
    assert rounds.crossings_chart == ""
    assert "one round only" in rounds.sentences[0]
    assert [line.kept for line in rounds.lines] == [True]


def test_rounds_are_those_of_the_history(iadc):
    rounds = rounds_of(Subject(iadc))
    assert [line.crossings for line in rounds.lines] == [None, *iadc.history_.crossings()]
    assert f"Round {iadc.history_.kept + 1} was kept" in rounds.sentences[1]


def test_models_fitted_without_names(table):
    X = table.to_numpy()
    model = IADC(OCSVM(), n_members=2, max_rounds=1, random_state=0).fit(X)
    page = html(model, X)
    assert "<b>column 1</b>" in page
    assert "Columns</dt><dd>3" in page
    with pytest.raises(DataError, match="3 columns without names"):
        html(model, X[:, :2])


def test_text_gaps_and_dates_are_shown_as_they_are(table):
    mixed = table[["a", "b"]].assign(
        town=["Rome"] * 110 + ["x" * 60] + ["Oslo"] * 9,
        day=pd.date_range("2024-01-01", periods=120),
    )
    mixed.iloc[3, 0] = np.nan
    model = MultiView(missing="impute", encode="auto", random_state=0).fit(mixed)
    page = html(model, mixed, top=120)
    assert "<b>town</b> = " + "x" * 39 + "…" in page
    assert "(in 0.0 % of the" not in page
    assert re.search(r"town</b> = x+… <span class=.quiet.>\(in 0\.8 % of the training rows\)", page)
    strange = mixed.iloc[:1].assign(town="Atlantis")
    assert "<b>town</b> = Atlantis" in html(model, strange)
    assert "(never seen in training)" in html(model, strange)


def test_recipe_tells_what_was_done(iadc, table):
    recipe = Recipe(
        "table",
        "people.csv",
        120,
        columns=["a", "b", NASTY],
        dropped={"comment": "text, nearly every value different"},
        id_column="person",
        label_column="truth",
        choices=[("seed", "0")],
        doubts=[Doubt(4, "person 4", 0.01, 3.5, [("b", 0.8)])],
        metrics={"auroc": 0.987},
    )
    page = html(iadc, recipe=recipe)
    for text in (
        "people.csv",
        "nearly every value different",
        "person 4",
        "0.987",
        "names the rows",
        "not trained on",
        "80 %",
    ):
        assert text in page


def test_doubts_of_a_single_training_say_whose_trust_it_is(table):
    model = MultiView(random_state=0).fit(table)
    recipe = Recipe("table", "people.csv", 120, doubts=[Doubt(4, "person 4", 0.01, 3.5)])
    assert "the one that IADC would give them" in html(model, recipe=recipe)


# Findings


def test_chunks_give_what_the_whole_gives(iadc, table):
    whole = of_table(Subject(iadc), TableToReport([(table, list(table.index))]), 7)
    parts = [(table.iloc[k : k + 25], list(table.index[k : k + 25])) for k in range(0, 120, 25)]
    pieces = of_table(Subject(iadc), TableToReport(parts), 7)
    assert pieces.samples == whole.samples
    np.testing.assert_array_equal(pieces.scores, whole.scores)
    assert pieces.trained_on
    assert not of_table(Subject(iadc), TableToReport(parts[:2]), 7).trained_on


def test_extra_columns_and_other_order_do_not_matter(iadc, table):
    turned = table.assign(extra="x")[["extra", NASTY, "b", "a"]]
    np.testing.assert_array_equal(
        of_table(Subject(iadc), TableToReport([(turned, list(table.index))]), 3).scores,
        iadc.anomaly_score(table),
    )


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (pd.DataFrame({"a": [1.0]}), "lacks columns"),
        (np.zeros((2, 1, 8, 8)), "trained on rows"),
        (np.zeros(3), "neither rows nor images"),
        (TableToReport([]), "no rows"),
    ],
)
def test_unfit_data_are_refused(iadc, data, says):
    with pytest.raises(DataError, match=says):
        html(iadc, data)


def test_gallery_shows_the_sick_image_first(localiser, images):
    sick = images[1]
    names = [f"slice {k}" for k in range(4)]
    page = html(localiser, ImagesToReport(names, lambda some: sick[list(some)], "ward"))
    first = page.split('<div class="gallery">')[1].split("</figure>")[0]
    assert "1. slice 2" in first
    shown, restored, marked = (pixels_of(uri) for uri in re.findall(r'src="(data:[^"]*)"', first))
    assert shown.shape == restored.shape == (8, 8)
    assert shown[6, 6] < 10 < 60 < restored[6, 6]
    light = marked.astype(int).sum(axis=2)
    assert light[5:, 5:].min() > 2 * light[:5].max()
    odd = (localiser.anomaly_map(sick[2:3]) > localiser.map_threshold_).mean()
    assert f"{100 * odd:.1f} % of the pixels flagged" in first


def test_localisers_take_the_height_of_their_maps_from_the_recipe(localiser, images):
    healthy, sick = images
    scores = localiser.anomaly_score(healthy)
    recipe = Recipe("images", "ward", 24, quantiles=np.sort(scores).tolist(), map_threshold=0.2)
    page = html(localiser, sick, recipe=recipe)
    assert "Of 4 images in the data, 1 lies above the threshold." in page
    assert "In a map, every pixel above 0.2 is flagged." in page
    assert "do not belong" not in page  # a localiser makes no such estimate


def test_ensembles_of_localisers(images):
    healthy, sick = images
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RoundsExhaustedWarning)
        model = IADC(IntensityThreshold(), n_members=2, max_rounds=2, random_state=0).fit(
            np.concatenate([healthy, sick[2:3]])
        )
    page = html(model, sick)
    assert page.index("1. image 2") < page.index("2. image")
    assert "IADC around IntensityThreshold was trained on 25 images." in page


def test_detectors_on_images_show_them_without_maps(images):
    model = OCSVM(random_state=0).fit(images[0])
    page = html(model, images[1])
    assert "as given" in page
    assert "restored by the model" not in page


# Scans


@pytest.fixture(scope="module")
def slice_model():
    return IntensityThreshold(side="bright").fit(
        np.random.default_rng(0).uniform(0.1, 0.3, size=(8, 1, 64, 64))
    )


def small_head():
    affine = np.diag([6.0, 6.0, 6.0, 1.0])
    affine[:3, 3] = -100
    return head_phantom(affine, (34, 36, 35))[0]


@pytest.mark.slow
def test_scans_unfold_to_the_voxels_they_came_from(slice_model):
    scan = small_head()
    array = scan.array.copy()
    array[20:24, 24:28, 22:26] = 500  # to the right, front and top of the middle
    sick = replace(scan, array=array)
    scans = {"healthy": scan, "sick": reorient(sick, "PSL")}
    data = ScansToReport([*scans], [*scans.values()].__getitem__, Preparation())
    found = of_scans(Subject(slice_model), data, 5)
    assert {s.name for s in found.samples} == {"sick", "healthy"}
    [first] = [s for s in found.scans if s.name == "sick"]
    i, j, k = first.shape
    assert (i, j, k) == array.shape
    mosaic = pixels_of(first.mosaic)
    lines = np.split(mosaic, len(mosaic) // j)
    slices = np.concatenate([np.stack(np.split(line, first.columns, axis=1)) for line in lines])
    voxels = slices[:k, ::-1].transpose(2, 1, 0, 3)  # right, front, top, colour
    low, high = np.quantile(array, (0.01, 0.995))
    expected = np.rint(255 * np.clip((array - low) / (high - low), 0, 1))
    np.testing.assert_allclose(voxels[..., 0], expected, atol=1)
    np.testing.assert_allclose(first.origin, scan.to_world((0, 0, 0)), atol=1e-6)
    assert first.spacing == pytest.approx(6)
    assert voxels[(*first.centre, 1)] > 250


@pytest.mark.slow
def test_scans_that_cannot_be_used_are_listed(slice_model):
    def read(k):
        if k == 1:
            raise DataError("The file is cut short.")
        return small_head()

    page = html(slice_model, ScansToReport(["good.nii", "bad.nii"], read, Preparation(), "ward"))
    assert "Scans that could not be used (1)" in page
    assert "The file is cut short." in page
    with pytest.raises(DataError, match=r"No scan in ward can be used\. The file is cut short"):
        html(slice_model, ScansToReport(["bad.nii"], lambda k: read(1), Preparation(), "ward"))


# Charts and pictures


def test_histogram_hatches_what_lies_above():
    scores = np.array([0.0, 0.1, 0.2, 0.3, 0.9, 1.0])
    drawn = histogram(scores, 0.5)
    assert drawn.count('class="bar odd"') == 1  # one bin holds 0.9 and 1.0
    assert drawn.count('class="bar"') == 3
    assert "2 lie above the threshold" in drawn
    assert "threshold 0.5" in drawn
    assert 'class="bar odd"' not in histogram(scores, None)
    assert "2 lie above the threshold" in histogram(scores, 0.3)
    assert "0 lie above the threshold" in histogram(scores, 5.0)  # beyond all scores
    at_the_edge = histogram(np.array([0.0, 0.5, 0.5, 1.0]), 0.5)  # equal is not above
    assert at_the_edge.count('class="bar odd"') == 1
    assert at_the_edge.count('class="bar"') == 2


def test_crossings_mark_the_round_kept():
    drawn = crossings_chart([5, 2, 4], 2)
    assert drawn.count("bar chosen") == 1
    assert "2, kept" in drawn


def test_markup_is_escaped():
    assert (
        tag("text", "<b>&", x=1.0, class_='"') == '<text x="1" class="&quot;">&lt;b&gt;&amp;</text>'
    )


def test_pictures_are_what_was_drawn():
    rng = np.random.default_rng(0)
    for shape in ((5, 7), (5, 7, 3)):
        pixels = rng.integers(0, 256, shape).astype(np.uint8)
        np.testing.assert_array_equal(np.asarray(PIL.open(io.BytesIO(png(pixels)))), pixels)
        np.testing.assert_array_equal(pixels_of(data_uri(pixels)), pixels)


def test_grey_and_heat_keep_the_order():
    ramp = np.linspace(0, 1, 50).reshape(1, 1, 50)
    assert (np.diff(grey(ramp, 0, 1).astype(int)) > 0).all()
    light = heat_table() @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(light) > 0).all()  # reads in grey
    np.testing.assert_array_equal(heat(np.array([[0.0, 1.0]]), 1.0)[0], heat_table()[[0, 255]])
    colour = np.zeros((3, 2, 2))
    colour[0] = 1
    np.testing.assert_array_equal(grey(colour, 0, 1)[0, 0], [255, 0, 0])


def test_large_pictures_are_reduced_by_whole_blocks():
    image = np.arange(600.0).repeat(300).reshape(1, 600, 300)
    small = reduced(image, 256)
    assert small.shape == (1, 200, 100)
    np.testing.assert_allclose(small[0, :3, 0], [1, 4, 7])
    assert reduced(np.zeros((1, 2000, 2))).shape[2] >= 1


# The command


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def model_file(iadc, table, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "people.aberra"
    recipe = Recipe("table", "people.csv", 120, columns=["a", "b", NASTY], id_column="who")
    save(iadc, path, recipe.notes())
    return path


def test_command_writes_the_page(model_file, table, tmp_path):
    csv, page = tmp_path / "people.csv", tmp_path / "page.html"
    table.rename_axis("who").reset_index().to_csv(csv, index=False)
    result = run("--json", "report", model_file, csv, "-o", page)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"report": str(page), "bytes": page.stat().st_size}
    text = page.read_text("utf-8")
    assert "These are the data that the model was trained on" in text
    assert "person 3" in text
    assert "Report on people.aberra" in text
    before = page.read_bytes()
    again = run("report", model_file, csv, "-o", page)
    assert f"Report: {page}" in again.stdout.replace("\n", "")
    assert page.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".aberra-tmp")] == []


def test_command_without_data(model_file, tmp_path):
    result = run("-q", "report", model_file, "-o", tmp_path / "page.html")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "least trust" in (tmp_path / "page.html").read_text("utf-8")


def test_command_reads_arrays_of_images(localiser, images, tmp_path):
    save(localiser, tmp_path / "m.aberra")
    np.save(tmp_path / "sick.npy", images[1][:, 0])
    out = tmp_path / "page.html"
    result = run("report", tmp_path / "m.aberra", tmp_path / "sick.npy", "-o", out)
    assert result.exit_code == 0, result.output
    assert "1. image_000002" in out.read_text("utf-8")


@pytest.mark.slow
def test_command_reads_scans(slice_model, tmp_path):
    recipe = Recipe("volumes", "ward", 8, map_threshold=0.5, preparation={"below_top": [8, 60]})
    save(slice_model, tmp_path / "m.aberra", recipe.notes())
    scan = small_head()
    write_nifti(tmp_path / "ward" / "one.nii.gz", scan.array, scan)
    out = tmp_path / "page.html"
    result = run("report", tmp_path / "m.aberra", tmp_path / "ward", "-o", out)
    assert result.exit_code == 0, result.output
    page = out.read_text("utf-8")
    assert "1. one.nii.gz" in page
    assert "8-60 mm below top" in page
    assert " ml flagged" in page


@pytest.fixture
def csv_without_b(tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("a,c\n1,2\n")
    return path


def test_command_refuses_what_it_cannot_use(model_file, csv_without_b, tmp_path):
    page = tmp_path / "page.html"
    (tmp_path / "image.npy").write_bytes(b"")
    np.save(tmp_path / "image.npy", np.zeros((2, 8, 8)))
    cases = [
        (("report", tmp_path / "no.aberra", "-o", page), "No such file"),
        (("report", csv_without_b, "-o", page), "Cannot load"),
        (("report", model_file, csv_without_b, "-o", page), "lacks columns"),
        (("report", model_file, tmp_path / "no.csv", "-o", page), "There is no file"),
        (("report", model_file, tmp_path / "image.npy", "-o", page), "holds images"),
        (("report", model_file, "-o", tmp_path), "is a folder"),
        (("report", model_file, "-o", tmp_path / "no" / "page.html"), "There is no folder"),
    ]
    for arguments, says in cases:
        result = run(*arguments)
        assert result.exit_code == 3, result.output
        assert says in result.stderr
        assert result.stderr.strip().startswith("Error: ")
        assert not page.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_command_refuses_a_locked_folder(model_file, tmp_path):
    tmp_path.chmod(0o500)
    result = run("report", model_file, "-o", tmp_path / "page.html")
    assert result.exit_code == 3
    assert "cannot be written" in result.stderr


def test_help_has_an_example():
    assert "Example: aberra report model.aberra" in run("report", "--help").stdout
