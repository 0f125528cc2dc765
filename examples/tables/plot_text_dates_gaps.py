"""
Text, dates and gaps
====================

Real tables hold more than numbers. Here the wines of scikit-learn get a cellar (text), a time of
delivery and a few gaps, and four rows are spoilt: a misspelt cellar, a delivery at night, a row
that was half lost, and a bottle with the alcohol of whisky.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

from aberra import IADC

wines = load_wine(as_frame=True)
X = wines.data.copy()
rng = np.random.default_rng(0)
X["cellar"] = np.array(["Alba", "Barolo", "Cuneo"])[wines.target]
hours = rng.integers(8, 18, len(X))
X["delivered"] = pd.Timestamp("2026-03-02") + pd.to_timedelta(24 * np.arange(len(X)) + hours, "h")
X = X.mask(rng.random(X.shape) < 0.01)  # one cell in a hundred is missing

spoilt = {3: "cellar misspelt", 30: "delivered at 3 at night", 60: "half of it lost", 90: "42 %"}
X.loc[3, "cellar"] = "Brolo"
X.loc[30, "delivered"] = X.loc[30, "delivered"].normalize() + pd.Timedelta(hours=3)
X.loc[60, X.columns[3:10]] = np.nan
X.loc[90, "alcohol"] = 42.0

# %%
# Text and gaps are errors unless they are allowed. ``aberra fit`` allows both by itself.

model = IADC(encode="auto", missing="impute", random_state=0).fit(X)
scores = model.anomaly_score(X)

order = np.argsort(-scores)[:15]
figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
colours = ["#D55E00" if row in spoilt else "#0072B2" for row in order]
axis.barh(range(len(order)), scores[order], color=colours)
axis.set_yticks(range(len(order)), [spoilt.get(row, f"wine {row}") for row in order])
axis.axvline(model.threshold_, color="#444444", linestyle="--", label="threshold")
axis.invert_yaxis()
axis.set(xlabel="anomaly score", title="The 15 oddest of 178 wines; orange: spoilt")
axis.legend(frameon=False)
plt.show()
