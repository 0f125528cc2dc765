# Written by docs/names.py from the register of methods; do not edit by hand.
from aberra.adapters import as_pyod as as_pyod
from aberra.detectors.autoencoder import AutoEncoder as AutoEncoder
from aberra.detectors.dagpr import DAGPR as DAGPR
from aberra.detectors.deep_svdd import DeepSVDD as DeepSVDD
from aberra.detectors.hybrid import HybridOCSVM as HybridOCSVM
from aberra.detectors.multiview import MultiView as MultiView
from aberra.detectors.ocsvm import OCSVM as OCSVM
from aberra.detectors.rsrae import RSRAE as RSRAE
from aberra.export import export_onnx as export_onnx
from aberra.localise.diffusion import ADDM as ADDM, AnoDDPM as AnoDDPM, DDPM as DDPM
from aberra.localise.fanogan import FAnoGAN as FAnoGAN
from aberra.localise.intensity import IntensityThreshold as IntensityThreshold
from aberra.localise.nearest import NearestHealthy as NearestHealthy
from aberra.localise.patch_finder import PatchFinder as PatchFinder
from aberra.localise.reconstruction import DenseVAE as DenseVAE, SpatialAE as SpatialAE
from aberra.localise.vqvae_transformer import VQTransformer as VQTransformer
from aberra.model_file import load as load, save as save
from aberra.pretrained import load_pretrained as load_pretrained
from aberra.robust.adc import ADC as ADC
from aberra.robust.iadc import IADC as IADC
from aberra.robust.stream import Stream as Stream

__version__: str
FUNCTIONS: dict[str, str]
