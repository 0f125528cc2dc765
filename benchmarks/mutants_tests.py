"""Which fast tests are to notice a change to which module; those that notice most come first."""

from __future__ import annotations

UNIT, REFERENCE, WHOLE = "tests/unit/test_", "tests/reference/test_", "tests/integration/test_"


def _unit(*names: str) -> tuple[str, ...]:
    return tuple(f"{UNIT}{name}.py" for name in names)


DECLARED = f"{UNIT}detectors_declared.py"
ALGORITHM = f"{REFERENCE}algorithm_1.py"
ENSEMBLES = f"{WHOLE}ensembles.py"
MAPS = f"{WHOLE}ensembles_of_localisers.py"
ROUNDS = (*_unit("weighting", "resampling"), ALGORITHM, ENSEMBLES)
BLOCKS = (f"{WHOLE}any_size.py", f"{WHOLE}long_tables.py", *_unit("blocks"))
MULTIVIEW = _unit("multiview", "evidence", "far_cells")
COMPILED = (
    f"{REFERENCE}compiled_objectives.py", f"{REFERENCE}members_one_by_one.py",
    *_unit("losses", "weights_arrive"),
)  # fmt: skip
NETWORKS = (*_unit("losses", "weights_arrive"), *COMPILED[:2])
STEPS = f"{REFERENCE}diffusion_steps.py"
DIFFUSION = (STEPS, *_unit("diffusion", "noise"), f"{WHOLE}diffusion_training.py")
LOCALISE = _unit("localise", "localisers_rivals")
SCANS = (f"{WHOLE}volumes.py", *_unit("localise"))
PARTS = f"{UNIT}trained_parts.py"
MODEL_FILE = (
    *_unit("derive", "soundness", "model_file", "trained_parts"), f"{WHOLE}model_file_damage.py",
    f"{WHOLE}borders_models.py",
)  # fmt: skip

TESTS: dict[str, tuple[str, ...]] = {
    "robust/adc.py": (f"{WHOLE}any_size.py", ALGORITHM, ENSEMBLES, MAPS),
    "robust/by_blocks.py": (*_unit("blocks"), *BLOCKS[:2]),
    "robust/committee.py": (MAPS, ENSEMBLES),
    "robust/ensemble.py": (MAPS, ENSEMBLES, *_unit("workflow_plan"), f"{WHOLE}foreign.py"),
    "robust/history.py": ROUNDS,
    "robust/iadc.py": (*ROUNDS[2:], *_unit("workflow_plan"), MAPS),
    "robust/levels.py": _unit("levels", "stream"),
    "robust/resampling.py": _unit("resampling"),
    "robust/rounds.py": (ALGORITHM, ENSEMBLES),
    "robust/sample.py": (*_unit("weighting"), f"{WHOLE}long_tables.py"),
    "robust/start.py": (ALGORITHM,),
    "robust/stream.py": _unit("stream", "levels"),
    "robust/weighting.py": (*_unit("weighting"), ALGORITHM),
    "diffusion/losses.py": DIFFUSION[:2],
    "diffusion/noise.py": _unit("noise"),
    "diffusion/process.py": DIFFUSION[:2],
    "diffusion/simplex.py": _unit("noise"),
    "diffusion/simplex_cpu.py": _unit("noise"),
    "diffusion/training.py": (DIFFUSION[0], DIFFUSION[3], *_unit("watching")),
    "loop.py": (STEPS, *_unit("watching"), f"{WHOLE}diffusion_training.py"),
    "detectors/aims.py": COMPILED,
    "detectors/autoencoder.py": (*NETWORKS, PARTS),
    "detectors/base.py": (*_unit("ocsvm", "weights_arrive"), ENSEMBLES),
    "detectors/column_tails.py": MULTIVIEW,
    "detectors/compiled_forest.py": MULTIVIEW,
    "detectors/compiled_training.py": COMPILED,
    "detectors/compiled_views.py": MULTIVIEW,
    "detectors/convolutions.py": NETWORKS,
    "detectors/dagpr.py": (*_unit("dagpr", "weights_arrive"), f"{REFERENCE}members_one_by_one.py"),
    "detectors/deep_svdd.py": (*NETWORKS[1:], PARTS),
    "detectors/evidence.py": (*_unit("evidence", "multiview"),),
    "detectors/far_cells.py": _unit("far_cells", "multiview"),
    "detectors/foreign.py": (f"{WHOLE}foreign.py", ENSEMBLES),
    "detectors/gain_forest.py": MULTIVIEW,
    "detectors/hybrid.py": NETWORKS[1:],
    "detectors/inverse_covariance.py": MULTIVIEW,
    "detectors/landmarks.py": MULTIVIEW,
    "detectors/multiview.py": MULTIVIEW,
    "detectors/network.py": (*NETWORKS[1:], ALGORITHM),
    "detectors/objectives.py": _unit("losses", "dagpr", "weights_arrive"),
    "detectors/ocsvm.py": _unit("ocsvm", "weights_arrive"),
    "detectors/robust_covariance.py": MULTIVIEW,
    "detectors/rsrae.py": (*NETWORKS[1:], PARTS),
    "detectors/scaling.py": _unit("scaling", "multiview"),
    "detectors/training.py": COMPILED,
    "localise/base.py": (*LOCALISE, *_unit("nearest")),
    "localise/diffusion.py": _unit("diffusion_settings", "adapt", "localise"),
    "localise/diffusion_settings.py": _unit("diffusion_settings"),
    "localise/findings.py": _unit("findings"),
    "localise/frame.py": LOCALISE,
    "localise/healing.py": _unit("localisers_rivals"),
    "localise/healthy.py": (*_unit("findings"), *SCANS),
    "localise/intensity.py": (*_unit("nearest"), *LOCALISE),
    "localise/likeness.py": _unit("likeness", "nearest"),
    "localise/nearest.py": _unit("nearest"),
    "localise/network.py": (*_unit("diffusion_settings"), *LOCALISE),
    "localise/patch_finder.py": (STEPS, *_unit("patch_finder")),
    "localise/patches.py": _unit("patch_finder"),
    "localise/protocols.py": _unit("protocols"),
    "localise/reconstruction.py": LOCALISE[::-1],
    "localise/relative.py": _unit("findings"),
    "localise/restorers.py": LOCALISE,
    "localise/volumes.py": (*SCANS, *_unit("findings")),
    "localise/walk.py": (STEPS, *_unit("localise")),
    "ordinary.py": _unit("thresholds", "weighting"),
    "thresholds.py": _unit("thresholds"),
    "metrics.py": _unit("metrics", "segmentation_metrics"),
    "model_file/__init__.py": MODEL_FILE,
    "model_file/archives.py": MODEL_FILE,
    "model_file/composite.py": MODEL_FILE,
    "model_file/container.py": MODEL_FILE,
    "model_file/derive.py": MODEL_FILE,
    "model_file/foreign.py": (*MODEL_FILE, f"{WHOLE}foreign.py"),
    "model_file/kinds.py": MODEL_FILE,
    "model_file/networks.py": MODEL_FILE,
    "model_file/soundness.py": MODEL_FILE,
    "model_file/values.py": MODEL_FILE,
    "data/mri/grid.py": _unit("mri_volume", "mri_nifti", "mri_prepare"),
    "data/mri/volume.py": _unit("mri_volume", "mri_nifti", "mri_prepare", "mri_dicom"),
    "data/mri/prepare.py": _unit("mri_prepare", "localise"),
    "data/mri/nifti.py": _unit("mri_nifti", "mri_volume"),
    "nets/checkpoint.py": (f"{WHOLE}diffusion_training.py", *LOCALISE),
    "nets/conv.py": (*NETWORKS, f"{WHOLE}images.py"),
    "nets/discriminator.py": (STEPS, f"{WHOLE}diffusion_training.py"),
    "nets/stacked.py": COMPILED,
    "nets/unet.py": (STEPS, f"{WHOLE}diffusion_training.py", *_unit("localise")),
}

# Modules that declare parameters: their defaults are promises.
for _module in (
    "robust/ensemble.py", "robust/iadc.py", "robust/stream.py", "detectors/dagpr.py",
    "detectors/deep_svdd.py", "detectors/multiview.py", "detectors/network.py",
    "detectors/ocsvm.py", "detectors/rsrae.py", "localise/nearest.py", "localise/patch_finder.py",
    "localise/base.py", "localise/network.py",
):  # fmt: skip
    TESTS[_module] += (DECLARED,)
