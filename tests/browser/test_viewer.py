"""The viewer in a real browser, with WebGL in software."""

import io
import os
import re
import shutil
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.ndimage import gaussian_filter

from aberra import IADC, OCSVM, save
from aberra.data.mri.nifti import read_nifti, write_nifti
from aberra.data.mri.phantom import head_phantom
from aberra.data.mri.volume import Volume
from aberra.viewer import app as viewer_app
from aberra.viewer.app import BUNDLE, Shelf
from aberra.viewer.catalogue import catalogue
from aberra.viewer.marks import NAME, Marks
from aberra.viewer.serve import Door, make_server
from aberra.workflow import open_viewer, score

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
expect = playwright.expect  # asks again until it is so: a page fetches, then draws
PIL = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
DATA = os.environ.get("ABERRA_DATA", "")
SOFTWARE_WEBGL = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
]
needs_bundle = pytest.mark.skipif(
    not BUNDLE.is_file(), reason="NiiVue is not bundled: install npm and run make install"
)


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as player:
        browser = player.chromium.launch(executable_path=CHROMIUM, args=SOFTWARE_WEBGL)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium):
    """Return a function that serves something and opens it; no page may complain or go outside."""
    trouble, closing = [], []

    @contextmanager
    def serving(found, behind):
        door = Door()
        server = make_server(Shelf(found, behind), door)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [door.socket]})
        thread.start()
        try:
            yield door
        finally:
            server.should_exit = True
            thread.join()

    def watch(page, port):
        page.on("console", lambda m: trouble.append(m.text) if m.type != "log" else None)
        page.on("pageerror", lambda error: trouble.append(str(error)))
        own = (f"http://127.0.0.1:{port}/", "data:", "blob:")
        page.on("request", lambda r: None if r.url.startswith(own) else trouble.append(r.url))

    def visit(found, door=None, behind=None, **context):
        if door is None:
            manager = serving(found, behind)
            door = manager.__enter__()
            closing.append(lambda: manager.__exit__(None, None, None))
        tab = chromium.new_context(viewport={"width": 1280, "height": 800}, **context)
        closing.append(tab.close)
        page = tab.new_page()
        page.set_default_timeout(60_000)  # graphics in software, on a machine that may be busy
        watch(page, door.port)
        page.goto(door.address)
        page.door = door
        return page

    yield visit
    for close in reversed(closing):
        close()
    assert trouble == []


def make_scans(folder, count=3, shape=(48, 56, 50)):
    """Write heads with a lesion each, and results that find it."""
    affine = np.diag([4.0, 4.0, 4.0, 1.0])
    affine[:3, 3] = -2.0 * (np.array(shape) - 1.0)
    rows = []
    for k in range(count):
        name = f"head-{k}"
        scan, _ = head_phantom(affine, shape, lesion=(-30 + 20 * k, 20, 30))
        odd = gaussian_filter(head_phantom(affine, shape)[0].array - scan.array, 1.0)
        layers = f"{name}_anomaly.nii.gz", f"{name}_segmentation.nii.gz"
        write_nifti(folder / f"{name}.nii.gz", scan.array, scan)
        write_nifti(folder / layers[0], odd / 100, scan)
        write_nifti(folder / layers[1], odd > 30, scan)
        rows.append((f"{name}.nii.gz", *layers, 10.0 - k, 7.0, ""))
    columns = ["scan", "map", "segmentation", "score", "millilitres", "error"]
    pd.DataFrame(rows, columns=columns).to_csv(folder / "scores.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def heads(tmp_path_factory):
    return make_scans(tmp_path_factory.mktemp("heads"))


@pytest.fixture
def scans(heads, tmp_path):
    return Path(shutil.copytree(heads, tmp_path / "results"))


def picture(page, wanted=lambda pixels: True):
    """Return the pixels of the drawn scan as soon as they are as wanted; fail after 15 s."""
    deadline = time.monotonic() + 15
    while True:
        page.wait_for_timeout(80)  # a frame or two
        data = page.locator("#canvas").screenshot()
        pixels = np.asarray(PIL.open(io.BytesIO(data)).convert("RGB")).astype(int)
        if wanted(pixels):
            return pixels
        assert time.monotonic() < deadline, "the picture never came to look as it should"


def changed(before, after):
    return int((np.abs(before - after).max(axis=-1) > 24).sum())


def coloured(pixels):
    """Count pixels as red and yellow as the map is drawn."""
    return int(((pixels[..., 0] - pixels[..., 2]) > 80).sum())


def shown(page, name):
    page.wait_for_selector(f"#canvas[data-shown='{name}']")


def slide(page, name, value):
    page.locator(f"#{name}").fill(str(value))


@needs_bundle
def test_sliders_mask_and_crosshair_change_the_picture(visit, scans):
    page = visit(catalogue(scans))
    shown(page, "head-0.nii.gz")
    first = picture(page, lambda now: coloured(now) > 100)

    slide(page, "opacity", 0)
    expect(page.locator("#opacity-value")).to_have_text("0 %")
    picture(page, lambda now: coloured(now) < coloured(first) / 5)
    slide(page, "opacity", 1)
    opaque = picture(page, lambda now: changed(first, now) > 100 and coloured(now) > 100)

    strongest = page.locator("#threshold").get_attribute("max")
    slide(page, "threshold", strongest)
    picture(page, lambda now: coloured(now) < coloured(opaque) / 5)
    slide(page, "threshold", 0.05)
    with_mask = picture(page, lambda now: coloured(now) > coloured(opaque) / 2)

    page.keyboard.press("m")
    expect(page.locator("#mask")).not_to_be_checked()
    picture(page, lambda now: changed(with_mask, now) > 30)

    place = page.locator("#place").inner_text()
    assert "mm" in place
    assert float(place.split()[-1]) == pytest.approx(float(strongest), rel=0.01)  # at the peak
    page.locator("#canvas").click(position={"x": 200, "y": 200})
    page.wait_for_function("text => document.querySelector('#place').innerText !== text", arg=place)


@needs_bundle
def test_window_and_level_change_the_scan_and_can_be_reset(visit, scans):
    page = visit(catalogue(scans))
    shown(page, "head-0.nii.gz")
    slide(page, "opacity", 0)
    first, usual = picture(page), page.locator("#level").input_value()
    slide(page, "level", page.locator("#level").get_attribute("max"))
    picture(page, lambda now: now.mean() < 0.9 * first.mean())
    slide(page, "level", usual)
    slide(page, "window", page.locator("#window").get_attribute("min"))
    picture(page, lambda now: changed(first, now) > 1000 and now.mean() > 0.9 * first.mean())
    page.keyboard.press("w")
    expect(page.locator("#level")).to_have_value(usual)
    picture(page, lambda now: changed(first, now) < 100)


@needs_bundle
def test_the_crosshair_stands_where_the_lesion_is(visit, scans):
    page = visit(catalogue(scans))
    for name, x in (("head-0.nii.gz", -30), ("head-1.nii.gz", -10), ("head-2.nii.gz", 10)):
        shown(page, name)
        text = page.locator("#place").inner_text().replace("\N{MINUS SIGN}", "-").split()
        mm = [float(text[text.index(axis) + 1]) for axis in "xyz"]
        assert np.linalg.norm(np.subtract(mm, (x, 20, 30))) < 12 + 4  # radius and a voxel
        page.keyboard.press("j")


@needs_bundle
def test_the_peak_of_an_oblique_scan_is_found_where_it_is(visit, tmp_path):
    scan, _ = head_phantom()
    turn = np.deg2rad(25)
    tilt = np.array([[1, 0, 0], [0, np.cos(turn), -np.sin(turn)], [0, np.sin(turn), np.cos(turn)]])
    affine = scan.affine.copy()
    affine[:3] = tilt @ affine[:3]
    oblique = Volume(scan.array, affine)
    write_nifti(tmp_path / "head.nii.gz", scan.array, oblique)
    heights, voxel = np.zeros(scan.array.shape, np.float32), (12, 40, 44)
    heights[voxel] = 5.0
    write_nifti(tmp_path / "head_anomaly.nii.gz", heights, oblique)
    page = visit(catalogue(tmp_path))
    shown(page, "head.nii.gz")
    text = page.locator("#place").inner_text().replace("\N{MINUS SIGN}", "-").split()
    mm = [float(text[text.index(axis) + 1]) for axis in "xyz"]
    assert np.linalg.norm(np.subtract(mm, oblique.to_world(voxel))) < 3


@needs_bundle
def test_marks_survive_a_reload_and_reach_other_browsers(visit, scans):
    found = catalogue(scans)
    page = visit(found)
    shown(page, "head-0.nii.gz")
    page.keyboard.press("r")
    page.wait_for_selector("#scan-0[data-mark=reject]")
    page.keyboard.press("j")
    shown(page, "head-1.nii.gz")
    other = visit(found, page.door)
    other.wait_for_selector("#scan-0[data-mark=reject]")
    shown(other, "head-0.nii.gz")
    other.keyboard.press("k")  # already the first: stays
    other.keyboard.press("End")
    shown(other, "head-2.nii.gz")
    other.keyboard.press("a")
    other.wait_for_selector("#scan-2[data-mark=accept]")
    page.reload()
    page.wait_for_selector("#scan-2[data-mark=accept]")
    page.wait_for_selector("#scan-0[data-mark=reject]")
    shown(page, "head-1.nii.gz")  # the same scan as before
    expect(page.locator("#progress")).to_have_text("2 of 3 reviewed")
    page.select_option("#marked", "none")
    expect(page.locator("#list li:visible")).to_have_count(1)
    assert Marks(scans).of("scans") == {"head-0.nii.gz": "reject", "head-2.nii.gz": "accept"}
    assert "token" not in page.url


def focused(page):
    return page.evaluate("() => document.activeElement.id || document.activeElement.innerText")


def outlined(page):
    return page.evaluate(
        """() => {
            const here = document.activeElement
            const drawn = here.querySelector(':scope > [aria-selected=true]') ?? here
            return getComputedStyle(drawn).outlineStyle !== 'none'
                && parseFloat(getComputedStyle(drawn).outlineWidth) >= 2
        }"""
    )


@needs_bundle
def test_findings_lead_to_their_places(visit, scans):
    lines = "1,3.2,-30,20,30,1,1,0.05\n2,0.5,26,-14,18,1,1,\n"
    head = "number,millilitres,x,y,z,peak,mean,p_value\n"
    (scans / "head-0_findings.csv").write_text(head + lines)
    page = visit(catalogue(scans))
    shown(page, "head-0.nii.gz")
    page.wait_for_selector("#finding:not([disabled])")
    texts = page.locator("#finding option").all_inner_texts()
    assert texts == ["2 findings", "1: 3.20 ml, p 0.050", "2: 0.500 ml"]

    def place(x, y, z):
        page.wait_for_function(
            """([x, y, z]) => {
                const said = document.querySelector('#place').innerText.replaceAll('\\u2212', '-')
                const [a, b, c] = said.match(/-?\\d+\\.\\d/g).map(Number)
                return Math.abs(a - x) < 2.1 && Math.abs(b - y) < 2.1 && Math.abs(c - z) < 2.1
            }""",
            arg=[x, y, z],
        )

    page.locator("#finding").select_option("1")
    place(26, -14, 18)
    page.keyboard.press("Escape")
    page.locator("#canvas").focus()
    page.keyboard.press("f")  # after the last the first
    place(-30, 20, 30)
    page.keyboard.press("j")
    shown(page, "head-1.nii.gz")
    assert page.locator("#finding").is_disabled()


@needs_bundle
def test_a_whole_review_without_a_mouse(visit, scans):
    page = visit(catalogue(scans))
    shown(page, "head-0.nii.gz")
    assert focused(page) == "list"
    page.keyboard.press("ArrowDown")
    shown(page, "head-1.nii.gz")
    assert outlined(page)
    visited = []
    for _ in range(12):
        page.keyboard.press("Tab")
        visited.append(focused(page))
        assert outlined(page), visited[-1]
    assert [name.split("\n")[0][:8] for name in visited] == [
        "✓ Accept",
        "✗ Reject",
        "Undo u",
        "canvas",
        "opacity",
        "threshol",
        "level",
        "window",
        "reset",
        "mask",
        "peak",
        "planes",
    ]
    for _ in range(6):
        page.keyboard.press("Shift+Tab")
    before = page.locator("#threshold-value").inner_text()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#threshold-value")).not_to_have_text(before)
    for _ in range(2):
        page.keyboard.press("Shift+Tab")
    assert focused(page) == "canvas"
    place = page.locator("#place").inner_text()
    page.keyboard.press("PageUp")
    page.wait_for_function("text => document.querySelector('#place').innerText !== text", arg=place)
    page.keyboard.press("j")  # letters work in the picture as well
    shown(page, "head-2.nii.gz")
    page.keyboard.press("/")
    page.keyboard.type("head-1")
    expect(page.locator("#list li:visible")).to_have_count(1)
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    page.wait_for_selector("#scan-2[data-mark=accept]", state="attached")


@needs_bundle
def test_what_cannot_be_shown_is_explained(visit, scans):
    (scans / "head-0.nii.gz").unlink()
    (scans / "head-1.nii.gz").write_bytes(b"no volume at all")
    page = visit(catalogue(scans))
    page.wait_for_selector("text=Only the map is in this folder")
    page.keyboard.press("j")
    page.wait_for_selector("text=head-1.nii.gz cannot be shown")
    page.keyboard.press("j")
    shown(page, "head-2.nii.gz")
    assert page.locator("#notice").is_hidden()


def test_without_niivue_lists_and_marks_work(visit, scans, monkeypatch, tmp_path):
    monkeypatch.setattr(viewer_app, "BUNDLE", tmp_path / "niivue.js")
    page = visit(catalogue(scans))
    page.wait_for_selector("text=run make install")
    page.keyboard.press("j")
    page.keyboard.press("a")
    page.wait_for_selector("#scan-1[data-mark=accept]")
    assert Marks(scans).of("scans") == {"head-1.nii.gz": "accept"}


def test_marks_that_cannot_be_kept_are_announced(visit, scans, monkeypatch, tmp_path):
    monkeypatch.setattr(viewer_app, "BUNDLE", tmp_path / "niivue.js")
    (scans / NAME).write_text("{}")
    page = visit(catalogue(scans))
    page.wait_for_selector("[role=alert] >> text=Move it away")


def test_a_thousand_scans_are_listed_before_any_volume_is_read(visit, tmp_path):
    for k in range(1000):
        (tmp_path / f"scan-{k:04d}.nii.gz").write_bytes(b"")  # reading one would fail
    columns = {"scan": [f"scan-{k:04d}.nii.gz" for k in range(1000)], "score": range(1000)}
    table = pd.DataFrame({**columns, "map": "", "segmentation": "", "millilitres": "", "error": ""})
    table.to_csv(tmp_path / "scores.csv", index=False)
    page = visit(catalogue(tmp_path))
    expect(page.locator("#list li")).to_have_count(1000)
    expect(page.locator("#scan-0")).to_contain_text("scan-0999")


def test_table_is_sorted_filtered_paged_and_marked(visit, tmp_path):
    generator = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "id": [f"row-{k:04d}" for k in range(350)],
            "score": generator.permutation(350) / 7,
            "percentile": generator.uniform(0, 100, 350),
            "flag": generator.random(350) < 0.1,
            "reason_1": generator.choice(["age", "income"], 350),
            "reason_2": "balance",
            "reason_3": None,
        }
    )
    table.to_parquet(tmp_path / "scores.parquet")
    best = table.sort_values("score", ascending=False).id.tolist()
    page = visit(catalogue(tmp_path / "scores.parquet"))
    cell = page.locator("#rows tr td.id")
    expect(cell.first).to_have_text(best[0])
    page.keyboard.press("j")
    page.keyboard.press("a")
    page.wait_for_selector("#rows tr:nth-child(2) .sign.accept")
    page.keyboard.press("]")
    page.wait_for_selector("text=101\N{EN DASH}200 of 350 rows")
    expect(cell.first).to_have_text(best[100])
    page.locator("[data-column=id]").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("th[aria-sort=ascending] >> text=Id")
    expect(cell.first).to_have_text("row-0000")
    page.keyboard.press("/")
    page.keyboard.type("row-03")
    page.wait_for_selector("text=50 rows (of 350)")
    page.locator("#find").fill("")
    page.check("#flagged")
    page.wait_for_selector(f"text={int(table.flag.sum())} rows (of 350)")
    page.uncheck("#flagged")
    page.select_option("#marked", "accept")
    page.wait_for_selector("text=1 row (of 350)")
    expect(cell.first).to_have_text(best[1])
    page.reload()
    page.wait_for_selector("#rows tr:nth-child(2) .sign.accept")


def test_a_row_is_decided_with_its_values_and_neighbours(visit, tmp_path):
    X = pd.DataFrame(np.random.default_rng(0).normal(100, 5, size=(300, 3)), columns=list("abc"))
    X.loc[17, "b"] = 900.0
    X.to_csv(tmp_path / "rows.csv", index=False)
    model = tmp_path / "m.aberra"
    save(IADC(random_state=0).fit(X), model)
    score(model, tmp_path / "rows.csv", tmp_path / "scores.csv", reasons="all")
    viewer = open_viewer(tmp_path / "scores.csv", model=model, data=tmp_path / "rows.csv")
    viewer.door.socket.close()
    page = visit(viewer.shelf.found, behind=viewer.shelf.behind)
    expect(page.locator("#behind-title")).to_have_text("17")
    first = page.locator("#cells li").first
    expect(first.locator(".value")).to_have_text("900")
    expect(first).to_contain_text("usually 9")
    expect(first.locator("svg .own.beyond")).to_have_count(1)
    expect(page.locator("#near-table thead th")).to_have_count(2 + 3)
    page.keyboard.press("j")
    page.wait_for_function("document.querySelector('#behind-title').textContent !== '17'")
    page.keyboard.press("k")
    page.keyboard.press("r")
    page.wait_for_selector("#rows tr:first-child .sign.reject")
    with page.expect_download() as download:
        page.keyboard.press("e")
    assert pd.read_csv(download.value.path())["b"].tolist() == [900.0]
    page.select_option("#column", "b")
    page.locator("#low").fill("500")
    page.wait_for_selector("text=1 row (of 300)")
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    expect(page.locator("#cells li").first).to_be_visible()


def test_model_page_draws_the_curves(visit, tmp_path, dirty_blob):
    X, _ = dirty_blob
    model = IADC(OCSVM(), n_members=2, max_rounds=20, random_state=0).fit(X)
    save(model, tmp_path / "model.aberra")
    page = visit(catalogue(tmp_path / "model.aberra"))
    page.wait_for_selector("#doubts tr")
    expect(page.locator("h1")).to_have_text("IADC around OCSVM")
    expect(page.locator("#trust .doubt")).to_have_count(10)
    expect(page.locator("#crossings rect")).to_have_count(len(model.history_) - 1)
    expect(page.locator("#scores rect.odd")).not_to_have_count(0)
    expect(page.locator("#words dt", has_text="Trust")).not_to_have_count(0)
    page.locator("#doubts tr").nth(2).focus()
    expect(page.locator("#curve-2.chosen")).to_have_count(1)
    kept = re.compile(f"Round {model.history_.kept + 1} was kept")
    expect(page.locator("#trust svg")).to_have_attribute("aria-label", kept)


def test_report_runs_alone(visit, tmp_path):
    (tmp_path / "report.html").write_text(
        "<!doctype html><link rel='icon' href='data:,'><p>no</p>"
        "<script>document.querySelector('p').textContent = 'yes'</script>"
    )
    page = visit(catalogue(tmp_path))
    expect(page.locator("p")).to_have_text("yes")


def test_dark_and_light(visit, scans, monkeypatch, tmp_path):
    monkeypatch.setattr(viewer_app, "BUNDLE", tmp_path / "niivue.js")
    ground = "() => getComputedStyle(document.body).backgroundColor"
    found = catalogue(scans)
    light = visit(found, color_scheme="light")
    dark = visit(found, light.door, color_scheme="dark")
    assert light.evaluate(ground) != dark.evaluate(ground)


@needs_bundle
@pytest.mark.skipif(not DATA, reason="ABERRA_DATA does not say where the IXI volumes are")
def test_the_ixi_volumes(visit, tmp_path):
    volumes = sorted(Path(DATA).rglob("IXI*_t1w.nii.gz"))
    assert len(volumes) == 8
    for path in volumes:
        scan = read_nifti(path)
        shutil.copy(path, tmp_path)
        bright = scan.array / scan.array.max()
        write_nifti(tmp_path / path.name.replace(".nii", "_anomaly.nii"), bright, scan)
    page = visit(catalogue(tmp_path))
    for path in volumes:
        shown(page, path.name)
        drawn = picture(page)
        assert (drawn.max(axis=-1) > 60).mean() > 0.05
        slide(page, "opacity", 0.1)
        assert changed(drawn, picture(page)) > 200
        slide(page, "opacity", 0.7)
        page.keyboard.press("a")
        page.keyboard.press("j")
    page.reload()
    page.wait_for_selector("text=8 of 8 reviewed")
