"""A real Ray cluster of two nodes on this machine: the same bytes, and lost workers cost little."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

# Nobody else on this machine gets in. Ray reads these when it is loaded, and not again.
os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}
ray = pytest.importorskip("ray")

from aberra import IADC  # noqa: E402
from aberra.data.blocks.opening import blocks_of  # noqa: E402
from aberra.data.blocks.source import Blocks, PartError  # noqa: E402
from aberra.errors import AberraError  # noqa: E402
from aberra.ray_cluster import connect  # noqa: E402
from aberra.ray_engine import run_on_ray  # noqa: E402
from aberra.workflow import fit, score  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Ray's own warnings

N, SEEN = 3_000, 1_000
CODE = "import sys; from aberra.ray_cluster import connect; connect(sys.argv[1])"


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    found.add_node(num_cpus=1)
    connect(found.address)
    yield found
    ray.shutdown()
    found.shutdown()


@pytest.fixture(autouse=True, scope="module")
def _short():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aberra.data.blocks.extent.LARGE_ROWS", SEEN)
        patch.setattr(Blocks.tasks, "__defaults__", (250,))
        patch.setattr(blocks_of, "__defaults__", ("stop", SEEN))
        yield


@pytest.fixture(scope="module")
def rows():
    found = np.random.default_rng(0).normal(size=(N, 3))
    return pd.DataFrame(found, columns=list("abc"))


@pytest.fixture(scope="module")
def big(rows, tmp_path_factory):
    place = tmp_path_factory.mktemp("ray") / "big"
    place.mkdir()
    for k in range(4):
        part = rows[k * N // 4 : (k + 1) * N // 4]
        part.to_parquet(place / f"{k}.parquet", row_group_size=125)
    return place


def test_the_same_model_and_scores_as_in_one_process(cluster, big, tmp_path, monkeypatch):
    monkeypatch.chdir(big.parent)  # workers are somewhere else
    here = fit("big", tmp_path / "here.aberra").path
    there = fit("big", tmp_path / "there.aberra", engine="ray").path
    assert there.read_bytes() == here.read_bytes()
    alone = score(here, "big", tmp_path / "alone")
    spread = score(here, "big", "spread", engine="ray")
    assert (alone.n_rows, alone.n_flagged) == (spread.n_rows, spread.n_flagged)
    for file in (tmp_path / "alone").glob("*.parquet"):
        assert pq.read_table(file) == pq.read_table(big.parent / "spread" / file.name)


def test_a_ray_dataset_is_a_source(cluster, big, rows):
    from ray.data import read_parquet

    one = IADC(random_state=0).fit(big)
    two = IADC(random_state=0, engine="ray").fit(read_parquet(str(big)))
    assert one.threshold_ == two.threshold_
    assert (one.positions_ == two.positions_).all()
    assert (one.anomaly_score(rows[:100]) == two.anomaly_score(rows[:100])).all()


def test_a_killed_worker_costs_its_task_only(cluster, tmp_path):
    def work(k):
        (tmp_path / f"{time.time_ns()}-{os.getpid()}").touch()
        time.sleep(0.3)
        return k * k

    def kill():
        while len(list(tmp_path.iterdir())) < 3:
            time.sleep(0.01)
        os.kill(int(max(tmp_path.iterdir()).name.split("-")[1]), signal.SIGKILL)

    threading.Thread(target=kill).start()
    assert dict(run_on_ray(work, range(6))) == {k: k * k for k in range(6)}
    assert 7 <= len(list(tmp_path.iterdir())) <= 8


def test_an_error_of_a_task_is_raised_as_it_is(cluster):
    def work(k):
        raise PartError("a.parquet", "It is damaged.")

    with pytest.raises(PartError, match=r"^It is damaged\.$") as caught:
        list(run_on_ray(work, [1, 2]))
    assert caught.value.part == "a.parquet"


def test_other_versions_on_a_node_are_named(cluster, monkeypatch):
    monkeypatch.setattr("aberra.ray_cluster._installed", _older_here(os.getpid()))
    with pytest.raises(AberraError, match=r"has aberra 0\.1\.0 \(here 0\.2\.0\)"):
        list(run_on_ray(str, [1]))


def joined(address, before="", env=None):
    """Join a cluster in a process of its own; return what it says."""
    words = [sys.executable, "-c", before + CODE, address]
    return subprocess.run(
        words, capture_output=True, text=True, timeout=60, check=False, env=env
    ).stderr


def test_a_cluster_that_asks_for_a_token_says_so(cluster):
    own = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    assert f"The Ray cluster at {cluster.address} asks for a token" in joined(
        cluster.address, env=own
    )


def test_another_version_of_ray_is_named(cluster):
    said = joined(cluster.address, before="import ray; ray.__version__ = '2.1.0'; ")
    assert "runs other versions than this process" in said
    assert "2.1.0" in said


def _older_here(process):
    def installed():
        def look():
            import os

            return {"aberra": "0.2.0" if os.getpid() == process else "0.1.0"}

        return look

    return installed


def test_who_does_not_answer_is_given_up_soon():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    assert f"Ray does not answer at {address}" in joined(address)
