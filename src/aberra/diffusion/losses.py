"""The objectives of the ADDM paper, one function per equation.

Notation (shapes): eps, eps_hat (B, c, h, w); w (B,) sample weights; logits of the discriminator
have the batch first, one or many per image (a patch discriminator gives a map).
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F


def per_image(values: Tensor) -> Tensor:
    """Return the mean of each image's values, (B, ...) in and (B,) out."""
    return values.reshape(len(values), -1).mean(dim=1)


def ddpm_loss(eps: Tensor, eps_hat: Tensor, w: Tensor) -> Tensor:
    """Weighted mean squared error of the predicted noise [ADDM-4].

    Deviation: the step-dependent factor is dropped, as the paper does in its full objective; and
    the weights, which the paper does not have, make the model usable inside IADC.
    """
    return (w * per_image((eps_hat - eps).square())).mean()


def adversarial_loss(fake: Tensor, w: Tensor) -> Tensor:
    """Urge the denoiser to make its x_{t-1} look real: -log D(fake), weighted."""
    return (w * per_image(F.softplus(-fake))).mean()


def discriminator_loss(real: Tensor, fake: Tensor, w: Tensor) -> Tensor:
    """Binary cross-entropy of the discriminator on real and denoised x_{t-1}, weighted."""
    return (w * (per_image(F.softplus(-real)) + per_image(F.softplus(fake)))).mean()


def addm_loss(eps: Tensor, eps_hat: Tensor, fake: Tensor, w: Tensor, weight: float) -> Tensor:
    """Denoiser's objective: noise error plus the weighted urge to fool D [ADDM-5].

    Deviation: `weight` scales the whole adversarial term; in print it stands before the first
    half only, which has no gradient for the denoiser. And -log D takes the place of log(1 - D),
    whose gradient vanishes while the discriminator is ahead; both have the same fixed point.
    """
    return ddpm_loss(eps, eps_hat, w) + weight * adversarial_loss(fake, w)
