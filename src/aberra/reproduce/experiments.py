"""Everything that can be reproduced, by name; a new table is one line here."""

from __future__ import annotations

from aberra.reproduce.experiment import Experiment
from aberra.reproduce.features import FEATURE_FIGURES
from aberra.reproduce.mri_table import MRI_TABLES
from aberra.reproduce.odds_figures import ODDS_FIGURES
from aberra.reproduce.odds_tables import ODDS_TABLES
from aberra.reproduce.spread import SPREAD_TABLES
from aberra.reproduce.unseen_tables import IMAGE_TABLES

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        *ODDS_TABLES,
        *SPREAD_TABLES,
        *IMAGE_TABLES,
        *MRI_TABLES,
        *ODDS_FIGURES,
        *FEATURE_FIGURES,
    )
}
