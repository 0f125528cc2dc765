"""Mistakes that somebody could make in the methods, each by name: all of them must be noticed.

Each is a text in one module that stands there exactly once, and what takes its place.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.mutations import PACKAGE, Mutant


@dataclass(frozen=True)
class Planted:
    """A mistake with a name."""

    name: str
    module: str
    changes: tuple[tuple[str, str], ...]

    def mutant(self) -> Mutant:
        """Return the module with this mistake in it."""
        text = (PACKAGE / self.module).read_text()
        first = self.changes[0][0]
        line = text[: text.index(first)].count("\n") + 1
        for before, after in self.changes:
            if text.count(before) != 1:
                raise ValueError(f"{self.name}: {before!r} is {text.count(before)} times there")
            text = text.replace(before, after)
        return Mutant(self.module, line, 0, self.name, first.splitlines()[0].strip(), text)


def _one(name: str, module: str, before: str, after: str) -> Planted:
    return Planted(name, module, ((before, after),))


TRAINING, LOSSES, PROCESS = (f"diffusion/{name}.py" for name in ("training", "losses", "process"))
WALK, SETTINGS, LOCALISER = (
    f"localise/{name}.py" for name in ("walk", "diffusion_settings", "diffusion")
)
STEPS = "round(plan.highest * plan.n_steps)"
ADDM = (
    _one("adversarial loss left out", LOSSES, " + weight * adversarial_loss(fake, w)", ""),
    _one("adversarial loss left out of the step", TRAINING,
         "addm_loss(d.eps, eps_hat, verdict, w, plan.adversarial_weight)",
         "ddpm_loss(d.eps, eps_hat, w)"),
    _one("real sample at t", TRAINING, "x0, s, d.eps_real)", "x0, d.t, d.eps_real)"),
    _one("real sample with the noise of the fake one", TRAINING, "x0, s, d.eps_real)",
         "x0, s, d.eps)"),
    _one("real sample with the noise of the reverse step", TRAINING, "x0, s, d.eps_real)",
         "x0, s, d.z)"),
    _one("stride ignored", TRAINING, "d.t - plan.adversarial_stride", "d.t - 1"),
    _one("weights ignored in a step", TRAINING, "batch.x, batch.w, self",
         "batch.x, torch.ones_like(batch.w), self"),
    _one("weights ignored by the noise error", LOSSES, "(w * per_image((eps_hat - eps).square()))",
         "per_image((eps_hat - eps).square())"),
    _one("weights ignored by the urge to pass", LOSSES, "(w * per_image(F.softplus(-fake)))",
         "per_image(F.softplus(-fake))"),
    _one("weights ignored by the discriminator", LOSSES, "(w * (per_image(F.softplus(-real))",
         "((per_image(F.softplus(-real))"),
    _one("real and fake exchanged", LOSSES, "F.softplus(-real)) + per_image(F.softplus(fake))",
         "F.softplus(real)) + per_image(F.softplus(-fake))"),
    _one("running average: keep and new exchanged", TRAINING, "(own, new, 1 - keep)",
         "(own, new, keep)"),
    _one("running average not returned", TRAINING, "run.average.eval()", "run.denoiser.eval()"),
    _one("running average that never moves", TRAINING,
         "        torch._foreach_lerp_(own, new, 1 - keep)\n", ""),
    _one("x_0 not clamped in training", TRAINING, "d.t, eps_hat).clamp(-1, 1)", "d.t, eps_hat)"),
    _one("no fresh noise in the reverse step", TRAINING, "x0_hat, d.z)", "x0_hat, 0 * d.z)"),
    _one("no noise in p_sample", PROCESS, "mean + variance.sqrt() * noise", "mean"),
    _one("learning rate never falls", TRAINING, "** (step // plan.decay_every)", "** 0"),
    _one("t from 0 to T - 1", TRAINING, f"batch.integers(1, max(1, {STEPS}) + 1)",
         f"batch.integers(0, max(1, {STEPS}))"),
    _one("one noise field for all three", TRAINING, "Draws(t, eps, batch.fields(noise), z)",
         "Draws(t, eps, eps, eps)"),
    _one("gradients not clipped", TRAINING, "place, plan.clip\n", "place, None\n"),
    _one("fake image not detached", TRAINING, "fake.detach()", "fake"),
    _one("no noise in the reverse walk", WALK, "x0_hat, self._noise(x, generator))",
         "x0_hat, 0 * self._noise(x, generator))"),
    _one("x_0 not clamped in the walk", WALK, "at_t, eps_hat).clamp(-1, 1)", "at_t, eps_hat)"),
    _one("the same noise in every draw", WALK, "SCORING_SEED + k", "SCORING_SEED"),
    _one("draws not averaged", WALK, "(total / self.way.n_draws)", "total"),
    _one("paper's batch", SETTINGS, "batch_size=4,", "batch_size=8,"),
    _one("paper's rate", SETTINGS, "learning_rate=1e-4,", "learning_rate=2e-4,"),
    _one("paper's decay", SETTINGS, "decay=0.999,", "decay=0.99,"),
    _one("paper's steps between decays", SETTINGS, "decay_every=200 * 25", "decay_every=200"),
    _one("decay of the preset not passed on", LOCALISER, "decay=preset.decay,", "decay=1.0,"),
    _one("running average of the preset not passed on", LOCALISER, "ema=preset.ema", "ema=0.0"),
    _one("printed weight of the adversarial loss", LOCALISER,
         "adversarial_weight=0.05,", "adversarial_weight=0.5,"),
    _one("default weight of the adversarial loss", LOCALISER,
         "adversarial_weight=0.5,", "adversarial_weight=0.05,"),
    _one("printed stride", LOCALISER, "adversarial_stride=1)", 'adversarial_stride="all")'),
    _one("weight of the style not passed on", LOCALISER,
         "adversarial_weight=style.adversarial_weight", "adversarial_weight=0.0"),
)  # fmt: skip

CONVOLUTIONS, HYBRID, MACHINE = (
    f"detectors/{name}.py" for name in ("convolutions", "hybrid", "ocsvm")
)
DAGPR, KERNEL = "detectors/dagpr.py", "detectors/compiled_training.py"
PLAIN = "np.ones_like(weights)"
DETECTORS = (
    _one("convolutional autoencoder without weights", CONVOLUTIONS,
         "squared_error(x, x_hat), w)", "squared_error(x, x_hat), torch.ones_like(w))"),
    _one("convolutional Deep SVDD without weights", CONVOLUTIONS,
         "dsvdd_iadc(encoder(x), c, w)", "dsvdd_iadc(encoder(x), c, torch.ones_like(w))"),
    _one("convolutional RSRAE without weights", CONVOLUTIONS,
         "learnt, w, *lambdas)", "learnt, torch.ones_like(w), *lambdas)"),
    _one("autoencoder without weights", "detectors/autoencoder.py",
         "Lessons(prepared, rows, weights,", f"Lessons(prepared, rows, {PLAIN},"),
    _one("Deep SVDD without weights", "detectors/deep_svdd.py",
         "Lessons(prepared, rows, weights,", f"Lessons(prepared, rows, {PLAIN},"),
    _one("Deep SVDD's autoencoder with weights", "detectors/deep_svdd.py", PLAIN, "weights"),
    _one("RSRAE without weights", "detectors/rsrae.py",
         "Lessons(prepared, rows, weights,", f"Lessons(prepared, rows, {PLAIN},"),
    _one("perceptrons without weights", "detectors/training.py",
         "rows[j][order], weights[j],", "rows[j][order], np.ones_like(weights[j]),"),
    _one("hybrid's autoencoder without weights", HYBRID,
         "(prepared, rows, weights, generators)", f"(prepared, rows, {PLAIN}, generators)"),
    _one("hybrid's machine without weights", HYBRID,
         "(inputs, rows, weights, seeds)", f"(inputs, rows, {PLAIN}, seeds)"),
    Planted("hybrid's codes not standardised", HYBRID,
            (("inputs = (scale(code) for", "inputs = (code for"),
             ("machine.score(scale(code))", "machine.score(code)"))),
    _one("hybrid's codes not turned", HYBRID, "frozen.turned(np.stack(axes))", "frozen"),
    _one("hybrid's axes without weights", HYBRID,
         "len(prepared.data)) * weights", "len(prepared.data))"),
    _one("one-class machine without weights", MACHINE,
         "([x] * len(rows), rows, weights, seeds)", f"([x] * len(rows), rows, {PLAIN}, seeds)"),
    _one("landmarks drawn without weights", MACHINE, "replace=False, p=w / w.sum())",
         "replace=False)"),
    _one("landmark problem without weights", MACHINE, "_linear_one_class(features, w / (nu",
         "_linear_one_class(features, np.full(len(w), w.mean()) / (nu"),
    _one("many rows drawn without weights", MACHINE, "NYSTROEM_ROWS, p=w / w.sum())",
         "NYSTROEM_ROWS)"),
    _one("default nu", MACHINE, "default=0.5", "default=0.1"),
    _one("DAGPR without refinements", DAGPR, "default=1,", "default=0,"),
    _one("DAGPR with ten refinements", DAGPR, "default=1,", "default=10,"),
    _one("DAGPR refined with the wrong sign", DAGPR, "np.argsort(mu,", "np.argsort(-mu,"),
    _one("DAGPR's first labels with the wrong sign", DAGPR, "np.argsort(np.square",
         "np.argsort(-np.square"),
    _one("DAGPR's autoencoder without weights", DAGPR,
         "            prepared, rows, weights, generators, on_sphere",
         f"            prepared, rows, {PLAIN}, generators, on_sphere"),
    _one("DAGPR's codes not on the sphere in training", DAGPR, "on_sphere=True",
         "on_sphere=False"),
    Planted("RSRAE's orthogonality missing from the compiled loss", KERNEL,
            (("    g_A += F(4 * aim.lambda2) * np.dot(slant, A)\n", ""),
             (" + aim.lambda2 * np.sum(slant * slant)", ""))),
    _one("RSRAE's orthogonality without a gradient", KERNEL,
         "    g_A += F(4 * aim.lambda2) * np.dot(slant, A)\n", ""),
    _one("RSRAE's orthogonality left out of the tagged loss", "detectors/objectives.py",
         " + lambda2 * orthogonality(A)", ""),
    _one("RSRAE's lambda2 not passed on", "detectors/rsrae.py",
         "to_reconstruct(len(into), self.lambda1, self.lambda2)",
         "to_reconstruct(len(into), self.lambda1, 0.0)"),
)  # fmt: skip

IADC, WEIGHTING = "robust/iadc.py", "robust/weighting.py"
ROUNDS = (
    _one("importance weights ignored in fit", IADC, "len(history), w * course.prior)",
         "len(history), course.prior)"),
    _one("given weights ignored in fit", IADC, "len(history), w * course.prior)",
         "len(history), w)"),
    _one("weights of the first round in every later one", IADC,
         "w = course.trust(history)  # A1.20",
         "w = course.trust(history) if len(history) == 1 else w"),
    _one("patience of 5", IADC, "default=2,", "default=5,"),
    _one("patience ignored", "robust/history.py", "- int(np.argmin(h)) >= patience",
         "- int(np.argmin(h)) >= 2"),
    _one("top rows from the wrong end", WEIGHTING, "np.argsort(-s,", "np.argsort(s,"),
    _one("trust that rises with the score", WEIGHTING, "expit((beta - s)", "expit((s - beta)"),
    _one("members of another round kept", IADC, "if history.kept == len(history) - 1:",
         "if len(history) == 1:"),
    _one("weights do not reach the members", "robust/rounds.py",
         "np.broadcast_to(turn.weights, (m, len(setup.data)))",
         "np.broadcast_to(1.0, (m, len(setup.data)))"),
    _one("one member instead of the mean", "robust/rounds.py", "each.mean(axis=0)", "each[0]"),
    _one("bootstrap of the same rows for all members", "robust/resampling.py",
         "return generator.integers(n, size=(n_members, n))",
         "return np.tile(generator.integers(n, size=n), (n_members, 1))"),
    _one("advice that does not count besides", "robust/start.py",
         "counts = prior * history.trust_by(said)", "counts = prior"),
    _one("advised rounds that forget the trust before", "robust/start.py",
         "w = w + pace * (history.trust_by(self._joined(line.scores)) - w)",
         "w = history.trust_by(self._joined(line.scores))"),
    _one("advice that a round does not hear", "robust/start.py",
         "return in_quartiles(scores) + in_quartiles(self.said)", "return in_quartiles(scores)"),
    _one("advisers on another scale", "robust/start.py", "+ in_quartiles(self.said)",
         "+ self.said"),
)  # fmt: skip

# Chosen by somebody who had not looked at the tests: a wrong variable of the right type, a round,
# row, member or end other than the one that is meant, an argument that is not passed on.
HISTORY, TURN = "robust/history.py", "robust/rounds.py"
MANY_VIEWS, COVARIANCE = "detectors/multiview.py", "detectors/robust_covariance.py"
CENTRE, ONE_LOCALISER, ONE_LOOP = "detectors/deep_svdd.py", "localise/base.py", "loop.py"
GRID, VOLUME = "data/mri/grid.py", "data/mri/volume.py"
OTHERS = (
    _one("members with the seeds of the first round in every round", TURN,
         "draw_seeds(turn.entropy, turn.number, 1, n=m)", "draw_seeds(turn.entropy, 0, 1, n=m)"),
    _one("one seed for all members", TURN, "draw_seeds(turn.entropy, turn.number, 1, n=m)",
         "draw_seeds(turn.entropy, turn.number, 1, n=1) * m"),
    _one("members that draw the same rows in every round", TURN,
         "stream(turn.entropy, turn.number, 0)", "stream(turn.entropy, 0, 0)"),
    _one("the middle member instead of the mean", TURN, "each.mean(axis=0)",
         "np.median(each, axis=0)"),
    _one("crossings counted against the first round", HISTORY,
         "self._moved(line.scores, self.rounds[-1].scores)",
         "self._moved(line.scores, self.rounds[0].scores)"),
    _one("rows that are trusted again counted as doubted", HISTORY,
         "newly_doubted(apart_weights(s), apart_weights(previous))",
         "newly_doubted(apart_weights(previous), apart_weights(s))"),
    _one("the round before the one with the fewest crossings kept", HISTORY,
         "return int(np.argmin(h)) + 1 if min(h)", "return int(np.argmin(h)) if min(h)"),
    _one("next trust from the round that would be kept", HISTORY,
         "return self.weights(-1) if self.rounds", "return self.weights(self.kept) if self.rounds"),
    _one("threshold placed on the last round", IADC,
         "self._conclude(history[history.kept].scores", "self._conclude(history[-1].scores"),
    _one("trust of the last round", IADC, "self.weights_ = history.weights(history.kept)",
         "self.weights_ = history.weights(-1)"),
    _one("rounds of the last fit not copied", IADC, "rounds = list(last.rounds)",
         "rounds = last.rounds"),
    _one("temperature not passed on", IADC, "self.patience, self.temperature, rule",
         "self.patience, 0.5, rule"),
    _one("bootstrap without replacement", "robust/resampling.py",
         "return generator.integers(n, size=(n_members, n))",
         "return np.stack([generator.permutation(n) for _ in range(n_members)])"),
    _one("doubt that begins at three deviations however many rows", WEIGHTING,
         "edge = max(FARTHEST_ORDINARY, -float(ndtri(1 / len(s))))", "edge = FARTHEST_ORDINARY"),
    _one("advisers compared on what they find ordinary", "robust/start.py",
         "top_rows(self.said, OPINION)", "top_rows(-self.said, OPINION)"),
    _one("what an earlier run scored is not counted", "robust/by_blocks.py",
         "total = _sum(found) if found else None", "total = None"),
    _one("mean life of a row instead of its half-life", "robust/stream.py",
         "drawn - np.log(2) * new / self.half_life", "drawn - new / self.half_life"),
    _one("Benjamini and Hochberg stepping down", "ordinary.py",
         "stands = np.flatnonzero(ordered <= rate * np.arange(1, len(p) + 1) / len(p))",
         "stands = np.flatnonzero(np.logical_and.accumulate("
         "ordered <= rate * np.arange(1, len(p) + 1) / len(p)))"),
    _one("ties that count nothing", "metrics.py", "found, side=\"right\").sum()",
         "found, side=\"left\").sum()"),
    _one("only rows of weight place the threshold", "detectors/base.py",
         "self._conclude(scores, data)", "self._conclude(scores[weights > 0], data)"),
    _one("Deep SVDD's centre divided by all rows", CENTRE,
         "total / counts.sum(axis=1, keepdims=True)", "total / len(data)"),
    _one("a row that was drawn twice counts once in the centre", CENTRE,
         "(codes * counts[:, None, start : start + TABLE_TILE])",
         "(codes * (counts[:, None, start : start + TABLE_TILE] > 0))"),
    _one("RSRAE's lambdas exchanged", "detectors/rsrae.py",
         "to_reconstruct(len(into), self.lambda1, self.lambda2)",
         "to_reconstruct(len(into), self.lambda2, self.lambda1)"),
    _one("weight decay not passed on", "detectors/network.py",
         "self.learning_rate, self.weight_decay, task)", "self.learning_rate, 0.0, task)"),
    _one("rows that were not drawn turn the hybrid's axes", HYBRID,
         "row_counts(rows, len(prepared.data)) * weights", "weights"),
    _one("DAGPR's members label by the seed of the first", DAGPR,
         "np.unique(rows[j]), seeds[j])", "np.unique(rows[j]), seeds[0])"),
    _one("every member has the same landmarks", MACHINE,
         "n_landmarks, np.random.default_rng(seed))", "n_landmarks, np.random.default_rng(0))"),
    _one("covariance without trust", MANY_VIEWS, "robust_ellipse(together.precise, c, self.ridge)",
         "robust_ellipse(together.precise, np.ones_like(c), self.ridge)"),
    _one("trust measured against rows that have none", MANY_VIEWS,
         "c = trust[chosen] / trust[chosen].mean()", "c = trust[chosen] / trust.mean()"),
    _one("bulk of a view without trust", MANY_VIEWS, "quantiles(v, trust, (0.1, 0.5))",
         "np.quantile(v, (0.1, 0.5))"),
    _one("the larger of two ellipses", COVARIANCE, "return min(found, key=_log_volume)",
         "return max(found, key=_log_volume)"),
    _one("rows without trust make a covariance of many rows", COVARIANCE,
         "float(trust.sum() ** 2 / np.square(trust).sum())", "float(len(trust))"),
    _one("tails on one side only", "detectors/column_tails.py", "np.minimum(below, above)",
         "above"),
    _one("a leaf of many rows is as deep as one of one row", "detectors/compiled_forest.py",
         "depths[node] = level[node] + path_length(len(own))", "depths[node] = level[node]"),
    _one("Adam begins anew in every epoch", "detectors/training.py",
         "adam = Adam(epoch * n_steps,", "adam = Adam(0,"),
    _one("the discriminator is told the step of the noisy image", TRAINING,
         "real, fake.detach(), s), w)", "real, fake.detach(), d.t), w)"),
    _one("the discriminator's rate falls too", TRAINING,
         "for group in self.optimisers[\"denoiser\"].param_groups:",
         "for group in [g for o in self.optimisers.values() for g in o.param_groups]:"),
    _one("posterior mean with the level of the later step", PROCESS,
         "mean = (a_s.sqrt() * (1 - kept)", "mean = (a_t.sqrt() * (1 - kept)"),
    _one("gradients cut before they are averaged", ONE_LOOP,
         """        self.place.average([p.grad for p in learnt if p.grad is not None])
        if self.clip is not None:
            nn.utils.clip_grad_norm_(learnt, self.clip)
""",
         """        if self.clip is not None:
            nn.utils.clip_grad_norm_(learnt, self.clip)
        self.place.average([p.grad for p in learnt if p.grad is not None])
"""),
    _one("the same noise in every training step", ONE_LOOP, "draw_seeds(seed, 1, step, n=1)",
         "draw_seeds(seed, 1, n=1)"),
    _one("images that were held out train", ONE_LOCALISER,
         "rows = np.flatnonzero((weights > 0) & ~held)[None]",
         "rows = np.flatnonzero(weights > 0)[None]"),
    _one("patients torn apart", ONE_LOCALISER,
         "np.isin(names, rng.permutation(kinds)[:n_held])",
         "np.isin(np.arange(n), rng.permutation(n)[:n_held])"),
    _one("slices half a pixel off", GRID, "half = pixel * (size - 1) / 2.0",
         "half = pixel * size / 2.0"),
    _one("axes that were asked for ignored on the way back", GRID,
         "to_grid = inverse(grid.affine) @ volume.anatomy",
         "to_grid = inverse(grid.affine) @ volume.affine"),
    _one("a flip that is one voxel off", VOLUME,
         "np.array(volume.array.shape)[order[flipped]] - 1",
         "np.array(volume.array.shape)[order[flipped]]"),
    _one("spacing along the world's axes", VOLUME,
         "np.linalg.norm(self.affine[:3, :3], axis=0)",
         "np.linalg.norm(self.affine[:3, :3], axis=1)"),
    _one("checksum of the manifest alone", "model_file/container.py",
         "    for part in parts:\n        found.update(part)\n",
         "    for part in list(parts)[:1]:\n        found.update(part)\n"),
)  # fmt: skip

PLANTED = (*ADDM, *DETECTORS, *ROUNDS, *OTHERS)
