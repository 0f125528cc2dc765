"""Work that is spread over workers: a share of the members for each, and one thread."""

import pytest
import torch

from aberra.engine import run_members, run_tasks
from aberra.rng import allow_threads


@pytest.mark.parametrize("n_members", [1, 2, 3, 7])
def test_every_worker_is_given_members_and_every_member_one_worker(n_members, monkeypatch):
    monkeypatch.setattr("joblib.effective_n_jobs", lambda: 3)
    found = run_members(lambda part: range(part.start, part.stop), n_members, "threading")
    assert [member for part in found for member in part] == [*range(n_members)]
    assert len(found) == min(n_members, 3)
    assert all(len(part) > 0 for part in found)


def test_a_task_in_a_worker_has_one_thread():
    before = torch.get_num_threads()
    allow_threads(3)
    try:
        found = dict(run_tasks(lambda _: torch.get_num_threads(), range(4), "threading"))
    finally:
        torch.set_num_threads(before)
    assert found == dict.fromkeys(range(4), 1)
