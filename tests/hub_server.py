"""A small server of the Hugging Face Hub's protocol on the loopback interface."""

import contextlib
import hashlib
import http.server
import json
import pathlib
import threading
import urllib.parse

COMMIT, CONVERTED = "c0ffee" + "0" * 34, "c0ffee" + "1" * 34


class Hub:
    """The `models` that the server holds, {owner/name: {file: bytes}}, with data sets as
    datasets/owner/name; those `converted`, in the branch refs/convert/parquet; what it was `asked`,
    "METHOD path"; and how often answers with weights end early, `cut`."""

    def __init__(self):
        self.models, self.converted, self.asked, self.cut = {}, {}, [], 0


def _handler(hub):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self, status, body=b"", **headers):
            self.send_response(status)
            headers.setdefault("Content_Length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def do_GET(self):
            hub.asked.append(f"{self.command} {self.path.partition('?')[0]}")
            parts = self.path.partition("?")[0].strip("/").split("/")
            api = parts[0] == "api"
            parts = [part for part in parts if part not in ("api", "models", "datasets")]
            name = "/".join(parts[:2])
            if "/datasets/" in self.path:
                name = f"datasets/{name}"
            if name.startswith("closed/"):
                return self._answer(403, b"{}", X_Error_Code="GatedRepo")
            if name not in hub.models:
                return self._answer(404, b"{}", X_Error_Code="RepoNotFound")
            is_converted = "refs%2Fconvert%2Fparquet" in self.path or CONVERTED in self.path
            files = (hub.converted if is_converted else hub.models)[name]
            commit = CONVERTED if is_converted else COMMIT
            if api and parts[2:3] == ["paths-info"]:
                wanted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["paths"]
                return self._json([each for each in _listed(files) if each["path"] in wanted])
            if api and parts[2:3] in ([], ["revision"]):
                if parts[3:] and parts[3] not in ("main", COMMIT) and not is_converted:
                    return self._answer(404, b"{}", X_Error_Code="RevisionNotFound")
                return self._json({"id": name, "modelId": name, "sha": commit, "private": False,
                                   "tags": ["license:apache-2.0"], "downloads": 0,
                                   "cardData": {"license": "apache-2.0"},
                                   "siblings": [{"rfilename": each} for each in files]})
            if api:
                return self._json(_tree(files, urllib.parse.unquote("/".join(parts[4:])),
                                        "recursive=True" in self.path))
            if "/".join(parts[4:]) not in files:
                return self._answer(404, b"{}", X_Error_Code="EntryNotFound")
            return self._file("/".join(parts[4:]), files)

        do_HEAD = do_POST = do_GET

        def _json(self, value):
            self._answer(200, json.dumps(value).encode(), Content_Type="application/json")

        def _file(self, name, files):
            body = files[name]
            headers = {"ETag": f'"{_checksum(name, body)}"', "X_Repo_Commit": COMMIT,
                       "Accept_Ranges": "bytes", "Content_Length": str(len(body))}
            if self.command == "HEAD":
                return self._answer(200, **headers)
            first = int((self.headers.get("Range") or "bytes=0-")[6:].split("-")[0])
            headers["Content_Length"] = str(len(body) - first)
            if first:
                headers["Content_Range"] = f"bytes {first}-{len(body) - 1}/{len(body)}"
            end = len(body)
            if hub.cut and name.endswith(".safetensors"):
                hub.cut, self.close_connection = hub.cut - 1, True
                end = first + 100
            return self._answer(206 if first else 200, body[first:end], **headers)

        def log_message(self, *_):
            pass
    return Handler


def _listed(files):
    return [{"type": "file", "path": name, "size": len(body), "oid": _checksum(name, body)}
            for name, body in files.items()]


def _tree(files, folder, is_recursive):
    folders = {str(above) for name in files for above in pathlib.PurePosixPath(name).parents}
    found = _listed(files) + [{"type": "directory", "path": name, "oid": name, "size": 0}
                              for name in sorted(folders - {"."})]
    return [each for each in found if each["path"].startswith(f"{folder}/" if folder else "")
            and (is_recursive or "/" not in each["path"][len(folder):].strip("/"))]


def _checksum(name, body):
    """As the Hub has it: of large files SHA-256, of others Git's."""
    return hashlib.sha256(body).hexdigest() if name.endswith(".safetensors") else hashlib.sha1(
        b"blob %d\0" % len(body) + body).hexdigest()


@contextlib.contextmanager
def serve():
    """Starts a server in this process; gives its `Hub` and its address."""
    hub = Hub()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
                     ).start()
    try:
        yield hub, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
