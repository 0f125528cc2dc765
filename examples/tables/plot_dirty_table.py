"""
A dirty table
=============

A table of 357 benign tumours, of which one row in ten was damaged as it happens every day: a
comma slips, two columns change places, an instrument gets stuck, a join mixes two patients up.
Nobody says which rows these are, and nobody says how many. ``IADC()`` is fitted on the table as
it is.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import IsolationForest

from aberra import IADC
from aberra.data.scenarios import EVERYDAY, everyday_dirt
from aberra.metrics import auroc

X, benign = load_breast_cancer(return_X_y=True, as_frame=True)
table, what = everyday_dirt(X[benign == 1], 0.1, np.random.default_rng(0))
damaged = what != ""

model = IADC(random_state=0).fit(table)
scores = model.anomaly_score(table)
forest = -IsolationForest(random_state=0).fit(table).score_samples(table)
print(f"AUROC {auroc(damaged, scores):.3f}, of an IsolationForest {auroc(damaged, forest):.3f}")

# %%
# The threshold was placed without labels, at a false-discovery rate of 10 %.

flagged = model.predict(table) == -1
print(f"{flagged.sum()} rows are flagged, {(flagged & damaged).sum()} of them were damaged.")

# %%
# What each kind of damage looks like to the model. Copied rows score higher than most, because
# copies are counted, but not high enough for a flag. A mixed-up row may hold nothing unusual at
# all, and then no detector can find it.

figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
rng = np.random.default_rng(0)
for k, kind in enumerate(("", *EVERYDAY)):
    here = scores[what == kind]
    colour = "#D55E00" if kind else "#0072B2"
    axis.scatter(here, k + rng.uniform(-0.25, 0.25, len(here)), s=16, color=colour, alpha=0.6)
axis.axvline(model.threshold_, color="#444444", linestyle="--", label="threshold (no labels used)")
axis.set_yticks(range(5), ["not damaged", *EVERYDAY])
axis.invert_yaxis()
axis.set(xlabel="anomaly score", title="357 rows, one in ten damaged")
axis.legend(frameon=False)
plt.show()
