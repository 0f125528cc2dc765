"""The loops of a gain forest: growing one tree, and walking rows down all trees."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aberra.compiled import announce, compiled

Single = NDArray[np.float32]
Places = NDArray[np.int32]
Rows = NDArray[np.int64]
EULER = 0.5772156649015329
AT_ONCE = 32  # rows whose walks do not wait for each other
FEW = 32  # up to so many values are sorted by insertion: NumPy's way pays later


@compiled
def path_length(n: int) -> float:
    """Return how many random cuts it takes on average until one of n rows is alone."""
    if n <= 1:
        return 0.0
    if n == 2:
        return 1.0
    return 2.0 * (np.log(n - 1.0) + EULER) - 2.0 * (n - 1.0) / n


@compiled
def grown(
    rows: Single, seed: int, levels: int, n_planes: int, pooled: bool
) -> tuple[Places, Single, Places, Single]:
    """Grow one tree and return its nodes: columns, planes, left children, depths."""
    np.random.seed(seed)
    m = len(rows)
    most = 2 * m + 1
    columns, planes = np.zeros((most, 2), np.int32), np.zeros((most, 3), np.float32)
    left = np.zeros(most, np.int32)
    depths = np.zeros(most, np.float32)
    first, last, level = (
        np.zeros(most, np.int64),
        np.zeros(most, np.int64),
        np.zeros(most, np.int64),
    )
    order, n_nodes, node = np.arange(m), 1, 0
    last[0] = m
    while node < n_nodes:
        own = order[first[node] : last[node]]  # the rows of this node
        middle = 0
        if len(own) > 1 and level[node] < levels:
            best_plane(rows, own, n_planes, pooled, columns[node], planes[node])
            middle = parted(rows, own, columns[node], planes[node])
        if middle == 0 or middle == len(own):
            columns[node, :], planes[node, :] = 0, 0.0
            left[node] = node  # a leaf leads to itself
            depths[node] = level[node] + path_length(len(own))
        else:
            left[node] = n_nodes
            first[n_nodes], last[n_nodes] = first[node], first[node] + middle
            first[n_nodes + 1], last[n_nodes + 1] = first[node] + middle, last[node]
            level[n_nodes] = level[n_nodes + 1] = level[node] + 1
            n_nodes += 2
        node += 1
    return (
        columns[:n_nodes].copy(),
        planes[:n_nodes].copy(),
        left[:n_nodes].copy(),
        depths[:n_nodes].copy(),
    )


@compiled
def best_plane(
    rows: Single,
    own: Rows,
    n_planes: int,
    pooled: bool,
    columns: Places,
    plane: Single,
) -> None:
    """Find the best of some random planes through two columns; write it into the last two."""
    n, d, best = len(own), rows.shape[1], -1.0
    values, room = np.empty(n), np.empty((3, n))
    for _ in range(n_planes):
        i, j = np.random.randint(d), np.random.randint(d)
        a = slope(rows, own, i)
        b = slope(rows, own, j) if j != i else 0.0
        if a == 0.0 and b == 0.0:
            continue
        for k in range(n):
            values[k] = a * rows[own[k], i] + b * rows[own[k], j]
        sort(values)
        gain, cut = best_cut(values, pooled, room)
        if gain > best:
            best, columns[0], columns[1] = gain, i, j
            plane[0], plane[1], plane[2] = a, b, cut


@compiled
def slope(rows: Single, own: Rows, j: int) -> float:
    """Draw a slope for a column: normal, divided by the column's deviation; 0 if it is constant."""
    n, origin, total, squares = len(own), float(rows[own[0], j]), 0.0, 0.0
    for k in own:
        x = rows[k, j] - origin
        total += x
        squares += x * x
    variance = squares / n - (total / n) ** 2
    return np.random.normal() / np.sqrt(variance) if variance > 1e-12 * (1 + squares / n) else 0.0


@compiled
def sort(values: NDArray[np.float64]) -> None:
    """Sort values in their place."""
    if len(values) > FEW:
        values.sort()
        return
    for k in range(1, len(values)):
        value, place = values[k], k
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value


@compiled
def best_cut(
    values: NDArray[np.float64], pooled: bool, room: NDArray[np.float64]
) -> tuple[float, float]:
    """Return the gain of the best cut through sorted values, and its place; -1 if there is none.

    The running sums and the gains of all cuts are kept in `room`, three rows as long as the values:
    so the loop over cuts has no step that waits for another and runs on vector instructions.
    """
    n, middle = len(values), values.mean()
    sums, squared, gains = room[0], room[1], room[2]
    total = squares = 0.0
    for k in range(n):
        x = values[k] - middle
        total += x
        squares += x * x
        sums[k], squared[k] = total, squares
    deviation = np.sqrt(squares / n)
    best, place = -1.0, 0.0
    if deviation < 1e-9:
        return best, place
    for k in range(n - 1):
        s, s2, low, high = sums[k], squared[k], float(k + 1), float(n - k - 1)
        below = np.sqrt(max(s2 / low - (s / low) ** 2, 0.0))
        above = np.sqrt(max((squares - s2) / high - ((total - s) / high) ** 2, 0.0))
        even = (low * below + high * above) / n if pooled else (below + above) / 2
        gains[k] = 1 - even / deviation
    for k in range(n - 1):
        if gains[k] > best and values[k + 1] > values[k]:
            best, place = gains[k], 0.5 * (values[k] + values[k + 1])
    return best, place


@compiled
def parted(rows: Single, own: Rows, columns: Places, plane: Single) -> int:
    """Bring the rows below a plane to the front, and return how many they are."""
    front = 0
    for k in range(len(own)):
        row = own[k]
        if plane[0] * rows[row, columns[0]] + plane[1] * rows[row, columns[1]] <= plane[2]:
            own[k], own[front] = own[front], row
            front += 1
    return front


@compiled
def walk(
    rows: Single,
    columns: Places,
    planes: Single,
    left: Places,
    depths: Single,
    roots: Places,
    steps: int,
    total: NDArray[np.float64],
) -> None:
    """Add up the depths of the leaves that each row ends in, some rows at a time."""
    nodes = np.empty(AT_ONCE, np.int32)
    for start in range(0, len(rows), AT_ONCE):
        n = min(AT_ONCE, len(rows) - start)
        for root in roots:
            nodes[:n] = root
            for _ in range(steps):
                for k in range(n):
                    node = nodes[k]
                    row = rows[start + k]
                    place = (
                        planes[node, 0] * row[columns[node, 0]]
                        + planes[node, 1] * row[columns[node, 1]]
                    )
                    nodes[k] = left[node] + (1 if place > planes[node, 2] else 0)
            for k in range(n):
                total[start + k] += depths[nodes[k]]


announce(grown, "Compiling the forests once; this takes about 5 s ...")
