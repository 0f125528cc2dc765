"""Time this tree beside an older checkout, in turns, so that a slow minute hits both.

    git worktree add /tmp/older COMMIT
    python -m benchmarks.before_after /tmp/older

Each job runs in a process of its own, with the sources of one tree on its path, in turns; the
first pair warms the caches and is not counted. Prints and writes the medians and their ratio,
results/before_after.json. Only names that both trees have may be used here.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.records import environment

TURNS = 5
RESULTS = Path("results/before_after.json")

SETUP = """
import time, warnings
warnings.simplefilter("ignore")
import numpy as np
from aberra import ADC, IADC, DDPM, AutoEncoder, DeepSVDD
X = np.random.default_rng(0).normal(size=(6435, 36))
NETWORKS = dict(hidden=(32, 16, 8), batch_size=128, random_state=0)
def timed(work):
    started = time.perf_counter(); work(); return time.perf_counter() - started
def per_member_epoch(build):
    fit = lambda epochs: ADC(build(epochs), random_state=0).fit(X)
    fit(1)
    few, many = timed(lambda: fit(5)), timed(lambda: fit(45))
    return (many - few) / 40 / 5
"""
JOBS = {
    "autoencoder: one member-epoch": """
print(per_member_epoch(lambda e: AutoEncoder(epochs=e, **NETWORKS)))""",
    "Deep SVDD: one member-epoch": """
print(per_member_epoch(lambda e: DeepSVDD(epochs=e, pretrain_epochs=1, **NETWORKS)))""",
    "IADC(): fit 6,435 rows": """
IADC(max_rounds=1, random_state=0).fit(X[:500])
print(timed(lambda: IADC(random_state=0).fit(X)))""",
    "five Deep SVDD: score a million rows": """
model = ADC(DeepSVDD(epochs=1, pretrain_epochs=1), random_state=0).fit(X)
million = np.random.default_rng(1).normal(size=(1_000_000, 36))
model.anomaly_score(X)
print(timed(lambda: model.anomaly_score(million)))""",
    "DDPM: twenty steps at 32 x 32": """
images = np.random.default_rng(0).random((64, 1, 32, 32))
fit = lambda n: DDPM(train_steps=n, batch_size=8, random_state=0).fit(images)
fit(1)
print(timed(lambda: fit(22)) - timed(lambda: fit(2)))""",
    "aberra score: 20,000 rows, the whole process": """
import subprocess, sys, tempfile
folder = tempfile.mkdtemp()
names = ",".join(f"c{i}" for i in range(36))
def write(name, rows):
    np.savetxt(f"{folder}/{name}", rows, delimiter=",", header=names, comments="")
def shell(*words):
    code = "import sys; from aberra.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, *words]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
write("train.csv", X[:2000])
write("new.csv", np.tile(X, (4, 1))[:20000])
shell("fit", "train.csv", "-o", "m.aberra", "--seed", "0")
score = lambda: shell("score", "m.aberra", "new.csv", "-o", "s.csv")
score()
print(np.median([timed(score) for _ in range(3)]))""",
}


def seconds(tree: Path, job: str) -> float:
    """Run one job with the sources of a tree and return what it timed."""
    paths = {**os.environ, "PYTHONPATH": str(tree / "src")}
    code = [sys.executable, "-c", SETUP + job]
    done = subprocess.run(code, env=paths, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{tree}: {done.stderr}")
    return float(done.stdout.split()[-1])


def main() -> None:
    """Run every job in both trees, in turns, and write the medians."""
    older, newer = Path(sys.argv[1]).resolve(), Path.cwd()
    found = {}
    for name, job in JOBS.items():
        if sys.argv[2:] and not any(word in name for word in sys.argv[2:]):
            continue
        pairs = [(seconds(older, job), seconds(newer, job)) for _ in range(TURNS + 1)][1:]
        before, after = (statistics.median(times) for times in zip(*pairs, strict=True))
        ratio = statistics.median(new / old for old, new in pairs)
        found[name] = {"before": before, "after": after, "ratio": ratio}
        print(f"{name:50} {before:10.4f} {after:10.4f} {ratio:8.3f}", flush=True)
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps(known | found | environment(), indent=1) + "\n")


if __name__ == "__main__":
    main()
