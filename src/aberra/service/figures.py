"""What a service has done so far, as text that Prometheus reads."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from threading import Lock

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


@dataclass
class Figures:
    """Counts of requests, rows and flags, and how long answers took."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    rows: int = 0
    flagged: int = 0
    seconds: float = 0.0
    within: Counter[float] = field(default_factory=Counter)
    lock: Lock = field(default_factory=Lock)

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        with self.lock:
            self.requests[path, status] += 1
            self.seconds += seconds
            self.within.update(bound for bound in BOUNDS if seconds <= bound)

    def scored(self, rows: int, flagged: int) -> None:
        """Count rows that got a score."""
        with self.lock:
            self.rows += rows
            self.flagged += flagged

    def text(self) -> str:
        """Return all figures in Prometheus' format."""
        with self.lock:
            total = sum(self.requests.values())
            lines = ["# TYPE aberra_requests_total counter"]
            lines += [
                f'aberra_requests_total{{path="{path}",status="{status}"}} {n}'
                for (path, status), n in sorted(self.requests.items())
            ]
            lines += ["# TYPE aberra_rows_total counter", f"aberra_rows_total {self.rows}"]
            lines += ["# TYPE aberra_flagged_total counter", f"aberra_flagged_total {self.flagged}"]
            lines.append("# TYPE aberra_request_seconds histogram")
            lines += [
                f'aberra_request_seconds_bucket{{le="{bound}"}} {self.within[bound]}'
                for bound in BOUNDS
            ]
            lines.append(f'aberra_request_seconds_bucket{{le="+Inf"}} {total}')
            lines.append(f"aberra_request_seconds_sum {self.seconds:.6f}")
            lines.append(f"aberra_request_seconds_count {total}")
        return "\n".join(lines) + "\n"
