"""Fixtures of the tests on stores."""

import fsspec
import pytest

from tests import stores


@pytest.fixture(scope="session")
def address():
    """The address of a server of S3, which runs for the session."""
    with stores.s3_server() as address:
        yield address


@pytest.fixture(autouse=True)
def own_copies(tmp_path, monkeypatch):
    monkeypatch.setenv("BERT_TF_STAGE_FOLDER", str(tmp_path / "staged"))
    return tmp_path / "staged"


@pytest.fixture
def s3(address, monkeypatch):
    for name, value in {**stores.ENVIRONMENT, "AWS_ENDPOINT_URL": address}.items():
        monkeypatch.setenv(name, value)
    if not (files := stores.store()).exists("bucket"):
        files.mkdir("bucket")
    for name in files.find("bucket"):
        files.rm_file(name)
    return "s3://bucket"


@pytest.fixture
def memory():
    """The name of an empty folder in memory."""
    yield "memory://bucket"
    files = fsspec.filesystem("memory")
    files.store.clear()
    files.pseudo_dirs[:] = [""]


@pytest.fixture(params=["s3", "memory"])
def place(request):
    """An empty place in each kind of store."""
    return request.getfixturevalue(request.param)
