"""The register of methods: the one place where Aberra learns that a detector exists.

Everything that needs to know which methods there are reads this list: the public names of the
package, the choices of the shell, the sentences of the report, the classes that a model file may
name, and the tables of the papers. A new method is a module of its own and one entry here.

The register holds names, not classes, so that reading it imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

Takes = Literal["table", "images", "anything"]


@dataclass(frozen=True)
class Method:
    """One method.

    Parameters
    ----------
    name : str
        Name of its class, which is also its name in `aberra` and in model files.
    module : str
        Where the class is defined.
    sentence : str
        What it does, in one plain sentence for somebody who has not read the paper.
    shell : str, default=""
        Its name in the shell, such as "deep-svdd"; empty for the ensembles, which wrap another.
    takes : {"table", "images", "anything"}, default="table"
        What the shell trains it on. Detectors of tables can be trained on images from Python;
        the ensembles take anything.
    paper : str, default=""
        Its name in the tables of the papers; empty if they do not have it.
    localises : bool, default=False
        Whether it shows where in an image the anomaly is.
    """

    name: str
    module: str
    sentence: str
    shell: str = ""
    takes: Takes = "table"
    paper: str = ""
    localises: bool = False

    def load(self) -> Any:
        """Return the class.

        Raises
        ------
        MissingExtraError
            If it needs torch, which is not installed.
        """
        return getattr(import_module(self.module), self.name)


_METHODS = [
    Method(
        "IADC",
        "aberra.robust.iadc",
        "Several copies of a detector train in rounds, and each round relies less on the samples "
        "that looked odd in the round before.",
        takes="anything",
        paper="IADC",
    ),
    Method(
        "ADC",
        "aberra.robust.adc",
        "Several copies of a detector train on resampled data, and the score is their mean.",
        takes="anything",
        paper="ADC",
    ),
    Method(
        "MultiView",
        "aberra.detectors.multiview",
        "A row is odd if few cuts part it from the others, if it lies far from the bulk, or if it "
        "holds rare values.",
        shell="multiview",
    ),
    Method(
        "OCSVM",
        "aberra.detectors.ocsvm",
        "A smooth border is drawn around the bulk of the data, and the score is the distance "
        "beyond it.",
        shell="ocsvm",
        paper="OCSVM",
    ),
    Method(
        "HybridOCSVM",
        "aberra.detectors.hybrid",
        "A network learns a short code for each sample, and a border is drawn around the bulk of "
        "the codes.",
        shell="hybrid-ocsvm",
        paper="OCSVM-H",
    ),
    Method(
        "AutoEncoder",
        "aberra.detectors.autoencoder",
        "A network learns to rebuild samples from a short code, and what it rebuilds badly is odd.",
        shell="autoencoder",
        paper="AE",
    ),
    Method(
        "DeepSVDD",
        "aberra.detectors.deep_svdd",
        "A network learns to move all samples close to one point, and what stays far away is odd.",
        shell="deep-svdd",
        paper="Deep SVDD",
    ),
    Method(
        "RSRAE",
        "aberra.detectors.rsrae",
        "A network learns to rebuild samples from a few directions that most of them share, and "
        "what it rebuilds badly is odd.",
        shell="rsrae",
        paper="RSRAE",
    ),
    Method(
        "DAGPR",
        "aberra.detectors.dagpr",
        "A network learns a short code for each sample, and a regression learns how odd each code "
        "is.",
        shell="dagpr",
        paper="DAGPR",
    ),
    Method(
        "ADDM",
        "aberra.localise.diffusion",
        "A network learns to remove noise from healthy images so well that a second network takes "
        "the result for real; an image is noised and restored, and what differs is odd.",
        shell="addm",
        takes="images",
        paper="ADDM",
        localises=True,
    ),
    Method(
        "DDPM",
        "aberra.localise.diffusion",
        "A network learns to remove noise from healthy images; an image is noised and restored, "
        "and what differs is odd.",
        shell="ddpm",
        takes="images",
        paper="DDPM (Pinaya et al.)",
        localises=True,
    ),
    Method(
        "AnoDDPM",
        "aberra.localise.diffusion",
        "A network learns to remove cloud-like noise from healthy images; an image is noised and "
        "restored, and what differs is odd.",
        shell="anoddpm",
        takes="images",
        paper="AnoDDPM",
        localises=True,
    ),
    Method(
        "SpatialAE",
        "aberra.localise.reconstruction",
        "A network learns to rebuild healthy images from a small map, and what it rebuilds badly "
        "is odd.",
        shell="spatial-ae",
        takes="images",
        paper="AE (Spatial)",
        localises=True,
    ),
    Method(
        "DenseVAE",
        "aberra.localise.reconstruction",
        "A network learns to rebuild healthy images from a short code, and what it rebuilds badly "
        "is odd.",
        shell="dense-vae",
        takes="images",
        paper="VAE (Dense)",
        localises=True,
    ),
    Method(
        "FAnoGAN",
        "aberra.localise.fanogan",
        "A network learns to draw healthy images, the healthy image nearest to the input is drawn, "
        "and what differs is odd.",
        shell="f-anogan",
        takes="images",
        paper="f-AnoGAN",
        localises=True,
    ),
    Method(
        "VQTransformer",
        "aberra.localise.vqvae_transformer",
        "A network spells images with a fixed set of pieces, unlikely pieces are replaced by "
        "likely ones, and what differs is odd.",
        shell="vq-transformer",
        takes="images",
        paper="Transformer",
        localises=True,
    ),
    Method(
        "PatchFinder",
        "aberra.localise.patch_finder",
        "Foreign patches are pasted into healthy images, and a network learns to find them; what "
        "it finds in a new image is odd.",
        shell="patch-finder",
        takes="images",
        localises=True,
    ),
    Method(
        "IntensityThreshold",
        "aberra.localise.intensity",
        "Each pixel is compared with the median of the healthy images; there is no network.",
        shell="intensity",
        takes="images",
        localises=True,
    ),
    Method(
        "NearestHealthy",
        "aberra.localise.nearest",
        "Each image is compared with a blend of the healthy images that resemble it most; there "
        "is no network.",
        shell="nearest-healthy",
        takes="images",
        localises=True,
    ),
]


def methods() -> Iterator[Method]:
    """Yield all registered methods.

    Examples
    --------
    >>> from aberra.methods import methods
    >>> [method.name for method in methods()][:3]
    ['IADC', 'ADC', 'MultiView']
    """
    yield from _METHODS


def register(method: Method) -> None:
    """Add a method of your own.

    It then has a name in the shell and a sentence in the report, and models of its class can be
    saved and loaded. Register it before the shell is imported.

    Parameters
    ----------
    method : Method
        Its class must be importable under the name and module given. Registering the same method
        again changes nothing.

    Raises
    ------
    ValueError
        If another method has the same name, or the same name in the shell.
    """
    for other in _METHODS:
        if other == method:
            return
        if other.name == method.name or (method.shell and other.shell == method.shell):
            raise ValueError(f"There is already a method called {other.name} ({other.shell}).")
    _METHODS.append(method)


def named(name: str) -> Method:
    """Return the method of a class name, or of a name in the shell.

    Raises
    ------
    KeyError
        If there is no such method.

    Examples
    --------
    >>> from aberra.methods import named
    >>> named("deep-svdd").name
    'DeepSVDD'
    """
    for method in _METHODS:
        if name and name in (method.name, method.shell):
            return method
    raise KeyError(name)


def in_paper(name: str) -> Method:
    """Return the method that the tables of the papers call by this name.

    Raises
    ------
    KeyError
        If there is no such method.

    Examples
    --------
    >>> from aberra.methods import in_paper
    >>> in_paper("OCSVM-H").name
    'HybridOCSVM'
    """
    for method in _METHODS:
        if name and name == method.paper:
            return method
    raise KeyError(name)


def find(model: Any) -> Method | None:
    """Return the method that an estimator belongs to; None for an estimator from elsewhere.

    Examples
    --------
    >>> from aberra import OCSVM
    >>> from aberra.methods import find
    >>> find(OCSVM()).shell
    'ocsvm'
    """
    cls = type(model)
    for method in _METHODS:
        if (method.name, method.module) == (cls.__name__, cls.__module__):
            return method
    return None
