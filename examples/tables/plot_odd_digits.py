"""
The oddest handwriting
======================

Nothing is planted here. All 1,797 digits of scikit-learn are taken as they are, class by class,
and ``IADC()`` shows those that are written least like the others of their class.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from aberra import IADC

digits = load_digits()
figure, axes = plt.subplots(5, 8, figsize=(8, 5.4), layout="constrained")
for number, line in enumerate(axes):
    images = digits.images[digits.target == number]
    model = IADC(random_state=0).fit(images.reshape(len(images), -1))
    scores = model.training_scores()
    order = scores.argsort()
    shown = [*order[:3], *order[-5:]]  # three ordinary ones, then the oddest
    for axis, row in zip(line, shown, strict=True):
        axis.imshow(images[row], cmap="gray_r")
        axis.set(xticks=[], yticks=[])
        odd = scores[row] > model.threshold_
        axis.spines[:].set_color("#D55E00" if odd else "#BBBBBB")
        axis.spines[:].set_linewidth(2.5 if odd else 1)
    line[0].set_ylabel(str(number), rotation=0, labelpad=12, fontsize=13)

figure.suptitle("Three ordinary digits of a class, then its five oddest; orange: flagged")
plt.show()
