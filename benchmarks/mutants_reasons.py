"""Why some mutants survive: because nothing changes (equivalent), or because it does not matter.

A mutant is named by its module, the line of code as it stands there, and the change.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple


class Reason(NamedTuple):
    """Why a mutant survives."""

    kind: Literal["equivalent", "accepted"]
    module: str
    code: str  # the beginning of the line
    what: str
    why: str


# Changes of one sort, wherever they are made: what the line looks like, the change, and why.
EVERYWHERE = (
    (r"^@dataclass\(.*(frozen|eq|repr|kw_only|slots)=", r"^(True|False) ->",
     "whether a class is frozen, compared or shown: nobody assigns, compares or prints one"),
    (r"field\(.*repr=", r"^False -> True", "whether a field is shown"),
    (r"zip\((?!.*self\.).*strict=True", r"^True -> False",
     "a guard: both are always of one length, for what comes from a file is checked before"),
    (r"lru_cache\(maxsize=", r"->", "how many results are kept, not which"),
    (r"overwrite_\w+=True", r"^True -> False", "whether memory is used again"),
    (r"astype\(.*copy=False", r"^False -> True", "whether memory is used again"),
    (r"\b(uniform|random)\(.*\) < ", r"^Lt -> LtE", "a random number that is just the chance"),
    (r"value if value > (ZERO|0) else LEAKY \* value", r"^Gt -> GtE", "0 by either slope is 0"),
)  # fmt: skip

# Modules whose classes users hold, and may compare or put into a set.
HELD_BY_USERS = ("data/mri/", "localise/findings.py", "robust/history.py")

E: Literal["equivalent"] = "equivalent"
STREAM = "names another stream of random numbers, as independent of the others as this one"
PAIRED = "a guard: both come from the same list, or their lengths were compared before"
REASONS: tuple[Reason, ...] = (
    Reason(E, "robust/committee.py", "maps, scores = zip(*(part.maps_and_scores", "True -> False",
           PAIRED),
    Reason(E, "model_file/kinds.py", "for size, dim in zip(shape, self.dims", "True -> False",
           PAIRED),
    Reason(E, "detectors/dagpr.py", "pairs = zip(self.regressions, codes", "True -> False", PAIRED),
    Reason(E, "robust/weighting.py", "return (s - middle) / (spread or", "1.0 -> 2.0",
           "where all scores are alike, nothing is divided"),
    Reason(E, "model_file/soundness.py", "if any(type(part).maps is Members.maps", "any -> all",
           "the members of an ensemble are of one kind"),
    Reason(E, "model_file/__init__.py", "if extra := sorted(set(held)", "False -> True",
           "no learnt attribute has two underscores within its name"),
    Reason(E, "robust/history.py", "pairs = zip(self.rounds[1:], self.rounds[:-1]",
           "True -> False", PAIRED),
    Reason(E, "detectors/hybrid.py", "parts = zip(self.machines, self.code_scalings",
           "True -> False", PAIRED),
    Reason(E, "robust/committee.py", "self.tile_rows = None if None in sizes", "min -> max",
           "the members of an ensemble are of one kind, and so are their sizes"),
    Reason(E, "diffusion/simplex.py", "n, device, dtype = len(permutations)", "0 -> 1",
           "all parts have one type of number"),
    Reason(E, "detectors/aims.py", "def to_reconstruct(subspace", "0.0 -> 1.0",
           "without a layer that is A nothing reads the two lambdas"),
    Reason(E, "detectors/aims.py", "return Aim(centre, -1, 0.0, 0.0)", "0.0 -> 1.0",
           "without a layer that is A nothing reads the two lambdas"),
    Reason(E, "detectors/aims.py", "return Aim(centre, -1, 0.0, 0.0)", "1 -> 2",
           "-1 or -2: no layer has this number"),
    Reason(E, "detectors/aims.py", "def to_reconstruct(subspace", "1 -> 2",
           "-1 or -2: no layer has this number"),
    Reason(E, "detectors/convolutions.py", "at_once = max(1, GATHER", "max -> min",
           "batches are gathered one at a time instead of several; they are the same"),
    Reason(E, "detectors/convolutions.py", "at_once = max(1, GATHER", "FloorDiv -> Mult",
           "all batches of an epoch are gathered at once; they are the same"),
    Reason(E, "detectors/convolutions.py", "GATHER = 1 << 22", "22 -> 44",
           "how many numbers are gathered at a time"),
    Reason(E, "detectors/deep_svdd.py", "small = (np.abs(centre)", "0 -> 1",
           "a centre of 0 is 0 times its sign"),
    Reason(E, "detectors/objectives.py", "return (w * norms).mean(dim=-1)", "sign left out",
           "errors are (m, B), so the last axis is the first from the other end"),
    Reason(E, "model_file/derive.py", "length = None if of[-1] is Ellipsis", "sign left out",
           "a type of tuples names two things at least, and three dots only in the second place"),
    Reason(E, "data/mri/grid.py", "to_array[:3, :3],", "3 -> 6",
           "SciPy takes the shift from a fourth column, which is the one it is given beside it"),
    Reason(E, "detectors/conv_chain.py", "behind = side_out + 2 * (KERNEL - 1", "Sub -> Add",
           "how much room is set aside; more of it stays unused"),
    Reason(E, "detectors/rsrae.py", "if isinstance(encoder, MLPStack) and", "And -> Or",
           "encoder and decoder are perceptrons both, or neither is"),
    Reason(E, "localise/intensity.py", "some = torch.arange(c * h * w).split(max(1, CHUNK // n))",
           "FloorDiv -> Mult", "how many numbers are sorted at a time"),
    Reason(E, "detectors/convolutions.py", "GATHER = 1 << 22", "1 -> 2",
           "how many numbers are gathered at a time"),
    Reason(E, "detectors/ocsvm.py", "hinge = np.where(miss < width", "Lt -> LtE",
           "both forms of the hinge agree where they meet"),
    Reason(E, "localise/base.py", 'check_is_fitted(self, "map_threshold_")',
           "left out: check_is_fitted(self, 'map_threshold_')",
           "the next line asks for the members, and no fit leaves them without a threshold"),
    Reason(E, "localise/intensity.py", "CHUNK = 1 << 22", "22 -> 44",
           "how many numbers are sorted at a time"),
    Reason(E, "nets/unet.py", "time = torch.zeros_like(x[:, 0, 0, 0])", "0 -> 1",
           "zeros, as many as images, whichever pixel they are made like"),
    Reason(E, "detectors/compiled_training.py", "own = slice(start - chain.widths[0]", "Sub -> Add",
           "where the statistics of a layer end, of which only as many are read as it has units"),
    Reason(E, "detectors/compiled_training.py", "return _towards_input(x, last", "GtE -> Gt",
           "A is never the first layer: RSRAE wants a layer before it"),
    Reason(E, "detectors/compiled_forest.py", "if values[k + 1] <= values[k]:", "LtE -> Lt",
           "a cut between equal values is never the best: none was among all 1,688 rows of 3 to 7 "
           "values out of six, nor among 20,000 longer ones with many equal values"),
    Reason(E, "localise/reconstruction.py", "self.net = seeded(lambda: DenseNet(plan)", "1 -> 2",
           "two seeds are drawn instead of one, and the first is used"),
    Reason(E, "detectors/base.py", "scores = member_scores(self.members_", "mean -> sum",
           "of one member, which is all that a detector by itself has"),
    Reason(E, "robust/history.py", "ends = (t for t in range(1, len(h) + 1)", "1 -> 2",
           "the first count ends a run only if it is 0, and then it is the smallest anyway"),
    Reason("accepted", "detectors/foreign.py", "fresh = clone(detector, safe=False)",
           "False -> True",
           "of something without get_params, which fails either way: here with scikit-learn's "
           "words, or when its seed is set"),
    *(Reason(E, "detectors/objectives.py", code, "sign left out",
             "of two axes, members and rows, the last is also axis 1")
      for code in ("return (w * error).mean", "return (w * distance(z, c)).mean",
                   "return (w * norms).mean")),
    Reason(E, "detectors/base.py", "TABLE_TILE = 1024", "1024 -> 2048",
           "how many rows are scored at a time"),
    Reason(E, "detectors/base.py", "IMAGE_TILE = 128", "128 -> 256",
           "how many images are scored at a time"),
    Reason(E, "detectors/multiview.py", "if len(data) <= MOST_ROWS:", "LtE -> Lt",
           "of as many rows as are drawn all are drawn, in their order"),
    Reason(E, "data/mri/prepare.py", "white = float(np.percentile(head", "0.0 -> 1.0",
           "where nothing belongs to the head nothing is above black, and all becomes 0"),
    Reason(E, "diffusion/simplex.py", "places = places.reshape(len(kind) * height, -1)", "1 -> 2",
           "NumPy finds out any side that is negative"),
    Reason(E, "detectors/scaling.py", 'gaps = numbers.dtype.kind == "f"', "And -> Or",
           "without gaps both ways of counting give the same bytes, as 300 tables did"),
    Reason(E, "detectors/far_cells.py", "CELLS = 1 << 16", "1 -> 2",
           "how many cells are looked at together"),
    Reason(E, "detectors/far_cells.py", "NOWHERE = 1e300", "1e+300 -> 2e+300",
           "no column has either number"),
    Reason(E, "detectors/network.py", "return IMAGE_TILE if scaling.shift.size == 1", "1 -> 2",
           "how many rows or images are scored at a time"),
    Reason(E, "detectors/ocsvm.py", "machine = OneClassSVM(nu=nu, gamma=gamma", "500 -> 1000",
           "how much memory libsvm may use to be faster"),
    Reason(E, "detectors/deep_svdd.py", "kept_off_zero = np.where(small", "Mult -> Div",
           "the sign is 1 or -1 wherever it is used"),
    Reason(E, "detectors/training.py", "return size - size % LANES", "GtE -> Gt",
           "a batch of just as many rows as there are lanes has them either way"),
    Reason(E, "localise/frame.py", "if self.grid != self.image_shape[1:]:", "1 -> 2",
           "an image of the right size is brought to the same size, which leaves it as it is"),
    Reason(E, "localise/protocols.py", "distinct = np.flatnonzero(np.diff(at[order]",
           "sign left out", "a score differs from either infinity"),
    Reason("accepted", "ordinary.py", "top = int(density[GRID <= 0].argmax())", "LtE -> Lt",
           "the top of the bulk is sought up to a tenth of a deviation below the median instead of "
           "up to the median; among 6,000 mixtures no group apart became another"),
    Reason(E, "robust/ensemble.py", "seen = foreground(data[some].reshape(len(some), -1", "1 -> 2",
           "NumPy finds out any side that is negative"),
    Reason(E, "robust/weighting.py", "return (s - middle) / (spread or", "1.0 -> 2.0",
           "where all scores are equal they are 0 by any unit"),
    Reason(E, "detectors/scaling.py", "def copy(self, data", "65536 -> 131072",
           "how many rows are scaled at a time"),
    Reason(E, "localise/nearest.py", "if n > self.n_kept:", "Gt -> GtE",
           "of as many images as are kept all are drawn, in their order"),
    Reason(E, "localise/nearest.py", "drawn = stream(seed, 1).choice", "1 -> 2", STREAM),
    Reason(E, "localise/diffusion_settings.py", "decay_every: int = 1000", "1000 -> 2000",
           "how often a factor of 1 is applied; the one preset with another factor says how often"),
    Reason(E, "localise/patches.py", "return torch.where(kind < 0.5, even", "Lt -> LtE",
           "a random number that is just the chance"),
    Reason(E, "detectors/multiview.py", "return np.where(nats > FAR, FAR + FAR", "Gt -> GtE",
           "as many nats as `FAR` stay as many by either formula"),
    Reason("accepted", "data/mri/volume.py", "matrix[world, k] = 1.0 if cosines[world, k] > 0",
           "Gt -> GtE", "of a grid that is sheared so far that an axis stands at right angles to "
           "the direction that is left for it, and then either sign will do"),
    Reason(E, "data/mri/volume.py", "flipped = swap[order, range(3)] < 0", "Lt -> LtE",
           "1 or -1, wherever it is asked"),
    Reason(E, "detectors/training.py", "if isinstance(encoder, MLPStack) and", "And -> Or",
           "encoder and decoder are perceptrons both, or neither is"),
    Reason(E, "robust/history.py", "return r * (1 - r) * self.rounds[0].n_rows if", "0.0 -> 1.0",
           "before the first round nobody asked for it; the number has been deleted since"),
    Reason(E, "diffusion/simplex.py", "BOX = np.array(list(product(range(-2", "2 -> 4",
           "vertices of a larger box, of which those out of reach are left out"),
    Reason(E, "localise/intensity.py", "CHUNK = 1 << 22", "1 -> 2",
           "how many numbers are sorted at a time"),
    Reason(E, "detectors/compiled_views.py", "elif place > n_bins * OUTSIDE", "Gt -> GtE",
           "no number of single precision is just this limit, 256.000256"),
    *(Reason(E, "localise/network.py", f"given = {one}.get_params(deep=False)", "False -> True",
             "a localiser has no other estimator among its parameters")
      for one in ("self", "model")),
    Reason(E, "detectors/compiled_forest.py", "if gains[k] > best and values[k + 1] >", "Gt -> GtE",
           "a cut between equal values is never the best: none was among all 2,975 rows of 3 to 8 "
           "values out of six, nor among 20,000 longer ones with many equal values, pooled or not"),
    Reason(E, "detectors/compiled_forest.py", "return np.random.normal() / np.sqrt(variance)",
           "Div -> Mult",
           "values count from that of the first row, so a variance is 0 or at least an n-th of the "
           "mean square, and a tree has at most 256 rows"),
    Reason(E, "detectors/robust_covariance.py", "if n <= d:", "LtE -> Lt",
           "of as many rows as columns both ways give the same inverse"),
    Reason(E, "detectors/inverse_covariance.py", "factor = cho_factor(", "True -> False",
           "which triangle of a symmetric matrix is used"),
    Reason(E, "thresholds.py", "return float(max(upper[np.flatnonzero(below_chord > deepest",
           "Gt -> GtE", "no depth is a billionth less than the deepest to the last digit"),
    Reason(E, "detectors/training.py", "return np.concatenate([part.reshape(len(part), -1)",
           "1 -> 2", "NumPy finds out any side that is negative"),
    Reason(E, "localise/intensity.py", "order = values.argsort(dim=0, stable=True)",
           "True -> False",
           "equal values may change places: either is the median, and the weight up to the last of "
           "them is the same"),
    Reason(E, "diffusion/simplex.py", "sizes = [n_values, n_gathered, 3 * n_vertices]", "3 -> 6",
           "how much room is set aside; more of it stays unused"),
    Reason(E, "localise/protocols.py", "total = np.cumsum(np.concatenate([[0.0]", "0.0 -> 1.0",
           "the whole curve is higher by 1, and its highest place is where it was"),
    *(Reason(E, "detectors/evidence.py", "BLOCK = 1 << 16", what,
             "how many rows are weighed at a time") for what in ("1 -> 2", "16 -> 32")),
    Reason(E, "data/mri/volume.py", "if abs(np.linalg.det(affine[:3, :3] / lengths)) <",
           "Lt -> LtE",
           "NumPy's determinant is the exponential of a logarithm, and that of none is just 0.001"),
    Reason(E, "localise/findings.py", "sizes = np.bincount(labels.ravel()", "1 -> 2",
           "one more piece without any voxel, which is too small to be listed"),
    Reason(E, "diffusion/simplex_cpu.py", "least = int(np.ceil((x + y + z - 3 * REACH)", "3 -> 6",
           "a wider layer of vertices, of which those out of reach add nothing"),
    Reason(E, "loop.py", "generator = torch_generator(draw_seeds(seed, 1, step", "1 -> 2",
           "two seeds are drawn instead of one, and the first is used"),
    Reason(E, "localise/reconstruction.py", "self.net = seeded(lambda: SpatialNet(plan)", "1 -> 2",
           "two seeds are drawn instead of one, and the first is used"),
    Reason(E, "nets/checkpoint.py", 'number, name = key.split(".", 1)', "1 -> 2",
           "no part of what an optimiser remembers has a point in its name"),
    Reason(E, "nets/stacked.py", "if x.ndim == 2:  # every member sees", "2 -> 4",
           "the same products one after the other instead of at once"),
    Reason(E, "robust/start.py", "said: Scores = field(default_factory", "0 -> 1",
           "where nobody was asked, nobody reads what was said"),
    Reason(E, "detectors/compiled_views.py", "if lifts[v] > 0 and own[v] > mean:", "Gt -> GtE",
           "nothing times a lift, or a lift times nothing, is added"),
    Reason(E, "detectors/deep_svdd.py", "small = (np.abs(centre)", "Lt -> LtE",
           "a centre at the margin is put at the margin"),
    Reason(E, "detectors/compiled_forest.py", "while node < n_nodes:", "Lt -> LtE",
           "one more node is looked at, which has no rows and is cut off"),
    Reason(E, "detectors/compiled_forest.py", "sums, squared, gains = room[0]", "1 -> 2",
           "the squares of a cut are read before its gain is written over them"),
    Reason(E, "localise/intensity.py", "CHUNK = 1 << 22", "22 -> 44",
           "how many numbers are sorted at a time"),
    Reason(E, "detectors/objectives.py", "return (w * distance(z, c)).mean(dim=-1)",
           "sign left out", "the last of two axes is the second"),
    Reason(E, "localise/network.py", "given = model.get_params(deep=False)", "False -> True",
           "no preset has a field with two underscores in its name"),
    Reason(E, "diffusion/training.py", "self.average = denoiser(plan.unet, seeds[0])",
           "False -> True", "nobody asks for a gradient of the average"),
    Reason(E, "ordinary.py", "z = np.clip(", "1 -> 2",
           "what lies beyond the grid is put a step further in, and the valley stays before it"),
    Reason(E, "localise/protocols.py", "best = distinct[np.flatnonzero(total", "GtE -> Gt",
           "no sum lies below the best by just the rounding that is allowed"),
    Reason(E, "localise/walk.py", "quick = replace(self.way, sampling_steps=1", "1 -> 2",
           "how often a network of a file is asked before the file is trusted"),
    Reason("accepted", "ordinary.py", "GRID = np.arange(-40, 151)", "40 -> 80",
           "scores four deviations below the median are told apart, of which the bulk has none"),
    Reason(E, "data/mri/nifti.py", "REST, PIECE = 1 << 26, 1 << 20", "1 -> 2",
           "how many bytes are read at once"),
    Reason(E, "thresholds.py", "odd = np.flatnonzero((share > 0.5 + 1e-6)", "Gt -> GtE",
           "no share is that number to the last digit, and from the median up the same score is"
           " below the first odd one"),
)  # fmt: skip


def everywhere(line: dict[str, Any]) -> str | None:
    """Return why a change cannot be seen, if it is of a sort that nowhere can."""
    for code, what, why in EVERYWHERE:
        if line["code"].startswith("@dataclass") and line["module"].startswith(HELD_BY_USERS):
            continue
        if re.search(code, line["code"]) and re.search(what, line["what"]):
            return why
    return None


def reason_for(line: dict[str, Any]) -> tuple[str, str]:
    """Return the kind of a survivor ("equivalent", "accepted" or "survived"), and why."""
    why = everywhere(line)
    if why is not None:
        return "equivalent", why
    for reason in REASONS:
        same = (reason.module, reason.what) == (line["module"], line["what"])
        if same and line["code"].startswith(reason.code):
            return reason.kind, reason.why
    return "survived", ""
