"""Localisers: models that show where in an image something does not belong."""
