"""The one training loop around a network of one number, and what it leaves on disk."""

import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from aberra import loop
from aberra.diffusion.process import cosine_schedule, linear_schedule, walk
from aberra.diffusion.training import DiffusionRun
from aberra.errors import DivergenceError, MissingExtraError, ModelFileError
from aberra.localise.patch_finder import FinderRun
from aberra.localise.walk import Denoisers, Walk
from aberra.loop import Batch, Keeping, Run, Tempo, batch_of, train
from aberra.nets.checkpoint import Checkpoint, training_mark
from aberra.nets.discriminator import Discriminator, DiscriminatorPlan
from aberra.nets.place import Place, find_place
from aberra.nets.unet import Denoiser, Finder, UNetPlan
from aberra.progress import keeping_trainings
from aberra.rng import batch_rows

CPU = torch.device("cpu")
IMAGES = torch.arange(40.0).view(10, 1, 2, 2) / 40
WEIGHTS = torch.linspace(0.1, 1.0, 10)


class Number(Run):
    """One weight that moves to the mean of the images; it writes down what happens to it."""

    def __init__(self, place=None):
        self.place, self.seen = place or Place(CPU), []
        self.net = nn.Linear(1, 1, bias=False)
        nn.init.zeros_(self.net.weight)
        self.nets = {"net": self.net}
        self.optimisers = {"net": torch.optim.Adam(self.net.parameters(), 0.1)}

    def set_rates(self, step):
        self.seen.append(("rates", step))

    def step(self, step, batch):
        self.seen.append(("step", step))
        drawn = batch.normal()
        loss = ((self.net.weight[0, 0] - batch.x.mean() - 0.01 * drawn.mean()) ** 2).sum()
        self.update("net", loss)
        return {"loss": loss}

    def follow(self, step):
        self.seen.append(("follow", step))

    def shown(self, batch):
        self.seen.append(("shown", len(batch.x), len(batch.w), batch.size, batch.mine))
        return batch.x, batch.x


class Stopped(Number):
    def step(self, step, batch):
        if step == 7:
            raise KeyboardInterrupt
        return super().step(step, batch)


def trained(run, steps=45, **more):
    train(run, "settings", Tempo(steps, 4, 0.1), IMAGES, WEIGHTS, 3, **more)
    return float(run.net.weight.detach())


def test_a_step_has_its_rates_before_and_its_averages_after_it_and_losses_are_seen_now_and_then(
    monkeypatch,
):
    shown = []
    monkeypatch.setattr(loop, "advance", lambda task, part, note: shown.append((part, note)))
    run = Number()
    trained(run)
    expected = [(what, k) for k in range(45) for what in ("rates", "step", "follow")]
    assert run.seen == expected
    assert [part for part, _ in shown] == [1 / 45, 20 / 45, 40 / 45, 1]
    assert all(note.startswith("loss 0.") for _, note in shown)


def test_a_training_that_was_stopped_goes_on_with_the_same_bytes_and_leaves_nothing(tmp_path):
    whole = trained(Number())
    stopped = Stopped()
    with pytest.raises(KeyboardInterrupt):
        trained(stopped, keeping=Keeping(tmp_path, 0.0))
    (file,) = tmp_path.iterdir()
    again = Number()
    assert trained(again, keeping=Keeping(tmp_path, 0.0)) == whole
    assert again.seen[0] == ("rates", 7)
    assert not file.exists()
    late = Stopped()
    with pytest.raises(KeyboardInterrupt):
        trained(late, keeping=Keeping(tmp_path, 5.0))
    assert list(tmp_path.iterdir()) == []  # five minutes are not over
    assert Keeping().minutes == 5.0


def test_a_training_in_another_precision_begins_anew(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        trained(Stopped(), 8, keeping=Keeping(tmp_path, 0.0))
    other = Number(Place(CPU, half=True))
    trained(other, 8, keeping=Keeping(tmp_path))
    assert other.seen[0] == ("rates", 0)


def test_a_training_whose_time_was_up_goes_on_after_the_steps_it_took(tmp_path, monkeypatch):
    whole, again = trained(Number()), Number()
    with keeping_trainings():
        with monkeypatch.context() as short:
            short.setattr(loop, "time_is_up", lambda part: part >= 0.2)
            trained(Number(), keeping=Keeping(tmp_path))
        assert trained(again, keeping=Keeping(tmp_path)) == whole
    assert again.seen[0] == ("rates", 9)


def test_a_training_ends_where_the_time_is_up_or_the_loss_is_no_number(monkeypatch):
    asked = []
    monkeypatch.setattr(loop, "time_is_up", lambda part: asked.append(part) or part >= 0.2)
    run = Number()
    trained(run)
    assert asked == [k / 45 for k in range(1, 10)]
    assert len(run.seen) == 27
    monkeypatch.undo()
    broken = Number()
    broken.net.weight.data.fill_(torch.nan)
    with pytest.raises(DivergenceError, match="at step 1"):
        trained(broken)


def test_one_loss_of_two_that_is_no_number_ends_the_training():
    for broken in (torch.nan, torch.inf):
        losses = {"fine": torch.tensor(1.0), "broken": torch.tensor(broken)}
        with pytest.raises(DivergenceError, match="at step 7"):
            loop.show(losses, 7, 10)


def test_a_watch_sees_the_losses_and_at_most_four_images_and_only_one_process_has_one(monkeypatch):
    told = []
    watch = SimpleNamespace(
        begin=lambda: told.append("begin"),
        losses=lambda step, values: told.append((step, list(values))),
        wants_picture=lambda last: told.append(last) or last,
        picture=lambda step, images, restored: told.append((step, images.shape)),
    )
    monkeypatch.setattr(loop, "open_watch", lambda: watch)
    run = Number()
    train(run, 0, Tempo(21, 6, 0.1), IMAGES, WEIGHTS, 3)
    seen = [(step, ["loss"]) for step in (1, 20, 21)]
    assert told == ["begin", seen[0], False, seen[1], False, seen[2], True, (21, (4, 1, 2, 2))]
    assert ("shown", 4, 4, 4, slice(4)) in run.seen
    told.clear()
    other = Number(Place(CPU, rank=1, world_size=2))
    train(other, 0, Tempo(2, 6, 0.1), IMAGES, WEIGHTS, 3)
    assert told == []


def test_processes_share_the_images_and_the_random_numbers_of_a_step():
    whole = batch_of(IMAGES, WEIGHTS, 6, 3, 5, Place(CPU))
    rows = batch_rows(3, 10, 6, 5)
    torch.testing.assert_close(whole.x, IMAGES[rows])
    torch.testing.assert_close(whole.w, WEIGHTS[rows])
    parts = [batch_of(IMAGES, WEIGHTS, 6, 3, 5, Place(CPU, rank=k, world_size=2)) for k in (0, 1)]

    def field(shape, generator, device):
        return torch.rand(shape, generator=generator)

    for draw in (
        lambda batch: batch.x,
        lambda batch: batch.w,
        lambda batch: batch.normal(2),
        lambda batch: batch.uniform(1, 3),
        lambda batch: batch.integers(2, 5),
        lambda batch: batch.fields(field),
    ):
        torch.testing.assert_close(torch.cat([draw(part) for part in parts]), draw(whole))
    assert whole.fields(field).shape == whole.x.shape
    numbers = torch.cat([whole.integers(2, 5) for _ in range(50)])
    assert set(numbers.tolist()) == {2, 3, 4}
    assert isinstance(whole, Batch)
    other = batch_of(IMAGES, WEIGHTS, 6, 3, 6, Place(CPU))
    assert not torch.equal(other.normal(), batch_of(IMAGES, WEIGHTS, 6, 3, 5, Place(CPU)).normal())


def test_gradients_are_cut_to_their_longest_and_averaged_over_processes():
    run = Number()
    run.clip = 0.5
    run.optimisers = {"net": torch.optim.SGD(run.net.parameters(), 1.0)}
    run.update("net", 3 * run.net.weight.sum())
    assert float(run.net.weight.detach()) == pytest.approx(-0.5)
    run.clip = None
    run.update("net", 3 * run.net.weight.sum())
    assert float(run.net.weight.detach()) == pytest.approx(-3.5)
    fabric = SimpleNamespace(all_reduce=lambda flat, reduce_op: flat / 3,
                             all_gather=lambda part: torch.stack([part, part + 1]))  # fmt: skip
    run.place = Place(CPU, fabric=fabric)
    run.update("net", 3 * run.net.weight.sum())
    assert float(run.net.weight.detach()) == pytest.approx(-4.5)
    run.clip = 0.8  # it is the average that is cut: 3 / 3, not 0.8 / 3
    run.update("net", 3 * run.net.weight.sum())
    assert float(run.net.weight.detach()) == pytest.approx(-5.3)
    assert run.gathered(torch.zeros(2, 1)).tolist() == [[0], [0], [1], [1]]
    assert Number().gathered(WEIGHTS) is WEIGHTS


def keeper_of(folder, mark="a" * 64, rate=0.1, **more):
    run = Number()
    run.optimisers["net"].param_groups[0]["lr"] = rate
    given = {"minutes": 5.0, "writes": True, **more}
    return run, Checkpoint(folder, mark, run.nets, run.optimisers, **given)


def test_a_checkpoint_brings_back_networks_optimisers_and_rates(tmp_path):
    folder = tmp_path / "deep" / "er"
    run, keeper = keeper_of(folder, rate=0.25)
    assert keeper.resume() == 0
    assert folder.is_dir()
    run.update("net", run.net.weight.sum())
    keeper.write(12)
    assert [path.name for path in folder.iterdir()] == ["a" * 24 + ".safetensors"]
    other, again = keeper_of(folder)
    assert again.resume() == 12
    assert other.optimisers["net"].param_groups[0]["lr"] == 0.25
    for one in (run, other):
        one.update("net", one.net.weight.sum())
    assert torch.equal(run.net.weight, other.net.weight)
    _, wrong = keeper_of(folder, "a" * 24 + "b" * 40)
    with pytest.raises(ModelFileError, match="belongs to another training"):
        wrong.resume()
    again.finish(13)
    assert list(folder.iterdir()) == []
    again.finish(13)  # and nothing is there to delete
    for _, silent in (keeper_of(None), keeper_of(folder, writes=False)):
        silent.write(3)
        silent.finish(3)
        assert silent.resume() == 0
    assert list(folder.iterdir()) == []


def test_a_training_that_is_asked_to_stop_is_kept_first(tmp_path, monkeypatch):
    run, keeper = keeper_of(tmp_path)
    run.update("net", run.net.weight.sum())
    keeper.step_done(2, 9)
    assert keeper_of(tmp_path)[1].resume() == 0  # not yet: five minutes have not passed
    monkeypatch.setattr("aberra.nets.checkpoint.stop_requested", lambda: True)
    with pytest.raises(KeyboardInterrupt, match=r"after step 3 of 9\. The same command goes on"):
        keeper.step_done(3, 9)
    other, again = keeper_of(tmp_path)
    assert again.resume() == 3
    assert torch.equal(other.net.weight, run.net.weight)
    with pytest.raises(KeyboardInterrupt, match=r"after step 3 of 9\.$"):  # nowhere to be kept
        keeper_of(None)[1].step_done(3, 9)


def test_a_mark_depends_on_settings_and_on_every_array():
    a, b = torch.zeros(2, 3), torch.ones(2)
    marks = [
        training_mark("s", [a], [b]),
        training_mark("t", [a], [b]),
        training_mark("s", [a], [2 * b]),
        training_mark("s", [a.T], [b]),
        training_mark("s", [a.double()], [b]),
        training_mark("s", [a]),
    ]
    assert len(set(marks)) == len(marks)
    assert marks[0] == training_mark("s", [a.clone()], [b.clone()])


PLAN = UNetPlan(1, (8, 8), 1, (False, False), 2, head_width=8, groups=4)


class Plain(nn.Module):
    """Stands for the U-Net: gives back its input, as often as there are channels to fill."""

    def __init__(self, n_out):
        super().__init__()
        self.n_out = n_out

    def forward(self, patches, time):
        self.given = patches, time
        return patches.repeat(1, self.n_out, 1, 1)


def test_a_finder_takes_away_what_is_likely_to_be_foreign():
    finder = Finder(PLAN)
    x = torch.arange(32.0).view(2, 1, 4, 4) / 8
    assert finder.unet(nn.functional.pixel_unshuffle(x, 2), torch.zeros(2)).shape == (2, 8, 2, 2)
    finder.unet = Plain(2)
    added, logit = finder.found(x)
    patches, time = finder.unet.given
    assert patches.shape == (2, 4, 2, 2)
    assert time.tolist() == [0, 0]
    torch.testing.assert_close(added, x)
    torch.testing.assert_close(logit, x - 3)
    torch.testing.assert_close(finder(x), x * (1 - torch.sigmoid(x - 3)))


def test_a_denoiser_is_told_the_time_in_thousandths():
    net = Denoiser(PLAN)
    assert net(torch.zeros(2, 1, 4, 4), torch.zeros(2)).shape == (2, 1, 4, 4)
    assert {m.num_groups for m in net.modules() if isinstance(m, nn.GroupNorm)} == {4}
    wide = Denoiser(replace(PLAN, groups=32))  # no more groups than channels
    assert {m.num_groups for m in wide.modules() if isinstance(m, nn.GroupNorm)} == {8}
    net.unet = Plain(1)
    x = torch.rand(2, 1, 4, 4)
    assert torch.equal(net(x, torch.tensor([0.25, 1.0])), x)
    assert net.unet.given[1].tolist() == [250, 1000]


def test_a_verdict_moves_what_is_judged_and_not_the_judge():
    judge, fake = nn.Bilinear(2, 1, 1), torch.ones((3, 2), requires_grad=True)
    run = SimpleNamespace(place=Place(CPU), plan=SimpleNamespace(n_steps=4))
    logits = DiffusionRun.frozen_verdict(run, judge, fake, torch.full((3, 1), 2.0))
    torch.testing.assert_close(logits, judge(fake, torch.full((3, 1), 0.5)))
    logits.sum().backward()
    assert fake.grad.abs().sum() > 0
    assert all(p.grad is None and p.requires_grad for p in judge.parameters())


def test_networks_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "monai", None)
    for make in (lambda: Finder(PLAN), lambda: Denoiser(PLAN),
                 lambda: Discriminator(DiscriminatorPlan(1, 8, 2, "spectral", True))):  # fmt: skip
        with pytest.raises(MissingExtraError, match=r"aberra\[images\]"):
            make()


@pytest.mark.parametrize(
    ("highest", "expected"), [(0.5, {1, 2, 3, 4, 5}), (0.01, {1}), (0.12, {1})]
)
def test_steps_are_drawn_from_the_first_to_the_highest(highest, expected):
    batch = batch_of(IMAGES, WEIGHTS, 200, 3, 5, Place(CPU))
    plan = SimpleNamespace(n_steps=10, highest=highest, noise="gaussian", discriminator=None)
    found = DiffusionRun.draw(SimpleNamespace(plan=plan), batch)
    assert set(found.t.tolist()) == expected
    assert found.eps is found.eps_real is found.z
    assert found.eps.shape == batch.x.shape
    plan.discriminator = PLAN
    fields = DiffusionRun.draw(SimpleNamespace(plan=plan), batch)
    assert not torch.equal(fields.eps, fields.eps_real)
    assert not torch.equal(fields.z, fields.eps_real)
    assert not torch.equal(fields.z, fields.eps)


@pytest.mark.parametrize("n_steps", [7, 30, 1000])
def test_schedules_written_out(n_steps):
    beta = np.minimum(np.linspace(1e-4, 0.02, n_steps) * 1000 / n_steps, 0.999)
    np.testing.assert_allclose(linear_schedule(n_steps).alpha_bar, np.r_[1, np.cumprod(1 - beta)])
    share = np.arange(n_steps + 1) / n_steps
    level = np.cos((share + 0.008) / 1.008 * np.pi / 2) ** 2
    beta = np.minimum(1 - level[1:] / level[:-1], 0.999)
    np.testing.assert_allclose(cosine_schedule(n_steps).alpha_bar, np.r_[1, np.cumprod(1 - beta)])


def test_walks_written_out_and_how_often_a_network_is_asked():
    assert walk(10, 4) == [(10, 8), (8, 5), (5, 2), (2, 0)]
    assert walk(2, 9) == [(2, 1), (1, 0)]
    way = Walk(1000, "linear", "gaussian", 0.5, 0.25, 30, "ddpm", 3)
    for changed, calls in (
        ({}, 90),
        ({"sampling_steps": None}, 750),
        ({"start": 0.01}, 30),
        ({"start": 1e-9, "sampling_steps": None}, 3),
        ({"n_draws": 1}, 30),
    ):
        asked = Denoisers(None, None, [], Walk(**{**vars(way), **changed}))
        assert asked.n_calls == calls


def test_a_start_of_next_to_nothing_is_the_first_step():
    way = Walk(100, "linear", "gaussian", 0.5, 1e-9, None, "ddpm", 1)
    asked = []

    class Net(torch.nn.Linear):  # its parameters only say where they are
        def forward(self, x, time):
            asked.append(time.tolist())
            return torch.zeros_like(x)

    images = torch.zeros(2, 1, 8, 8)
    assert Denoisers(None, None, [Net(1, 1)], way).restore(images).shape == (1, 2, 1, 8, 8)
    np.testing.assert_allclose(asked, [[0.01, 0.01]])


def test_a_checkpoint_is_written_when_its_minutes_are_over(tmp_path, monkeypatch):
    _, keeper = keeper_of(tmp_path, minutes=5.0)
    keeper.resume()
    real = time.monotonic
    for seconds, kept in ((290, 0), (301, 1)):
        monkeypatch.setattr("aberra.nets.checkpoint.time.monotonic", lambda s=seconds: real() + s)
        keeper.step_done(3, 10)
        assert len(list(tmp_path.iterdir())) == kept


def test_after_a_checkpoint_the_minutes_begin_again(tmp_path, monkeypatch):
    _, keeper = keeper_of(tmp_path, _last=0.0)
    clock, written = SimpleNamespace(now=0), []
    monkeypatch.setattr("aberra.nets.checkpoint.time.monotonic", lambda: clock.now)
    monkeypatch.setattr(
        "aberra.nets.checkpoint.write_atomically", lambda *_: written.append(clock.now)
    )
    for clock.now in (299, 300, 301, 599, 600, 899, 900):
        keeper.step_done(clock.now, 1000)
    assert written == [300, 600, 900]


def test_processes_on_several_machines_are_counted_by_machine(monkeypatch):
    told = {}

    class Fabric:
        device, global_rank = CPU, 3

        def __init__(self, **given):
            told.update(given)

        def launch(self):
            told["launched"] = True

    monkeypatch.setitem(sys.modules, "lightning_fabric", SimpleNamespace(Fabric=Fabric))
    monkeypatch.setenv("WORLD_SIZE", "6")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    place = find_place("cpu", "float32")
    assert (told["devices"], told["num_nodes"], told["accelerator"]) == (2, 3, "cpu")
    assert told["launched"]
    assert (place.rank, place.world_size, place.half) == (3, 6, False)
    assert place.share(12) == slice(6, 8)
    monkeypatch.delenv("LOCAL_WORLD_SIZE")
    find_place("cuda:1", "bfloat16")
    assert (told["devices"], told["num_nodes"], told["accelerator"]) == (6, 1, "cuda")


def test_with_no_minutes_every_step_is_kept_however_coarse_the_clock(tmp_path, monkeypatch):
    monkeypatch.setattr("aberra.nets.checkpoint.time.monotonic", lambda: 5.0)
    _, keeper = keeper_of(tmp_path, minutes=0.0, _last=5.0)
    keeper.resume()
    keeper.step_done(3, 10)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_denoiser_is_tried_on_an_image_before_it_is_used():
    asked = Denoisers(None, None, [], Walk(10, "linear", "gaussian", 0.5, 0.25, 3, "ddpm", 3))
    with pytest.raises(ValueError, match="there is no image shape"):
        asked.probe(4, None)


@pytest.mark.parametrize("kind", [DiffusionRun, FinderRun])
def test_the_average_follows_quickly_at_first_and_slowly_at_last(kind):
    run = kind.__new__(kind)
    new, own = (nn.Linear(1, 1, bias=False).requires_grad_(False) for _ in range(2))
    run.plan, run.average, run.denoiser, run.net = SimpleNamespace(ema=0.9), own, new, new
    for step, keep in ((0, 0.1), (8, 0.5), (80, 0.9), (10_000, 0.9)):
        own.weight.data[:], new.weight.data[:] = 1.0, 0.0
        run.follow(step)
        assert float(own.weight) == pytest.approx(keep)
