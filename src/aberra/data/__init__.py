"""Data as people have it, made ready for detectors."""
