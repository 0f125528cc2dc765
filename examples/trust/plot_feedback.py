"""
A reviewer says yes and no
==========================

The rows are digits: nines, with some threes among them. A reviewer only cares about the threes;
odd nines are fine. After each row that is shown to him he says what it is, and the model learns
from that without being trained again.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from aberra import MultiView

X, digit = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
threes = rng.choice(np.flatnonzero(digit == 3), 25, replace=False)
rows = np.concatenate([np.flatnonzero(digit == 9), threes])
table, wanted = X[rows], digit[rows] == 3


def review(learns, n_shown=40):
    """Show the oddest row that was not shown yet, again and again; return when threes came."""
    model = MultiView(random_state=0).fit(table)
    shown = np.zeros(len(table), bool)
    hits = []
    for _ in range(n_shown):
        scores = np.where(shown, -np.inf, model.anomaly_score(table))
        row = int(scores.argmax())
        shown[row] = True
        hits.append(wanted[row])
        if learns:  # 1: an anomaly, 0: it is fine
            model.feedback(table[[row]], [int(wanted[row])])
    return np.cumsum(hits)


with_marks, without = review(True), review(False)
print(f"After 40 rows: {without[-1]} of 25 threes without learning, {with_marks[-1]} with it.")

# %%
# Both reviewers begin with the same rows. The marks pay off as soon as there are some of each
# kind.

figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
n = np.arange(1, 41)
axis.plot(n, np.minimum(n, 25), ":", color="#444444", label="perfect")
axis.plot(n, with_marks, "-", color="#0072B2", label="learns from each mark")
axis.plot(n, without, "--", color="#D55E00", label="does not learn")
axis.set(xlabel="rows shown", ylabel="threes found", title="25 threes among 180 nines")
axis.legend(frameon=False)
plt.show()
