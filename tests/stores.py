"""A store of S3 on the loopback interface for tests, and looks into stores."""

import fsspec

from tests.faults.s3 import ENVIRONMENT, s3_server

__all__ = ["ENVIRONMENT", "content", "s3_server", "store", "uploads"]


def store(scheme="s3"):
    return fsspec.filesystem(scheme, use_listings_cache=False)


def content(folder):
    files = store(folder.partition("://")[0])
    root = files._strip_protocol(folder)
    return {name.removeprefix(root).strip("/"): files.cat_file(name) for name in files.find(folder)}


def uploads():
    """The uploads to the test's bucket that were begun and not ended."""
    return store().call_s3("list_multipart_uploads", Bucket="bucket").get("Uploads", [])
