"""An editor names a bucket that the master's own keys can read, and lets the master sign requests for it."""
import http.server
import os
import threading
import unittest
from unittest import mock

from attacker import Attacker
from cluster import Cluster

BUILD = os.environ["DET_E2E_BUILD"]


class Recorder(http.server.BaseHTTPRequestHandler):
    """A store that accepts everything and notes what was signed."""
    seen = []

    def answer(self):
        self.seen.append((self.command, self.path, self.headers.get("Authorization", "")))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_PUT = do_DELETE = do_POST = do_HEAD = answer

    def log_message(self, *_):
        pass


class ForeignBuckets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.store = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
        threading.Thread(target=cls.store.serve_forever, daemon=True).start()
        cls.addClassCleanup(cls.store.server_close)
        cls.addClassCleanup(cls.store.shutdown)
        cls.endpoint = f"http://127.0.0.1:{cls.store.server_port}"
        keys = {"AWS_ACCESS_KEY_ID": "AKIDMASTER", "AWS_SECRET_ACCESS_KEY": "of-the-master"}
        with mock.patch.dict(os.environ, keys):
            cls.cluster = Cluster(BUILD, ["--allowed-storage-hosts", "127.0.0.1", *cls.options()])
            cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.editor = Attacker.editor(cls.cluster)

    @classmethod
    def options(cls):
        return ["--allowed-storage-buckets", f"{cls.endpoint}/models/team"]

    def put(self, name, **storage):
        fields = {"type": "s3", "endpoint_url": self.endpoint, **storage}
        Recorder.seen.clear()
        return self.editor.put_experiment(
            name, "checkpoint_storage: {" + ", ".join(f"{key}: {value}" for key, value in fields.items()) + "}")

    def test_a_bucket_that_no_administrator_named_gets_no_request(self):
        for number, storage in enumerate([{"bucket": "payroll"}, {"bucket": "models"},
                                          {"bucket": "models", "prefix": "teams"},
                                          {"bucket": "payroll", "access_key": "mine", "secret_key": "mine"}]):
            status, body = self.put(f"foreign-{number}", **storage)
            self.assertEqual(status, 400, body)
            self.assertIn("E-CFG-SECURITY", body)
            self.assertIn("models/team", body)
            self.assertEqual(Recorder.seen, [])

    def test_a_named_bucket_is_signed_for_at_its_own_endpoint_only(self):
        status, body = self.put("named", bucket="models", prefix="team/vision")
        self.assertEqual(status, 200, body)
        self.assertTrue(Recorder.seen)
        for _, path, signature in Recorder.seen:
            self.assertTrue(path.startswith("/models"), path)
            self.assertIn("AKIDMASTER", signature)
        status, body = self.put("elsewhere", bucket="models", prefix="team",
                                endpoint_url=self.endpoint.replace("127.0.0.1", "localhost"))
        self.assertEqual(status, 400, body)
        self.assertEqual(Recorder.seen, [])
