"""Either kind of network: perceptrons for tables, convolutions for images."""

from __future__ import annotations

from aberra.nets.conv import ConvStack, FrozenConv
from aberra.nets.stacked import FrozenMLP, MLPStack

Stack = MLPStack | ConvStack  # m members in training
Frozen = FrozenMLP | FrozenConv  # m trained members, which map rows that they share
