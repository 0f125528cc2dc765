"""A VQ-VAE that spells images with codes, and a transformer that knows how codes follow each other.

Both are MONAI's. The transformer reads the codes row by row; the sequence begins with a token of
its own, number `n_codes`.

Notation (shapes): z (B, k, h, w) encoded images; codes (B, L) with L = h * w, row by row; log_p
(B, L, n_codes).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from aberra.declare import Within
from aberra.extras import need


@dataclass(frozen=True)
class VQPlan:
    """Everything that decides the shape of VQ-VAE and transformer."""

    n_channels: int
    widths: tuple[int, ...]  # channels after each halving
    res_layers: Annotated[int, Within(0, 64)]
    n_codes: int
    code_width: int
    model_width: int
    depth: Annotated[int, Within(1, 64)]
    n_heads: int
    map_size: tuple[int, int]  # height and width of the grid of codes


class VQNet(nn.Module):
    """A VQ-VAE, and the transformer that knows its codes."""

    plan: VQPlan

    def __init__(self, plan: VQPlan) -> None:
        super().__init__()
        need("monai", "images", "This network")
        from monai.networks.nets.transformer import DecoderOnlyTransformer
        from monai.networks.nets.vqvae import VQVAE

        self.plan = plan
        n_levels = len(plan.widths)
        self.vqvae = VQVAE(
            spatial_dims=2,
            in_channels=plan.n_channels,
            out_channels=plan.n_channels,
            channels=plan.widths,
            num_res_layers=plan.res_layers,
            num_res_channels=plan.widths,
            downsample_parameters=((2, 4, 1, 1),) * n_levels,
            upsample_parameters=((2, 4, 1, 1, 0),) * n_levels,
            num_embeddings=plan.n_codes,
            embedding_dim=plan.code_width,
        )
        self.transformer = DecoderOnlyTransformer(
            num_tokens=plan.n_codes + 1,
            max_seq_len=plan.map_size[0] * plan.map_size[1],
            attn_layers_dim=plan.model_width,
            attn_layers_depth=plan.depth,
            attn_layers_heads=plan.n_heads,
            use_flash_attention=True,
        )

    @property
    def book(self) -> Any:
        """MONAI's quantiser, which holds the code book; its own way of learning is not used."""
        return self.vqvae.quantizer.quantizer

    def codes(self, z: Tensor) -> Tensor:
        """Return the nearest codes of encoded images."""
        nearest: Tensor = self.book.quantize(z)[2]
        return nearest.flatten(1)

    def embedded(self, codes: Tensor) -> Tensor:
        """Return the vectors of codes, in the shape of z."""
        vectors: Tensor = self.book.embed(codes.reshape(-1, *self.plan.map_size))
        return vectors

    def log_probs(self, codes: Tensor) -> Tensor:
        """Return log_p of every code at every place, after the codes before it."""
        begin = torch.full_like(codes[:, :1], self.plan.n_codes)
        logits = self.transformer(torch.cat([begin, codes[:, :-1]], dim=1))
        return logits[:, :, :-1].float().log_softmax(dim=2)
