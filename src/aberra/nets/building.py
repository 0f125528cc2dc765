"""How foreign networks are made without touching anybody's random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import nn

Net = TypeVar("Net", bound=nn.Module)


def seeded(make: Callable[[], Net], seed: int) -> Net:
    """Build a network whose initial weights depend on `seed` alone.

    Foreign modules draw from the global generator, so it is set inside and put back afterwards.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return in_layout(make())


def in_layout(net: Net) -> Net:
    """Return the network with its weights laid out as convolutions like them best."""
    # torch's type stubs do not know this argument
    return net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
