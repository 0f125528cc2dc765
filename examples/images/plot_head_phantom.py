"""
A scan, slice by slice
======================

A head made of ellipsoids stands in for a scan, so that everybody can run this. The model learns
the slices of five healthy heads, and a sixth has a dark ball in it. Maps come back on the grid of
the scan.
"""

import matplotlib.pyplot as plt
import numpy as np

from aberra import IntensityThreshold
from aberra.data.mri.phantom import head_phantom
from aberra.data.mri.prepare import Preparation, prepare
from aberra.data.mri.volume import Volume
from aberra.localise.volumes import score_volume


def head(seed, lesion=None):
    """Return a head with a little noise, and the mask of its brain."""
    scan, brain = head_phantom(lesion=lesion)
    noise = np.random.default_rng(seed).normal(0, 2, scan.array.shape)
    return Volume((scan.array + noise * (scan.array > 0)).astype(np.float32), scan.affine), brain


preparation = Preparation()
slices = np.concatenate([prepare(*head(seed), preparation)[0] for seed in range(5)])
model = IntensityThreshold(smooth=3, random_state=0).fit(slices)

# %%
# The patient's lesion lies 20 mm to the right, 10 mm to the front and 30 mm above the middle.

patient, brain = head(9, lesion=(20.0, 10.0, 30.0))
found = score_volume(model, patient, preparation, mask=brain)
peak = np.unravel_index(found.anomaly_map.argmax(), found.anomaly_map.shape)
place = patient.affine @ [*peak, 1]
print("highest point of the map, mm:", np.round(place[:3]))

figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
for axis, k, name in zip(
    axes, range(3), ("from the side", "from the front", "from above"), strict=True
):
    cut = [slice(None)] * 3
    cut[k] = peak[k]
    axis.imshow(patient.array[tuple(cut)].T, cmap="gray", origin="lower")
    map_ = found.anomaly_map[tuple(cut)].T
    axis.imshow(np.where(map_ > model.map_threshold_, map_, np.nan), cmap="autumn", origin="lower")
    axis.set(xticks=[], yticks=[], title=name)
plt.show()
