"""Scoring what is too large for memory, piece by piece, so that a stopped run can go on."""
