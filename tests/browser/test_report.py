"""The report in a real browser: it stays alone, sorts, leafs through scans, and prints."""

import os
import shutil
import warnings

import numpy as np
import pandas as pd
import pytest

from aberra import IADC, OCSVM
from aberra.data.mri.phantom import head_phantom
from aberra.data.mri.prepare import Preparation
from aberra.errors import RoundsExhaustedWarning
from aberra.localise.intensity import IntensityThreshold
from aberra.recipe import Recipe
from aberra.report import html
from aberra.report.scans import ScansToReport

pytest.importorskip("jinja2")
playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
]

NASTY = [
    "<script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 2'>",
    "\"><svg onload='window.hacked = 3'>",
    "{{ 7 * 7 }}</td></table><script src='https://example.org/x.js'></script>",
]


@pytest.fixture(scope="module")
def chromium():
    arguments = ["--disable-gpu", "--disable-background-networking", "--disable-sync"]
    arguments += ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as player:
        browser = player.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium, tmp_path):
    """Return a function that opens a page; nothing may fail, or be asked for from elsewhere."""
    trouble, closing = [], []

    def opened(text, **settings):
        file = tmp_path / f"page{len(closing)}.html"
        file.write_text(text, encoding="utf-8")
        page = chromium.new_page(viewport={"width": 1280, "height": 800}, **settings)
        closing.append(page)
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: trouble.append("a dialog opened"))
        page.on(
            "request",
            lambda request: (
                trouble.append(request.url)
                if not request.url.startswith(("file://", "data:"))
                else None
            ),
        )
        page.goto(file.as_uri())
        return page

    yield opened
    for page in closing:
        page.close()
    assert trouble == []


@pytest.fixture(scope="module")
def table_page():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 4)), columns=NASTY)
    table.iloc[:6, 0] += 8
    table.index = [f"{NASTY[k % 4]} {k}" for k in range(60)]
    model = IADC(OCSVM(), n_members=2, max_rounds=3, patience=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RoundsExhaustedWarning)
        model.fit(table)
    recipe = Recipe("table", NASTY[0], 60, dropped={NASTY[1]: NASTY[2]}, choices=[(NASTY[3], "x")])
    return html(model, table, recipe=recipe, title=NASTY[0])


@pytest.fixture(scope="module")
def scan_page():
    affine = np.diag([6.0, 6.0, 6.0, 1.0])
    affine[:3, 3] = -100
    healthy = np.random.default_rng(0).uniform(0.6, 0.9, size=(8, 1, 64, 64))
    model = IntensityThreshold().fit(healthy)
    scan, _ = head_phantom(affine, (34, 36, 35), lesion=(30, 20, 40), radius=20)
    return html(model, ScansToReport(["one"], lambda k: scan, Preparation(), "ward"))


def column(page, number):
    return page.locator(f"#found tbody tr > :nth-child({number})").all_inner_texts()


def test_text_of_others_never_runs(visit, table_page):
    page = visit(table_page)
    assert page.evaluate("window.hacked") is None
    assert page.title() == NASTY[0]
    assert page.locator("h1").inner_text() == NASTY[0]
    assert page.locator("script").count() == 1
    assert "{{ 7 * 7 }}" in page.locator("#found").inner_text()


def test_tables_sort_by_mouse_and_by_keyboard(visit, table_page):
    page = visit(table_page)
    scores = [float(text) for text in column(page, 3)]
    assert scores == sorted(scores, reverse=True)
    button = page.locator("#found th button", has_text="score")
    button.click()
    assert [float(text) for text in column(page, 3)] == sorted(scores)
    heading = page.locator("#found thead th:nth-child(3)")
    assert heading.get_attribute("aria-sort") == "ascending"
    page.locator("#found th button", has_text="rank").focus()
    page.keyboard.press("Enter")
    assert column(page, 1) == [str(k + 1) for k in range(len(scores))]
    page.keyboard.press("Space")
    assert column(page, 1)[-1] == "1"
    assert heading.get_attribute("aria-sort") is None


def test_dark_light_print_and_narrow(visit, table_page):
    shade = "getComputedStyle(document.body).backgroundColor"
    page = visit(table_page, color_scheme="light")
    assert page.evaluate(shade) == "rgb(255, 255, 255)"
    ink = page.evaluate("getComputedStyle(document.querySelector('.bar.odd')).stroke")
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(shade) == "rgb(20, 24, 29)"
    assert page.evaluate("getComputedStyle(document.querySelector('.bar.odd')).stroke") != ink
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(shade) == "rgb(255, 255, 255)"
    assert not page.locator("nav").is_visible()
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 420, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 420


def test_chart_labels_do_not_overlap(visit, table_page):
    page = visit(table_page)
    clashes = page.evaluate(
        """() => [...document.querySelectorAll('svg.chart')].flatMap(svg => {
          const texts = [...svg.querySelectorAll('text')];
          const boxes = texts.map(t => [t.textContent, t.getBoundingClientRect()]);
          return boxes.flatMap(([a, p], i) => boxes.slice(i + 1)
            .filter(([b, q]) => p.left < q.right && q.left < p.right
                             && p.top + 2 < q.bottom && q.top + 2 < p.bottom)
            .map(([b]) => a + ' | ' + b));
        })"""
    )
    assert clashes == []


def test_sliders_move_through_the_scan(visit, scan_page):
    page = visit(scan_page)
    page.wait_for_selector("canvas")
    drawn = """() => [...document.querySelectorAll('canvas')].map(c => c.toDataURL())"""
    before = page.evaluate(drawn)
    assert len(set(before)) == 3
    height = page.locator(".planes input").first
    words = page.locator(".planes output").first.inner_text()
    height.focus()
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    after = page.evaluate(drawn)
    assert after[0] != before[0]
    assert page.locator(".planes output").first.inner_text() != words
    page.locator(".controls input").first.fill("0")
    assert page.evaluate(drawn)[0] != after[0]


def test_lesion_is_where_the_page_says(visit, scan_page):
    page = visit(scan_page)
    page.wait_for_selector("canvas")
    # The map is largest inside the lesion: 40 mm up, 20 mm to the front, 30 mm to the right.
    texts = page.locator(".planes output").all_inner_texts()
    numbers = [int(text.split()[0]) for text in texts]
    assert [text.split()[-1] for text in texts] == ["up", "front", "right"]
    assert np.abs(np.array(numbers) - (40, 20, 30)).max() <= 20
    # A click in the first plane moves the other two.
    first = page.locator("canvas").first
    box = first.bounding_box()
    first.click(position={"x": box["width"] * 0.1, "y": box["height"] * 0.9})
    texts = page.locator(".planes output").all_inner_texts()
    assert [text.split()[-1] for text in texts] == ["up", "back", "left"]
