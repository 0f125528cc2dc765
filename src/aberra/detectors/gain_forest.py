"""Trees that cut off small groups of rows: the few cuts it takes to be alone make a row odd.

An isolation forest cuts at random. Here a node tries some random planes, each through two columns,
at every place between two of its rows, and takes the cut that leaves the two sides most even in
themselves (Liu, Ting and Zhou, "On detecting clustered anomalies using SCiForest", 2010). Clusters
of dirt are cut off early, where random cuts run through their middle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from aberra.declare import Shape

Single = NDArray[np.float32]
Places = NDArray[np.int32]

MOST_STEPS = 64


@dataclass(frozen=True)
class Forest:
    """The nodes of all trees in a row; a node's right child follows its left one.

    A leaf leads to itself: its plane is 0, and nothing lies above it. So all rows take the same
    number of steps, and the processor can walk
    many of them at a time.
    """

    columns: Annotated[Places, Shape("q", 2, dtype="int32")]
    planes: Annotated[Single, Shape("q", 3, dtype="float32")]  # two slopes; right is above height
    left: Annotated[Places, Shape("q", dtype="int32")]
    depths: Annotated[Single, Shape("q", dtype="float32")]  # cuts until a row of this leaf is alone
    roots: Annotated[Places, Shape("r", dtype="int32")]
    steps: int

    def __post_init__(self) -> None:
        nodes = np.arange(len(self.left))
        left = self.left.astype(np.int64)  # 32 bits would overflow at the sum below
        inner = left != nodes
        # Compiled code does not look whether a node is there.
        if (left < 0).any() or (left + inner >= len(nodes)).any():
            raise ValueError("a node of a tree leads nowhere")
        if (self.planes[~inner] != 0).any():
            raise ValueError("a leaf of a tree leads on")
        if not len(self.roots) or ((self.roots < 0) | (self.roots >= len(nodes))).any():
            raise ValueError("a tree has no root")
        if not 0 <= self.steps <= MOST_STEPS:
            raise ValueError("the trees are too deep")

    def check_columns(self, n_columns: int) -> None:
        """Raise an error unless every node looks at one of so many columns."""
        if ((self.columns < 0) | (self.columns >= n_columns)).any():
            raise ValueError("a node of a tree looks at a column that is not there")

    def oddness(self, rows: Single) -> NDArray[np.float64]:
        """Return minus the mean depth of every row."""
        from aberra.detectors.compiled_forest import walk

        total = np.zeros(len(rows))
        nodes = (self.columns, self.planes, self.left, self.depths)
        walk(rows, *nodes, self.roots, self.steps, total)
        return -total / len(self.roots)


def grow(
    rows: Single,
    trust: NDArray[np.float64],
    generator: np.random.Generator,
    n_trees: int,
    n_planes: int,
    pooled: bool,
    most_rows: int = 256,
) -> Forest:
    """Grow trees, each on some rows that are drawn by the trust in them.

    Parameters
    ----------
    rows : (n, d)
    trust : (n,)
    generator
        Draws the rows and the planes.
    n_trees, n_planes : int
        Trees, and random planes that a node compares.
    pooled : bool
        How even two sides are: by their deviations weighted with their sizes (True), which prefers
        clean cuts between large groups, or by the mean of both (False), which prefers to cut off
        small and tight ones.
    most_rows : int
        Rows a tree is grown on; no more than the trust amounts to.
    """
    from aberra.detectors.compiled_forest import grown

    total = np.cumsum(trust)
    size = int(np.clip(total[-1] ** 2 / np.square(trust).sum(), 16, most_rows))
    levels = int(np.ceil(np.log2(size)))
    trees = []
    for _ in range(n_trees):
        drawn = np.searchsorted(total, generator.random(size) * total[-1], side="right")
        some = np.unique(np.minimum(drawn, len(rows) - 1))
        seed = int(generator.integers(2**31 - 1))
        trees.append(grown(np.ascontiguousarray(rows[some]), seed, levels, n_planes, pooled))
    return _joined(trees, levels)


def _joined(trees: list[tuple[Places, Single, Places, Single]], levels: int) -> Forest:
    """Put the nodes of all trees into one row."""
    sizes = np.array([len(tree[0]) for tree in trees])
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32)
    columns, planes, left, depths = (np.concatenate(parts) for parts in zip(*trees, strict=True))
    left = (left + np.repeat(roots, sizes)).astype(np.int32)
    return Forest(columns, planes, left, depths, roots, levels)
