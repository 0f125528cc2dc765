"""The random numbers of torch's CPU generator, without torch.

Network detectors drew their first weights and the order of their rows with torch before tables
could do without it. The same numbers are drawn here, bit for bit, so that a seed goes on giving
the scores it always gave. Both sit on the Mersenne twister that `numpy.random.RandomState` seeds
in the same way and promises never to change.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Single = NDArray[np.float32]
F = np.float32

HALF_BLOCK = 8  # normal numbers are made from sixteen uniform ones at a time
LOG_TERMS = (-1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
             -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)  # fmt: skip
QUARTER_PI = (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)  # in three parts


class Twister:
    """A stream of random numbers of its own.

    Parameters
    ----------
    seed : int
        Names the stream; the numbers are those of `torch.Generator().manual_seed(seed)`.
    """

    def __init__(self, seed: int) -> None:
        self._state = np.random.RandomState(seed & 0xFFFFFFFF)

    def uniform(self, *shape: int) -> Single:
        """Draw from [0, 1), as `torch.rand` does."""
        low = self._integers(int(np.prod(shape))) & np.uint32(0xFFFFFF)
        return (low.astype(F) * F(2.0**-24)).reshape(shape)

    def normal(self, *shape: int) -> Single:
        """Draw from the standard normal distribution, as `torch.randn` does."""
        n = int(np.prod(shape))
        if n < 2 * HALF_BLOCK:
            return self._few_normal(n).reshape(shape)
        drawn, whole = self.uniform(n), n - n % (2 * HALF_BLOCK)
        drawn[:whole] = _box_muller(drawn[:whole])
        if whole < n:  # the last sixteen are drawn anew, whatever part of them was there
            drawn[-2 * HALF_BLOCK :] = _box_muller(self.uniform(2 * HALF_BLOCK))
        return drawn.reshape(shape)

    def permutation(self, n: int) -> NDArray[np.int64]:
        """Return 0 to n - 1 in random order, as `torch.randperm` does."""
        from aberra.shuffling import swapped  # compiled, and only training needs it

        return swapped(np.arange(n), self._integers(n - 1)) if n > 1 else np.arange(n)

    def _integers(self, n: int) -> NDArray[np.uint32]:
        return np.frombuffer(self._state.bytes(4 * n), dtype="<u4").astype(np.uint32, copy=False)

    def _few_normal(self, n: int) -> Single:
        """Draw in double precision, two at a time.

        One that is left over is dropped, where torch keeps it for a second call of this kind; no
        detector makes one.
        """
        parts = self._integers(4 * -(-n // 2)).astype(np.uint64).reshape(-1, 2, 2)
        whole = (parts[..., 0] << np.uint64(32)) | parts[..., 1]
        u = (whole & np.uint64(2**53 - 1)).astype(np.float64) * 2.0**-53
        radius, angle = np.sqrt(-2.0 * np.log1p(-u[:, 1])), 2.0 * np.pi * u[:, 0]
        pairs = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
        return pairs.ravel()[:n].astype(F)


def _box_muller(uniform: Single) -> Single:
    """Turn blocks of sixteen uniform numbers into normal ones."""
    blocks = uniform.reshape(-1, 2, HALF_BLOCK)
    radius = np.sqrt(F(-2) * _log(F(1) - blocks[:, 0]))
    sine, cosine = _sine_and_cosine(F(2 * np.pi) * blocks[:, 1])
    return np.stack([radius * cosine, radius * sine], axis=1).ravel()


# The logarithm, sine and cosine of the Cephes library in single precision, with the steps and the
# fused multiply-adds that torch's vector code has: NumPy's own differ from them in the last bit.


def _fused(a: Single, b: Single | np.float32, c: Single | np.float32) -> Single:
    """Return a * b + c, rounded once: the product is exact in double precision."""
    return (a.astype(np.float64) * b + c).astype(F)


def _log(x: Single) -> Single:
    bits = x.view(np.int32)
    exponent = ((bits >> 23) - 126).astype(F)
    x = ((bits & np.int32(0x007FFFFF)) | np.int32(0x3F000000)).view(F)
    low = x < F(0.707106781186547524)
    exponent -= low
    x = np.where(low, x - F(1) + x, x - F(1))
    square, y = x * x, np.full_like(x, 7.0376836292e-2)
    for term in LOG_TERMS:
        y = _fused(y, x, F(term))
    y = _fused(y * x, square, exponent * F(-2.12194440e-4))
    return _fused(exponent, F(0.693359375), x + _fused(square, F(-0.5), y))


def _sine_and_cosine(x: Single) -> tuple[Single, Single]:
    octant = ((x * F(1.27323954473516)).astype(np.int32) + 1) & ~1
    turns = octant.astype(F)
    for part in QUARTER_PI:
        x = _fused(turns, F(part), x)
    square = x * x
    c = _fused(np.full_like(x, 2.443315711809948e-5), square, F(-1.388731625493765e-3))
    c = _fused(c, square, F(4.166664568298827e-2)) * square
    c = _fused(c, square, square * F(-0.5)) + F(1)
    s = _fused(np.full_like(x, -1.9515295891e-4), square, F(8.3321608736e-3))
    s = _fused(_fused(s, square, F(-1.6666654611e-1)) * square, x, x)
    swap = (octant & 2) != 0
    sine, cosine = np.where(swap, c, s), np.where(swap, s, c)
    return (
        np.where(octant & 4, -sine, sine),
        np.where((octant - 2) & 4, cosine, -cosine),
    )
