"""The kinds of noise: their moments, their structure, and simplex noise against OpenSimplex."""

import itertools

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from aberra.diffusion import noise
from aberra.diffusion import simplex as lattice
from aberra.diffusion.noise import NOISES, gaussian, pyramid, simplex
from aberra.diffusion.simplex import GRADIENTS, SCALE
from aberra.diffusion.simplex_cpu import simplex_fields

CELLS = [64, 32, 16, 8, 4, 2]


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module", params=NOISES)
def draws(request):
    """(4000, 2, 6, 6), in many calls: the fields of one call share a slice in simplex noise."""
    generator = seeded(1)
    return torch.cat([NOISES[request.param]((40, 2, 6, 6), generator) for _ in range(100)])


def test_every_pixel_has_mean_zero_and_variance_one(draws):
    fields = draws.flatten(0, 1)
    assert fields.mean(dim=0).abs().max() < 5 / len(fields) ** 0.5
    assert (fields.var(dim=0) - 1).abs().max() < 5 * (2 / len(fields)) ** 0.5 + 0.01


def test_images_and_channels_are_uncorrelated(draws):
    tolerance = 5 / len(draws) ** 0.5
    assert (draws[:, 0] * draws[:, 1]).mean(dim=0).abs().max() < tolerance
    assert (draws[:-1] * draws[1:]).mean(dim=(0, 1)).abs().max() < tolerance
    assert (draws[:-2] * draws[2:]).mean(dim=(0, 1)).abs().max() < tolerance


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 3, 5, 7), (1, 2, 33, 64), (3, 1, 70, 31)])
def test_any_size_the_same_bytes_for_a_seed_and_no_other_randomness(name, shape):
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    first, again = (NOISES[name](shape, seeded(3), torch.device("cpu")) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])
    assert first.shape == shape
    assert first.dtype == torch.float32
    assert first.isfinite().all()
    assert torch.equal(first, again)
    generator = seeded(3)
    assert torch.equal(NOISES[name](shape, generator), first)
    assert not torch.equal(NOISES[name](shape, generator), first)


def low_share(fields):
    """Return the share of power at wavelengths above 16 pixels."""
    power = torch.fft.rfft2(fields).abs().square().mean(dim=(0, 1))
    frequency = torch.hypot(
        torch.fft.fftfreq(fields.shape[2])[:, None], torch.fft.rfftfreq(fields.shape[3])
    )
    return power[frequency < 1 / 16].sum() / power.sum()


def test_pyramid_and_simplex_are_coarse_and_gaussian_is_white():
    white, coarse, smooth = (f((8, 2, 64, 64), seeded(4)) for f in (gaussian, pyramid, simplex))
    neighbours = [(x[..., 1:] * x[..., :-1]).mean() for x in (white, coarse, smooth)]
    assert abs(neighbours[0]) < 0.02
    assert min(neighbours[1:]) > 0.7
    assert low_share(white) < 0.05
    assert min(low_share(coarse), low_share(smooth)) > 0.6


def test_pyramid_is_the_sum_of_clouds_of_six_sizes():
    shape, generator = (2, 3, 20, 45), seeded(2)
    found = pyramid(shape, seeded(2))
    amplitudes = 0.8 ** torch.arange(6) / (0.8 ** (2 * torch.arange(6))).sum().sqrt()
    total = amplitudes[5] * torch.randn((6, 20, 45), generator=generator).view(shape)
    for amplitude, cell in zip(amplitudes, (32, 16, 8, 4, 2), strict=False):
        total += amplitude * noise.clouds(shape, generator, cell=cell)
    torch.testing.assert_close(found, total)


def test_pyramid_is_stationary():
    fields = pyramid((6000, 1, 1, 48), seeded(5))[:, 0, 0]
    for lag in (1, 4, 16):
        covariance = (fields[:, lag:] * fields[:, :-lag]).mean(dim=0)
        assert (covariance - covariance.mean()).abs().max() < 5 * (2 / len(fields)) ** 0.5


@pytest.mark.parametrize("cell", [2, 8, 32])
def test_pyramid_weights_are_bicubic_with_unit_norm(cell):
    ours = noise._bicubic_weights(41, cell, torch.arange(cell))
    torch.testing.assert_close(ours.norm(dim=1), torch.ones(cell, 41))
    n_nodes = ours.shape[1]
    impulses = torch.eye(n_nodes)[None, :, None]
    size = (1, (n_nodes - 1) * cell + 1)
    torchs = F.interpolate(impulses, size, mode="bicubic", align_corners=True)[0, :, 0]
    for shift in range(cell):  # the first node lies a cell before the first pixel
        plain = torchs[:, cell + shift : cell + shift + 41]
        torch.testing.assert_close(ours[shift], F.normalize(plain, dim=0), rtol=0, atol=1e-5)


def slow_simplex(permutation, point):
    """OpenSimplex as a plain sum over every vertex within sqrt(2)."""
    base = np.floor(point - point.sum() / 6).astype(int)
    vertices = base + np.array(list(itertools.product(range(-4, 6), repeat=3)))
    away = point - vertices - vertices.sum(1, keepdims=True) / 3
    near = np.square(away).sum(1) < 2
    total = 0.0
    for (i, j, k), d in zip(vertices[near], away[near], strict=True):
        entry = permutation[(permutation[(permutation[i & 255] + j) & 255] + k) & 255]
        total += (2 - d @ d) ** 4 * (d @ GRADIENTS[entry % 24])
    return total / SCALE


@pytest.mark.parametrize("cell", CELLS)
def test_simplex_is_the_sum_over_all_vertices_in_reach(cell):
    rng = np.random.default_rng(cell)
    permutations = np.stack([rng.permutation(256) for _ in range(2)])
    origin, (h, w) = rng.uniform(-500, 500, 3), (67, 90)
    fields = lattice.simplex_sum(
        torch.from_numpy(permutations), origin, {cell: 1.0}, (h, w), torch.float64
    )
    for _ in range(20):
        n, y, x = rng.integers((2, h, w))
        expected = slow_simplex(permutations[n], (origin + np.array([x, y, 0])) / cell)
        assert abs(fields[n, y, x] - expected) < 1e-12


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("n", [1, 17])  # fewer than the lanes of one pass, and two passes
def test_simplex_for_processors_is_the_sum_over_all_vertices_in_reach(cell, n):
    rng = np.random.default_rng(cell)
    permutations = np.stack([rng.permutation(256) for _ in range(n)])
    origin, (h, w) = rng.uniform(-500, 500, 3), (67, 90)
    fields = simplex_fields(permutations, origin, {cell: 1.0}, (h, w))
    for _ in range(20):
        f, y, x = rng.integers((n, h, w))
        expected = slow_simplex(permutations[f], (origin + np.array([x, y, 0])) / cell)
        assert abs(fields[f, y, x] - expected) < 3e-6


def test_simplex_for_processors_and_for_other_devices_are_the_same_noise():
    rng = np.random.default_rng(1)
    permutations = np.stack([rng.permutation(256) for _ in range(3)])
    arguments = rng.uniform(200, 500, 3), {64: 0.7, 32: 0.6, 8: 0.5, 2: 0.3}, (41, 130)
    compiled = simplex_fields(permutations, *arguments)
    tensors = lattice.simplex_sum(torch.from_numpy(permutations), *arguments, torch.float64)
    np.testing.assert_allclose(compiled, tensors, rtol=0, atol=3e-6)


def test_simplex_agrees_with_opensimplex():
    # Its tree of cases omits one vertex in reach, at the very edge of its kernel, at about 4 % of
    # all points; everywhere else the two are equal.
    opensimplex = pytest.importorskip("opensimplex")
    rng = np.random.default_rng(0)
    errors = []
    for seed, cell in itertools.product(range(2), CELLS):
        theirs, origin = opensimplex.OpenSimplex(seed), rng.uniform(-500, 500, 3)
        permutation = torch.from_numpy(theirs._perm)[None]
        field = lattice.simplex_sum(permutation, origin, {cell: 1.0}, (40, 41), torch.float64)[0]
        for y, x in rng.integers((40, 41), size=(60, 2)):
            expected = theirs.noise3(*(origin + np.array([x, y, 0])) / cell)
            errors.append(abs(field[y, x].item() - expected))
    assert np.mean(np.array(errors) > 1e-9) < 0.08
    assert max(errors) < 1.5e-4


def test_simplex_in_single_precision_and_in_several_passes(monkeypatch):
    permutations = torch.rand((7, 256), generator=seeded(6)).argsort(dim=1)
    octaves = dict.fromkeys(CELLS, 1.0)
    arguments = np.array([300.3, 400.7, 500.1]), octaves, (45, 70)
    exact = lattice.simplex_sum(permutations, *arguments, torch.float64)
    monkeypatch.setattr(lattice, "PIXELS_AT_ONCE", 1)
    monkeypatch.setattr(lattice, "FIELDS_AT_ONCE", 3)
    passes = lattice.simplex_sum(permutations, *arguments, torch.float32)
    torch.testing.assert_close(passes.double(), exact, rtol=0, atol=1e-5)


def test_simplex_variance_is_that_of_uniform_gradients_at_random_places():
    rng = np.random.default_rng(1)
    (tiling,), _ = lattice._tilings(1, 1, (CELLS[0],))
    cpu, squares = torch.device("cpu"), []
    octave = {CELLS[0]: 1.0}
    for _ in range(400):
        origin = rng.uniform(0, 6 * CELLS[0], 3)
        weights = lattice._products(tiling, origin, octave, cpu, torch.float64).weights[0]
        squares.append(weights.square().sum().item() * (11**2 + 2 * 4**2) / 3)
    assert abs(np.mean(squares) / lattice.SIMPLEX_STD**2 - 1) < 0.05


def test_simplex_noise_begins_where_its_octaves_share_no_vertex(monkeypatch):
    seen = []

    def watched(permutations, origin, octaves, sides):
        seen.append(origin)
        return simplex_fields(permutations, origin, octaves, sides)

    monkeypatch.setattr("aberra.diffusion.simplex_cpu.simplex_fields", watched)
    for seed in range(20):
        simplex((1, 1, 4, 4), generator=torch.Generator().manual_seed(seed))
    cells = np.stack(seen) / noise.CELL
    assert 4 <= cells.min() < 5  # six cells on the lattice repeats
    assert 9 < cells.max() < 10


def test_every_field_of_a_batch_begins_at_a_place_of_its_own(monkeypatch):
    shifts, weights = [], noise._bicubic_weights

    def noted(size, cell, shift):
        shifts.append(shift)
        return weights(size, cell, shift)

    monkeypatch.setattr(noise, "_bicubic_weights", noted)
    noise._coarse((500, 8, 9), 16, torch.Generator().manual_seed(0), "cpu")
    for shift in shifts:  # of the rows, and of the columns
        assert shift.shape == (500,)
        assert set(shift.tolist()) == set(range(16))
    assert not torch.equal(*shifts)
