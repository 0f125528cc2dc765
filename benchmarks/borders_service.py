"""Requests to `aberra serve` that no sound program sends: rows, headers and bytes of any kind."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np

from aberra.service.limits import Limits
from aberra.workflow import fit
from aberra.workflow.serving import open_service
from benchmarks.borders_kinds import rows
from benchmarks.borders_viewer import asked

CELLS: list[Any] = [None, True, -1, 0, 1.5, 1e308, -1e308, 10**40, -(2**63), "", "nan", "inf", "x",
         "1e5", "2024-01-01", "9999-12-31", "=1+1", "\ud800", "\0", "é" * 50, [], [1], {},
         {"a": 1}, [[[]]], "a" * 5000]  # fmt: skip
BODIES: list[Any] = [None, [], {}, 7, "x", {"rows": None}, {"rows": 7}, {"rows": {}},
          {"rows": "abc"}, {"rows": [None]}, {"rows": [[]]}, {"rows": [{}]}, {"rows": [[], {}]},
          {"rows": [1, 2]}, {"rows": [[1, 2]]}, {"row": [[1]]}]  # fmt: skip
BYTES = [b"", b"\xff\xfe", b"{", b"[" * 100_000, b'{"rows":' + b"[" * 5000 + b"]" * 5000 + b"}",
         b'{"rows": [[NaN, Infinity, -Infinity, 1, 1]]}', b'{"rows": [[1e999, 1, 1, 1, 1]]}',
         b'{"rows": [[' + b"9" * 5000 + b", 1, 1, 1, 1]]}", b'{"rows": [], "rows": [[1]]}',
         b"\xef\xbb\xbf{}", b'"\\ud800"', b"{\"rows\": [['a']]}"]  # fmt: skip
ADDRESSES = [("POST", "/score"), ("POST", "/explain")]
OTHER_PATHS = ["/score", "/explain", "/health", "/metrics", "/docs", "/openapi.json", "/",
         "/score/", "/SCORE", "//score", "/%00", "/../etc/passwd", "/score?rows=1",
         "/" + "a" * 5000]  # fmt: skip
OTHER_METHODS = ["POST", "GET", "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "X"]
OTHERS: dict[str, list[str | None]] = {
    "Authorization": [None, "", "Bearer", "Bearer x", "Basic c2VjcmV0", "bearer secret", "é"],
    "Content-Type": [None, "text/plain", "application/json; charset=x", "multipart/form-data"],
    "Content-Length": ["0", "-1", "x", "5", "99999999999", "9" * 4500, "1, 2"],
    "Transfer-Encoding": ["chunked", "gzip"],
    "Host": [None, "evil.example"],
    "Content-Encoding": ["gzip"],
    "Expect": ["100-continue", "x"],
}
OPEN = ("/health", "/docs", "/openapi.json")


class StrangeRows:
    """A thousand requests; none may end in a server error, or be answered without the token."""

    n = 1000

    def prepare(self, sound: Path) -> None:
        """Put a model of numbers, text and dates behind an address."""
        if not (sound / "m.aberra").exists():
            rows().to_csv(sound / "rows.csv", index=False)
            fit(sound / "rows.csv", sound / "m.aberra", robust="none")
        limits = Limits(max_rows=200, max_bytes=200_000)
        service = open_service(
            sound / "m.aberra", token="secret", max_rows=limits.max_rows, max_bytes=limits.max_bytes
        )
        self.port = int(service.address.rsplit(":", 1)[1])
        threading.Thread(target=service.run, daemon=True).start()
        sent = json.loads(rows()[:3].to_json(orient="records", date_format="iso"))
        self.sound = [[row[name] for name in rows()] for row in sent]
        self.names = list(rows())
        status, answer = self._ask("POST", "/score", self._body(self.sound, False), {})
        if status != 200 or not np.isfinite(json.loads(answer)["scores"]).all():
            raise RuntimeError(f"A sound request was answered by {status}: {answer!r}")

    def try_one(self, k: int, folder: Path) -> str:
        """Send one request; look at the answer, and ask whether the service is still well."""
        rng = random.Random(k)
        method, path = rng.choice(ADDRESSES)
        if rng.random() < 0.2:
            method, path = rng.choice(OTHER_METHODS), rng.choice(OTHER_PATHS)
        n_changed = rng.choice([1, 1, 2]) if rng.random() < 0.2 else 0
        changed = {name: rng.choice(OTHERS[name]) for name in rng.sample(sorted(OTHERS), n_changed)}
        status, answer = self._ask(method, path, self._strange(rng), changed)
        if status in (0, *range(500, 600)) or b"Traceback" in answer:
            return f"an answer of status {status}"
        if status < 300 and "Authorization" in changed and path not in OPEN:
            return "a stranger was let in"
        scored = status < 300 and (method, path) in ADDRESSES
        if scored and not np.isfinite(json.loads(answer)["scores"]).all():
            return "scores are not finite"
        if self._ask("GET", "/health", b"", {})[0] != 200:
            return "the service is ill"
        return "fine" if status < 300 else "refused"

    def _strange(self, rng: random.Random) -> bytes:
        """Return bytes, a body of the wrong form, or sound rows with a few strange cells."""
        how = rng.random()
        if how < 0.15:
            return rng.choice(BYTES)
        if how < 0.3:
            return json.dumps(rng.choice(BODIES)).encode()
        table = [list(row) for row in self.sound] * rng.choice([1, 1, 1, 50])
        for _ in range(rng.choice([1, 1, 3, 10])):
            row = rng.choice(table)
            row[rng.randrange(len(row))] = rng.choice(CELLS)
        if rng.random() < 0.1:
            rng.choice(table).append(1)
        return self._body(table, rng.random() < 0.5)

    def _body(self, table: list[list[Any]], named: bool) -> bytes:
        held = [dict(zip(self.names, row, strict=False)) for row in table] if named else table
        return json.dumps({"rows": held}).encode()

    def _ask(
        self, method: str, path: str, body: bytes, changed: dict[str, str | None]
    ) -> tuple[int, bytes]:
        headers: dict[str, str | None] = {
            "Host": f"127.0.0.1:{self.port}",
            "Authorization": "Bearer secret",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
        }
        return asked(self.port, method, path, {**headers, **changed}, body)
