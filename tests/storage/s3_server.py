#!/usr/bin/env python3
"""An S3-compatible store for tests.

botocore's own code checks every signature. The encoding of every name and the digest of every body are
checked too. Objects are files, so a test can inspect and damage them. POST /_faults replaces the faults to
inject, a list of {"method", "match", "kind", "after", "count", "seconds"}.

As a program: s3_server.py DIRECTORY prints "port N" and serves until its input ends."""
import datetime
import hashlib
import http.server
import json
import pathlib
import re
import sys
import threading
import urllib.parse
import uuid
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import botocore.auth
import botocore.awsrequest
import botocore.credentials

ACCESS_KEY, SECRET_KEY, REGION = "AKIDTEST", "test/secret+key", "us-east-1"
PAGE = 3  # keys per page; small, so that every test reads several pages
REFUSALS = {  # by the kind of an injected fault
    "500": (500, "InternalError"),
    "slow_down": (503, "SlowDown", "Please reduce your request rate."),
    "400": (400, "InvalidArgument", "by order"),
    "403": (403, "AccessDenied", "by order"),
    "404": (404, "NoSuchKey", "by order"),
    "501": (501, "NotImplemented", "by order"),
    "507": (507, "QuotaExceeded", "by order"),
}


def modified(status):
    return datetime.datetime.fromtimestamp(status.st_mtime, datetime.timezone.utc).isoformat(timespec="milliseconds")[:-6] + "Z"


def quoted(text, safe=""):
    return urllib.parse.quote(text, safe=safe + "-_.~")


class Refused(Exception):
    def __init__(self, status, code, message=""):
        super().__init__(code)
        self.status, self.code, self.message = status, code, message


class Store:
    """`with Store(directory) as store:` serves at store.url. Each bucket is a folder of the directory."""

    def __init__(self, directory, token=""):
        self.directory, self.token = pathlib.Path(directory), token
        self.faults, self.log, self.uploads = [], [], {}
        self.lock = threading.Lock()
        store = self

        class Handler(Requests):
            pass
        Handler.store = store
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def make_bucket(self, name):
        (self.directory / name).mkdir(parents=True, exist_ok=True)

    def path(self, bucket, key):
        return self.directory / bucket / quoted(key)

    def keys(self, bucket):
        """All keys of a bucket in S3's order, by their bytes."""
        return sorted((urllib.parse.unquote(path.name) for path in (self.directory / bucket).iterdir()),
                      key=lambda key: key.encode())

    def fault_for(self, method, target):
        with self.lock:
            for fault in self.faults:
                if fault.get("method", method) != method or not re.search(fault.get("match", ""), target):
                    continue
                if fault.get("after", 0) > 0:
                    fault["after"] -= 1
                    continue
                if fault.get("count", 1) > 0:
                    fault["count"] = fault.get("count", 1) - 1
                    return fault
        return None


class Requests(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store = None

    # ---- checks of every request ----
    def serve(self):
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        url = urllib.parse.urlsplit(self.path)
        if url.path.startswith("/_"):
            return self.control(url.path, body)
        with self.store.lock:
            self.store.log.append(f"{self.command} {self.path}")
        fault = self.store.fault_for(self.command, self.path)
        try:
            self.check_names(url)
            self.check_signature(url, body)
            if fault and self.break_by(fault):
                return None
            query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
            bucket, _, key = urllib.parse.unquote(url.path[1:]).partition("/")
            if not bucket or not (self.store.directory / bucket).is_dir():
                raise Refused(404, "NoSuchBucket", "The specified bucket does not exist")
            self.act(bucket, key, query, body, fault)
        except Refused as refused:
            self.answer(refused.status, f"<Error><Code>{refused.code}</Code><Message>{escape(refused.message)}</Message></Error>")

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = serve

    def check_names(self, url):
        if quoted(urllib.parse.unquote(url.path), "/") != url.path:
            raise Refused(400, "InvalidURI", "the path is not encoded as it is signed: " + url.path)
        pairs = [pair.partition("=") for pair in url.query.split("&") if pair]
        if any(mark != "=" or quoted(urllib.parse.unquote(value)) != value for _, mark, value in pairs):
            raise Refused(400, "InvalidURI", "the query is not encoded as it is signed: " + url.query)

    def check_signature(self, url, body):
        given = self.headers.get("Authorization", "")
        parts = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request,\s*"
                             r"SignedHeaders=([^,]+),\s*Signature=([0-9a-f]{64})", given)
        if not parts:
            raise Refused(403, "AccessDenied", "no signature")
        key, day, region, names, signature = parts.groups()
        if key != ACCESS_KEY:
            raise Refused(403, "InvalidAccessKeyId", "no such key")
        if region != REGION:
            raise Refused(400, "AuthorizationHeaderMalformed", f"the region is wrong; expecting '{REGION}'")
        if hashlib.sha256(body).hexdigest() != self.headers.get("x-amz-content-sha256"):
            raise Refused(400, "XAmzContentSHA256Mismatch")
        if self.headers.get("x-amz-security-token", "") != self.store.token:
            raise Refused(403, "InvalidToken")
        names = names.split(";")
        if not {"host", "x-amz-date", "x-amz-content-sha256"} <= set(names):
            raise Refused(403, "AccessDenied", "host, date and digest must be signed")
        request = botocore.awsrequest.AWSRequest(self.command, "http://" + self.headers["Host"] + self.path,
                                                 headers={name: self.headers.get(name, "") for name in names}, data=body)
        request.context["timestamp"] = self.headers["x-amz-date"]
        # botocore's code adds the session token to the signed headers.
        auth = botocore.auth.S3SigV4Auth(botocore.credentials.Credentials(ACCESS_KEY, SECRET_KEY), "s3", REGION)
        wanted = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
        if wanted != signature or not request.context["timestamp"].startswith(day):
            raise Refused(403, "SignatureDoesNotMatch", "the signature is another one")

    def break_by(self, fault):
        kind = fault["kind"]
        if kind in REFUSALS:
            raise Refused(*REFUSALS[kind])
        if kind == "region":
            self.answer(301, "<Error><Code>PermanentRedirect</Code></Error>", {"x-amz-bucket-region": "eu-west-9"})
            return True
        if kind == "cut":
            self.close_connection = True
            self.connection.shutdown(2)
            return True
        if kind == "slow":
            threading.Event().wait(fault.get("seconds", 0.3))
        if kind == "nonsense":
            self.answer(200, "<html>a login page</html>")
            return True
        return False  # "truncate", "lost" and "late" take effect in the answer

    def answer(self, status, text="", headers=None, body=None):
        content = text.encode() if body is None else body
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if "Content-Length" not in (headers or {}):
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def control(self, path, body):
        with self.store.lock:
            if path == "/_faults":
                self.store.faults = json.loads(body)
            answer = json.dumps({"log": self.store.log, "uploads": len(self.store.uploads)})
            if path == "/_forget":
                self.store.log = []
        self.answer(200, answer)

    # ---- S3's operations ----
    def act(self, bucket, key, query, body, fault):
        command = self.command
        if key and "uploadId" in query:
            return self.multipart(bucket, key, query, body, fault)
        if command == "POST" and "uploads" in query:
            with self.store.lock:
                identity = uuid.uuid4().hex
                self.store.uploads[identity] = (bucket, key, {})
            return self.answer(200, f"<InitiateMultipartUploadResult><UploadId>{identity}</UploadId>"
                                    "</InitiateMultipartUploadResult>")
        if command == "POST" and "delete" in query:
            for found in ElementTree.fromstring(body).iter("Key"):
                self.store.path(bucket, found.text).unlink(missing_ok=True)
            return self.answer(200, '<DeleteResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"></DeleteResult>')
        if command == "GET" and not key:
            return self.uploads(bucket, query) if "uploads" in query else self.list(bucket, query)
        path = self.store.path(bucket, key)
        if command == "PUT":
            path.write_bytes(body)
            if fault and fault["kind"] == "lost":
                self.close_connection = True
                return self.connection.shutdown(2)
            return self.answer(200, "", {"ETag": '"' + hashlib.md5(body).hexdigest() + '"'})
        if command == "DELETE":
            path.unlink(missing_ok=True)
            return self.answer(204)
        return self.get(path, fault)

    def get(self, path, fault):
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise Refused(404, "NoSuchKey", "The specified key does not exist.") from None
        if self.command == "HEAD":
            return self.answer(200, "", {"Content-Length": str(len(content))})
        status, headers, whole = 200, {}, len(content)
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if span:
            first, last = int(span[1]), int(span[2])
            if first >= whole:
                raise Refused(416, "InvalidRange")
            content = content[first:last + 1]
            status, headers = 206, {"Content-Range": f"bytes {first}-{first + len(content) - 1}/{whole}"}
        if fault and fault["kind"] == "truncate":
            headers["Content-Length"] = str(len(content))
            self.answer(status, "", headers, content[:len(content) // 2])
            self.close_connection = True
            return None
        return self.answer(status, "", headers, content)

    def list(self, bucket, query):
        if query.get("list-type") != "2":
            raise Refused(400, "InvalidArgument", "ListObjectsV2 only")
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        items = []  # ("key", status of its file) or ("folder/", None)
        for key in self.store.keys(bucket):
            if not key.startswith(prefix):
                continue
            cut = key.find(delimiter, len(prefix)) if delimiter else -1
            item = (key[:cut + 1], None) if cut >= 0 else (key, self.store.path(bucket, key).stat())
            if item not in items:
                items.append(item)
        start = int(query["continuation-token"].split("+/=")[1]) if "continuation-token" in query else 0
        page = items[start:start + min(PAGE, int(query.get("max-keys", 1000)))]
        more = start + len(page) < len(items)
        text = "".join(f"<Contents><Key>{escape(key)}</Key><LastModified>{modified(file)}</LastModified>"
                       f"<Size>{file.st_size}</Size></Contents>" if file else
                       f"<CommonPrefixes><Prefix>{escape(key)}</Prefix></CommonPrefixes>" for key, file in page)
        text += f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>"
        if more:
            text += f"<NextContinuationToken>a +/={start + len(page)}</NextContinuationToken>"
        return self.answer(200, '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/'
                                f'2006-03-01/"><Name>{bucket}</Name>{text}</ListBucketResult>')

    def uploads(self, bucket, query):
        with self.store.lock:
            mine = sorted((key, identity) for identity, (place, key, _) in self.store.uploads.items()
                          if place == bucket and key.startswith(query.get("prefix", "")))
        text = "".join(f"<Upload><Key>{escape(key)}</Key><UploadId>{identity}</UploadId></Upload>" for key, identity in mine)
        return self.answer(200, "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>" + text +
                                "</ListMultipartUploadsResult>")

    def multipart(self, bucket, key, query, body, fault):
        with self.store.lock:
            upload = self.store.uploads.get(query["uploadId"])
        if upload is None or upload[:2] != (bucket, key):
            raise Refused(404, "NoSuchUpload")
        if self.command == "PUT":
            upload[2][int(query["partNumber"])] = body
            return self.answer(200, "", {"ETag": '"' + hashlib.md5(body).hexdigest() + '"'})
        if self.command == "DELETE":
            with self.store.lock:
                del self.store.uploads[query["uploadId"]]
            return self.answer(204)
        if fault and fault["kind"] == "late":
            return self.answer(200, '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>InternalError</Code></Error>')
        content = b""
        for number, part in enumerate(ElementTree.fromstring(body).iter("Part"), 1):
            piece = upload[2][int(part.find("PartNumber").text)]
            if part.find("ETag").text != '"' + hashlib.md5(piece).hexdigest() + '"' or int(part.find("PartNumber").text) != number:
                raise Refused(400, "InvalidPart")
            content += piece
        self.store.path(bucket, key).write_bytes(content)
        with self.store.lock:
            del self.store.uploads[query["uploadId"]]
        if fault and fault["kind"] == "lost":
            self.close_connection = True
            return self.connection.shutdown(2)
        return self.answer(200, "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")

    def log_message(self, *_):
        pass


def main():
    with Store(sys.argv[1], *sys.argv[2:]) as store:
        store.make_bucket("checkpoints")
        print("port", store.port, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
