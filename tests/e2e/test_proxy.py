"""Programs with a port: HTTP, WebSocket and TCP through the master to a task."""
import http.client
import json
import os
import pathlib
import secrets
import socket
import subprocess
import unittest

from cluster import Cluster, free_port, wait_until

BUILD = os.environ["DET_E2E_BUILD"]
SERVER = pathlib.Path(__file__).parent / "fixtures" / "port_server.py"


class Proxy(unittest.TestCase):
    AGENT = ()

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_agent(slots=1, options=cls.AGENT)
        status, body = cls.cluster.post("/api/v1/auth/login", {"username": "admin", "password": cls.cluster.password()})
        assert status == 200, body
        cls.token = json.loads(body)["token"]
        cls.code = cls.cluster.dir / "served"
        cls.code.mkdir()
        (cls.code / "server.py").write_text(SERVER.read_text())
        cls.port = free_port()
        cls.task = cls.launch(cls.port)

    @classmethod
    def launch(cls, port, *options, extra=()):
        """Starts the server on `port`. Without options it is offered without its prefix."""
        options = options or ("-p", port)
        task = cls.cluster.det("cmd", "run", "-d", "-c", cls.code, "--config", "resources.slots=0", *options,
                               "python3", "server.py", port, *extra).strip()
        wait_until("the program to serve", lambda: "serving" in cls.cluster.det("task", "logs", task))
        return task

    def call(self, method, path, body=None, headers=None, token=True):
        """(status, headers, body) of a request to the task."""
        connection = http.client.HTTPConnection("127.0.0.1", self.cluster.port, timeout=30)
        self.addCleanup(connection.close)
        fields = dict(headers or {})
        if token:
            fields["Authorization"] = f"Bearer {self.token}"
        connection.request(method, path, body, fields)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()

    def test_a_request_reaches_the_program_without_the_prefix_and_the_credentials(self):
        status, headers, body = self.call("GET", f"/proxy/{self.task}/a/b?c=d", headers={
            "Cookie": f"mine=1; auth={self.token}", "Origin": self.cluster.url, "X-Forwarded-For": "10.0.0.1"})
        self.assertEqual(status, 200, body)
        seen = json.loads(body)
        self.assertEqual(seen["path"], "/a/b?c=d")
        self.assertEqual(seen["headers"]["cookie"], "mine=1")
        self.assertEqual(seen["headers"]["x-forwarded-for"], "127.0.0.1")
        self.assertNotIn("authorization", seen["headers"])
        self.assertNotIn("origin", seen["headers"])
        self.assertNotIn(self.token, body.decode())
        # The reply is a document of its own origin, and its cookies are those of the task.
        self.assertIn("sandbox", headers["Content-Security-Policy"])
        self.assertNotIn("allow-same-origin", headers["Content-Security-Policy"])
        self.assertEqual(headers.get_all("Set-Cookie"), [f"mine=1; Path=/proxy/{self.task}/; HttpOnly; SameSite=Strict"])
        self.assertNotIn("Strict-Transport-Security", headers)
        self.assertNotIn("Access-Control-Allow-Credentials", headers)

    def test_a_program_that_knows_its_prefix_gets_whole_paths(self):
        port = free_port()
        task = self.launch(port, "--config", f"environment.proxy_ports=[{{proxy_port: {port}}}]")
        status, _, body = self.call("GET", f"/proxy/{task}:{port}/a")
        self.assertEqual((status, json.loads(body)["path"]), (200, f"/proxy/{task}:{port}/a"))
        self.cluster.det("cmd", "kill", task)

    def test_the_port_of_a_trial_is_reached(self):
        port = free_port()
        config = (f"name: served\nentrypoint: python3 server.py {port}\nmax_restarts: 0\n"
                  "resources: {slots_per_trial: 0}\nsearcher: {name: single, metric: loss, max_length: {batches: 10}}\n")
        experiment = self.cluster.create(self.code, config, "-p", port)
        trial = wait_until("the trial", lambda: self.cluster.trial_id(experiment))
        wait_until("the program to serve", lambda: "serving" in self.cluster.logs(trial))
        task = self.cluster.trial(trial)["taskId"]
        status, _, body = self.call("GET", f"/proxy/{task}:{port}/a")
        self.assertEqual((status, json.loads(body)["path"]), (200, "/a"))
        self.cluster.det("experiment", "kill", experiment)

    def test_a_tcp_port_is_a_websocket_with_frames(self):
        port, tcp = free_port(), free_port()
        task = self.launch(port, "--config", f"environment.proxy_ports=[{{proxy_port: {tcp}, proxy_tcp: true}}]", extra=[tcp])
        one, head = self.open_websocket(f"/proxy/{task}:{tcp}/")
        # The accept of the key in RFC 6455, which open_websocket() sends.
        self.assertIn(b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", head)
        one.sendall(b"\x82\x85abcd" + bytes(x ^ y for x, y in zip(b"hello", b"abcda")))
        self.assertEqual(one.recv(7, socket.MSG_WAITALL), b"\x82\x05hello")
        one.sendall(b"\x88\x80abcd")
        self.assertEqual(one.recv(5), b"\x88\x02\x03\xe8")
        self.assertEqual(one.recv(1), b"")
        self.assertEqual(self.call("GET", f"/proxy/{task}:{tcp}/")[0], 400)
        self.cluster.det("cmd", "kill", task)

    def test_bodies_arrive_unchanged_in_both_directions(self):
        sent = secrets.token_bytes(8 << 20)
        status, _, body = self.call("POST", f"/proxy/{self.task}/echo", sent)
        self.assertEqual(status, 200)
        self.assertTrue(body == sent, "the body changed on its way")
        status, headers, body = self.call("HEAD", f"/proxy/{self.task}/")
        self.assertEqual((status, body), (200, b""))

    def test_a_streamed_reply_arrives_as_it_is_sent(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.cluster.port, timeout=30)
        self.addCleanup(connection.close)
        connection.request("GET", f"/proxy/{self.task}/stream", headers={"Authorization": f"Bearer {self.token}"})
        answer = connection.getresponse()
        self.assertEqual(answer.readline(), b"first\n")
        self.call("GET", f"/proxy/{self.task}/release")
        self.assertEqual(answer.read(), b"second\n")

    def open_websocket(self, path=None):
        one = socket.create_connection(("127.0.0.1", self.cluster.port), timeout=30)
        self.addCleanup(one.close)
        one.sendall((f"GET {path or f'/proxy/{self.task}/ws'} HTTP/1.1\r\nHost: m\r\nUpgrade: websocket\r\n"
                     f"Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer {self.token}\r\n\r\n").encode())
        head = b""
        while b"\r\n\r\n" not in head:
            piece = one.recv(4096)
            self.assertTrue(piece, head)
            head += piece
        return one, head

    def test_a_websocket_carries_bytes_both_ways(self):
        one, head = self.open_websocket()
        self.assertTrue(head.startswith(b"HTTP/1.1 101 "), head)
        self.assertIn(b"Sec-WebSocket-Accept: accepted", head)
        sent = secrets.token_bytes(1 << 20)
        for start in range(0, len(sent), 65536):
            one.sendall(sent[start:start + 65536])
            got = b""
            while len(got) < 65536:
                got += one.recv(65536)
            self.assertTrue(got == sent[start:start + 65536])

    def test_a_browser_gets_a_ticket_for_one_port_that_no_other_call_takes(self):
        page = {"Cookie": f"auth={self.token}", "Sec-Fetch-Mode": "navigate"}
        status, headers, _ = self.call("GET", f"/proxy/{self.task}/a?b=c", headers=page, token=False)
        self.assertEqual(status, 302)
        location = headers["Location"]
        self.assertRegex(location, rf"^/proxy/{self.task}/~[\w-]{{43}}/a\?b=c$")
        # Requests of the page have an opaque origin and no cookie.
        status, headers, body = self.call("GET", location, headers={"Origin": "null"}, token=False)
        self.assertEqual((status, json.loads(body)["path"]), (200, "/a?b=c"))
        self.assertEqual(headers["Access-Control-Allow-Origin"], "*")
        ticket = location.split("~")[1].split("/")[0]
        status, headers, _ = self.call("GET", f"/proxy/{self.task}/~{ticket}/redirect", token=False)
        self.assertEqual((status, headers["Location"]), (302, f"/proxy/{self.task}/~{ticket}/elsewhere?x=1"))
        self.assertEqual(self.call("GET", f"/proxy/{self.task}:{self.port}/~{ticket}/", token=False)[0], 401)
        self.assertEqual(self.call("GET", "/api/v1/me", headers={"Authorization": f"Bearer {ticket}"}, token=False)[0], 401)

    def test_a_port_that_is_not_declared_or_not_served_is_named_in_the_error(self):
        status, _, body = self.call("GET", f"/proxy/{self.task}:1/")
        self.assertEqual(status, 404)
        self.assertIn("environment.proxy_ports", body.decode())
        idle = self.cluster.det("cmd", "run", "-d", "-p", "9", "--config", "resources.slots=0", "sleep", "600").strip()
        wait_until("it to run", lambda: self.cluster.det_json("command", "describe", idle, "--json")["state"] == "STATE_RUNNING")
        status, _, body = self.call("GET", f"/proxy/{idle}/")
        self.assertEqual(status, 503)
        self.assertIn("nothing listens on port 9", body.decode())
        self.cluster.det("cmd", "kill", idle)
        wait_until("it to end", lambda: "TERMINATED" in self.cluster.det_json("command", "describe", idle, "--json")["state"])
        self.assertIn("has ended", self.call("GET", f"/proxy/{idle}/")[2].decode())

    def test_port_forward_offers_the_port_on_this_machine(self):
        local = free_port()
        forward = subprocess.Popen([BUILD + "/bin/det", "task", "port-forward", self.task, f"{local}:{self.port}"],
                                   env=self.cluster.env, stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (forward.kill(), forward.wait(), forward.stdout.close()))
        self.assertIn(f"127.0.0.1:{local}", forward.stdout.readline())
        connection = http.client.HTTPConnection("127.0.0.1", local, timeout=30)
        self.addCleanup(connection.close)
        sent = secrets.token_bytes(1 << 20)
        connection.request("POST", "/echo", sent)
        self.assertTrue(connection.getresponse().read() == sent)
        refused = self.cluster.run_det("task", "port-forward", self.task, "1")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("port 1 is not one of", refused.stderr)

    def test_a_task_is_reachable_and_explained_after_a_pause(self):
        port = free_port()
        config = {"entrypoint": ["python3", "-m", "http.server", str(port), "--bind", "127.0.0.1"], "resources": {"slots": 0},
                  "environment": {"proxy_ports": [{"proxy_port": port, "strip_prefix": True}]}}
        status, body = self.cluster.post("/api/v1/generic-tasks", {"config": json.dumps(config), "contextDirectory": []}, self.token)
        self.assertEqual(status, 200, body)
        task = json.loads(body)["taskId"]

        def state():
            return json.loads(self.cluster.get(f"/api/v1/tasks/{task}", self.token)[1])["task"]["taskState"]

        def reached():
            return self.call("GET", f"/proxy/{task}/")[0] == 200

        wait_until("the program to serve", reached)
        self.assertEqual(self.cluster.post(f"/api/v1/tasks/{task}/pause", {}, self.token)[0], 200)
        wait_until("the pause", lambda: state() == "GENERIC_TASK_STATE_PAUSED")
        wait_until("it to be resumed", lambda: self.cluster.post(f"/api/v1/tasks/{task}/unpause", {}, self.token)[0] == 200)
        wait_until("the program to serve again", reached, 30)
        status, body = self.cluster.get(f"/api/v1/commands/{task}/explain", self.token)
        self.assertEqual(status, 200, body)
        self.assertIn("has slots", json.loads(body)["explanation"]["text"])
        self.cluster.post(f"/api/v1/tasks/{task}/kill", {}, self.token)

    def test_the_task_is_reachable_again_after_a_restart_of_the_master(self):
        one, _ = self.open_websocket()
        self.cluster.kill_master()
        self.assertEqual(one.recv(1), b"")
        self.cluster.start_master()
        wait_until("the agent to be back", lambda: self.call("GET", f"/proxy/{self.task}/")[0] == 200)


@unittest.skipUnless(os.geteuid() == 0, "needs root")
class ProxyIntoANetworkOfTheTask(Proxy):
    """The same for tasks with a network of their own."""
    AGENT = ("--sandbox", "required", "--task-network", "cluster")

    def test_the_port_is_closed_on_the_machine(self):
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", self.port), timeout=5)


if __name__ == "__main__":
    unittest.main()
