"""Localisers that go on from what was learnt elsewhere."""

import numpy as np
import pytest
import torch

import aberra
from aberra import DDPM, DenseVAE, NearestHealthy, load, save
from aberra.data.mri.nifti import write_nifti
from aberra.data.mri.phantom import head_phantom
from aberra.errors import ArgumentError, DataError
from aberra.workflow import fit


def images(n, seed, low=0.0, high=1.0):
    drawn = np.random.default_rng(seed).random((n, 1, 16, 16), dtype=np.float32)
    return low + (high - low) * drawn


def test_new_images_are_kept_besides_the_old_ones_on_the_old_scale(tmp_path):
    model = NearestHealthy(4, holdout=0.0, random_state=0).fit(images(10, 0))
    frame, old = model.members_.frame, model.members_.nets[0].images
    own = images(6, 1, 0.2, 0.5)
    strange = model.anomaly_score(own)
    model.adapt(own)
    assert model.members_.frame == frame
    assert len(model.members_.nets[0].images) == 16
    assert torch.equal(model.members_.nets[0].images[:10], old)
    assert (model.anomaly_score(own) < 0.7 * strange).all()
    save(model, tmp_path / "model.aberra")
    again = load(tmp_path / "model.aberra").anomaly_map(own)
    np.testing.assert_array_equal(again, model.anomaly_map(own))


def test_kept_images_stay_with_their_own_trust():
    model = NearestHealthy(4, holdout=0.0, random_state=0)
    model.fit(images(10, 0), sample_weight=np.arange(1, 11))
    model.adapt(images(6, 1), sample_weight=[3, 3, 3, 1, 1, 1])
    trust = model.members_.nets[0].trust.numpy()
    np.testing.assert_allclose(trust[:10], np.arange(1, 11) / 5.5, rtol=1e-6)
    np.testing.assert_allclose(trust[10:], [1.5, 1.5, 1.5, 0.5, 0.5, 0.5], rtol=1e-6)


def test_trust_follows_the_images_that_train_and_not_their_number():
    model = NearestHealthy(4, holdout=0.0, random_state=0).fit(images(10, 0))
    own = images(8, 1)
    model.set_params(holdout=0.5).adapt(own, sample_weight=np.arange(1, 9))
    kept = model.members_.frame.units(model.members_.nets[0].images[10:]).numpy()
    which = [int(np.abs(own - one).mean(axis=(1, 2, 3)).argmin()) for one in kept]
    assert which != [0, 1, 2, 3]
    trust = model.members_.nets[0].trust[10:].numpy()
    np.testing.assert_allclose(trust, (np.array(which) + 1) / 4.5, rtol=1e-6)


def small(**settings):
    return DDPM(train_steps=3, batch_size=4, n_draws=1, random_state=0, **settings)


def test_a_network_trains_further_and_stays_near_where_it_was():
    model = small().set_params(train_steps=1).fit(images(6, 0))
    before = [p.clone() for p in model.members_.nets[0].parameters()]
    model.set_params(learning_rate=1e-6).adapt(images(6, 1))
    after = list(model.members_.nets[0].parameters())
    moved = max(float((a - b).abs().max()) for a, b in zip(after, before, strict=True))
    assert 0 < moved < 1e-4  # a step of the first training is 4e-4 long


@pytest.mark.slow
def test_a_training_from_other_weights_is_not_taken_up(tmp_path):
    keeps = {"checkpoint": str(tmp_path), "checkpoint_minutes": 0.0}
    results = []
    for seed in (0, 1):
        model = small().fit(images(12, seed)).set_params(learning_rate=1e-6, **keeps)
        model.adapt(images(12, 2))
        results.append(next(model.members_.nets[0].parameters()).clone())
    assert not torch.equal(*results)


def test_who_cannot_go_on_says_so_and_stays_as_it_was():
    model = DenseVAE(train_steps=1, batch_size=4, random_state=0).fit(images(12, 0))
    before = model.anomaly_map(images(2, 1))
    with pytest.raises(DataError, match="cannot go on"):
        model.adapt(images(12, 1))
    np.testing.assert_array_equal(model.anomaly_map(images(2, 1)), before)
    with pytest.raises(DataError, match="was fitted on images"):
        model.adapt(images(12, 1)[:, :, :8])


@pytest.fixture(scope="module")
def scans(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scans")
    scan, _ = head_phantom()
    for k, gain in enumerate((1.0, 1.1)):
        write_nifti(folder / f"head{k}.nii.gz", scan.array * gain, scan)
    return folder


@pytest.mark.slow
def test_scans_of_ones_own_join_the_model_of_the_package(scans, tmp_path):
    fitted = fit(scans, tmp_path / "own.aberra", start_from="brain-t1")
    shipped = aberra.load_pretrained("brain-t1")
    n = len(shipped.members_.nets[0].images)
    assert len(fitted.model.members_.nets[0].images) > n
    assert fitted.recipe.preparation["headroom"] == 1.5  # as the model's, not the default
    assert ("started from", "brain-t1.aberra") in [tuple(c) for c in fitted.recipe.choices]
    assert load(tmp_path / "own.aberra").map_threshold_ == fitted.recipe.map_threshold


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        ({"detector": "ddpm"}, "detector"),
        ({"preset": "medium"}, "preset"),
        ({"robust": "iadc"}, "alone"),
        ({"time_budget": 1.0}, "cannot stop early"),
    ],
)
def test_what_the_model_has_decided_cannot_be_asked_for(scans, asked, what):
    with pytest.raises(ArgumentError, match=what):
        fit(scans, start_from="brain-t1", **asked)


def test_a_model_of_a_table_is_nothing_to_go_on_from(scans, tmp_path):
    (tmp_path / "table.csv").write_text("a,b\n" + "\n".join(f"{k},{k * k % 7}" for k in range(40)))
    fit(tmp_path / "table.csv", tmp_path / "table.aberra", detector="ocsvm", robust="none")
    with pytest.raises(ArgumentError, match="no localiser"):
        fit(scans, start_from=tmp_path / "table.aberra")
    with pytest.raises(ArgumentError, match="start_from is for scans"):
        fit(tmp_path / "table.csv", start_from="brain-t1")
