"""What each extra is for, done with the installed wheel as a person would do it."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import HTTPCookieProcessor

import pandas as pd

from benchmarks.records import data_folder

ROOT = Path(__file__).parents[1]
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


@dataclass
class Place:
    """An environment, and a folder with a table in it."""

    home: Path
    folder: Path

    @property
    def python(self) -> Path:
        """Its Python."""
        return self.home / "bin" / "python"

    def pip(self, *words: str | Path) -> None:
        """Install something."""
        quiet = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-compile"]
        run([self.python, "-m", "pip", "install", *quiet, *words], self.folder)

    def aberra(self, *words: str) -> str:
        """Use the shell, and return what it says."""
        return run([self.python, "-m", "aberra", *words], self.folder)

    def does(self, code: str) -> str:
        """Run some Python, and return what it prints."""
        return run([self.python, "-c", code], self.folder)


def run(command: list[Any], folder: Path) -> str:
    """Run a command that has to succeed, and return what it says."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=CLEAN,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{command[-4:]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def a_table(place: Place) -> bytes:
    """Fit a table and score it, and return the scores as they are written."""
    place.aberra("fit", "patients.csv", "-o", "model.aberra")
    place.aberra("score", "model.aberra", "patients.csv", "-o", "scores.csv")
    scores = pd.read_csv(place.folder / "scores.csv").set_index("id")["score"]
    assert set(scores.nlargest(3).index) == {"P000", "P001", "P002"}
    assert "MultiView" in place.aberra("info", "model.aberra")
    return (place.folder / "scores.csv").read_bytes()


def a_paper(place: Place) -> None:
    """Compute some cells of a paper's table in small, or draw it where the data are not there."""
    given = ["--data-dir", str(data_folder())] if "ABERRA_DATA" in os.environ else ["--draw"]
    place.aberra("reproduce", "odds-iadc", "--profile", "smoke", "--out", "results", *given)
    assert (place.folder / "results" / "odds-iadc.md").is_file()


def report(place: Place) -> None:
    """Write a report, and run the demonstration."""
    place.aberra("report", "model.aberra", "patients.csv", "-o", "report.html")
    assert "P000" in (place.folder / "report.html").read_text("utf-8")
    place.aberra("demo", "--out", "demo")


def answers(place: Place, command: list[str], path: str) -> None:
    """Start a server, and ask it for a page."""
    given = [str(place.python), "-m", "aberra", "--json", *command]
    with subprocess.Popen(given, stdout=subprocess.PIPE, cwd=place.folder, env=CLEAN) as process:
        assert process.stdout is not None
        try:
            base, _, query = json.loads(process.stdout.readline())["url"].partition("?")
            asked_for(base.rstrip("/") + path + (f"?{query}" if query else ""))
        finally:
            process.terminate()


def asked_for(url: str) -> None:
    """Ask for a page until the server listens, for at most a minute."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}), HTTPCookieProcessor())
    for _ in range(60):
        try:
            with direct.open(url) as answer:
                assert answer.status == 200
            return
        except urllib.error.URLError as error:
            if isinstance(error, urllib.error.HTTPError):
                raise
            time.sleep(1)
    raise SystemExit(f"Nobody answers at {url}.")


def view(place: Place) -> None:
    """Open the viewer."""
    answers(place, ["view", "scores.csv", "--no-browser"], "/")


def serve(place: Place) -> None:
    """Start the service."""
    answers(place, ["serve", "model.aberra", "--port", "0"], "/health")


def files(place: Place) -> None:
    """Fit an Excel file, and score what a query finds in a database."""
    place.does("import pandas; pandas.read_csv('patients.csv').to_excel('p.xlsx', index=False)")
    place.aberra("fit", "p.xlsx", "-o", "excel.aberra")
    table = "create or replace table p as select * from 'patients.csv'"
    place.does(f"import duckdb; duckdb.connect('p.duckdb').execute({table!r})")
    query = ["--sql", "select * from p where a > 0"]
    place.aberra("score", "model.aberra", "p.duckdb", "-o", "found.csv", *query)
    copy = "pandas.read_csv('patients.csv').to_sql('p', 'sqlite:///p.db', if_exists='replace')"
    place.does(f"import pandas; {copy}")
    place.aberra("score", "model.aberra", "sqlite:///p.db", "-o", "found.csv", *query)


def pyod(place: Place) -> None:
    """Wear PyOD's clothes."""
    place.does("import aberra, numpy; aberra.as_pyod().fit(numpy.random.rand(50, 3)).labels_")


def onnx(place: Place) -> None:
    """Write an ONNX graph."""
    place.aberra("export", "model.aberra", "-o", "model.onnx")


def ray(place: Place) -> None:
    """Score a table in several files on a cluster of this machine alone; the bytes are the same."""
    some = pd.read_csv(place.folder / "patients.csv")
    (place.folder / "parts").mkdir(exist_ok=True)
    for k in range(2):
        some[60 * k : 60 * (k + 1)].to_csv(place.folder / "parts" / f"{k}.csv", index=False)
    place.aberra("score", "model.aberra", "parts", "-o", "spread", "--engine", "ray")
    place.aberra("score", "model.aberra", "parts", "-o", "alone")
    for k in range(2):
        one, other = (place.folder / name / f"{k}.csv.parquet" for name in ("spread", "alone"))
        assert one.read_bytes() == other.read_bytes()


PICTURES = """
import pathlib, numpy, PIL.Image
pathlib.Path('pictures').mkdir(exist_ok=True)
for k, one in enumerate(numpy.random.default_rng(0).integers(0, 99, (9, 16, 16), 'uint8')):
    PIL.Image.fromarray(one).save(f'pictures/{k}.png')
"""


def images(place: Place) -> None:
    """Train on a folder of small pictures, and draw their maps."""
    place.does(PICTURES)
    few = ["--detector", "spatial-ae", "--time-budget", "0.1"]
    place.aberra("fit", "pictures", "-o", "pictures.aberra", *few)
    place.aberra("score", "pictures.aberra", "pictures", "-o", "pictures-maps")
    assert len(pd.read_csv(place.folder / "pictures-maps" / "scores.csv")) == 9


SCANS = """
import pathlib, nibabel
from aberra.data.mri.phantom import head_phantom
pathlib.Path('scans').mkdir(exist_ok=True)
for k in range(3):
    scan, _ = head_phantom(lesion=(20.0, 5.0 * k, 30.0))
    nibabel.save(nibabel.Nifti1Image(scan.array, scan.affine), f'scans/h{k}.nii.gz')
"""


def mri(place: Place) -> None:
    """Fit scans, and score them with the model that comes along."""
    place.does(SCANS)
    place.aberra("fit", "scans", "-o", "scans.aberra", "--detector", "intensity")
    place.aberra("score", "scans.aberra", "scans", "-o", "maps")
    place.aberra("score", "brain-t1", "scans/h0.nii.gz", "-o", "brain-maps", "--relative")
    for name in ("maps/h2_anomaly.nii.gz", "brain-maps/h0_percentile.nii.gz"):
        assert (place.folder / name).is_file(), name


SERIES = """
import pathlib, imagecodecs, numpy
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.encaps import encapsulate
from pydicom.uid import JPEGLSLossless, MRImageStorage, generate_uid
from aberra.data.mri.phantom import head_phantom

pathlib.Path('series').mkdir(exist_ok=True)
array, series = head_phantom()[0].array.astype('uint16'), generate_uid()
for k in range(array.shape[2]):
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID, meta.TransferSyntaxUID = MRImageStorage, JPEGLSLossless
    meta.MediaStorageSOPInstanceUID = generate_uid()
    data = FileDataset(f'series/{k}', {}, file_meta=meta, preamble=b'\\0' * 128)
    data.SOPClassUID, data.SOPInstanceUID = MRImageStorage, meta.MediaStorageSOPInstanceUID
    data.SeriesInstanceUID, data.SeriesDescription, data.Modality = series, 't1', 'MR'
    data.Columns, data.Rows = array.shape[:2]
    data.PixelSpacing, data.ImageOrientationPatient = [4, 4], [-1, 0, 0, 0, -1, 0]
    data.ImagePositionPatient = [110, 110, 4 * k - 110]
    data.SamplesPerPixel, data.PhotometricInterpretation = 1, 'MONOCHROME2'
    data.BitsAllocated, data.BitsStored, data.HighBit, data.PixelRepresentation = 16, 16, 15, 0
    frame = imagecodecs.jpegls_encode(numpy.ascontiguousarray(array[:, :, k].T))
    data.PixelData = encapsulate([frame])
    data['PixelData'].is_undefined_length = True
    data.save_as(f'series/{k}', enforce_file_format=True)
"""


def dicom(place: Place) -> None:
    """Score a compressed DICOM series."""
    place.does(SERIES)
    place.aberra("score", "brain-t1", "series", "-o", "series-maps")
    assert (place.folder / "series-maps" / "scores.csv").is_file()


def bench(place: Place) -> None:
    """Fit detectors that ours are compared with."""
    place.does(PEERS)


PEERS = """
import matplotlib, numpy, opensimplex, psutil, river.anomaly, tqdm
from coniferest.isoforest import IsolationForest
from pyod.models.iforest import IForest
rows = numpy.random.default_rng(0).random((60, 3))
assert len(IForest().fit(rows).labels_) == len(IsolationForest().fit(rows).score_samples(rows))
"""

PAGE = """
import pathlib
pathlib.Path('pages').mkdir(exist_ok=True)
pathlib.Path('pages/conf.py').write_text('''
project = 'pages'
html_theme = 'pydata_sphinx_theme'
extensions = ['sphinx.ext.autodoc', 'sphinx.ext.mathjax', 'numpydoc', 'myst_parser']
''')
pathlib.Path('pages/index.md').write_text('''# A page
```{eval-rst}
.. autofunction:: aberra.load
```
''')
"""


def docs(place: Place) -> None:
    """Build a page with a docstring on it."""
    place.does(PAGE)
    run([place.python, "-m", "sphinx", "-q", "-b", "html", "pages", "pages/html"], place.folder)
    assert "aberra.load" in (place.folder / "pages" / "html" / "index.html").read_text("utf-8")


def dev(place: Place) -> None:
    """Run some tests of the checkout against the installed wheel, and look for lint."""
    words = ["-q", "-n", "0", "-p", "no:cacheprovider", "--noconftest"]
    run([place.python, "-m", "pytest", *words, ROOT / "tests/unit/test_metrics.py"], ROOT)
    run([place.python, "-m", "ruff", "check", "--no-cache", ROOT / "src"], ROOT)


USES: dict[str, Callable[[Place], None]] = {
    "report": report,
    "view": view,
    "serve": serve,
    "files": files,
    "pyod": pyod,
    "onnx": onnx,
    "ray": ray,
    "images": images,
    "mri": mri,
    "dicom": dicom,
    "bench": bench,
    "docs": docs,
    "dev": dev,
}
