"""Which version of the code computed a cell.

A setting says what was asked for, not how it was computed. So the key of a cell also holds the
version of its detector's code. It goes up whenever the detector gives other scores for the same
setting, however little they differ: training carries a last digit far. `tests/contract/engines.py`
holds the bytes of every detector's scores beside its version and fails if one changes without the
other. A cell of an earlier version is stale: it is shown as such and computed again.

Version 2 of the networks of tables is their compiled training, and so is that of digits: images of
28 x 28 grey pixels, whose small networks are not trained in torch. Version 3 of the hybrid machine
(2 on images) has codes along their principal axes, each member's for itself. Version 2 of the
advised start adds the advisers' scores to those of the round; that of the informed start asks
whether doubt does harm, and version 3 of it ends after three rounds. Version 2 of `MultiView` has
columns of few values where a normal has them, and shrinks covariances of few rows a column; version
3 measures where the bulk of the rows lies by covariances that each row is left out of, where there
are no more than two rows a column.
"""

from __future__ import annotations

from typing import Literal

Kind = Literal["table", "digits", "images", "scans"]
MARKS = ("engine", "adviser", "course")  # the parts of a setting that name versions

ENGINES: dict[Kind, dict[str, int]] = {
    "table": {
        "OCSVM": 1,
        "OCSVM-H": 3,
        "AE": 2,
        "Deep SVDD": 2,
        "RSRAE": 2,
        "DAGPR": 2,
        "MultiView": 3,
        "advised": 2,
        "informed": 3,
    },
    "digits": {"OCSVM": 1, "OCSVM-H": 2, "AE": 2, "Deep SVDD": 2, "RSRAE": 1, "DAGPR": 1},
    "images": {"OCSVM": 1, "OCSVM-H": 2, "AE": 1, "Deep SVDD": 1, "RSRAE": 1, "DAGPR": 1},
    "scans": {
        "ADDM": 1,
        "DDPM": 1,
        "AnoDDPM": 1,
        "SpatialAE": 1,
        "DenseVAE": 1,
        "FAnoGAN": 1,
        "VQTransformer": 1,
        "IntensityThreshold": 1,
    },
}
