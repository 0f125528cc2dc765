"""A folder of scans and one of results, as `aberra score` leaves them."""

import pandas as pd
import pytest

from aberra.data.mri.nifti import write_nifti
from aberra.data.mri.phantom import head_phantom


@pytest.fixture(scope="session")
def make_results():
    def make(folder):
        scans, maps = folder / "patients", folder / "maps"
        scan, brain = head_phantom(shape=(12, 14, 16))
        rows = []
        for name, score in (("one", 1.5), ("two", 30.0), ("sub/three", 7.25)):
            layers = f"{name}_anomaly.nii.gz", f"{name}_segmentation.nii.gz"
            write_nifti(scans / f"{name}.nii.gz", scan.array, scan)
            write_nifti(maps / layers[0], scan.array / 100, scan)
            write_nifti(maps / layers[1], brain, scan)
            rows.append((f"{name}.nii.gz", *layers, score, 2.5, ""))
        rows.append(("four.nii.gz", "", "", None, None, "four.nii.gz is cut short."))
        columns = ["scan", "map", "segmentation", "score", "millilitres", "error"]
        pd.DataFrame(rows, columns=columns).to_csv(maps / "scores.csv", index=False)
        return maps, scans

    return make


@pytest.fixture
def results(tmp_path, make_results):
    return make_results(tmp_path)


@pytest.fixture(scope="session")
def secret(tmp_path_factory):
    """A file outside of everything that is shown."""
    path = tmp_path_factory.mktemp("elsewhere") / "secret.nii"
    path.write_bytes(b"SECRET")
    return path
