"""Files come whole and checked; against a server on this machine."""

import hashlib
import ssl
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from infomax.datasets.fetch import PublicFile, data_folders, data_path, download, obtain
from infomax.errors import InputError

CONTENT = bytes(range(256)) * 1000


class Server(ThreadingHTTPServer):
    """Serves `CONTENT` at every address; counts requests, and may hang up early."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = 0
        self.hang_up_after: int | None = None


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked += 1
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT[: self.server.hang_up_after])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def file(server: Server) -> PublicFile:
    url = f"http://127.0.0.1:{server.server_port}/file"
    return PublicFile("kind/file", url, len(CONTENT), hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "new" / "file"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("INFOMAX_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "infomax"


def test_a_fresh_download(file: PublicFile, target: Path) -> None:
    seen: list[tuple[int, int]] = []
    download(file, target, lambda done, note, total: seen.append((done, total)))
    assert target.read_bytes() == CONTENT
    assert list(target.parent.iterdir()) == [target]
    assert seen == sorted(seen)
    assert len(seen) > 1
    assert seen[-1] == (len(CONTENT), len(CONTENT))


def test_a_connection_cut_in_the_middle_leaves_nothing(
    server: Server, file: PublicFile, target: Path
) -> None:
    server.hang_up_after = 150_000
    with pytest.raises(InputError, match="150,000") as caught:
        download(file, target)
    assert file.url in caught.value.where
    assert not target.exists()


@pytest.mark.parametrize("wrong", [{"sha256": "0" * 64}, {"size": len(CONTENT) - 1}])
def test_other_bytes_are_refused(file: PublicFile, target: Path, wrong: dict) -> None:
    with pytest.raises(InputError, match="SHA-256"):
        download(file._replace(**wrong), target)
    assert not target.exists()


def test_no_server(server: Server, file: PublicFile, target: Path) -> None:
    server.shutdown()
    server.server_close()
    with pytest.raises(InputError, match="INFOMAX_DATA"):
        download(file, target)


def test_certificates_are_verified(
    file: PublicFile, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts: list[ssl.SSLContext] = []

    def refuse(request: object, timeout: float, context: ssl.SSLContext) -> None:
        contexts.append(context)
        raise OSError("enough seen")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    with pytest.raises(InputError, match="enough seen"):
        download(file, target)
    assert contexts[0].verify_mode == ssl.CERT_REQUIRED
    assert contexts[0].check_hostname


def test_obtain_downloads_once_into_the_cache(
    server: Server, file: PublicFile, cache: Path
) -> None:
    files = [file, file._replace(path="kind/other")]
    seen: list[tuple[int, int]] = []
    for _ in range(2):
        paths = obtain(files, lambda done, note, total: seen.append((done, total)))
        assert paths == [cache / "kind/file", cache / "kind/other"]
    assert server.asked == 2
    assert seen[-1] == (2 * len(CONTENT), 2 * len(CONTENT))
    assert max(done for done, _ in seen) == 2 * len(CONTENT)


@pytest.mark.parametrize("place", ["kind/file", "file"])
def test_infomax_data_comes_first_and_is_checked(
    server: Server, file: PublicFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("INFOMAX_DATA", str(tmp_path / "given"))
    path = tmp_path / "given" / place
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    assert obtain([file]) == [path]
    path.write_bytes(CONTENT[:-1] + b"!")
    with pytest.raises(InputError, match="SHA-256") as caught:
        obtain([file])
    assert caught.value.where == str(path)
    assert server.asked == 0


def test_where_data_lies(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert data_path() == cache
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_path() == tmp_path / ".cache" / "infomax"
    monkeypatch.setenv("INFOMAX_DATA", "given")
    assert data_folders() == [Path("given"), tmp_path / ".cache" / "infomax"]
    assert data_path() == Path("given")
