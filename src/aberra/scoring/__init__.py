"""Scoring what is too large for memory, piece by piece, so that a stopped run can go on."""

from __future__ import annotations

from typing import Literal

Reasons = Literal["flagged", "all", "none"]  # which rows of a table get reasons
