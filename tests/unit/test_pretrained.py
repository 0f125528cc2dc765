"""The models that come with the package."""

import numpy as np
import pytest

import aberra
from aberra.data.mri.nifti import write_nifti
from aberra.data.mri.phantom import head_phantom
from aberra.data.mri.volume import Volume
from aberra.errors import ArgumentError
from aberra.pretrained import FOLDER, model_path, pretrained_card, pretrained_names
from aberra.workflow import score

names = pytest.mark.parametrize("name", pretrained_names())


@names
def test_a_pretrained_model_is_small_and_has_a_card_with_licence_and_limits(name):
    assert (FOLDER / f"{name}.aberra").stat().st_size < 5e6
    card = pretrained_card(name)
    for words in ("licence", "no medical device", "What it cannot do", "made from"):
        assert words in card


def test_brain_t1_is_there_and_holds_averages_only():
    model = aberra.load_pretrained("brain-t1")
    assert model.keep == "averages"
    assert model.segment(np.zeros((1, 1, 64, 64))).shape == (1, 64, 64)


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="brain-t1"):
        aberra.load_pretrained("brain-t9")


def test_a_name_leads_to_the_packages_file_unless_there_is_one_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert model_path("brain-t1") == FOLDER / "brain-t1.aberra"
    (tmp_path / "brain-t1").write_bytes(b"mine")
    assert model_path("brain-t1").read_bytes() == b"mine"
    assert str(model_path("elsewhere.aberra")) == "elsewhere.aberra"


@pytest.mark.slow
def test_scans_are_scored_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scan, _ = head_phantom()
    (tmp_path / "scans").mkdir()
    write_nifti(tmp_path / "scans" / "head.nii.gz", scan.array, scan)
    found = score("brain-t1", "scans", "maps")
    assert found.n_scored == 1
    assert (tmp_path / "maps" / "head_anomaly.nii.gz").is_file()


@pytest.mark.slow
def test_a_wrong_header_is_set_right_when_scoring(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scan, _ = head_phantom()
    lying = Volume(scan.array, scan.affine[:, [2, 1, 0, 3]])  # says that x runs to the top
    (tmp_path / "scans").mkdir()
    write_nifti(tmp_path / "scans" / "head.nii.gz", scan.array, lying)
    scores = []
    for folder, axes in (("as-written", None), ("set-right", scan.directions.lower())):
        found = score("brain-t1", "scans", folder, axes=axes)
        scores.append(float(found.oddest[0]["score"]))
    write_nifti(tmp_path / "scans" / "head.nii.gz", scan.array, scan)
    right = float(score("brain-t1", "scans", "right").oddest[0]["score"])
    assert scores[1] == pytest.approx(right, rel=0.02)
    assert abs(scores[0] - right) > 0.05 * right
    with pytest.raises(ArgumentError, match="does not name three directions"):
        score("brain-t1", "scans", "maps", axes="up")
