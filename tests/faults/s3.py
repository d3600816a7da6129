"""A store of S3 on the loopback interface, and a proxy before it that fails as stores do."""

import contextlib
import http.client
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Variables for the client of a store; no network but the loopback interface, no wait for a login.
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
               "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
               "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
_DENIED = (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Access Denied</Message>"
           b"</Error>")
_SLOW_SECONDS = 1.0
_WRITES = ("PUT", "POST")
_OWN_HEADERS = ("transfer-encoding", "connection", "content-length", "server", "date")


@contextlib.contextmanager
def s3_server() -> Iterator[str]:
    """Starts moto's S3 server in a process of its own; gives its address."""
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        assert server.stderr
        address = next(line.split()[-1].decode() for line in server.stderr if b"Running on" in line)
        # Its pipe must not fill up with the log of requests.
        subprocess.Popen(["cat"], stdin=server.stderr, stdout=subprocess.DEVNULL)
        yield address
    finally:
        server.kill()
        server.wait()


class Dropped(Exception):
    """The connection is to be closed without an answer."""


def refuse(number: int, body: Callable[[], bytes]) -> bytes | None:
    """Refuses a write."""
    body()
    return _DENIED


def delay(number: int, body: Callable[[], bytes]) -> bytes | None:
    """Lets a write wait."""
    time.sleep(_SLOW_SECONDS)
    return None


def cut(number: int, body: Callable[[], bytes]) -> bytes | None:
    """Closes the connection in the middle of every third write."""
    if number % 3 == 2:
        raise Dropped
    return None


def vanish(number: int, body: Callable[[], bytes]) -> bytes | None:
    """Closes the connection, as if the store were gone."""
    raise Dropped


class _Proxy(ThreadingHTTPServer):
    """A server that hands requests on, and misbehaves at writes after some; see `proxy`."""

    daemon_threads = True

    def __init__(self, address: str, behave: Callable, after: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target, self.behave, self.after = urllib.parse.urlparse(address), behave, after
        self._lock, self._writes = threading.Lock(), 0

    def count_write(self) -> int:
        """The number of a write, counted from the first that does not pass."""
        with self._lock:
            self._writes += 1
            return self._writes - self.after

    def handle_error(self, request, client_address):
        """Says nothing: clients are killed."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Proxy

    def log_message(self, *_):
        """Says nothing."""

    def _answer(self, status, headers, body):
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in _OWN_HEADERS:
                self.send_header(name, value)
        sizes = [value for name, value in headers if name.lower() == "content-length"]
        self.send_header("Content-Length", sizes[0] if self.command == "HEAD" and sizes else
                         str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _pass_on(self):
        length, refusal = int(self.headers.get("Content-Length", 0)), None
        if self.command in _WRITES and (number := self.server.count_write()) > 0:
            try:
                refusal = self.server.behave(number, lambda: self.rfile.read(length))
            except Dropped:
                self.rfile.read(length // 2)
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
        if refusal is not None:
            self._answer(403, [("Content-Type", "application/xml")], refusal)
            return
        target = self.server.target
        link = http.client.HTTPConnection(target.hostname or "", target.port, timeout=60)
        link.request(self.command, self.path, self.rfile.read(length) if length else None,
                     dict(self.headers))
        answer = link.getresponse()
        self._answer(answer.status, answer.getheaders(), answer.read())
        link.close()

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass_on


@contextlib.contextmanager
def proxy(address: str, behave: Callable, after: int) -> Iterator[str]:
    """Starts a server that hands requests on to a store; gives its address. From the write `after`
    on, `behave`, one of the functions above, gets a write's number and a function that reads its
    body; it returns a response that refuses the write, or None to hand it on."""
    server = _Proxy(address, behave, after)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
