"""What everything that scores has in common: detectors, ensembles and localisers."""
