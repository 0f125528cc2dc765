"""
How much dirt is too much?
==========================

The share of malignant tumours in the training table grows from 2 % to 40 %. Four detectors are
trained on each table as it is. This is one data set; the results page has 425.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.covariance import EllipticEnvelope
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler

from aberra import IADC
from aberra.metrics import auroc

X, benign = load_breast_cancer(return_X_y=True)
good, bad = X[benign == 1], X[benign == 0]
shares = [0.02, 0.05, 0.1, 0.2, 0.3, 0.4]


def peer_scores(detector, table):
    """Return high scores for odd rows; peers see standardised columns."""
    detector.fit(StandardScaler().fit_transform(table))
    if isinstance(detector, LocalOutlierFactor):
        return -detector.negative_outlier_factor_
    return -detector.score_samples(StandardScaler().fit_transform(table))


results = {name: [] for name in ("IADC()", "IsolationForest", "EllipticEnvelope", "LOF")}
for share in shares:
    n_bad = round(len(good) * share / (1 - share))
    chosen = np.random.default_rng(0).permutation(len(bad))[:n_bad]
    table = np.concatenate([good, bad[chosen]])
    truth = np.arange(len(table)) >= len(good)
    found = {
        "IADC()": IADC(random_state=0).fit(table).anomaly_score(table),
        "IsolationForest": peer_scores(IsolationForest(random_state=0), table),
        "EllipticEnvelope": peer_scores(EllipticEnvelope(random_state=0), table),
        "LOF": peer_scores(LocalOutlierFactor(), table),
    }
    for name, scores in found.items():
        results[name].append(auroc(truth, scores))

# %%
# LOF looks at the nearest neighbours, and dirty rows soon have dirty neighbours.
# EllipticEnvelope, a robust covariance, is ahead of all others here: benign tumours are one
# cloud, and malignant ones lie outside of it. On everyday dirt the order is another one
# (:doc:`plot_dirty_table`).

figure, axis = plt.subplots(figsize=(8, 4.2), layout="constrained")
styles = {"IADC()": "-o", "IsolationForest": "--s", "EllipticEnvelope": "-.^", "LOF": ":d"}
for (name, line), colour in zip(
    results.items(), ["#0072B2", "#D55E00", "#009E73", "#666666"], strict=True
):
    axis.plot([100 * share for share in shares], line, styles[name], color=colour, label=name)
axis.set(xlabel="malignant rows in the training table, %", ylabel="AUROC", ylim=(0.4, 1.0))
axis.set_title("Trained and scored on the dirty table")
axis.legend(frameon=False)
plt.show()
