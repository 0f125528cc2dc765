"""How far a column has moved: all of it, or only its dirt."""

import numpy as np
import pytest

from aberra.robust.levels import Levels, moved

RNG = np.random.default_rng(0)
KNOWN = RNG.normal(size=(2000, 1))


def test_a_column_that_moves_as_a_whole_is_followed():
    assert moved(2 + RNG.normal(size=(256, 1)), KNOWN) == pytest.approx([2], abs=0.2)
    assert moved(RNG.normal(size=(256, 1)) - 1, KNOWN) == pytest.approx([-1], abs=0.2)


@pytest.mark.parametrize("seed", range(5))
def test_a_column_that_stays_hardly_moves(seed):
    piece = np.random.default_rng(seed).normal(size=(256, 1))
    assert abs(moved(piece, KNOWN)[0]) < 0.12


def test_dirt_spread_and_shares_are_no_move():
    dirty = RNG.normal(size=(256, 1))
    dirty[:20] += 50
    assert abs(moved(dirty, KNOWN)[0]) < 0.2
    assert moved(3 * RNG.normal(size=(256, 1)), KNOWN) == 0
    zeros_and_ones = (RNG.random((2000, 1)) < 0.45).astype(float)
    assert moved((RNG.random((256, 1)) < 0.55).astype(float), zeros_and_ones) == 0


def test_gaps_are_passed_over_and_an_empty_column_stays():
    piece = 2 + RNG.normal(size=(256, 2))
    piece[::2, 0] = np.nan
    piece[:, 1] = np.nan
    assert moved(piece, np.repeat(KNOWN, 2, axis=1)) == pytest.approx([2, 0], abs=0.3)


def test_the_pace_goes_on_and_a_jump_is_no_pace():
    steady, jumped = Levels.at_zero(1), Levels.at_zero(1)
    for k in range(1, 6):
        steady.follow(0.1 * k + KNOWN, KNOWN, k)
        jumped.follow(5.0 * (k == 3) + 5.0 * (k > 3) + KNOWN, KNOWN, k)
    assert steady.likely()[0] == pytest.approx([0.6])
    assert len(steady.likely()) == 1
    assert jumped.likely()[0] == pytest.approx([5.0])
    assert jumped.likely()[1] == pytest.approx([0.0])
    jumped.forget(4)
    assert len(jumped.likely()) == 1


EVEN = np.linspace(0, 1, 101)[:, None]  # nine tenths of it lie within 0.9


def test_three_quarters_of_the_quantiles_have_to_agree():
    for still, expected in ((0.2, 1.0), (0.3, 0.0)):  # the lowest part stays where it is
        for sign in (1, -1):
            found = moved(sign * (EVEN + (still < EVEN)), sign * EVEN)
            assert found == pytest.approx([sign * expected])


def test_a_jump_is_a_step_off_the_pace_by_three_tenths_of_the_width():
    gone = np.full((101, 1), np.nan)
    for step, n_left in ((0.26, 0), (0.28, 1), (-0.28, 1)):
        levels = Levels.at_zero(2)
        levels.follow(np.hstack([gone, EVEN + step]), np.hstack([gone, EVEN]), 1)
        assert len(levels.left) == n_left
        assert levels.now == pytest.approx([0, step])


def test_the_pace_is_the_median_of_four_steps_and_three_levels_may_return():
    levels, paces = Levels.at_zero(1), []
    for level in np.cumsum([0.01, 0.02, 0.03, 0.05, 0.2]):
        levels.follow(EVEN + level, EVEN, 0)
        paces.append(levels.pace[0])
    assert paces == pytest.approx([0, 0, 0, 0.025, 0.04])
    for place in range(1, 6):
        levels.follow(EVEN + 5 * (-1) ** place, EVEN, place)
    assert [place for place, _ in levels.left] == [3, 4, 5]
    levels.forget(4)
    assert [level[0] for _, level in levels.left] == pytest.approx([-5, 5])


def test_a_jump_is_measured_from_the_pace():
    levels = Levels.at_zero(1)
    for place in range(8):  # far at once, but the same every time
        levels.follow(EVEN + place + 1, EVEN, place)
    assert [place for place, _ in levels.left] == [1, 2, 3]
    levels.follow(EVEN + 8, EVEN, 9)  # it stands still, which it did not before
    assert [place for place, _ in levels.left] == [2, 3, 9]
    assert levels.now == pytest.approx([8])


def test_a_constant_column_that_stays_has_not_jumped():
    levels = Levels.at_zero(2)
    levels.follow(np.ones((9, 2)), np.ones((9, 2)), 0)
    assert levels.left == []
    levels.follow(np.ones((9, 2)) * [1, 1.001], np.ones((9, 2)), 1)
    assert len(levels.left) == 1


def test_a_move_is_what_nineteen_quantiles_agree_on():
    rng = np.random.default_rng(3)
    at = np.arange(1, 20) / 20
    for _ in range(20):
        new, old = rng.normal(rng.normal(), 1, size=(2, 25, 1))
        gaps = np.sort(np.quantile(new, at) - np.quantile(old + 1, at))
        low, high = np.quantile(gaps, 0.25), np.quantile(gaps, 0.75)
        expected = low if low > 0 else high if high < 0 else 0.0
        assert moved(new, old + 1) == pytest.approx([expected])
