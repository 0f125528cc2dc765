"""
The floor: localisers without a network
=======================================

Before you train a network, see what can be had without one. ``IntensityThreshold`` compares each
pixel with the median healthy image; ``NearestHealthy`` compares it with a blend of the healthy
images that look most alike. Both take seconds. Here they look for ink that was spilt on
handwritten threes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from aberra import IntensityThreshold, NearestHealthy
from aberra.metrics import auroc

digits = load_digits()
threes = digits.images[digits.target == 3][:, None]
rng = np.random.default_rng(0)
healthy, spilt = threes[40:], threes[:40].copy()
truth = np.zeros((40, 8, 8), bool)
for image, spot in zip(spilt[:, 0], truth, strict=True):
    row, column = rng.choice(np.argwhere(image[:7, :7] < 4))  # ink on ink cannot be seen
    spot[row : row + 2, column : column + 2] = True
    spot &= image < 8
    image[spot] = 14

models = [
    IntensityThreshold(side="bright", smooth=1, random_state=0).fit(healthy),
    NearestHealthy(error="brighter", smooth=1, random_state=0).fit(healthy),
]
for model in models:
    print(f"{type(model).__name__}: {auroc(truth, model.anomaly_map(spilt)):.3f}")

# %%
# Handwriting differs a good deal, so both maps show ordinary ink as well. Which of the two is
# ahead depends on how much healthy images differ; here it is the simpler one.

rows = {"image": spilt[:, 0], "spilt ink": truth}
rows |= {type(model).__name__: model.anomaly_map(spilt) for model in models}
figure, axes = plt.subplots(len(rows), 8, figsize=(8.6, 4.4), layout="constrained")
for line, (name, pictures) in zip(axes, rows.items(), strict=True):
    line[0].set_ylabel(name, rotation=0, ha="right", va="center")
    for axis, picture in zip(line, pictures, strict=False):
        axis.imshow(picture, cmap="gray" if name in ("image", "spilt ink") else "magma")
        axis.set(xticks=[], yticks=[])
plt.show()
