"""
Trust over the rounds
=====================

In one row in twenty a comma slipped: one cell is ten times too large. Two rules turn scores into
trust. The papers' rule takes trust from every row above the median. Ours takes it from the rows
that lie apart, and leaves the others alone.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from aberra import IADC, OCSVM
from aberra.plots import plot_trust

X, benign = load_breast_cancer(return_X_y=True)
X = X[benign == 1]
rng = np.random.default_rng(0)
damaged = rng.permutation(len(X)) < len(X) // 20
X[damaged, rng.integers(X.shape[1], size=damaged.sum())] *= 10

papers = IADC(OCSVM(), random_state=0).fit(X)
ours = IADC(random_state=0).fit(X)

# %%
# Crossings are rows that go over to the odder side from one round to the next. When their number
# has no new minimum for two rounds, or is zero, the ranking has settled, and the calmest round is
# kept.

for name, model in (("the papers' rule, one-class machine", papers), ("our rule", ours)):
    print(f"{name}: {model.history_}, crossings {model.history_.crossings()}")

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharey=True)
for axis, model, title in (
    (axes[0], papers, "IADC(OCSVM()): the papers' rule"),
    (axes[1], ours, "IADC(): our rule"),
):
    plot_trust(model, damaged, axis)
    axis.set(title=title, ylim=(-0.02, 1.02))
axes[1].set_ylabel("")
plt.show()
