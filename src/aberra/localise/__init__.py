"""Localisers: models that show where in an image something does not belong."""

from aberra.rng import load_torch

load_torch("A localiser")  # said once, here, for all of them
