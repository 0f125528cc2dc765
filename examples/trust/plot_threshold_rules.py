"""
Rules for the threshold
=======================

A rule sees the scores of the training rows and nothing else. All of them are drawn here on the
same scores; ``threshold=`` of any model takes their names.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from aberra import IADC
from aberra.data.scenarios import everyday_dirt
from aberra.thresholds import RULES, threshold

X, benign = load_breast_cancer(return_X_y=True, as_frame=True)
table, what = everyday_dirt(X[benign == 1], 0.1, np.random.default_rng(0))
truth = what != ""
scores = IADC(random_state=0).fit(table).training_scores()

placed = {name: threshold(scores, name)[0] for name in RULES}
placed = dict(sorted(placed.items(), key=lambda item: item[1]))
for name, place in placed.items():
    flagged = scores > place
    right = (flagged & truth).sum() / max(flagged.sum(), 1)
    print(f"{name:12} {place:6.2f} flags {flagged.mean():5.1%}, {right:.0%} of them are damaged")

# %%
# The sorted scores, with the place of each rule. A lower threshold finds more, and more in vain.

figure, axis = plt.subplots(figsize=(8, 4.4), layout="constrained")
order = np.argsort(scores)
axis.plot(np.arange(len(scores)), scores[order], color="#999999", zorder=1)
axis.scatter(
    np.flatnonzero(truth[order]), scores[order][truth[order]], s=16, color="#D55E00",
    label="damaged", zorder=2,
)  # fmt: skip
for k, (name, place) in enumerate(placed.items()):
    axis.axhline(place, color="#0072B2", linewidth=0.8)
    axis.text(2 + 42 * k, place, name, color="#0072B2", va="bottom", fontsize=9)
axis.set(xlabel="rows, in the order of their scores", ylabel="anomaly score")
axis.set_ylim(scores.min() - 0.5, 3 * max(placed.values()))
axis.set_title("Seven thresholds without labels, and 10 % of damaged rows")
axis.legend(frameon=False, loc="center left")
plt.show()
