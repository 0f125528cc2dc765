"""The compiled pieces of small convolutional networks: kernels, and what comes between them.

The images of a batch lie side by side, innermost: every loop runs over neighbouring numbers, and
becomes vector instructions. Whoever changes this module also touches `compiled_convolutions`, into
which it is compiled: what is kept on disk is renewed when a module's own file changes.

Notation (shapes): B images in a batch; maps (channels, height, width * B); z what a kernel leaves,
h its output, g the gradient of the loss with respect to one of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aberra.compiled import compiled, compiled_sums
from aberra.detectors.aims import Matrix, Vector
from aberra.nets.stacked import BN_EPS, BN_MOMENTUM, LEAK

F = np.float32
ZERO, ONE, LEAKY, EPS = F(0), F(1), F(LEAK), F(BN_EPS)
Maps = NDArray[np.float32]  # (channels, height, width * B)
Number = np.float32
Kernels = NDArray[np.float32]  # (out, in, 5, 5)


# Kernels


@compiled
def convolve(x: Maps, w: Kernels, out: Maps, batch: int) -> None:
    """Move kernels w (out, in, 5, 5) over maps x that have their border; two at a time."""
    n = out.shape[2]
    for o in range(0, len(out) - 1, 2):
        for y in range(out.shape[1]):
            p, q = out[o, y], out[o + 1, y]
            for i in range(n):
                p[i] = ZERO
                q[i] = ZERO
            for c in range(len(x)):
                for ky in range(5):
                    row, a, b = x[c, y + ky], w[o, c, ky], w[o + 1, c, ky]
                    x0, x1, x2 = row[:n], row[batch : batch + n], row[2 * batch : 2 * batch + n]
                    x3, x4 = row[3 * batch : 3 * batch + n], row[4 * batch : 4 * batch + n]
                    a0, a1, a2, a3, a4 = a[0], a[1], a[2], a[3], a[4]
                    b0, b1, b2, b3, b4 = b[0], b[1], b[2], b[3], b[4]
                    for i in range(n):
                        p[i] = p[i] + a0 * x0[i] + a1 * x1[i] + a2 * x2[i] + a3 * x3[i] + a4 * x4[i]
                        q[i] = q[i] + b0 * x0[i] + b1 * x1[i] + b2 * x2[i] + b3 * x3[i] + b4 * x4[i]
    if len(out) % 2 == 1:
        _convolve_one(x, w[-1], out[-1], batch)


@compiled
def _convolve_one(x: Maps, w: Maps, out: Matrix, batch: int) -> None:
    """Move the kernel (in, 5, 5) of one map that is left over."""
    n = out.shape[1]
    for y in range(len(out)):
        p = out[y]
        for i in range(n):
            p[i] = ZERO
        for c in range(len(x)):
            for ky in range(5):
                row, a = x[c, y + ky], w[c, ky]
                x0, x1, x2 = row[:n], row[batch : batch + n], row[2 * batch : 2 * batch + n]
                x3, x4 = row[3 * batch : 3 * batch + n], row[4 * batch : 4 * batch + n]
                a0, a1, a2, a3, a4 = a[0], a[1], a[2], a[3], a[4]
                for i in range(n):
                    p[i] = p[i] + a0 * x0[i] + a1 * x1[i] + a2 * x2[i] + a3 * x3[i] + a4 * x4[i]


@compiled_sums
def correlate(x: Maps, g: Maps, border: int, w: Kernels, batch: int) -> None:
    """Write the gradient of kernels to w; x and g have their borders."""
    height, n = g.shape[1] - 2 * border, g.shape[2] - 2 * border * batch
    for o in range(len(w)):
        for c in range(len(x)):
            for ky in range(5):
                s0, s1, s2, s3, s4 = ZERO, ZERO, ZERO, ZERO, ZERO
                for y in range(height):
                    row, own = x[c, y + ky], g[o, y + border][border * batch :]
                    x0, x1, x2 = row[:n], row[batch : batch + n], row[2 * batch : 2 * batch + n]
                    x3, x4 = row[3 * batch : 3 * batch + n], row[4 * batch : 4 * batch + n]
                    for i in range(n):
                        s0 += own[i] * x0[i]
                        s1 += own[i] * x1[i]
                        s2 += own[i] * x2[i]
                        s3 += own[i] * x3[i]
                        s4 += own[i] * x4[i]
                w[o, c, ky, 0] = s0
                w[o, c, ky, 1] = s1
                w[o, c, ky, 2] = s2
                w[o, c, ky, 3] = s3
                w[o, c, ky, 4] = s4


@compiled
def turned(w: Kernels) -> Kernels:
    """Return kernels for the way back: in and out exchanged, each turned by half a circle."""
    out = np.empty((w.shape[1], w.shape[0], 5, 5), F)
    for o in range(w.shape[0]):
        for c in range(w.shape[1]):
            for ky in range(5):
                for kx in range(5):
                    out[c, o, ky, kx] = w[o, c, 4 - ky, 4 - kx]
    return out


# Between the kernels


@compiled_sums
def _statistics(z: Matrix) -> tuple[Number, Number]:
    """Return the mean of a map (height, width * B), and the sum of squares about it."""
    total, square = ZERO, ZERO
    for y in range(len(z)):
        row = z[y]
        for i in range(len(row)):
            total += row[i]
    mean = total / F(z.size)
    for y in range(len(z)):
        row = z[y]
        for i in range(len(row)):
            square += (row[i] - mean) * (row[i] - mean)
    return mean, square


@compiled
def normalise(z: Maps, centre: Vector, spread: Vector, mean: Vector, variance: Vector) -> None:
    """Find what normalises each map; the running statistics follow."""
    n = F(z.shape[1] * z.shape[2])
    for c in range(len(z)):
        centre[c], square = _statistics(z[c])
        spread[c] = ONE / np.sqrt(square / n + EPS)
        mean[c] += F(BN_MOMENTUM) * (centre[c] - mean[c])
        variance[c] += F(BN_MOMENTUM) * (square / (n - ONE) - variance[c])


@compiled
def activate(z: Maps, centre: Vector, spread: Vector, h: Maps) -> None:
    """Write the leaky ReLU of the normalised maps."""
    for c in range(len(z)):
        middle, factor = centre[c], spread[c]
        for y in range(z.shape[1]):
            row, out = z[c, y], h[c, y]
            for i in range(len(row)):
                value = (row[i] - middle) * factor
                out[i] = value if value > ZERO else LEAKY * value


@compiled
def activate_largest(z: Maps, centre: Vector, spread: Vector, h: Maps, batch: int) -> None:
    """Write the same for the largest of each 2 x 2: what comes between keeps their order."""
    for c in range(len(z)):
        middle, factor = centre[c], spread[c]
        for y in range(h.shape[1]):
            top, low, out = z[c, 2 * y], z[c, 2 * y + 1], h[c, y]
            for x in range(h.shape[2] // batch):
                first, second = 2 * x * batch, (2 * x + 1) * batch
                for b in range(batch):
                    upper = max(top[first + b], top[second + b])
                    lower = max(low[first + b], low[second + b])
                    value = (max(upper, lower) - middle) * factor
                    out[x * batch + b] = value if value > ZERO else LEAKY * value


@compiled_sums
def _slopes(h: Matrix, g: Matrix) -> tuple[Number, Number]:
    """Turn g, the gradient at h, into that at the normalised map; return two sums of it.

    h is a leaky ReLU of the map, which is found again from it.
    """
    total, slope = ZERO, ZERO
    for y in range(len(h)):
        own, back = h[y], g[y]
        for i in range(len(own)):
            positive = own[i] > ZERO
            back[i] = back[i] if positive else LEAKY * back[i]
            total += back[i]
            slope += back[i] * (own[i] if positive else own[i] / LEAKY)
    return total, slope


@compiled
def undo_activate(
    z: Maps, centre: Vector, spread: Vector, h: Maps, g: Maps, border: int, g_z: Maps, batch: int
) -> None:
    """Turn g, the gradient at h, into that at z, which gets a border; pooled or not."""
    n, pooled = F(z.shape[1] * z.shape[2]), h.shape[1] < z.shape[1]
    for c in range(len(z)):
        total, slope = _slopes(h[c], g[c])
        middle, factor = centre[c], spread[c]
        level, steep = total / n * factor, slope / n * factor * factor
        for y in range(z.shape[1]):
            row, out = z[c, y], g_z[c, y + border][border * batch :]
            for i in range(len(row)):
                out[i] = -level - (row[i] - middle) * steep
        for y in range(h.shape[1]):
            back = g[c, y]
            if not pooled:
                out = g_z[c, y + border][border * batch :]
                for i in range(len(back)):
                    out[i] += back[i] * factor
                continue
            above = g_z[c, 2 * y + border][border * batch :]
            below = g_z[c, 2 * y + 1 + border][border * batch :]
            top, low = z[c, 2 * y], z[c, 2 * y + 1]
            for x in range(h.shape[2] // batch):
                first, second = 2 * x * batch, (2 * x + 1) * batch
                for b in range(batch):
                    upper = max(top[first + b], top[second + b])
                    lower = max(low[first + b], low[second + b])
                    value = back[x * batch + b] * factor
                    over = value if upper >= lower else ZERO  # the first of equal ones has it
                    under = value - over
                    left = top[first + b] >= top[second + b]
                    left_below = low[first + b] >= low[second + b]
                    above[first + b] += over if left else ZERO
                    above[second + b] += ZERO if left else over
                    below[first + b] += under if left_below else ZERO
                    below[second + b] += ZERO if left_below else under


@compiled
def enlarge(h: Maps, side: NDArray[np.int64], pad: int, x: Maps, batch: int) -> None:
    """Write maps h, enlarged to a side by repeating the nearest, into the border's inside."""
    height, width = h.shape[1], h.shape[2] // batch
    for c in range(len(h)):
        for y in range(side[0]):
            row, out = h[c, y * height // side[0]], x[c, y + pad]
            for v in range(side[1]):
                at, to = v * width // side[1] * batch, (v + pad) * batch
                for b in range(batch):
                    out[to + b] = row[at + b]


@compiled
def undo_enlarge(g: Maps, side: NDArray[np.int64], g_h: Maps, batch: int) -> None:
    """Add up the gradients of what was repeated."""
    height, width = g_h.shape[1], g_h.shape[2] // batch
    for c in range(len(g_h)):
        for y in range(height):
            row = g_h[c, y]
            for i in range(len(row)):
                row[i] = ZERO
        for y in range(side[0]):
            row, out = g[c, y], g_h[c, y * height // side[0]]
            for v in range(side[1]):
                to, at = v * width // side[1] * batch, v * batch
                for b in range(batch):
                    out[to + b] += row[at + b]
