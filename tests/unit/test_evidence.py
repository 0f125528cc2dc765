"""What is counted rather than measured: codes, pairs of codes, copies, constants."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from aberra import IADC
from aberra.detectors.evidence import evidence
from aberra.rng import stream


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_a_rare_code_counts_below_the_ordinary_ones(rng):
    column = np.r_[np.repeat([0.0, 1.0, 2.0], 400), 7.0]
    found = evidence(column[:, None])
    ordinary = 400
    np.testing.assert_allclose(found.nats(np.array([[7.0]])), 0.5 * (np.log(ordinary) - 3.5))
    np.testing.assert_allclose(found.nats(np.array([[9.0]])), 0.5 * (np.log(2 * ordinary) - 3.5))
    np.testing.assert_array_equal(found.nats(column[:1200, None]), 0.0)
    few = evidence(np.repeat([0.0, 1.0, 2.0], 10)[:, None])  # too few to say that one is rare
    np.testing.assert_array_equal(few.nats(np.array([[2.5]])), 0.0)


def test_numbers_are_no_codes(rng):
    assert evidence(rng.normal(size=(500, 2))).coded == []


def test_codes_that_never_meet(rng):
    a = rng.integers(0, 3, 900).astype(float)
    X = np.column_stack([a, (a + rng.integers(0, 2, 900)) % 3])  # a never meets a + 2
    nats = evidence(X).nats(np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]]))
    assert nats[0] == nats[1] == 0.0
    expected = (X[:, 0] == 0).sum() * (X[:, 1] == 2).sum() / 900
    np.testing.assert_allclose(nats[2], 0.5 * (np.log(expected / 0.5) - 1))


def test_a_rare_code_and_codes_that_never_meet_are_two_reasons(rng):
    a = rng.integers(0, 3, 900).astype(float)
    X = np.column_stack([a, (a + rng.integers(0, 2, 900)) % 3, np.repeat([0.0, 1.0, 2.0], 300)])
    X[0, 2] = 7.0
    nats = evidence(X).nats(np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 7.0], [0.0, 2.0, 7.0]]))
    assert nats[:2].min() > 0
    np.testing.assert_allclose(nats[2], nats[0] + nats[1])


def test_gaps_and_new_codes_meet_nobody(rng):
    a = rng.integers(0, 3, 900).astype(float)
    X = np.column_stack([a, (a + rng.integers(0, 2, 900)) % 3])
    X[0, 1] = np.nan
    found = evidence(X)
    assert len(found.pairs) == 1
    nats = found.nats(np.array([[0.0, np.nan], [5.0, 0.0], [5.0, np.nan], [0.0, 0.0]]))
    alone = replace(found, pairs=[]).nats(np.array([[0.0, np.nan], [5.0, 0.0], [5.0, np.nan]]))
    np.testing.assert_array_equal(nats, [*alone, 0.0])


@pytest.mark.parametrize("lonely", [-1.0, 3.0])
def test_a_code_that_only_occurs_beside_gaps(rng, lonely):
    a = rng.integers(0, 3, 900).astype(float)
    X = np.column_stack([a, (a + rng.integers(0, 2, 900)) % 3])  # a never meets a + 2
    gaps = np.column_stack([np.full(50, lonely), np.full(50, np.nan)])
    asked = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [lonely, 1.0]])
    nats = evidence(np.concatenate([X, gaps])).nats(asked)
    np.testing.assert_array_equal(nats, evidence(X).nats(asked) * [1, 1, 1, 0])


def test_copies_stand_out_among_unique_rows_only(rng):
    X = rng.normal(size=(1000, 4))
    X[:60] = 0.0
    np.testing.assert_allclose(evidence(X).nats(X[:1]), np.log(60))
    np.testing.assert_array_equal(evidence(X).nats(X[60:]), 0.0)
    coarse = np.round(X)
    assert len(evidence(coarse).copied) == 0
    codes = rng.integers(0, 10, size=(1000, 7)).astype(float)  # unique rows of coarse columns
    codes[:60] = 5.0
    assert len(evidence(codes).copied) == 0
    for j in range(7):  # every value is there twice: just fine enough
        codes[60:, j] = rng.permutation(np.repeat(np.arange(470.0), 2))
    assert len(evidence(codes).copied) == 1


def test_codes_that_are_too_rare_to_meet_are_no_evidence(rng):
    a = rng.integers(0, 3, 900).astype(float)
    X = np.column_stack([a, (a + rng.integers(0, 2, 900)) % 3])
    X[:10, 0] = X[10:20, 1] = 3.0  # expected to meet 0.1 times
    found = evidence(X)
    assert len(found.pairs) == 1
    np.testing.assert_array_equal(found.nats(np.array([[3.0, 3.0]])), 0.0)


@pytest.mark.parametrize(("n", "fewest"), [(500, 5), (2000, 8)])
def test_a_row_is_copied_if_it_is_there_five_times_and_in_four_of_a_thousand(rng, n, fewest):
    X = rng.normal(size=(n, 2))
    for times in (fewest - 1, fewest):
        X[:times] = 0.0
        assert len(evidence(X).copied) == (times == fewest)


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_a_dead_sensor_is_odd_although_it_is_in_the_middle(rng, share):
    X = rng.normal(size=(2000, 8))
    dead = np.arange(2000) < 2000 * share
    X[dead] = 0.0
    scores = IADC(random_state=0).fit(X).anomaly_score(X)
    assert scores[dead].min() > np.quantile(scores[~dead], 0.95)


def test_gaps_scattered_at_random_say_nothing_but_an_outage_does(rng):
    rows = rng.normal(size=(2000, 20))
    rows[rng.random(rows.shape) < 0.1] = np.nan
    rows[:20, :10] = np.nan
    nats = evidence(rows).nats(rows)
    assert nats[:20].min() > 10
    for x in (0.0, 1.0, 2.0, 4.0):  # what is x nats odd happens in at most exp(-x) of the rows
        assert np.mean(nats[20:] > x) < 1.5 * np.exp(-x) * 0.1
    together = rng.normal(size=(2000, 20))
    together[:600, :5] = np.nan  # three rows in ten have not been asked
    assert not evidence(together).nats(together).any()


def test_gaps_of_all_patterns_are_no_odder_than_they_are_rare(rng):
    rows = rng.normal(size=(4000, 3))
    rows[rng.random(rows.shape) < [0.02, 0.1, 0.2]] = np.nan
    found, share = evidence(rows), (np.isnan(rows).sum(axis=0) + 0.5) / 4001
    patterns = np.array(list(itertools.product([False, True], repeat=3)))
    chance = np.where(patterns, share, 1 - share).prod(axis=1)
    nats = found.nats(np.where(patterns, np.nan, 0.1))
    tails = np.array([chance[nats >= x].sum() for x in nats])
    seen = (nats > 0) & (tails > 0.004)  # often enough to be among the 4096 rows that are drawn
    assert (tails < 1.4 * np.exp(-nats))[seen].all()
    assert seen.sum() >= 2
    assert nats.max() > 4


@pytest.mark.parametrize(
    ("counts", "coded"),
    [
        ([50, 50], False),  # two values are a yes and a no
        ([40, 40, 20], True),
        ([5] * 10 + [1] * 50, True),  # ten values are half of the rows
        ([5] * 9 + [4] + [1] * 51, False),
        ([600] + [1] * 511, True),
        ([600] + [1] * 512, False),  # too many codes
    ],
)
def test_a_column_is_coded_if_few_values_cover_half_of_it(rng, counts, coded):
    column = rng.permutation(np.repeat(np.arange(len(counts)) * 1.5, counts))
    found = evidence(column[:, None]).coded
    assert len(found) == coded
    if coded:
        np.testing.assert_array_equal(found[0].values, np.arange(len(counts)) * 1.5)


def test_rare_is_measured_by_the_codes_that_cover_three_fifths():
    counts = np.array([300, 250, 50, 200, 197, 3])
    found = evidence(np.repeat(np.arange(6.0), counts)[:, None]).coded[0]
    # 300 + 250 are less than 600 of 1000, so the third most frequent is ordinary, too.
    np.testing.assert_allclose(found.nats, np.maximum(np.log(200 / counts) - 3.5, 0))
    assert found.nats[5] > 0
    assert found.unseen == pytest.approx(np.log(400) - 3.5)
    exact = evidence(np.repeat(np.arange(3.0), [400, 200, 400])[:, None]).coded[0]
    assert exact.unseen == pytest.approx(np.log(800) - 3.5)  # 400 + 400 cover it
    codes = found.codes(np.array([[2.0], [5.0], [7.0], [-1.0], [1.5], [np.nan]]))
    assert codes.tolist() == [2, 5, -1, -1, -1, -2]


def test_pairs_are_sought_among_twelve_columns_and_sixty_four_are_coded(rng):
    a = rng.integers(0, 3, 900).astype(float)
    b = (a + rng.integers(0, 2, 900)) % 3
    other = rng.integers(0, 3, (900, 10)).astype(float)
    seen = [(pair.first, pair.second) for pair in evidence(np.column_stack([other, a, b])).pairs]
    assert (10, 11) in seen
    more = evidence(np.column_stack([other, b[::-1], a, b]))
    assert all(pair.second < 12 for pair in more.pairs)
    assert (11, 12) not in [(pair.first, pair.second) for pair in more.pairs]
    wide = rng.integers(0, 3, (60, 70)).astype(float)
    assert [column.column for column in evidence(wide).coded] == list(range(64))


@pytest.mark.parametrize(("times", "there"), [(10, True), (9, False)])
def test_a_pair_has_to_be_expected_five_times(times, there):
    a = np.repeat([0.0, 1.0, 2.0], [45, 55 - times, times])
    b = np.tile([0.0, 1.0], 50)
    b[20:70] = 2.0  # half of the rows, but none of those whose other code is 2
    found = evidence(np.column_stack([a, b])).pairs
    nats = found[0].nats[2, 2] if found else 0.0
    assert nats == pytest.approx(np.log(5 / 0.5) - 1 if there else 0.0)


def test_tables_of_more_than_four_thousand_pairs_are_left_alone():
    a = np.repeat([0.0, 1.0, 2.0], 400)
    b = np.repeat([1.0, 2.0, 0.0], 400)
    assert len(evidence(np.column_stack([a, b])).pairs) == 1
    many_a, many_b = a.copy(), b.copy()
    many_a[:60] += np.arange(3, 63)  # 63 codes and 3: 189 pairs
    assert len(evidence(np.column_stack([many_a, b])).pairs) == 1
    many_b[60:122] += np.arange(3, 65)  # 63 times 65 pairs are more than 4000
    assert len(evidence(np.column_stack([many_a, many_b])).coded) == 2
    assert evidence(np.column_stack([many_a, many_b])).pairs == []


def test_copies_stand_out_where_the_rest_is_unique_and_fine(rng):
    def copies(n_kinds, times, n_rest=400, doubled=0):
        rest = rng.normal(size=(n_rest, 2))
        rest[:doubled] = np.repeat(rest[: doubled // 2], 2, axis=0)
        return np.concatenate([np.repeat(np.arange(n_kinds)[:, None] + [0.0, 0.5], times, 0), rest])

    assert len(evidence(copies(64, 5)).copied) == 64
    assert len(evidence(copies(65, 5)).copied) == 0  # too many kinds of copies
    assert len(evidence(copies(1, 400)).copied) == 1
    assert len(evidence(copies(1, 401)).copied) == 0  # more than half of all
    assert len(evidence(copies(1, 9, doubled=40)).copied) == 1
    assert len(evidence(copies(1, 9, doubled=42)).copied) == 0  # more than a tenth twice
    rows = copies(1, 9)
    np.testing.assert_allclose(evidence(rows).copied_nats, [np.log(9)])
    coarse = np.column_stack([rows, np.zeros(len(rows)), np.zeros(len(rows))])
    assert len(evidence(coarse).copied) == 1  # half of the columns are fine
    assert len(evidence(np.column_stack([coarse, coarse[:, 2]])).copied) == 0


def test_what_three_quarters_of_the_rows_have_is_usual():
    rows = np.random.default_rng(0).normal(size=(400, 2))
    rows[:101, 0] = np.nan
    share = np.array([101.5, 0.5]) / 401
    assert evidence(rows).usual_gaps >= -np.log(share[0])
    rows = rows[2:]  # 99 of 398 are less than a quarter
    mean = -(np.array([99.5, 0.5]) / 399 * np.log(np.array([99.5, 0.5]) / 399)).sum()
    assert evidence(rows).usual_gaps >= mean
    whole = evidence(rows[200:])
    rate = np.full(2, 0.5 / 199)
    assert whole.usual_gaps == pytest.approx(-(rate * np.log(rate)).sum())
    np.testing.assert_allclose(whole.gap_nats, -np.log(rate))
    np.testing.assert_array_equal(whole.nats(np.zeros((3, 2), int)), whole.nats(np.zeros((3, 2))))


def test_constants_that_change_and_gaps_in_them():
    rows = np.column_stack([np.random.default_rng(0).normal(size=(50, 2)), np.full(50, 7.0)])
    rows[3, 2] = np.nan
    found = evidence(rows)
    assert (found.constant.tolist(), found.values.tolist()) == ([2], [7.0])
    asked = rows[[0, 0, 0]]
    asked[:, 2] = 7.0, 8.0, np.nan
    nats = found.nats(asked)
    assert nats[1] - nats[0] == pytest.approx(np.log(51))
    assert nats[2] <= -np.log(1.5 / 51)


def test_forged_evidence_is_refused(rng):
    a = rng.integers(0, 3, 900).astype(float)
    found = evidence(np.column_stack([a, (a + rng.integers(0, 2, 900)) % 3, np.ones(900)]))
    for changed, words in (
        ({"constant": np.array([3])}, "a column that is not there"),
        ({"constant": np.array([-1])}, "a column that is not there"),
        ({"coded": [replace(found.coded[0], column=3), found.coded[1]]}, "a column that is not"),
        ({"copied": np.zeros((2, 3)), "copied_nats": np.zeros(1)}, "differ in number"),
        ({"pairs": [replace(found.pairs[0], nats=np.zeros((3, 2)))]}, "does not fit its columns"),
    ):
        with pytest.raises(ValueError, match=words):
            replace(found, **changed)


def nats_by_hand(gaps, nats):
    """Return the nats of a row's gaps: the rarest once, all others twice."""
    own = sorted(nats[gaps])
    return own[-1] + 2 * sum(own[:-1]) if own else 0.0


def usual_by_hand(rows):
    """Return the three things that may be usual: the mean, three quarters of the rows, chance."""
    n, d = rows.shape
    share = (np.isnan(rows).sum(axis=0) + 0.5) / (n + 1)
    nats = -np.log(share)
    each = [nats_by_hand(row, nats) for row in np.isnan(rows)]
    drawn = stream(0, d).random((4096, d)) < share
    odd = sorted((nats_by_hand(row, nats) for row in drawn), reverse=True)
    by_chance = max(x - np.log(4096 / k) for k, x in enumerate(odd, 1) if k > 10)
    return (share * nats).sum(), np.quantile(each, 0.75), by_chance


@pytest.mark.parametrize("case", ["few", "blocks", "scattered"])
def test_usual_is_the_largest_of_the_mean_of_most_rows_and_of_chance(rng, case):
    rows = rng.normal(size=(4000 if case == "few" else 400, 6))
    if case == "few":
        rows[0, 0] = np.nan
    elif case == "blocks":
        rows[:130, :4] = np.nan
    else:
        rows[rng.random(rows.shape) < [0.02, 0.05, 0.1, 0.2, 0.01, 0.15]] = np.nan
    three = usual_by_hand(rows)
    found = evidence(rows)
    assert found.usual_gaps == pytest.approx(max(three))
    assert int(np.argmax(three)) == ["few", "blocks", "scattered"].index(case)
    odd = rng.normal(size=(3, 6))
    odd[1, :5] = odd[2, 2] = np.nan
    gaps = [nats_by_hand(row, found.gap_nats) for row in np.isnan(odd)]
    np.testing.assert_allclose(found._gaps(odd), np.maximum(np.array(gaps) - max(three), 0))


@pytest.mark.parametrize("at_a_time", [1, 7, 300])
def test_gaps_are_weighed_the_same_however_many_rows_at_a_time(rng, at_a_time, monkeypatch):
    rows = rng.normal(size=(300, 4))
    rows[:90, :2] = np.nan
    rows[rng.random(rows.shape) < 0.05] = np.nan
    whole = evidence(rows)
    monkeypatch.setattr("aberra.detectors.evidence.BLOCK", at_a_time)
    assert evidence(rows).usual_gaps == whole.usual_gaps
    assert whole.usual_gaps == pytest.approx(max(usual_by_hand(rows)))
