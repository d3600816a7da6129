"""A store of S3 on the loopback interface for tests, and looks into stores."""

import contextlib
import os
import socket
import subprocess
import sys

import fsspec

# What the client of a store reads; no network but the loopback interface, no wait for a login.
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
               "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
               "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}


@contextlib.contextmanager
def s3_server():
    """Starts moto's S3 server in a process of its own; gives its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1",
                               "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        for line in server.stderr:      # until it says that it runs
            if b"Running on" in line:
                break
        assert server.poll() is None
        # Its pipe must not fill up with the log of requests.
        subprocess.Popen(["cat"], stdin=server.stderr, stdout=subprocess.DEVNULL)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def store(scheme="s3"):
    return fsspec.filesystem(scheme, use_listings_cache=False)


def content(folder):
    """The files of a remote folder: relative name -> bytes."""
    files = store(folder.partition("://")[0])
    root = files._strip_protocol(folder)
    return {name.removeprefix(root).strip("/"): files.cat_file(name) for name in files.find(folder)}


def uploads():
    """The uploads to the test's bucket that were begun and not ended."""
    return store().call_s3("list_multipart_uploads", Bucket="bucket").get("Uploads", [])
