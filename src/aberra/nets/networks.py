"""Either kind of network: perceptrons for tables, convolutions for images."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from aberra.nets.conv_plan import FrozenConv
from aberra.nets.stacked import FrozenMLP, MLPStack

if TYPE_CHECKING:  # it trains, in torch; what it leaves behind does not need it
    from aberra.nets.conv import ConvStack

Stack: TypeAlias = "MLPStack | ConvStack"  # m members in training
Frozen = FrozenMLP | FrozenConv  # m trained members, which map rows that they share
