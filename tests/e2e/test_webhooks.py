"""Webhooks: states, log lines, metrics and alerts reach a real HTTP endpoint, signed, once, and despite failures."""
import contextlib
import hashlib
import hmac
import http.server
import json
import os
import socket
import threading
import unittest

from cluster import Cluster, wait_until

BUILD = os.environ["DET_E2E_BUILD"]
KEY = "signing-key"


class Endpoint:
    """An HTTP server that keeps what it receives. `replies`: status codes of the first requests; then 200."""

    def __init__(self, replies=()):
        self.requests, self.replies = [], list(replies)
        endpoint = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                status = endpoint.replies.pop(0) if endpoint.replies else 200
                endpoint.requests.append((self.path, dict(self.headers), body, status))
                self.send_response(status)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def taken(self):
        return [json.loads(body) for _, _, body, status in self.requests if status == 200]


class Webhooks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD, ["--webhooks-allowed-hosts", "127.0.0.1", "--webhooks-signing-key", KEY])
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_agent(slots=1)
        cls.context = cls.cluster.dir / "context"
        cls.context.mkdir()

    def endpoint(self, **options):
        return self.enterContext(Endpoint(**options))

    def create(self, *options):
        id = self.cluster.det("webhook", "create", *options).split()[-1]
        self.addCleanup(self.cluster.run_det, "webhook", "delete", id)
        return id

    def run_experiment(self, script, state, integrations=None):
        config = "\n".join([
            "name: hooked", "entrypoint: " + json.dumps(["sh", "-c", script]), "max_restarts: 0",
            "searcher: {name: single, metric: loss, max_length: {batches: 1}}",
            "integrations: " + json.dumps(integrations), ""])
        experiment = self.cluster.create(self.context, config)
        self.cluster.wait_state(experiment, state)
        return int(experiment)

    def test_a_completed_experiment_is_delivered_once_with_a_valid_signature(self):
        endpoint = self.endpoint()
        self.create(endpoint.url + "/path", "--state", "completed")
        id = self.run_experiment("exit 0", "COMPLETED")
        wait_until("a delivery", lambda: endpoint.requests)
        path, headers, body, _ = endpoint.requests[0]
        self.assertEqual(path, "/path")
        headers = {name.lower(): value for name, value in headers.items()}
        text = headers["x-determined-ai-signature-timestamp"].encode() + b"," + body
        self.assertEqual(headers["x-determined-ai-signature"], hmac.new(KEY.encode(), text, hashlib.sha256).hexdigest())
        event = json.loads(body)
        self.assertEqual(event["event_type"], "EXPERIMENT_STATE_CHANGE")
        self.assertEqual((event["event_data"]["experiment"]["id"], event["event_data"]["experiment"]["state"]), (id, "COMPLETED"))
        self.run_experiment("exit 1", "ERROR")
        self.assertEqual(len(endpoint.requests), 1)
        self.assertIn("delivered", self.cluster.det("webhook", "list"))

    def test_a_matching_log_line_is_delivered_once_per_task(self):
        endpoint = self.endpoint()
        self.create(endpoint.url, "--log", "out of [a-z]+", "--slack")
        id = self.run_experiment("echo out of memory; echo out of disk; exit 1", "ERROR")
        wait_until("a delivery", lambda: endpoint.requests)
        (message,) = endpoint.taken()
        text = message["blocks"][0]["text"]["text"]
        self.assertIn(f"Experiment ID `{id}`", text)
        self.assertIn("```out of memory```", text)

    def test_a_metric_beyond_its_threshold_is_delivered_once_per_trial(self):
        endpoint = self.endpoint()
        refused = self.cluster.run_det("webhook", "create", endpoint.url, "--metric", "loss over 3")
        self.assertIn("expected METRIC > NUMBER or METRIC < NUMBER, as in 'loss > 2.5', got: loss over 3", refused.stderr)
        self.create(endpoint.url, "--metric", "loss > 2.5", "--metric", "val_loss < 0.5")
        self.assertIn("metric: loss > 2.5, metric: val_loss < 0.5", self.cluster.det("webhook", "list"))

        def report(group, steps, name, value):
            metrics = {"trialRunId": 1, "stepsCompleted": steps, "metrics": {"avgMetrics": {name: value}}}
            return ("curl -sS --fail $DET_MASTER/api/v1/trials/$DET_TRIAL_ID/metrics "
                    "-H \"Grpc-Metadata-x-allocation-token: Bearer $DET_SESSION_TOKEN\" -d "
                    f"'{json.dumps({'group': group, 'metrics': metrics})}'")

        self.run_experiment(" && ".join([report("training", 1, "loss", 2.5), report("training", 2, "loss", 3),
                                         report("training", 3, "loss", 4), report("validation", 3, "val_loss", 0.25)]),
                            "COMPLETED")
        wait_until("two deliveries", lambda: len(endpoint.taken()) == 2)
        first, second = endpoint.taken()
        self.assertEqual((first["event_type"], first["condition"]),
                         ("METRIC_THRESHOLD_EXCEEDED", {"metric": "loss", "above": 2.5}))
        self.assertEqual(first["event_data"]["metric"],
                         {"name": "loss", "group": "training", "value": 3, "total_batches": 2})
        self.assertEqual(second["condition"], {"metric": "val_loss", "below": 0.5})

    def test_an_event_survives_failures_of_the_endpoint_and_a_killed_master(self):
        endpoint = self.endpoint(replies=[503, 429])
        self.create(endpoint.url, "--state", "ERROR")
        self.run_experiment("exit 3", "ERROR")
        wait_until("an attempt", lambda: endpoint.requests)
        self.cluster.kill_master()
        self.cluster.start_master()
        wait_until("the delivery", endpoint.taken)
        first, *_, last = [json.loads(body)["event_id"] for _, _, body, _ in endpoint.requests]
        self.assertEqual(first, last)

    def test_an_event_that_the_endpoint_refuses_is_not_repeated(self):
        endpoint = self.endpoint(replies=[410])
        id = self.create(endpoint.url, "--state", "ERROR")
        self.run_experiment("exit 3", "ERROR")
        wait_until("the refusal", lambda: "HTTP 410" in self.cluster.det("webhook", "list"))
        self.cluster.det("webhook", "test", id)
        self.assertEqual([status for *_, status in endpoint.requests], [410, 200])

    def test_endpoints_that_do_not_reply_delay_no_webhook_of_another_workspace(self):
        silent = self.enterContext(socket.create_server(("127.0.0.1", 0)))
        for _ in range(4):
            self.create(f"http://127.0.0.1:{silent.getsockname()[1]}/", "--state", "COMPLETED", "-w", "Uncategorized")
        endpoint = self.endpoint()
        self.create(endpoint.url, "--state", "COMPLETED")
        self.run_experiment("exit 0", "COMPLETED")
        # A request without a reply takes 10 s, and the silent endpoints come first.
        wait_until("a delivery", lambda: endpoint.requests, timeout=9)

    def test_an_alert_reaches_the_webhook_that_the_experiment_names(self):
        endpoint = self.endpoint()
        refused = self.cluster.run_det("webhook", "create", endpoint.url, "--alert")
        self.assertIn("needs the mode WEBHOOK_MODE_SPECIFIC", refused.stderr)
        self.create(endpoint.url, "--alert", "--specific", "--name", "pager")
        alert = ("curl -sS --fail -X POST $DET_MASTER/api/v1/webhooks/custom "
                 "-H \"Grpc-Metadata-x-allocation-token: Bearer $DET_SESSION_TOKEN\" -d "
                 "\"{\\\"experimentId\\\":$DET_EXPERIMENT_ID,\\\"trialId\\\":$DET_TRIAL_ID,"
                 "\\\"data\\\":{\\\"title\\\":\\\"look\\\",\\\"level\\\":\\\"LOG_LEVEL_DEBUG\\\"}}\"")
        self.run_experiment(alert, "COMPLETED")
        id = self.run_experiment(alert, "COMPLETED", {"webhooks": {"webhook_name": ["pager"]}})
        wait_until("the alert", endpoint.taken)
        (event,) = endpoint.taken()
        self.assertEqual(event["event_data"]["custom_data"], {"level": "DEBUG", "title": "look", "description": ""})
        self.assertEqual(event["event_data"]["experiment"]["id"], id)

    def test_a_webhook_does_not_reach_the_masters_own_machine_or_network(self):
        with contextlib.ExitStack() as stack:
            plain = stack.enter_context(Cluster(BUILD))
            for url in ("http://127.0.0.1/", "http://169.254.169.254/latest", "http://10.1.2.3/", "http://[::1]/"):
                done = plain.run_det("webhook", "create", url, "--state", "ERROR")
                self.assertIn("webhooks.allowed_hosts", done.stderr, url)
            # The name is checked when it is resolved.
            id = plain.det("webhook", "create", "http://localhost:9/", "--state", "ERROR").split()[-1]
            self.assertIn("webhooks.allowed_hosts", plain.run_det("webhook", "test", id).stderr)


if __name__ == "__main__":
    unittest.main()
