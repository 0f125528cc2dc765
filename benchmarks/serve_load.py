"""How many requests a service answers, and how long they take, beside the bare scoring.

    python -m benchmarks.serve_load [--requests 400] [--clients 4] [--out results/serve_load.json]

A model of 20 columns (IADC, its defaults) is fitted on 2,000 drawn rows and served on this machine.
Clients send requests of one row, and of a hundred rows, one after the other. Do this on a machine
that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from aberra import IADC
from aberra.explain.subject import Subject
from aberra.service.answers import Answers
from aberra.service.limits import Limits
from aberra.service.running import Place, make_server
from benchmarks.records import environment


def bare(model: Any, X: np.ndarray[Any, Any], n: int) -> float:
    """Return the median seconds that the model itself takes for so many rows."""
    times = []
    for _ in range(50):
        started = time.perf_counter()
        model.anomaly_score(X[:n])
        times.append(time.perf_counter() - started)
    return float(np.median(times))


def load(place: Place, body: bytes, requests: int, clients: int) -> dict[str, float]:
    """Send requests from several clients; return requests a second and the slowest percent."""
    head = {"Authorization": f"Bearer {place.token}", "Content-Type": "application/json"}

    def ask(n: int) -> list[float]:
        with httpx.Client(base_url=place.address, headers=head, timeout=60) as client:
            times = []
            for _ in range(n):
                started = time.perf_counter()
                client.post("/score", content=body).raise_for_status()
                times.append(time.perf_counter() - started)
        return times

    started = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        held = pool.map(ask, [requests // clients] * clients)
        times = [seconds for some in held for seconds in some]
    seconds = time.perf_counter() - started
    return {
        "requests_per_second": round(len(times) / seconds, 1),
        "median_ms": round(1e3 * float(np.median(times)), 2),
        "p99_ms": round(1e3 * float(np.quantile(times, 0.99)), 2),
    }


def main() -> None:
    """Fit, serve, ask, and write what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path("results/serve_load.json"))
    asked = parser.parse_args()
    X = np.random.default_rng(0).normal(size=(2000, 20))
    model = IADC(random_state=0).fit(X)
    place = Place()
    server = make_server(Answers(Subject(model), Limits()), place)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [place.socket]})
    thread.start()
    found: dict[str, Any] = {"measured_with": environment()}
    try:
        for n in (1, 100):
            body = json.dumps({"rows": X[:n].tolist()}).encode()
            load(place, body, 20, 1)
            held = load(place, body, asked.requests, asked.clients)
            found[f"{n} rows"] = {"bare_ms": round(1e3 * bare(model, X, n), 2), **held}
    finally:
        server.should_exit = True
        thread.join()
    asked.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
