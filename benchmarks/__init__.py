"""Races against peers and studies on real data; each module runs with `python -m`."""
