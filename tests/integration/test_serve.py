"""A model behind an address: right answers, sentences for bad requests, and a clean end."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import tracemalloc

import httpx
import numpy as np
import pandas as pd
import pytest

from aberra.errors import DataError
from aberra.explain.subject import Subject
from aberra.service.answers import Answers
from aberra.service.limits import Limits
from aberra.service.running import Place, make_server
from aberra.workflow import fit, open_service

LIMITS = Limits(max_rows=200, max_bytes=50_000)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    table["clinic"] = rng.choice(["north", "south"], 300)
    table.loc[0, "b"] = 30.0
    return table


@pytest.fixture(scope="module")
def fitted(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("serve") / "rows.csv"
    rows.to_csv(path, index=False)
    return fit(path, path.with_name("m.aberra"), robust="none")


@pytest.fixture(scope="module")
def service(fitted):
    """A running service; yields a client that carries the token."""
    place = Place(token="secret")
    server = make_server(Answers(Subject(fitted.model, fitted.recipe), LIMITS), place)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [place.socket]})
    thread.start()
    with httpx.Client(
        base_url=place.address, headers={"Authorization": "Bearer secret"}, timeout=30
    ) as client:
        yield client
    server.should_exit = True
    thread.join(10)
    assert not thread.is_alive()


def as_rows(table):
    return {"rows": table.to_dict("records")}


def test_scores_are_those_of_the_model(service, fitted, rows):
    found = service.post("/score", json=as_rows(rows[:50])).json()
    wanted = fitted.model.anomaly_score(rows[:50])
    assert found["scores"] == wanted.tolist()
    assert found["flags"] == (wanted > fitted.model.threshold_).tolist()
    assert found["percentiles"][0] == 100.0
    in_order = service.post("/score", json={"rows": rows[:50].to_numpy().tolist()}).json()
    assert in_order == found


def test_names_that_the_model_does_not_know_take_no_columns(fitted, rows):
    """A table of all names of all rows would take memory for their product."""
    answers = Answers(Subject(fitted.model, fitted.recipe), Limits())
    sent = rows[:200].to_dict("records")
    strange = [{**row, **{f"{k} {j}": 1 for j in range(500)}} for k, row in enumerate(sent)]
    tracemalloc.start()
    try:
        found = answers.score(strange)
        assert tracemalloc.get_traced_memory()[1] < 100e6  # it was 160 MB, and goes by the square
    finally:
        tracemalloc.stop()
    assert found == answers.score(sent)
    gaps = [{name: row[name] for name in row if name != "b" or k} for k, row in enumerate(sent)]
    assert answers.score(gaps)["scores"][1:] == found["scores"][1:]


def test_a_number_beyond_all_floats_is_the_fault_of_the_request(service, rows):
    sent = json.dumps(as_rows(rows[:1])).replace("30.0", "1" + "0" * 400)
    answer = service.post("/score", content=sent, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert "whole numbers beyond" in answer.json()["error"]


def test_reasons_name_the_column(service, rows):
    found = service.post("/explain", json=as_rows(rows[:2])).json()
    assert found["reasons"][0][0]["column"] == "b"


def test_health_is_open_and_everything_else_needs_the_token(service, rows):
    bare = httpx.Client(base_url=service.base_url)
    assert bare.get("/health").json()["status"] == "ok"
    assert bare.get("/openapi.json").json()["paths"]["/score"]
    for given in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}):
        answer = bare.post("/score", json=as_rows(rows[:1]), headers=given)
        assert answer.status_code == 401
        assert "token" in answer.json()["error"]
    assert bare.get("/metrics").status_code == 401
    bare.close()


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 422, "rows"),
        (b"{", 422, "JSON"),
        (b'{"rows": 3}', 422, "rows"),
        (b'{"rows": []}', 422, "no rows"),
        (b'{"rows": [{"a": 1}]}', 422, "lacks columns"),
        (b'{"rows": [[1, 2]]}', 422, "Row 0 has 2 values, but the model takes 4"),
        (b'{"rows": [{"a": "x", "b": 1, "c": 1, "clinic": "north"}]}', 422, "'a' held numbers"),
        (b'{"rows": [{"a": [1], "b": 1, "c": 1, "clinic": "north"}]}', 422, "'a' holds list"),
        (b'{"rows": [{"a": 1e999, "b": 1, "c": 1, "clinic": "north"}]}', 422, "infinity"),
        (json.dumps({"rows": [[1, 2, 3, "x"]] * 201}).encode(), 413, "at most 200 rows"),
        (b" " * 60_000, 413, "at most 50,000 bytes"),
    ],
)
def test_bad_requests_are_answered_with_a_sentence(service, body, status, words):
    answer = service.post("/score", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, words in answer.json()["error"]) == (status, True), answer.text


def test_a_request_that_does_not_say_how_long_it_is_is_cut_off(service):
    answer = service.post("/score", content=(b" " * 1000 for _ in range(100)))
    assert answer.status_code == 413


def test_half_a_request_does_not_keep_its_connection(service, monkeypatch):
    monkeypatch.setattr("aberra.impatient.HEADER_SECONDS", 0.2)
    place = (service.base_url.host, service.base_url.port)
    head = "POST /score HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n"
    for sent in (head, f"{head}Content-Length: 9\r\n\r\n{{"):
        with socket.create_connection(place, timeout=5) as connection:
            connection.sendall(sent.encode())
            while connection.recv(1 << 12):  # until the other side hangs up
                pass


def test_unknown_addresses_and_methods(service):
    assert "There are /score" in service.get("/nothing").json()["error"]
    assert service.get("/score").status_code == 405


@pytest.mark.slow
def test_hundreds_of_random_requests_do_no_harm(service, rows):
    rng = random.Random(0)
    good = json.dumps(as_rows(rows[:3]))
    for _ in range(300):
        body = bytearray(good.encode())
        for _ in range(rng.randint(1, 6)):
            body[rng.randrange(len(body))] = rng.randrange(256)
        answer = service.post(
            "/score", content=bytes(body), headers={"Content-Type": "application/json"}
        )
        assert answer.status_code in (200, 400, 422), answer.text
        assert answer.status_code == 200 or answer.json()["error"]
    assert service.post("/score", json=json.loads(good)).status_code == 200


def test_figures_count_requests_and_rows(service, rows):
    def figure(name):
        lines = service.get("/metrics").text.splitlines()
        return float(next(line for line in lines if line.startswith(name)).split()[-1])

    before = figure("aberra_rows_total")
    service.post("/score", json=as_rows(rows[:7]))
    assert figure("aberra_rows_total") == before + 7
    assert figure('aberra_requests_total{path="/score",status="200"}') > 0
    service.get("/some/where")
    assert figure('aberra_requests_total{path="other",status="404"}') > 0


def test_too_many_at_a_time_are_sent_away(fitted, rows):
    answers = Answers(Subject(fitted.model, fitted.recipe), Limits(max_waiting=0))
    with answers._turn(), pytest.raises(Exception, match="Too many requests"):
        answers.score(as_rows(rows[:1])["rows"])
    assert answers.score(as_rows(rows[:1])["rows"])["scores"]


def test_models_of_images_are_refused():
    from aberra import OCSVM

    with pytest.raises(DataError, match="takes rows"):
        open_service(OCSVM().fit(np.random.default_rng(0).normal(size=(20, 1, 3, 3))))


@pytest.mark.slow
def test_the_command_starts_and_stops_cleanly(fitted, rows):
    words = [sys.executable, "-m", "aberra", "--json", "serve"]
    process = subprocess.Popen(
        [*words, str(fitted.path), "--port", "0"],
        stdout=subprocess.PIPE,
        env={**os.environ, "ABERRA_TOKEN": "t0k"},
    )
    try:
        address = json.loads(process.stdout.readline())["url"]
        head = {"Authorization": "Bearer t0k"}
        answer = httpx.post(f"{address}/score", json=as_rows(rows[:2]), headers=head, timeout=30)
        assert len(answer.json()["scores"]) == 2
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait(20)
        assert time.monotonic() - started < 10
    finally:
        process.kill()
        process.stdout.close()
        process.wait()
