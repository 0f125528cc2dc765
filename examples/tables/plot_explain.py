"""
Why is this row odd?
====================

In a table of 442 diabetes patients, a few cells are damaged in the ways that happen: a comma
slips, two columns change places, a sensor reports zero. ``explain`` says which columns each score
comes from.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from aberra import IADC

X = load_diabetes(as_frame=True, scaled=False).data
damage = {
    7: "blood pressure 93 became 9.3",
    50: "s1 and s2 changed places",
    200: "body-mass index not measured: 0",
}
X.loc[7, "bp"] /= 10
X.loc[50, ["s1", "s2"]] = X.loc[50, ["s2", "s1"]].to_numpy()
X.loc[200, "bmi"] = 0.0

model = IADC(random_state=0).fit(X)
scores = model.anomaly_score(X)
shares = model.explain(X.loc[list(damage)])
for row, what in damage.items():
    rank = int((scores > scores[row]).sum()) + 1
    print(f"row {row} ({what}): rank {rank} of {len(X)}")

# %%
# Each line below is one row; the shares of a row sum to one.

figure, axis = plt.subplots(figsize=(8, 3.4), layout="constrained")
picture = axis.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
axis.set_xticks(range(X.shape[1]), X.columns)
axis.set_yticks(range(len(damage)), list(damage.values()))
for i, j in [(i, j) for i in range(len(damage)) for j in range(X.shape[1])]:
    if (share := shares.iloc[i, j]) > 0.05:
        colour = "white" if share > 0.5 else "black"
        axis.text(j, i, f"{100 * share:.0f} %", ha="center", va="center", color=colour)
figure.colorbar(picture, label="share of the score")
axis.set_title("Which columns the scores come from")
plt.show()
