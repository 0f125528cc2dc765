"""Detectors: scikit-learn estimators whose objective takes a weight for every sample."""
