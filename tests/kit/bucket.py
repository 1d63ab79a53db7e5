"""A private server that speaks S3, with one bucket; what it was asked stands in `<folder>/s3.log`.

One request at a time: who puts with If-None-Match must be alone with what it looks at, as in S3.
"""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.private_server import HOST, free_port
from tests.kit.replica import wait_until

BUCKET = "lake"
KEYS = {"AWS_ACCESS_KEY_ID": "rplctl", "AWS_SECRET_ACCESS_KEY": "not-in-the-url"}  # of the environment
STORE = """
import sys, threading
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

store, one = DomainDispatcherApplication(create_backend_app), threading.Lock()

def told(environ, start):
    print(environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("HTTP_IF_NONE_MATCH", ""))
    with one:
        return store(environ, start)

run_simple(sys.argv[1], int(sys.argv[2]), told, threaded=True)
"""


@contextmanager
def bucket_server(folder: Path) -> Iterator[str]:
    """Its address."""
    address = f"http://{HOST}:{(port := free_port())}"
    with (folder / "s3.log").open("wb") as log:
        words = [sys.executable, "-u", "-c", STORE, HOST, str(port)]
        server = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        wait_until(lambda: _is_made(address))
        yield address
    finally:
        server.kill()
        server.wait()


def words_of(address: str) -> str:
    """Of a target's URL."""
    return f"AWS_ENDPOINT_URL={address}&AWS_ALLOW_HTTP=true&AWS_REGION=us-east-1"


def _is_made(address: str) -> bool:
    try:
        urllib.request.urlopen(urllib.request.Request(f"{address}/{BUCKET}", method="PUT"), timeout=5).close()
    except OSError:
        return False
    return True
