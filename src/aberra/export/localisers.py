"""One call of a localiser's network as an ONNX file; the walk around it stays with its user."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict
from io import BytesIO
from typing import Any

import torch
from torch import Tensor, nn

import aberra
from aberra.contract.members import Members
from aberra.errors import DataError
from aberra.explain.subject import Subject
from aberra.export.graph import OPSET
from aberra.localise.restorers import Rebuilders, Restorers
from aberra.localise.walk import Denoisers
from aberra.robust.committee import Committee

SCALE = (
    "Images come as the network sees them: intensities from low to high of the frame brought to "
    "[-1, 1], larger images reduced to its grid, sides filled up to its multiple."
)
WALK = (
    "The graph is one call of the denoising network: it takes images with noise and the step as a "
    "share of all steps, and returns the noise that it sees. Adding noise and walking back are "
    'described by "walk" in the metadata.'
)
REBUILD = "The graph is one call of the network: it takes images and returns them restored."


class _Together(nn.Module):
    """The networks of all members, one after the other."""

    def __init__(self, nets: list[nn.Module]) -> None:
        super().__init__()
        self.nets = nn.ModuleList(nets)

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return (m, n, c, h, w)."""
        return torch.stack([net(*inputs) for net in self.nets])


def one_call(model: Any) -> tuple[bytes, dict[str, str]]:
    """Return the file of one call of the networks of all members, and its metadata."""
    parts = _restorers(model.members_)
    first = parts[0]
    if not isinstance(first, Denoisers | Rebuilders):
        raise DataError(
            f"{Subject(model).name} cannot be written as ONNX: only localisers that restore an "
            "image by calls of one network can (DDPM, AnoDDPM, ADDM, SpatialAE, DenseVAE, FAnoGAN, "
            "PatchFinder)."
        )
    denoises = isinstance(first, Denoisers)
    nets = [net for part in parts for net in part.nets]
    about = {
        "aberra": aberra.__version__,
        "model": Subject(model).name,
        "frame": json.dumps(asdict(first.frame)),
        "stated": json.dumps([WALK if isinstance(first, Denoisers) else REBUILD, SCALE]),
    }
    if isinstance(first, Denoisers):
        about["walk"] = json.dumps(asdict(first.way))
    return _with(_traced(nets, first, denoises), about), about


def _restorers(members: Members) -> list[Restorers]:
    if isinstance(members, Committee):
        return [one for part in members.parts for one in _restorers(part)]
    assert isinstance(members, Restorers)
    return [members]


def _traced(nets: list[nn.Module], first: Restorers, denoises: bool) -> bytes:
    x = first.frame.inward(torch.zeros((2, *first.frame.image_shape)).numpy())
    inputs = {"images": x, "time": torch.full((len(x),), 0.5)} if denoises else {"images": x}
    output = "noise" if denoises else "restored"
    axes = {name: {0: "n"} for name in inputs} | {output: {1: "n"}}
    file = BytesIO()
    with warnings.catch_warnings():
        # Tracing is the older way, but it needs no further library; what it warns about are
        # checks of sizes that never change.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            _Together(nets).eval().cpu(),
            tuple(inputs.values()),
            file,  # type: ignore[arg-type]
            input_names=list(inputs),
            output_names=[output],
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )
    return file.getvalue()


def _with(data: bytes, about: dict[str, str]) -> bytes:
    import onnx

    made = onnx.load_from_string(data)
    onnx.helper.set_model_props(made, about)
    return made.SerializeToString()
