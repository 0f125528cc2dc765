"""Requests that no page of the viewer would send, from a stranger and from somebody inside."""

from __future__ import annotations

import http.client
import json
import random
import threading
from pathlib import Path
from typing import Any

from aberra.viewer.app import Shelf
from aberra.viewer.catalogue import catalogue
from aberra.viewer.marks import NAME
from aberra.viewer.serve import Door, make_server

PATHS = ["/", "/view/0", "/view/9", "/api/items", "/api/0/rows", "/api/0/scans", "/api/0/model",
         "/api/0/marks", "/api/0/marks/0", "/api/0/marks/-1", "/files/0", "/files/-1",
         "/static/table.js", "/static/../app.py", "//etc/passwd", "/%2e%2e/%2e%2e/etc/passwd",
         "/files/99999999999999999999", "/api/0/rows?limit=9999999", "/api/0/rows?offset=-5",
         "/api/0/rows?sort=%00", "/api/x/rows", "/" + "a" * 5000, "/?token=x"]  # fmt: skip
METHODS = ["GET", "GET", "GET", "HEAD", "PUT", "PUT", "POST", "DELETE", "OPTIONS", "TRACE", "X"]
BODIES: list[Any] = [
    {"mark": "accept"}, {"mark": None}, {"mark": "x"}, {"mark": [[]]}, [], None, 7, "x", {},
    {"mark": "accept", "more": 1},
]  # fmt: skip
OTHERS: dict[str, list[str | None]] = {
    "Host": [None, "localhost", "evil.example", "127.0.0.1:1"],
    "Cookie": [None, "x=1", "aberra_1=guess", ";;;===", "a" * 3000],
    "Origin": [None, "null", "http://evil.example"],
    "Content-Type": [None, "text/plain", "application/json; charset=x", "multipart/form-data"],
    "Content-Length": ["0", "-1", "x", "5000", "99999999999"],
    "Sec-Fetch-Site": ["cross-site", "same-site", "none"],
    "Transfer-Encoding": ["chunked", "gzip"],
    "Range": ["bytes=0-", "bytes=-1"],
}


class StrangeRequests:
    """A thousand requests; none may end in a server error or bring out what is not to be seen."""

    n = 1000

    def prepare(self, sound: Path) -> None:
        """Show a small folder beside a secret."""
        shown = sound / "shown"
        shown.mkdir(exist_ok=True)
        (sound / "secret").write_text("SECRET")
        (shown / "scores.csv").write_text("id,score,flag\na,1.5,true\nb,0.5,false\n")
        (shown / NAME).unlink(missing_ok=True)
        self.shown, self.door = shown, Door()
        server = make_server(Shelf(catalogue(shown / "scores.csv")), self.door)
        run = {"sockets": [self.door.socket]}
        threading.Thread(target=server.run, kwargs=run, daemon=True).start()

    def try_one(self, k: int, folder: Path) -> str:
        """Send one request; look at the answer, and at the file of marks."""
        rng, door = random.Random(k), self.door
        body = json.dumps(rng.choice(BODIES)).encode()
        headers: dict[str, str | None] = {
            "Host": f"127.0.0.1:{door.port}",
            "Cookie": f"aberra_{door.port}={door.token}",
            "Origin": f"http://127.0.0.1:{door.port}",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
        }
        for name in rng.sample(sorted(OTHERS), rng.choice([0, 1, 2])):
            headers[name] = rng.choice(OTHERS[name])
        base = rng.choice([door.base, door.base, door.base, ""])
        status, answer = asked(
            door.port, rng.choice(METHODS), base + rng.choice(PATHS), headers, body
        )
        inside = headers["Cookie"] == f"aberra_{door.port}={door.token}" and base
        if status == 0:
            return "no answer"
        if status >= 500 or b"SECRET" in answer or b"root:" in answer or b"Traceback" in answer:
            return f"an answer of status {status}"
        if status < 300 and not inside:
            return "a stranger was let in"
        if (self.shown / NAME).exists():
            marks = json.loads((self.shown / NAME).read_text())["marks"]
            if not set(marks.get("scores.csv", {})) <= {"a", "b"}:
                return "a mark of something that is not there"
        return "fine" if status < 300 else "refused"


def asked(
    port: int, method: str, target: str, headers: dict[str, str | None], body: bytes
) -> tuple[int, bytes]:
    """Send a request; return status 0 if there is no answer, and the server does not hang up."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except TimeoutError:
        return 0, b""
    except (http.client.HTTPException, OSError):
        return 400, b""  # the server hung up
    finally:
        connection.close()
