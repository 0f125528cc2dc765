"""Looking in on a training shows what it does, and changes nothing."""

import csv
import io

import numpy as np
import pytest
from PIL import Image

from aberra import ADDM, IADC, DenseVAE, FAnoGAN, PatchFinder, SpatialAE, VQTransformer
from aberra.errors import DataError
from aberra.watching import WIDE, side_by_side, watching
from aberra.workflow import fit

SETTINGS = {"batch_size": 3, "random_state": 0, "holdout": 0.0}
LOCALISERS = [
    ADDM(train_steps=2, **SETTINGS),
    PatchFinder(train_steps=2, **SETTINGS),
    SpatialAE(train_steps=2, **SETTINGS),
    DenseVAE(train_steps=2, **SETTINGS),
    FAnoGAN(train_steps=1, encoder_steps=1, **SETTINGS),
    VQTransformer(train_steps=1, transformer_steps=1, **SETTINGS),
]


@pytest.fixture(scope="module")
def images():
    x = np.random.default_rng(0).random((8, 1, 16, 16)).astype(np.float32)
    x[:, :, 4:12, 4:12] += 1
    return x / 2


@pytest.mark.slow
@pytest.mark.parametrize("model", LOCALISERS, ids=lambda m: type(m).__name__)
def test_a_watched_training_is_shown_and_learns_the_same(model, images, tmp_path):
    plain = model.fit(images).anomaly_map(images)
    with watching(tmp_path / "seen"):
        watched = model.fit(images).anomaly_map(images)
    np.testing.assert_array_equal(watched, plain)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "seen" / "losses.csv").read_text())))
    assert {int(row["step"]) for row in rows} == {1, 2}
    assert all(np.isfinite(float(row["value"])) for row in rows)
    sheet = np.array(Image.open(tmp_path / "seen" / "restored.png"))
    assert sheet.shape == (3 * WIDE, 3 * WIDE, 3)
    image, restored, apart = np.split(sheet[..., 0].astype(int), 3, axis=1)
    np.testing.assert_allclose(apart, np.abs(image - restored).clip(0, 127.5) * 2, atol=3)
    if not isinstance(model, PatchFinder):  # which shows images with something pasted into them
        small = np.round(255 * images[:, 0]).astype(int)
        first = image[:WIDE:10, ::10]
        assert np.abs(small - first).max(axis=(1, 2)).min() <= 2  # one of the training images


def test_members_of_an_ensemble_are_numbered_and_a_second_watch_goes_on(images, tmp_path):
    for _ in range(2):
        with watching(tmp_path):
            IADC(SpatialAE(train_steps=1, **SETTINGS), n_members=2, max_rounds=1).fit(images)
    lines = (tmp_path / "losses.csv").read_text().splitlines()
    assert lines[0] == "training,step,seconds,loss,value"
    assert [line.split(",")[0] for line in lines[1:]] == ["1", "2", "1", "2"]


@pytest.mark.slow
@pytest.mark.parametrize(("seconds", "steps"), [(1e9, [1, 41]), (0.0, [1, 20, 40, 41])])
def test_pictures_come_at_first_in_time_and_at_the_end(
    images, tmp_path, monkeypatch, seconds, steps
):
    drawn = []
    monkeypatch.setattr("aberra.watching.Watch.picture", _noting(drawn))
    with watching(tmp_path, seconds):
        SpatialAE(train_steps=41, **SETTINGS).fit(images)
    assert drawn == steps


def _noting(drawn):
    from aberra.watching import Watch

    draw = Watch.picture

    def picture(self, step, *args):
        drawn.append(step)
        draw(self, step, *args)

    return picture


def test_three_panels_of_grey_and_colour():
    black, white = -np.ones((1, 1, 8, 8)), np.ones((1, 1, 8, 8))
    sheet = side_by_side(black, white)
    assert sheet.shape == (WIDE, 3 * WIDE, 3)
    assert [sheet[0, k * WIDE, 0] for k in range(3)] == [0, 255, 255]
    red = np.stack([white[0, 0], black[0, 0], black[0, 0]])[None]
    assert side_by_side(red, red)[0, 0].tolist() == [255, 0, 0]


def test_the_shell_watches_images_and_refuses_tables(images, tmp_path):
    np.save(tmp_path / "images.npy", images)
    small = SpatialAE(train_steps=2, batch_size=4)
    fit(tmp_path / "images.npy", detector=small, watch=tmp_path / "seen")
    assert (tmp_path / "seen" / "restored.png").is_file()
    np.savetxt(tmp_path / "t.csv", np.eye(9), delimiter=",", header="a,b,c,d,e,f,g,h,i")
    with pytest.raises(ValueError, match="watch is for images and scans"):
        fit(tmp_path / "t.csv", watch=tmp_path / "seen")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot hold what a training shows"):
        fit(tmp_path / "images.npy", detector=small, watch=tmp_path / "file")
