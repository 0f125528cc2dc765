"""A training that is killed, one that is shared, and the signals that must reach the networks."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load

from aberra import ADDM
from aberra.diffusion.noise import NOISES
from aberra.diffusion.process import linear_schedule
from aberra.diffusion.training import DiffusionPlan, DiffusionRun
from aberra.errors import ModelFileError
from aberra.loop import Tempo, batch_of
from aberra.nets.checkpoint import Checkpoint
from aberra.nets.discriminator import DiscriminatorPlan, discriminator
from aberra.nets.place import Place
from aberra.nets.unet import UNetPlan, denoiser

UNET = UNetPlan(1, (8, 16), 1, (False, True), 2, 8)
PLAN = DiffusionPlan(
    unet=UNET,
    discriminator=DiscriminatorPlan(1, 8, 1),
    n_steps=100,
    schedule="linear",
    noise="pyramid",
    highest=0.5,
    tempo=Tempo(train_steps=12, batch_size=4, learning_rate=1e-3),
    decay=0.9,
    decay_every=5,
    ema=0.9,
    clip=1.0,
    adversarial_weight=0.05,
    adversarial_stride=10,
)

SCRIPT = f"""
import os, signal, sys
from pathlib import Path
import torch
from safetensors.torch import save_file
from aberra.nets.checkpoint import Checkpoint
from aberra.diffusion.training import *
from aberra.loop import Keeping, Tempo
from aberra.nets.place import find_place
torch.set_num_threads(1)
images = torch.rand((10, 1, 8, 8), generator=torch.Generator().manual_seed(0)) * 2 - 1
out, folder, last_step = sys.argv[1], sys.argv[2], int(sys.argv[3])
kept = Checkpoint.step_done
def step_done(self, done, n_steps):
    kept(self, done, n_steps)
    if done == last_step:
        os.kill(os.getpid(), signal.SIGKILL)
Checkpoint.step_done = step_done
place = find_place("cpu", "float32")
keeping = Keeping(Path(folder), minutes=0)
net = train_denoiser(images, torch.linspace(0.1, 1, 10), {PLAN!r}, 7, place, keeping)
if place.rank == 0:
    save_file({{k: v.contiguous() for k, v in net.state_dict().items()}}, out)
"""


def run(out, folder, *launcher, killed_after=0):
    environment = {k: v for k, v in os.environ.items() if k not in ("WORLD_SIZE", "RANK")}
    script = out.with_suffix(".py")
    script.write_text(SCRIPT)
    command = [sys.executable, *launcher, str(script), str(out), str(folder)]
    command.append(str(killed_after))
    return subprocess.Popen(
        command, env={**environment, "OMP_NUM_THREADS": "1"}, stderr=subprocess.PIPE, text=True
    )


def finished(out, folder, *launcher):
    process = run(out, folder, *launcher)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return out.read_bytes()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return finished(folder / "whole", folder / "checkpoints")


def step_of(path):
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return json.loads(header["__metadata__"]["aberra"])["step"]


def steps_done(folder):
    return max((step_of(path) for path in folder.glob("*.safetensors")), default=0)


@pytest.mark.slow
def test_a_killed_training_goes_on_with_the_same_bytes(tmp_path, uninterrupted):
    out, folder = tmp_path / "net", tmp_path / "checkpoints"
    process = run(out, folder, killed_after=5)
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert not out.exists()
    assert steps_done(folder) == 5 < PLAN.tempo.train_steps
    assert finished(out, folder) == uninterrupted
    assert list(folder.glob("*.safetensors")) == []


@pytest.mark.slow
def test_two_processes_learn_what_one_learns(tmp_path, uninterrupted):
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
    shared = finished(tmp_path / "net", tmp_path / "checkpoints", *launcher)
    predictions = [predicted(state) for state in (uninterrupted, shared)]
    # Not the parameters: where the true gradient is zero, as of a bias before a normalisation,
    # Adam turns rounding errors into steps that change no answer.
    torch.testing.assert_close(*predictions, rtol=1e-3, atol=1e-4)


def predicted(state):
    net = denoiser(UNET, 0)
    net.load_state_dict(load(state))
    x = torch.randn((4, 1, 8, 8), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        return net(x, torch.linspace(0.1, 0.5, 4))


CPU = Place(torch.device("cpu"))


def training(**changes):
    return DiffusionRun(replace(PLAN, **changes), 3, CPU)


def one_step(run, step=0, weight=1.0):
    images = torch.rand((10, 1, 8, 8), generator=torch.Generator().manual_seed(1)) * 2 - 1
    return run.step(step, batch_of(images, torch.full((10,), weight), 4, 3, step, CPU))


def test_whoever_watches_sees_what_the_average_makes_of_a_fifth_of_the_noise():
    run = training()
    asked = []
    run.average = lambda x, time: asked.append((x, time)) or torch.zeros_like(x)
    images = torch.full((10, 1, 8, 8), 0.3)
    batch = batch_of(images, torch.ones(10), 4, 3, 0, CPU)
    eps = batch_of(images, torch.ones(10), 4, 3, 0, CPU).fields(NOISES[PLAN.noise])
    seen, restored = run.shown(batch)
    ((xt, time),) = asked
    level = linear_schedule(PLAN.n_steps).alpha_bar[20]
    torch.testing.assert_close(xt, (level**0.5 * 0.3 + (1 - level) ** 0.5 * eps).float())
    torch.testing.assert_close(time, torch.full((4,), 0.2))
    torch.testing.assert_close(restored, (xt / level**0.5).clamp(-1, 1).float())
    assert torch.equal(seen, images[:4])


@pytest.mark.slow
def test_both_networks_learn_and_the_average_follows():
    run = training()
    before = {name: [p.clone() for p in net.parameters()] for name, net in run.nets.items()}
    losses = one_step(run)
    assert list(losses) == ["loss", "discriminator"]
    run.follow(0)
    for name in ("denoiser", "discriminator", "average"):
        assert any(
            not torch.equal(a, b)
            for a, b in zip(before[name], run.nets[name].parameters(), strict=True)
        )
    for p in run.judge.parameters():
        assert p.requires_grad


def test_the_learning_rate_falls_as_the_plan_says():
    run, rates = training(), []
    for step in (0, 4, 5, 10):
        run.set_rates(step)
        rates.append(run.optimisers["denoiser"].param_groups[0]["lr"])
    assert rates == pytest.approx([1e-3, 1e-3, 0.9e-3, 0.81e-3])


def test_the_discriminator_gets_no_gradient_from_the_denoisers_step():
    run = training(adversarial_weight=1.0)
    one_step(run)
    judged = [p.grad.clone() for p in run.judge.parameters()]
    run.optimisers["discriminator"].zero_grad(set_to_none=False)
    fake = torch.zeros((4, 1, 8, 8), requires_grad=True)
    run.frozen_verdict(run.judge, fake, torch.zeros(4)).sum().backward()
    assert fake.grad.abs().sum() > 0
    assert all(not p.grad.any() for p in run.judge.parameters())
    assert any(g.any() for g in judged)


@pytest.mark.slow
def test_the_loss_falls():
    run = training(discriminator=None, tempo=replace(PLAN.tempo, learning_rate=3e-3))
    losses = [float(one_step(run, step)["loss"].detach()) for step in range(60)]
    assert np.mean(losses[-20:]) < 0.8 * np.mean(losses[:20])


@torch.no_grad()
def test_whoever_watches_sees_images_and_what_is_left_of_them_in_their_range():
    images = torch.rand((10, 1, 8, 8), generator=torch.Generator().manual_seed(1)) * 2 - 1
    batch = batch_of(images, torch.ones(10), 4, 3, 0, CPU)
    shown, restored = training().shown(batch)
    assert torch.equal(shown, batch.x)
    assert (float(restored.min()), float(restored.max())) == (-1, 1)  # an untrained one: cut off


@torch.no_grad()
@pytest.mark.parametrize("n_steps", [2, 50])
def test_every_network_is_told_the_time_as_a_share_of_all_steps(n_steps):
    run = training(n_steps=n_steps, adversarial_weight=1.0)
    batch, same = (batch_of(torch.zeros(10, 1, 8, 8), torch.ones(10), 4, 3, 0, CPU) for _ in "ab")
    told = []

    def telling(x, time):
        told.append(time)
        return torch.zeros_like(x)

    t = torch.tensor([0, 1, n_steps // 2, n_steps])
    run.average = run.denoiser = telling
    _, restored = run.shown(batch)
    at = {2: 1, 50: 10}[n_steps]  # a fifth of the steps, and one at least
    torch.testing.assert_close(told.pop(), torch.full((4,), at / n_steps))
    # Where no noise is seen, what is left is x_t itself, made as bright as x_0.
    eps, kept = same.fields(NOISES["pyramid"]), run.schedule.alpha_bar[at]
    clear = ((1 - kept) / kept).sqrt() * eps
    torch.testing.assert_close(restored, clear.clamp(-1, 1), check_dtype=False)
    run.guess(batch.x, t)
    torch.testing.assert_close(told.pop(), t / n_steps)
    judge = Judge(told)
    run.verdicts(judge, batch.x, batch.x, t)
    torch.testing.assert_close(told.pop(), torch.cat([t, t]) / n_steps)
    run.frozen_verdict(judge, batch.x, t)
    torch.testing.assert_close(told.pop(), t / n_steps)


class Judge(torch.nn.Module):
    """A discriminator that notes which time it is told."""

    def __init__(self, told):
        super().__init__()
        self.told = told

    def forward(self, x, time):
        self.told.append(time)
        return x


def test_weights_of_zero_teach_nothing():
    run = training()
    before = [p.clone() for p in run.denoiser.parameters()]
    one_step(run, weight=0.0)
    assert all(torch.equal(a, b) for a, b in zip(before, run.denoiser.parameters(), strict=True))


def test_every_row_trains_once_an_epoch():
    from aberra.rng import batch_rows

    rows = np.concatenate([batch_rows(5, 10, 4, step) for step in range(5)])
    assert sorted(rows[:10]) == list(range(10))
    assert sorted(rows[10:]) == list(range(10))
    assert rows[:10].tolist() != rows[10:].tolist()


def test_a_damaged_checkpoint_is_named(tmp_path):
    keeper = Checkpoint(tmp_path, "f" * 64, {}, {}, 0.0, writes=True)
    keeper.write(3)
    assert keeper.resume() == 3
    keeper.path.write_bytes(keeper.path.read_bytes()[:-1] + b"")
    keeper.path.write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00nonsense")
    with pytest.raises(ModelFileError, match=r"f{24}\.safetensors is damaged"):
        keeper.resume()


def test_batches_must_divide_among_processes():
    with pytest.raises(ValueError, match="multiple"):
        Place(torch.device("cpu"), rank=0, world_size=3).share(4)
    assert Place(torch.device("cpu"), rank=1, world_size=2).share(4) == slice(2, 4)


def test_spectral_norm_bounds_the_layers_and_time_changes_the_verdict():
    judge = discriminator(DiscriminatorPlan(1, 8, 2, "spectral", True), 0)
    x = torch.randn((2, 1, 16, 16))
    for _ in range(50):
        judge(x, torch.zeros(2))
    for module in judge.modules():
        if isinstance(module, torch.nn.Conv2d):
            largest = torch.linalg.matrix_norm(module.weight.detach().flatten(1), ord=2)
            assert float(largest) == pytest.approx(1.0, abs=0.02)
    judge.eval()
    assert not torch.equal(judge(x, torch.zeros(2)), judge(x, torch.ones(2)))


def test_longer_strides_leave_less_noise_in_what_is_judged():
    schedule = linear_schedule(100)
    noise = [float(1 - schedule.alpha_bar[50 - stride]) for stride in (1, 10, 40)]
    assert noise == sorted(noise, reverse=True)


@pytest.mark.slow
def test_checkpoints_work_from_the_outside(tmp_path, monkeypatch):
    images = np.random.default_rng(0).random((8, 1, 8, 8))
    settings = {"train_steps": 4, "batch_size": 2, "sampling_steps": 1, "random_state": 0}
    whole = ADDM(**settings).fit(images).anomaly_map(images)
    step = DiffusionRun.step
    calls = []

    def stopping(self, *args):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return step(self, *args)

    monkeypatch.setattr(DiffusionRun, "step", stopping)
    model = ADDM(**settings, checkpoint=tmp_path, checkpoint_minutes=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(images)
    assert np.array_equal(model.fit(images).anomaly_map(images), whole)
    assert len(calls) == 5  # two, the one that was stopped, and the two that were left
