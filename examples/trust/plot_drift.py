"""
Has the world moved?
====================

A model keeps a small portrait of its training table. ``compare`` holds new rows against it: first
rows of the same kind, then rows from an instrument that reads one column too high.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from aberra import IADC

X = load_breast_cancer(as_frame=True).data.iloc[:, :10]
order = np.random.default_rng(0).permutation(len(X))
january, february = X.iloc[order[:300]], X.iloc[order[300:]]
model = IADC(n_members=3, random_state=0).fit(january)

moved = february.copy()
moved["mean texture"] += 5.0
for name, rows in (("february", february), ("another instrument", moved)):
    drift = model.compare(rows)
    print(name, "->", drift.verdict, *drift.why, sep="\n  ")

# %%
# What moved, drawn over what it was.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharey=True)
bins = np.linspace(5, 45, 31)
for axis, rows, title in (
    (axes[0], february, f"february: {model.compare(february).verdict}"),
    (axes[1], moved, f"another instrument: {model.compare(moved).verdict}"),
):
    axis.hist(january["mean texture"], bins, density=True, color="#BBBBBB", label="training")
    axis.hist(
        rows["mean texture"], bins, density=True, histtype="step", linewidth=2, color="#D55E00",
        label="new rows",
    )  # fmt: skip
    axis.set(xlabel="mean texture", title=title)
axes[0].set_ylabel("density")
axes[0].legend(frameon=False)
plt.show()
