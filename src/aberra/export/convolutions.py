"""The convolutional networks of detectors of images as graphs, in single precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from aberra.export.graph import Graph, Value
from aberra.nets.conv_plan import ConvLayer, FrozenConv
from aberra.nets.stacked import BN_EPS, LEAK


def convolutional(g: Graph, x: Value, net: FrozenConv, shared: bool) -> str:
    """Map images (n, d) that members share, or each member's own (m, n, d), to (m, n, k)."""
    single = g.cast(x, "float32")
    own = [
        _member(g, single if shared else g.op("Gather", single, np.array(j), axis=0), net, j)
        for j in range(net.n_members)
    ]
    stacked = g.op("Concat", *(g.unsqueezed(one, 0) for one in own), axis=0)
    return g.cast(stacked, "float64")


def _member(g: Graph, x: str, net: FrozenConv, j: int) -> str:
    plan, held = net.plan, {name: array[j] for name, array in net.arrays.items()}
    dense = held.get(f"weight{len(plan.layers)}")
    h = x
    if plan.decodes and dense is not None:
        h = g.op("MatMul", h, dense.T)
    h = g.op("Reshape", h, np.array([-1, *(plan.inner if plan.decodes else plan.image)]))
    if plan.decodes:
        h = g.op("LeakyRelu", h, alpha=LEAK)
    for k, layer in enumerate(plan.layers):
        h = _layer(g, h, layer, held, k)
    h = g.op("Flatten", h, axis=1)
    return h if plan.decodes or dense is None else g.op("MatMul", h, dense.T)


def _layer(g: Graph, x: str, layer: ConvLayer, held: dict[str, Any], k: int) -> str:
    h = _convolved(g, x, layer, held[f"weight{k}"])
    if not layer.linear:
        mean, variance = held[f"mean{k}"], held[f"variance{k}"]
        parts = (np.ones_like(mean), np.zeros_like(mean), mean, variance)
        h = g.op("BatchNormalization", h, *parts, epsilon=BN_EPS)
        h = g.op("LeakyRelu", h, alpha=LEAK)
    return g.op("MaxPool", h, kernel_shape=[2, 2], strides=[2, 2]) if layer.pool else h


def _convolved(g: Graph, x: str, layer: ConvLayer, weight: Any) -> str:
    settings: dict[str, Any] = {"strides": [layer.stride] * 2, "pads": [layer.padding] * 4}
    if layer.upsample_to is not None:
        x = _enlarged(g, x, layer.n_in, layer.upsample_to)
    if layer.transposed:
        return g.op(
            "ConvTranspose", x, weight, output_padding=list(layer.output_padding), **settings
        )
    return g.op("Conv", x, weight, **settings)


def _enlarged(g: Graph, x: str, n_channels: int, size: tuple[int, int]) -> str:
    """Return images enlarged by copying pixels, as torch does."""
    n = g.op("Gather", g.op("Shape", x), np.array([0]))
    sizes = g.op("Concat", n, np.array([n_channels, *size]), axis=0)
    how: dict[str, Any] = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return g.op("Resize", x, "", "", sizes, mode="nearest", **how)
