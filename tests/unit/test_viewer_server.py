"""The viewer's server, asked over a real connection, by its own page and by strangers."""

import asyncio
import http.client
import json
import os
import re
import socket
import threading
from contextlib import contextmanager

import httpx
import nibabel
import numpy as np
import pytest
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, MRImageStorage, generate_uid

from aberra import IADC, OCSVM, save
from aberra.errors import DataError
from aberra.explain.doubts import Doubt
from aberra.recipe import Recipe
from aberra.viewer import app as viewer_app
from aberra.viewer.app import Shelf, make_app
from aberra.viewer.catalogue import catalogue
from aberra.viewer.held import Held
from aberra.viewer.marks import NAME
from aberra.viewer.serve import Door, make_server


@contextmanager
def running(found):
    """Run a real server on a real port."""
    door = Door()
    server = make_server(Shelf(found), door)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [door.socket]})
    thread.start()
    try:
        yield door
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def browser(door):
    """Return a client that has opened the printed address, as a browser would."""
    host = f"http://127.0.0.1:{door.port}"
    base = f"{host}{door.base}"
    with httpx.Client(base_url=base, headers={"origin": host}, trust_env=False) as client:
        assert client.get(f"/?token={door.token}").status_code == 200
        yield client


@pytest.fixture
def client(results):
    with running(catalogue(*results)) as door, browser(door) as client:
        yield client


def test_the_list_and_the_files_are_served(client, results):
    scans = client.get("/api/0/scans").json()["scans"]
    assert [s["score"] for s in scans] == [30.0, 7.25, 1.5, None]
    answer = client.get(f"/files/{scans[1]['map']}")
    assert answer.content == (results[0] / "sub" / "three_anomaly.nii.gz").read_bytes()
    assert answer.headers["content-type"] == "application/octet-stream"
    assert client.get("/static/style.css").headers["content-type"].startswith("text/css")
    assert client.get("/api/items").json()["items"] == [{"kind": "scans", "title": "Scans"}]


@pytest.mark.parametrize("pieces", [0, 1])
def test_a_file_is_closed_though_its_request_was_taken_back(results, monkeypatch, pieces):
    """A browser that goes on to the next scan hangs up, before the first byte or after it."""
    opened, sent = [], []
    honest = Held.open
    monkeypatch.setattr(Held, "open", lambda held: opened.append(honest(held)) or opened[-1])
    monkeypatch.setattr(viewer_app, "SENT_AT_ONCE", 16)
    gone = asyncio.Event()

    async def receive():
        if pieces:
            await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message.get("body", b""))
        if len(list(filter(None, sent))) == pieces:
            gone.set()
            await asyncio.sleep(0.1)

    scope = {"type": "http", "asgi": {"spec_version": "2.3"}, "method": "GET", "path": "/files/0"}
    scope |= {"headers": [], "query_string": b""}
    asyncio.run(make_app(Shelf(catalogue(*results)))(scope, receive, send))
    [(file, size)] = opened
    assert len(b"".join(sent)) < size
    assert file.closed


@pytest.mark.slow
def test_findings_are_served_as_far_as_they_can_be_read(results):
    folder = results[0]
    (folder / "sub" / "three_findings.csv").write_text(
        "number,millilitres,x,y,z,peak,mean,p_value\n1,2.5,-3,4,5.5,1,1,0.05\n2,1,nan,1,1,1,1,\n"
        "3,<b>,1,2,3,1,1,\n" + "4,1,1,2,3,1,1,\n" * 70
    )
    (folder / "one_findings.csv").symlink_to("/etc/passwd")
    with running(catalogue(*results)) as door, browser(door) as client:
        scans = client.get("/api/0/scans").json()["scans"]
        k = next(k for k, scan in enumerate(scans) if "three" in scan["name"])
        found = client.get(f"/api/0/findings/{k}").json()["findings"]
        assert found[0] == {"millilitres": 2.5, "x": -3.0, "y": 4.0, "z": 5.5, "p_value": 0.05}
        assert found[1] == {"millilitres": None, "x": 1.0, "y": 2.0, "z": 3.0, "p_value": None}
        assert len(found) == 50  # the one without a place is left out, and so is what is too much
        for other in (-1, 99, *(j for j in range(len(scans)) if j != k)):
            answer = client.get(f"/api/0/findings/{other}")
            assert answer.status_code == 404
            assert "root:" not in answer.text


def test_every_answer_is_locked_down(client):
    for path in ("/", "/api/0/scans", "/files/0", "/static/scans.js", "/files/999", "/api/0/rows"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "http" not in policy
        assert "unsafe" not in policy
    line = client.get("/").request.headers["cookie"]
    assert line.startswith("aberra_")


def test_the_cookie_is_out_of_reach(results):
    with running(catalogue(*results)) as door:
        answer = httpx.get(door.address, trust_env=False)
        line = answer.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=Strict", f"Path={door.base}/"} <= set(re.split("; ", line))
        assert door.token not in answer.text


def test_marks_through_the_server(client, results):
    answer = client.put("/api/0/marks/1", json={"mark": "reject"})
    assert answer.json()["marks"] == {"sub/three.nii.gz": "reject"}
    client.put("/api/0/marks/0", json={"mark": "accept"})
    held = json.loads((results[0] / NAME).read_text())["marks"]["scans"]
    assert {name: entry["mark"] for name, entry in held.items()} == {
        "two.nii.gz": "accept",
        "sub/three.nii.gz": "reject",
    }
    assert client.put("/api/0/marks/0", json={"mark": None}).json()["marks"] == {
        "sub/three.nii.gz": "reject"
    }
    assert client.get("/api/0/marks").json() == {
        "marks": {"sub/three.nii.gz": "reject"},
        "trouble": "",
    }


def test_marks_that_cannot_be_saved_are_explained(client, results):
    (results[0] / NAME).mkdir()
    answer = client.put("/api/0/marks/0", json={"mark": "accept"})
    assert answer.status_code == 422
    assert "Move it away" in answer.json()["error"]
    assert "Move it away" in client.get("/api/0/marks").json()["trouble"]


def test_two_browsers_see_each_others_marks(results):
    with running(catalogue(*results)) as door, browser(door) as one, browser(door) as two:
        one.put("/api/0/marks/0", json={"mark": "accept"})
        marks = two.put("/api/0/marks/1", json={"mark": "reject"}).json()["marks"]
        assert marks == {"two.nii.gz": "accept", "sub/three.nii.gz": "reject"}
        assert one.get("/api/0/marks").json()["marks"] == marks


def ask(door, method, target, headers=(), body=b"", below=lambda door: door.base):
    """Send a request exactly as given; httpx and browsers would tidy it up."""
    sent = {
        "Host": f"127.0.0.1:{door.port}",
        "Cookie": f"aberra_{door.port}={door.token}",
        **dict(headers),
    }
    connection = http.client.HTTPConnection("127.0.0.1", door.port, timeout=10)
    connection.putrequest(
        method, f"{below(door)}{target}", skip_host=True, skip_accept_encoding=True
    )
    for name, value in sent.items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders(body)
    answer = connection.getresponse()
    found = (answer.status, answer.read())
    connection.close()
    return found


@pytest.fixture(scope="module")
def shown(make_results, secret, tmp_path_factory):
    """A folder that must stay as it is, with a link that leads out of it."""
    maps, scans = make_results(tmp_path_factory.mktemp("shown"))
    (maps / "link.nii").symlink_to(secret)
    return maps, scans


@pytest.fixture(scope="module")
def door(shown):
    with running(catalogue(*shown)) as door:
        yield door


BAD_PATHS = {
    "dots": "/files/../../secret.nii",
    "dots in static": "/static/../app.py",
    "encoded dots": "/files/%2e%2e/%2e%2e/secret.nii",
    "encoded slash": "/static/..%2fapp.py",
    "encoded twice": "/static/%252e%252e%252fapp.py",
    "overlong encoding": "/files/%c0%ae%c0%ae/secret.nii",
    "backslash": "/static/..\\app.py",
    "null byte": "/static/style.css%00.html",
    "two slashes": "//etc/passwd",
    "a whole address": "http://evil.example/files/0",
    "a path for a number": "/files/etc",
    "a negative number": "/files/-1",
    "a number too large": "/files/99999999999999999999",
    "another page's list": "/api/0/rows",
    "no such page": "/view/7",
    "a module": "/static/app.py",
}


@pytest.mark.parametrize("name", BAD_PATHS)
def test_bad_paths_lead_nowhere(door, name):
    status, body = ask(door, "GET", BAD_PATHS[name])
    assert 400 <= status < 500
    assert b"SECRET" not in body
    assert b"import" not in body
    assert b"root:" not in body


READS = {
    "no token": {"Cookie": None},
    "a wrong token": {"Cookie": "aberra_0=guess"},
    "another name for this machine": {"Host": "rebound.example:80"},
    "no host": {"Host": None},
    "another port": {"Host": "127.0.0.1:1"},
    "another page": {"Sec-Fetch-Site": "cross-site"},
    "a neighbour's page": {"Sec-Fetch-Site": "same-site"},
}


@pytest.mark.parametrize("name", READS)
def test_strangers_cannot_read(door, name):
    assert ask(door, "GET", "/api/0/scans")[0] == 200
    for target in ("/", "/api/0/scans", "/files/0", "/static/scans.js", "/api/0/marks"):
        status, body = ask(door, "GET", target, READS[name])
        assert status in (400, 403, 421)
        assert b"nii" not in body


def write(door, **headers):
    given = {
        "Origin": f"http://127.0.0.1:{door.port}",
        "Content-Type": "application/json",
        "Content-Length": "16",
    }
    return given | {name.replace("_", "-"): value for name, value in headers.items()}


WRITES = {
    "no token": {"Cookie": None},
    "no origin": {"Origin": None},
    "another origin": {"Origin": "http://evil.example"},
    "a null origin": {"Origin": "null"},
    "another port's origin": {"Origin": "http://127.0.0.1:1"},
    "a form": {"Content_Type": "text/plain"},
    "another host": {"Host": "rebound.example"},
    "no length": {"Content_Length": None, "Transfer_Encoding": "chunked"},
    "too long": {"Content_Length": "5000"},
}


@pytest.mark.parametrize("name", WRITES)
def test_strangers_cannot_write(door, shown, name):
    body = b'{"mark":"accept"}'[:16]
    status, _ = ask(door, "PUT", "/api/0/marks/0", write(door, **WRITES[name]), body)
    assert status in (400, 403, 411, 413, 415, 421)
    assert not (shown[0] / NAME).exists()


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"mark":"maybe"}', b'{"mark":1}', b'{"mark":null,"path":"x"}', b"{}"],
)
def test_bad_marks_are_refused(door, shown, body):
    headers = write(door, Content_Length=str(len(body)))
    assert ask(door, "PUT", "/api/0/marks/0", headers, body)[0] == 422
    assert not (shown[0] / NAME).exists()


def test_the_token_in_the_address_opens_the_first_page_only(door):
    token = f"?token={door.token}"
    stranger = {"Cookie": None}
    assert ask(door, "GET", f"/{token}", stranger)[0] == 200
    assert ask(door, "GET", f"/api/0/scans{token}", stranger)[0] == 403
    assert ask(door, "PUT", f"/{token}", {**write(door), **stranger}, b"{}" * 8)[0] == 403
    assert ask(door, "GET", "/?token=guess", stranger)[0] == 403
    assert ask(door, "GET", "/?token=" + "x" * 3000)[0] == 414
    for method in ("POST", "DELETE", "OPTIONS", "TRACE"):
        assert ask(door, method, "/api/0/marks/0")[0] == 405


@pytest.mark.slow
def test_a_page_of_rows_is_bounded(results):
    (results[0] / "rows.csv").write_text("id,score\na,1\nb,2\n")
    with running(catalogue(results[0] / "rows.csv")) as door, browser(door) as client:
        assert [r["id"] for r in client.get("/api/0/rows").json()["rows"]] == ["b", "a"]
        assert client.get("/api/0/rows?limit=100000").status_code == 422
        assert client.get("/api/0/rows?offset=-1").status_code == 422
        assert "no column" in client.get("/api/0/rows?sort=secret").json()["error"]
        assert client.put("/api/0/marks/1", json={"mark": "accept"}).json()["marks"] == {
            "b": "accept"
        }
        assert client.put("/api/0/marks/2", json={"mark": "accept"}).status_code == 404
        rows = client.get("/api/0/rows?marked=accept").json()["rows"]
        assert [(r["id"], r["mark"]) for r in rows] == [("b", "accept")]


def test_a_report_is_served_as_it_is_but_alone(tmp_path):
    text = "<!doctype html><title>R</title><script>document.title='run'</script>"
    (tmp_path / "report.html").write_text(text)
    with running(catalogue(tmp_path / "report.html")) as door, browser(door) as client:
        answer = client.get("/")
        assert answer.text == text
        policy = answer.headers["content-security-policy"]
        assert "sandbox allow-scripts" in policy
        assert "connect-src" not in policy  # so the default, none, holds
        assert "default-src 'none'" in policy


def write_series(folder, stored):
    """Write a DICOM series with slices 3 mm apart."""
    folder.mkdir()
    uid = generate_uid()
    for k in range(stored.shape[2]):
        meta = FileMetaDataset()
        meta.MediaStorageSOPClassUID = MRImageStorage
        meta.MediaStorageSOPInstanceUID = generate_uid()
        meta.TransferSyntaxUID = ExplicitVRLittleEndian
        data = FileDataset(folder / f"{k}.dcm", {}, file_meta=meta, preamble=b"\0" * 128)
        data.SOPClassUID, data.SOPInstanceUID = MRImageStorage, meta.MediaStorageSOPInstanceUID
        data.SeriesInstanceUID, data.Modality = uid, "MR"
        data.Columns, data.Rows = stored.shape[:2]
        data.PixelSpacing = [2, 2]
        data.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
        data.ImagePositionPatient = [0, 0, 3 * k]
        data.SamplesPerPixel, data.PhotometricInterpretation = 1, "MONOCHROME2"
        data.BitsAllocated, data.BitsStored, data.HighBit, data.PixelRepresentation = 16, 16, 15, 0
        data.PixelData = np.ascontiguousarray(stored[:, :, k].T).tobytes()
        data.save_as(folder / f"{k}.dcm", enforce_file_format=True)


@pytest.mark.slow
def test_a_dicom_series_arrives_as_nifti(tmp_path, secret):
    stored = np.random.default_rng(0).integers(0, 900, (5, 6, 7)).astype(np.uint16)
    write_series(tmp_path / "series", stored)
    with running(catalogue(tmp_path)) as door, browser(door) as client:
        scan = client.get("/api/0/scans").json()["scans"][0]
        image = nibabel.Nifti1Image.from_bytes(client.get(f"/files/{scan['scan']}").content)
        (tmp_path / "series" / "more.dcm").symlink_to(secret)
        refused = client.get(f"/files/{scan['scan']}")
    assert scan["name"] == "series"
    assert np.array_equal(image.get_fdata(), stored)
    assert np.allclose(np.diag(image.affine), [-2, -2, 3, 1])  # to the left, to the back, up
    assert refused.status_code == 422
    assert "leads out of the folder" in refused.json()["error"]


@pytest.mark.slow
def test_a_scan_of_freesurfer_arrives_as_nifti(tmp_path, secret):
    stored = np.random.default_rng(0).random((5, 6, 7), dtype=np.float32)
    nibabel.save(nibabel.MGHImage(stored, np.diag([2.0, 2, 3, 1])), tmp_path / "brain.mgz")
    os.mkfifo(tmp_path / "pipe.mgz")
    with running(catalogue(tmp_path)) as door, browser(door) as client:
        (scan,) = client.get("/api/0/scans").json()["scans"]  # a pipe is no scan
        image = nibabel.Nifti1Image.from_bytes(client.get(f"/files/{scan['scan']}").content)
        (tmp_path / "brain.mgz").unlink()
        os.mkfifo(tmp_path / "brain.mgz")
        refused = client.get(f"/files/{scan['scan']}")
    np.testing.assert_allclose(image.get_fdata(), stored, rtol=1e-6)
    assert refused.status_code == 422
    assert "not a regular file" in refused.json()["error"]


@pytest.mark.slow
def test_a_model_shows_how_trust_moved(tmp_path, dirty_blob):
    X, _ = dirty_blob
    model = IADC(OCSVM(), n_members=2, max_rounds=20, random_state=0).fit(X)
    doubts = [Doubt(5, "Mrs Five", 0.1, 3.0, [("age", 0.6)])]
    recipe = Recipe("table", "a.csv", 220, doubts=doubts, choices=[("rounds", "found by fit")])
    save(model, tmp_path / "with.aberra", recipe.notes())
    save(model, tmp_path / "without.aberra")
    save(OCSVM().fit(X), tmp_path / "xplain.aberra")
    (tmp_path / "ybroken.aberra").write_bytes(b"no model")
    with running(catalogue(tmp_path)) as door, browser(door) as client:
        noted, bare, plain = (client.get(f"/api/{k}/model").json() for k in range(3))
        broken = client.get("/api/3/model")
    trust = [model.history_.weights(t) for t in range(len(model.history_))]
    assert noted["rounds"]["curves"] == [[round(float(w[5]), 4) for w in trust]]
    assert noted["rounds"]["kept"] == model.history_.kept
    assert noted["doubts"][0]["name"] == "Mrs Five"
    assert noted["facts"] == [
        ["Trained on", "a.csv, 220 rows", ""],
        ["Rounds", "found by fit", ""],
    ]
    named = {name: value for name, value, _ in bare["facts"]}
    assert f"round {model.history_.kept + 1} was kept" in named["Rounds"]
    assert named["Estimated contamination"] == f"{100 * model.contamination_:.1f} %"
    assert bare["sentences"][:2] == noted["sentences"]
    assert bare["sentences"][2].startswith("The threshold ")
    assert sum(bare["scores"]["shares"]) == pytest.approx(1, abs=1e-3)
    above = [s for s, odd in zip(*map(bare["scores"].get, ("shares", "above")), strict=True) if odd]
    assert sum(above) == pytest.approx(model.contamination_, abs=1e-3)
    assert {"Trust", "Round", "Crossing", "Member"} <= {term for term, _ in bare["glossary"]}
    medians = [q[2] for q in bare["rounds"]["quantiles"]]
    assert medians == pytest.approx([np.median(w) for w in trust], abs=1e-4)
    assert "numbered from 0" in bare["about_doubts"]
    assert "noted when the model was trained" in noted["about_doubts"]
    assert bare["doubts"][0]["name"] == f"row {int(np.argmin(model.weights_))}"
    assert (plain["rounds"], plain["doubts"], plain["title"]) == (None, [], "OCSVM")
    assert broken.status_code == 422
    assert "ybroken.aberra" in broken.json()["error"]


def test_everything_lies_below_a_secret_path(door):
    """Other programs on this machine get the cookie only if they know the path."""
    assert re.fullmatch(r"/[\w-]{16}", door.base)
    for target in ("/", "/api/0/scans", "/files/0", f"/?token={door.token}", "/guess/api/0/scans"):
        assert ask(door, "GET", target, below=lambda _: "")[0] == 403
    page = ask(door, "GET", "/")[1].decode()
    assert f'src="{door.base}/static/scans.js"' in page
    assert '"/static/' not in page


@pytest.mark.slow
def test_half_a_request_does_not_keep_its_connection(shown, monkeypatch):
    monkeypatch.setattr("aberra.impatient.HEADER_SECONDS", 0.3)
    with running(catalogue(*shown)) as door:
        head = f"PUT {door.base}/api/0/marks/0 HTTP/1.1\r\nHost: 127.0.0.1:{door.port}\r\n"
        whole = "".join(f"{n}: {v}\r\n" for n, v in write(door, Content_Length="16").items())
        token = f"Cookie: aberra_{door.port}={door.token}\r\n\r\n"
        for sent in ("", head, f"{head}{whole}{token}", f"{head}{whole}{token}{{"):
            with socket.create_connection(("127.0.0.1", door.port), timeout=5) as connection:
                connection.sendall(sent.encode())
                while connection.recv(1 << 12):  # until the other side hangs up
                    pass
        assert ask(door, "GET", "/api/0/scans")[0] == 200


def test_a_negative_place_marks_nothing(door, shown):
    headers, body = write(door, Content_Length="17"), b'{"mark":"accept"}'
    assert ask(door, "PUT", "/api/0/marks/-1", headers, body)[0] == 404
    assert not (shown[0] / NAME).exists()


def test_a_deeply_nested_file_of_marks_is_told(client, results):
    (results[0] / NAME).write_text("[" * 100_000)
    assert "cannot be read" in client.get("/api/0/marks").json()["trouble"]
    assert client.put("/api/0/marks/0", json={"mark": "accept"}).status_code == 422


def test_a_folder_swapped_for_a_link_while_opening_is_noticed(tmp_path, monkeypatch):
    inside, outside = tmp_path / "root" / "sub", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir(parents=True)
    (inside / "a.nii").write_bytes(b"mine")
    (outside / "a.nii").write_bytes(b"SECRET")
    held = Held(inside / "a.nii", tmp_path / "root")
    opened = os.open

    def swapped(path, *rest):
        inside.rename(tmp_path / "root" / "away")
        inside.symlink_to(outside)
        handle = opened(path, *rest)
        inside.unlink()
        (tmp_path / "root" / "away").rename(inside)
        return handle

    monkeypatch.setattr(os, "open", swapped)
    with pytest.raises(DataError, match="leads out of the folder"):
        held.open()
    monkeypatch.undo()
    file, size = held.open()
    with file:
        assert (file.read(), size) == (b"mine", 4)
