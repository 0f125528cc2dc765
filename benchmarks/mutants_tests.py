"""Which fast tests are to notice a change to which module; those that notice most come first."""

from __future__ import annotations

UNIT, REFERENCE, WHOLE = "tests/unit/test_", "tests/reference/test_", "tests/integration/test_"


def _unit(*names: str) -> tuple[str, ...]:
    return tuple(f"{UNIT}{name}.py" for name in names)


def _same_numbers(*cases: str) -> tuple[str, ...]:
    """Return fingerprints: the numbers of these estimators are what they were."""
    return tuple(f"tests/contract/test_fingerprints.py::test_same_numbers[{c}]" for c in cases)


DECLARED = f"{UNIT}detectors_declared.py"
ALGORITHM = f"{REFERENCE}algorithm_1.py"
ENSEMBLES = f"{WHOLE}ensembles.py"
MAPS = f"{WHOLE}ensembles_of_localisers.py"
ROUNDS = (*_unit("weighting", "resampling", "rounds"), ALGORITHM, ENSEMBLES)
BLOCKS = (f"{WHOLE}any_size.py", f"{WHOLE}long_tables.py", *_unit("blocks"))
MULTIVIEW = _unit("multiview", "evidence", "far_cells")
COMPILED = (
    f"{REFERENCE}compiled_objectives.py", f"{REFERENCE}members_one_by_one.py",
    *_unit("losses", "weights_arrive"),
)  # fmt: skip
NETWORKS = (*_unit("losses", "weights_arrive"), *COMPILED[:2])
DIGITS = (f"{REFERENCE}compiled_convolutions.py",)
STEPS = f"{REFERENCE}diffusion_steps.py"
DIFFUSION = (STEPS, *_unit("diffusion", "noise"), f"{WHOLE}diffusion_training.py")
LOCALISE = _unit("localise", "localisers_rivals")
SCANS = (f"{WHOLE}volumes.py", *_unit("localise"))
SCORED = _unit("scored_volumes")
PARTS = f"{UNIT}trained_parts.py"
MODEL_FILE = (
    *_unit("kinds", "derive", "soundness", "model_file", "trained_parts"),
    f"{WHOLE}model_file_damage.py", f"{WHOLE}borders_models.py",
)  # fmt: skip
PROPERTIES = f"{WHOLE}properties.py"
BORDERS = (f"{WHOLE}borders_files.py", f"{WHOLE}volumes.py")
OPENED = (f"{WHOLE}old_files.py", *_unit("files", "localise"), f"{WHOLE}long_tables.py")

TESTS: dict[str, tuple[str, ...]] = {
    "robust/adc.py": (*_unit("rounds"), ALGORITHM, MAPS, ENSEMBLES, f"{WHOLE}any_size.py"),
    "robust/by_blocks.py": (*_unit("blocks"), *BLOCKS[:2]),
    "robust/committee.py": (*_unit("rounds"), MAPS, ENSEMBLES),
    "robust/ensemble.py": (
        MAPS,
        ENSEMBLES,
        *_unit("rounds", "workflow_plan"),
        f"{WHOLE}foreign.py",
    ),
    "robust/history.py": ROUNDS,
    "robust/iadc.py": (*ROUNDS[2:], *_unit("workflow_plan"), MAPS),
    "robust/levels.py": _unit("levels", "stream"),
    "robust/resampling.py": _unit("resampling"),
    "robust/rounds.py": (*_unit("rounds"), ALGORITHM, ENSEMBLES),
    "robust/sample.py": (*_unit("weighting", "rounds"), f"{WHOLE}long_tables.py"),
    "robust/start.py": (ALGORITHM,),
    "robust/stream.py": _unit("stream", "levels"),
    "robust/weighting.py": (*_unit("weighting", "rounds"), ALGORITHM),
    "diffusion/losses.py": DIFFUSION[:2],
    "diffusion/noise.py": _unit("noise"),
    "diffusion/process.py": (*DIFFUSION[:2], *_unit("loop")),
    "diffusion/simplex.py": _unit("noise"),
    "diffusion/simplex_cpu.py": _unit("noise"),
    "diffusion/training.py": (
        STEPS,
        *_unit("loop"),
        DIFFUSION[3],
        *_unit("watching", "diffusion_settings"),
    ),
    "loop.py": (*_unit("loop"), STEPS, *_unit("watching"), f"{WHOLE}diffusion_training.py"),
    "detectors/aims.py": COMPILED,
    "detectors/autoencoder.py": (*NETWORKS, PARTS),
    "detectors/base.py": (*_unit("ocsvm", "weights_arrive"), ENSEMBLES),
    "detectors/column_tails.py": (*MULTIVIEW, f"{WHOLE}borders_models.py"),
    "detectors/compiled_forest.py": MULTIVIEW,
    "detectors/compiled_convolutions.py": DIGITS,
    "detectors/compiled_maps.py": DIGITS,
    "detectors/compiled_training.py": COMPILED,
    "detectors/compiled_views.py": MULTIVIEW,
    "detectors/conv_chain.py": DIGITS,
    "detectors/convolutions.py": (*NETWORKS, *DIGITS),
    "detectors/dagpr.py": (*_unit("dagpr", "weights_arrive"), f"{REFERENCE}members_one_by_one.py"),
    "detectors/deep_svdd.py": (*NETWORKS[1:], PARTS),
    "detectors/evidence.py": (*_unit("evidence", "multiview"),),
    "detectors/far_cells.py": _unit("far_cells", "multiview"),
    "detectors/foreign.py": (f"{WHOLE}foreign.py", ENSEMBLES),
    "detectors/gain_forest.py": MULTIVIEW,
    "detectors/hybrid.py": (*NETWORKS[1:], PARTS),
    "detectors/inverse_covariance.py": (*MULTIVIEW, *_unit("lumps")),
    "detectors/landmarks.py": MULTIVIEW,
    "detectors/lumps.py": _unit("lumps"),
    "detectors/multiview.py": (*MULTIVIEW, *_unit("lumps")),
    "detectors/network.py": (*NETWORKS[1:], ALGORITHM),
    "detectors/objectives.py": _unit("losses", "dagpr", "weights_arrive"),
    "detectors/ocsvm.py": _unit("ocsvm", "weights_arrive"),
    "detectors/robust_covariance.py": (*MULTIVIEW, *_unit("lumps")),
    "detectors/rsrae.py": (*NETWORKS[1:], PARTS),
    "detectors/scaling.py": _unit("scaling", "multiview"),
    "detectors/training.py": COMPILED,
    "localise/base.py": (*LOCALISE, *_unit("nearest", "adapt"), MAPS),
    "localise/diffusion.py": _unit("diffusion_settings", "adapt", "localise"),
    "localise/diffusion_settings.py": _unit("diffusion_settings"),
    "localise/findings.py": (*_unit("findings"), *SCORED),
    "localise/frame.py": LOCALISE,
    "localise/healing.py": _unit("localisers_rivals", "soundness"),
    "localise/healthy.py": (*SCORED, *_unit("findings"), *SCANS),
    "localise/intensity.py": (*_unit("nearest"), *LOCALISE),
    "localise/likeness.py": _unit("likeness", "scored_volumes", "nearest"),
    "localise/nearest.py": _unit("nearest", "adapt"),
    "localise/network.py": (*_unit("diffusion_settings"), *LOCALISE),
    "localise/patch_finder.py": (STEPS, *_unit("patch_finder")),
    "localise/patches.py": _unit("patch_finder"),
    "localise/protocols.py": _unit("protocols"),
    "localise/reconstruction.py": LOCALISE[::-1],
    "localise/relative.py": (*_unit("findings"), *SCORED),
    "localise/restorers.py": LOCALISE,
    "localise/volumes.py": (*SCORED, *_unit("findings"), *SCANS),
    "localise/walk.py": (STEPS, *_unit("loop", "localise")),
    "ordinary.py": _unit("thresholds", "weighting"),
    "thresholds.py": _unit("thresholds"),
    "metrics.py": _unit("metrics", "segmentation_metrics"),
    "model_file/__init__.py": MODEL_FILE,
    "model_file/archives.py": MODEL_FILE,
    "model_file/composite.py": MODEL_FILE,
    "model_file/container.py": MODEL_FILE,
    "model_file/derive.py": (*MODEL_FILE, f"{WHOLE}without_torch.py"),
    "model_file/foreign.py": (*MODEL_FILE, f"{WHOLE}foreign.py"),
    "model_file/kinds.py": MODEL_FILE,
    "model_file/networks.py": MODEL_FILE,
    "model_file/soundness.py": (*MODEL_FILE, *_unit("written")),
    "model_file/values.py": MODEL_FILE,
    "data/mri/grid.py": _unit("mri_prepare", "scored_volumes", "mri_volume", "mri_nifti"),
    "data/mri/volume.py": _unit("mri_volume", "mri_nifti", "mri_prepare", "mri_dicom"),
    "data/mri/prepare.py": _unit("mri_prepare", "scored_volumes"),
    "data/mri/nifti.py": _unit("mri_nifti", "mri_volume"),
    "nets/checkpoint.py": (*_unit("loop"), f"{WHOLE}diffusion_training.py", *LOCALISE),
    "nets/conv.py": (*NETWORKS, f"{WHOLE}images.py"),
    "nets/discriminator.py": (
        *_unit("diffusion_settings"),
        STEPS,
        f"{WHOLE}diffusion_training.py",
        *_unit("loop"),
    ),
    "nets/stacked.py": COMPILED,
    "nets/unet.py": (*_unit("diffusion_settings", "loop"), STEPS, *_unit("patch_finder")),
}

# Modules that declare parameters: their defaults are promises.
for _module in (
    "robust/adc.py", "robust/ensemble.py", "robust/iadc.py", "robust/stream.py",
    "detectors/base.py", "detectors/dagpr.py", "detectors/foreign.py",
    "detectors/deep_svdd.py", "detectors/multiview.py", "detectors/network.py",
    "detectors/ocsvm.py", "detectors/rsrae.py", "localise/nearest.py", "localise/patch_finder.py",
    "localise/base.py", "localise/network.py",
):  # fmt: skip
    TESTS[_module] += (DECLARED,)

# The numbers that an estimator gives on made-up data are held by a test of their own. It says
# least about what is wrong, so it comes last.
for _cases, _modules in (
    (("IADC()", "IADC(OCSVM)", "IADC(AutoEncoder), by default", "IADC(IsolationForest)",
      "IADC(IntensityThreshold)", "ADC(IntensityThreshold)"),
     ("robust/adc.py", "robust/committee.py", "robust/ensemble.py", "robust/history.py",
      "robust/iadc.py", "robust/resampling.py", "robust/rounds.py", "robust/start.py",
      "robust/weighting.py")),
    (("IADC()", "MultiView()", "OCSVM()"), ("ordinary.py", "thresholds.py")),
    (("MultiView()", "IADC(), text and gaps"),
     ("detectors/column_tails.py", "detectors/compiled_forest.py", "detectors/compiled_views.py",
      "detectors/evidence.py", "detectors/far_cells.py", "detectors/gain_forest.py",
      "detectors/inverse_covariance.py", "detectors/landmarks.py", "detectors/multiview.py",
      "detectors/robust_covariance.py", "detectors/scaling.py")),
    (("AutoEncoder", "DeepSVDD", "RSRAE", "DAGPR", "HybridOCSVM", "AutoEncoder on images",
      "DeepSVDD on images", "RSRAE on images", "DAGPR on images"),
     ("detectors/aims.py", "detectors/autoencoder.py", "detectors/base.py",
      "detectors/compiled_training.py", "detectors/convolutions.py", "detectors/dagpr.py",
      "detectors/deep_svdd.py", "detectors/hybrid.py", "detectors/network.py",
      "detectors/objectives.py", "detectors/rsrae.py", "detectors/training.py", "nets/conv.py",
      "nets/stacked.py")),
    (("OCSVM", "OCSVM nystroem", "OCSVM()"), ("detectors/ocsvm.py",)),
    (("ADC(IsolationForest)", "ADC(ECOD)"), ("detectors/foreign.py",)),
    (("ADDM", "ADDM, other settings", "AnoDDPM", "DDPM, cosine and DDIM"),
     ("diffusion/losses.py", "diffusion/noise.py", "diffusion/process.py",
      "diffusion/simplex.py", "diffusion/simplex_cpu.py", "diffusion/training.py",
      "localise/diffusion.py", "localise/walk.py", "nets/discriminator.py", "nets/unet.py",
      "loop.py")),
    (("IntensityThreshold", "NearestHealthy", "PatchFinder", "DenseVAE", "FAnoGAN", "SpatialAE",
      "NearestHealthy, colour"),
     ("localise/base.py", "localise/frame.py", "localise/network.py", "localise/restorers.py")),
    (("IntensityThreshold", "IntensityThreshold, overall", "IntensityThreshold, colour"),
     ("localise/intensity.py",)),
    (("NearestHealthy", "NearestHealthy, harmonised", "NearestHealthy, colour"),
     ("localise/nearest.py",)),
    (("VQTransformer", "VQTransformer, colour"), ("localise/healing.py",)),
    (("VQTransformer", "SpatialAE", "DenseVAE", "FAnoGAN", "DenseVAE, colour"),
     ("localise/reconstruction.py",)),
    (("PatchFinder", "PatchFinder, colour"), ("localise/patch_finder.py", "nets/unet.py")),
    (("patches of PatchFinder",), ("localise/patches.py",)),
):  # fmt: skip
    for _module in _modules:
        TESTS[_module] += _same_numbers(*_cases)

# Tests of other things that use a module too. They stand behind all others, since only a change
# that those let through comes as far.
for _module, _more in {
    "robust/adc.py": (*_unit("workflow_plan"), PROPERTIES),
    "robust/iadc.py": (f"{WHOLE}as_pyod.py", PROPERTIES),
    "robust/weighting.py": (MAPS, ENSEMBLES, *_unit("explain"), PROPERTIES),
    "robust/by_blocks.py": (f"{WHOLE}any_size_files.py",),
    "diffusion/noise.py": (STEPS, *_unit("diffusion", "patch_finder")),
    "diffusion/process.py": (f"{WHOLE}diffusion_training.py",),
    "loop.py": _unit("diffusion_settings", "localisers_rivals", "patch_finder"),
    "detectors/aims.py": DIGITS,
    "detectors/base.py": (PROPERTIES,),
    "detectors/compiled_views.py": (f"{WHOLE}borders_models.py",),
    "detectors/deep_svdd.py": (*_unit("losses"), ENSEMBLES),
    "detectors/foreign.py": _unit("losses", "rounds", "trained_parts"),
    "detectors/objectives.py": (*COMPILED[:2], *DIGITS),
    "detectors/scaling.py": (*_unit("weights_arrive"), COMPILED[1]),
    "detectors/training.py": DIGITS,
    "localise/frame.py": (STEPS, *_unit("diffusion_settings")),
    "localise/intensity.py": (*_unit("soundness", "explain", "report"), MAPS),
    "localise/nearest.py": LOCALISE[::-1],
    "localise/patch_finder.py": _unit("localisers_rivals"),
    "localise/patches.py": (STEPS,),
    "localise/restorers.py": (STEPS, *_unit("nearest")),
    "localise/volumes.py": (f"{WHOLE}evaluate.py", *_unit("mri_dicom")),
    "ordinary.py": _unit("blocks", "multiview"),
    "thresholds.py": (*_unit("workflow_plan", "blocks", "explain"), f"{WHOLE}any_size.py"),
    "metrics.py": (*_unit("protocols", "weights_arrive"), f"{WHOLE}any_size.py"),
    "data/mri/grid.py": (*_unit("mri_brain"), f"{WHOLE}volumes.py"),
    "data/mri/volume.py": (*_unit("scored_volumes", "findings", "mri_brain"), *BORDERS),
    "data/mri/prepare.py": (*_unit("mri_datasets", "findings", "report"), f"{WHOLE}volumes.py"),
    "data/mri/nifti.py": (*_unit("scored_volumes", "findings", "mri_brain"), *BORDERS),
    "nets/conv.py": DIGITS,
    "nets/unet.py": (f"{WHOLE}diffusion_training.py",),
    **dict.fromkeys((m for m in TESTS if m.startswith("model_file/")), OPENED),
}.items():  # fmt: skip
    TESTS[_module] += tuple(test for test in _more if test not in TESTS[_module])

# Of modules that no machine changes, for mistakes that somebody thought of.
TABLES = (
    *_unit("tables", "written", "scaling"),
    *(f"{WHOLE}{n}.py" for n in ("bad_input", "written_tables", "zones", "unreadable_columns")),
    *_same_numbers("IADC(), text and gaps"),
)
CONTRACT = (
    *_unit("weights_arrive", "feedback", "thresholds", "explain", "ocsvm", "tables"),
    "tests/contract/test_estimators.py",
    *(f"{WHOLE}{n}.py" for n in ("ensembles", "properties", "bad_input", "as_pyod")),
    *_same_numbers("IADC()", "OCSVM()"),
)
ELSEWHERE: dict[str, tuple[str, ...]] = {
    "reproduce/": (*_unit("reproduce_cells", "reproduce"), f"{WHOLE}reproduce.py"),
    "data/drift": (*_unit("drift", "blocks", "stream"), *BLOCKS[:2], f"{WHOLE}zones.py"),
    "data/": TABLES,
    "scoring/": (
        *_unit("parts", "explain", "files", "scored_volumes"),
        *(f"{WHOLE}{n}.py" for n in ("long_tables", "odd_cells", "cli_fit_score", "any_size")),
    ),
    "explain/": (
        *_unit("explain", "report", "viewer_rows", "workflow_plan", "viewer"),
        *(f"{WHOLE}{n}.py" for n in ("explain", "cli_everyday")),
    ),
    "contract/feedback.py": (*_unit("feedback"), *CONTRACT),
    "contract/maps.py": (*LOCALISE, *_unit("nearest"), MAPS),
    "contract/": CONTRACT,
    "rng.py": (*_unit("rng", "loop", "rounds"), ENSEMBLES, f"{WHOLE}foreign.py"),
    "twister.py": _unit("twister"),
    "engine.py": (*_unit("engine", "rounds"), ENSEMBLES),
    "localise/": (*LOCALISE, f"{WHOLE}volumes.py"),
    "nets/": (*_unit("loop", "localise", "localisers_rivals"), STEPS),
}


def tests_of(module: str) -> tuple[str, ...]:
    """Return the fast tests that are to notice a mistake in a module."""
    if module in TESTS:
        return TESTS[module]
    return next(tests for start, tests in ELSEWHERE.items() if module.startswith(start))
