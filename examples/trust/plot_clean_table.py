"""
A clean table stays clean
=========================

Where nothing is wrong, nothing should be taken away. ``IADC()`` is fitted on clean tables of
growing length, drawn from a normal law with the covariance of the wines, and flags next to
nothing.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from aberra import IADC, OCSVM

wines = load_wine().data
mean, covariance = wines.mean(axis=0), np.cov(wines.T)
lengths = [200, 500, 1000, 2000]
flagged = {"IADC(): fdr": [], "IADC(OCSVM()): knee": []}
for n in lengths:
    X = np.random.default_rng(n).multivariate_normal(mean, covariance, size=n)
    ours = IADC(n_members=3, random_state=0).fit(X)
    papers = IADC(OCSVM(), n_members=3, random_state=0).fit(X)
    flagged["IADC(): fdr"].append(100 * ours.contamination_)
    flagged["IADC(OCSVM()): knee"].append(100 * papers.contamination_)
    print(f"{n} rows: {ours.history_}")

# %%
# Any curve of sorted scores has a knee, so the rule "knee" flags some rows of every table. A
# false-discovery rate has to prove its flags.

figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
places = np.arange(len(lengths))
for k, ((name, shares), colour) in enumerate(
    zip(flagged.items(), ["#0072B2", "#D55E00"], strict=True)
):
    bars = axis.bar(places + 0.38 * k - 0.19, shares, 0.36, label=name, color=colour)
    axis.bar_label(bars, fmt="%.1f", padding=2)
axis.set_xticks(places, [f"{n:,}" for n in lengths])
axis.set(
    xlabel="rows",
    ylabel="flagged, %",
    ylim=(0, 16),
    title="Clean tables: every flag is a false alarm",
)
axis.legend(frameon=False)
plt.show()
