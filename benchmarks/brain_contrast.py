"""ADDM whose training images change their contrast, as those of `PatchFinder` do."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from aberra import ADDM
from aberra.data.images import TrainingImages
from aberra.declare import estimator
from aberra.diffusion.training import DiffusionRun
from aberra.localise.patch_finder import GAIN, SHADE
from aberra.localise.patches import recontrasted
from aberra.loop import Batch, Losses, train
from aberra.nets.unet import Denoiser

SHARE = 0.5  # of the images


class RecontrastedRun(DiffusionRun):
    """The training of a denoiser on images in other contrasts."""

    def step(self, step: int, batch: Batch) -> Losses:
        """Change the contrast of some images, and take a step."""
        x = recontrasted(batch.x, batch, SHARE, GAIN, SHADE)
        return super().step(step, replace(batch, x=x))


@estimator
class Recontrasted(ADDM):
    """ADDM trained on images in other contrasts."""

    def _train_one(self, images: TrainingImages, weights: Tensor, seed: int) -> Denoiser:
        plan = self._plan(min(images.shape[2:]))
        run = RecontrastedRun(plan, seed, self._place())
        train(run, (plan, SHARE), plan.tempo, images, weights, seed, self._keeping())
        return run.average.eval()

    def plain(self) -> ADDM:
        """Return the trained model as an `ADDM`, which can be saved."""
        model = ADDM(**self.get_params())
        for name, value in vars(self).items():
            setattr(model, name, value)
        return model
