"""
Restore broken handwriting
==========================

``ADDM`` learns from whole zeros. Others lack a piece of ink; the model restores them, and what
differs is the map. The images have 8 x 8 pixels, so a few training steps are enough.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from aberra import ADDM
from aberra.metrics import auroc

images, digit = load_digits(return_X_y=True)
zeros = images[digit == 0].reshape(-1, 1, 8, 8)  # (n, channels, height, width)
rng = np.random.default_rng(0)
zeros = zeros[rng.permutation(len(zeros))]
whole, broken = zeros[20:], zeros[:20].copy()
missing = np.zeros((20, 8, 8), bool)
for image, gap in zip(broken[:, 0], missing, strict=True):
    row, column = rng.choice(np.argwhere(image > 8))
    around = (slice(max(0, row - 1), row + 2), slice(max(0, column - 1), column + 2))
    gap[around] = image[around] > 4
    image[around] = 0

# %%
# Missing ink is darker than a whole zero, so the map looks for that alone.

model = ADDM(error="darker", smooth=3, train_steps=80, batch_size=8, random_state=0).fit(whole)
maps = model.anomaly_map(broken)
print(f"Pixel AUROC {auroc(missing, maps):.3f}")

rows = {
    "broken": broken[:8, 0],
    "restored": model.reconstruct(broken[:8])[:, 0],
    "map": maps[:8],
    "truth": missing[:8],
}
figure, axes = plt.subplots(len(rows), 8, figsize=(8, 4.3), layout="constrained")
for line, (name, pictures) in zip(axes, rows.items(), strict=True):
    line[0].set_ylabel(name)
    for axis, picture in zip(line, pictures, strict=True):
        axis.imshow(picture, cmap="magma" if name == "map" else "gray", vmin=0, vmax=pictures.max())
        axis.set(xticks=[], yticks=[])
plt.show()
