"""Users who want ports of other users' tasks, pages of tasks that want the session of their viewer, and readers who
want the memory of the master."""
import http.client
import json
import os
import pathlib
import socket
import unittest

from attacker import Attacker
from cluster import Cluster, free_port, wait_until

BUILD = os.environ["DET_E2E_BUILD"]
SERVER = pathlib.Path(__file__).parents[1] / "e2e" / "fixtures" / "port_server.py"
PER_USER = 64
ATTEMPTS = 1000
MASTER_GROWTH = 64 << 20


class TaskProxy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Each test may open more connections than one address gets.
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_agent(slots=1)
        cls.admin = Attacker.admin(cls.cluster)
        cls.mallory = Attacker.editor(cls.cluster)
        code = cls.cluster.dir / "served"
        code.mkdir()
        (code / "server.py").write_text(SERVER.read_text())
        port = free_port()
        # Every user may edit in the default workspace, so the task is in another one.
        cls.owner = Attacker.editor(cls.cluster, "olivia")
        cls.task = cls.cluster.det("cmd", "run", "-d", "-w", "olivia", "-c", code, "-p", port, "--config", "resources.slots=0",
                                   "python3", "server.py", port).strip()
        wait_until("the program to serve", lambda: "serving" in cls.cluster.det("task", "logs", cls.task))

    def call(self, path, method="GET", **headers):
        """(status, headers, body) of a request; "_" in names of headers stands for "-"."""
        connection = http.client.HTTPConnection("127.0.0.1", self.cluster.port, timeout=30)
        self.addCleanup(connection.close)
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()

    def bearer(self, user):
        return {"Authorization": f"Bearer {user.token}"}

    def open_socket(self, user, path="ws"):
        """A WebSocket to the task, and the first line of the reply."""
        one = socket.create_connection(("127.0.0.1", self.cluster.port), timeout=30)
        self.addCleanup(one.close)
        one.sendall((f"GET /proxy/{self.task}/{path} HTTP/1.1\r\nHost: m\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                     f"Authorization: Bearer {user.token}\r\n\r\n").encode())
        return one, one.recv(4096).split(b"\r\n")[0]

    def test_a_request_without_a_login_reaches_no_task(self):
        self.assertEqual(self.call(f"/proxy/{self.task}/")[0], 401)
        self.assertEqual(self.call(f"/proxy/{self.task}/", Cookie="auth=guess")[0], 401)
        self.assertEqual(self.call(f"/proxy/{self.task}/~{'a' * 43}/")[0], 401)

    def test_a_user_of_another_workspace_does_not_learn_that_the_task_exists(self):
        status, _, body = self.call(f"/proxy/{self.task}/", **self.bearer(self.mallory))
        unknown, _, other = self.call("/proxy/00000000-0000-4000-8000-000000000000/", **self.bearer(self.mallory))
        self.assertEqual((status, unknown), (404, 404))
        self.assertEqual(body.replace(self.task.encode(), b"X"), other.replace(b"00000000-0000-4000-8000-000000000000", b"X"))

    def test_a_viewer_may_not_use_the_port(self):
        viewer = Attacker.editor(self.cluster, "vera")
        self.cluster.det("rbac", "assign-role", "Viewer", "-u", "vera", "-w", "olivia")
        status, _, body = self.call(f"/proxy/{self.task}/", **self.bearer(viewer))
        self.assertEqual(status, 403, body)

    def test_a_page_gets_neither_the_session_nor_the_origin_of_its_viewer(self):
        page = {"Cookie": f"auth={self.admin.token}", "Sec_Fetch_Mode": "navigate"}
        location = self.call(f"/proxy/{self.task}/", **page)[1]["Location"]
        for path, headers in ((location, {}), (location, {"Cookie": f"auth={self.admin.token}"}),
                              (f"/proxy/{self.task}/", self.bearer(self.admin))):
            status, answer, body = self.call(path, **headers)
            self.assertEqual(status, 200, body)
            policy = answer["Content-Security-Policy"]
            self.assertTrue(policy.startswith("sandbox "), policy)
            self.assertNotIn("allow-same-origin", policy)
            self.assertNotIn(self.admin.token, body.decode())
            self.assertNotIn("auth=stolen", str(answer.get_all("Set-Cookie")))
        ticket = location.split("~")[1].split("/")[0]
        for headers in ({"Authorization": f"Bearer {ticket}"}, {"Cookie": f"auth={ticket}"}):
            self.assertEqual(self.call("/api/v1/me", **headers)[0], 401)

    def test_a_page_of_the_master_loads_no_script_of_a_task(self):
        location = self.call(f"/proxy/{self.task}/", Cookie=f"auth={self.admin.token}", Sec_Fetch_Mode="navigate")[1]["Location"]
        for path, headers in ((location, {}), (f"/proxy/{self.task}/", {"Cookie": f"auth={self.admin.token}"})):
            status, _, body = self.call(path, Sec_Fetch_Site="same-origin", Sec_Fetch_Mode="no-cors",
                                        Sec_Fetch_Dest="script", **headers)
            self.assertEqual(status, 403, body)

    def test_a_foreign_page_changes_nothing_with_the_cookie(self):
        cookie = {"Cookie": f"auth={self.admin.token}"}
        for method, origin in (("POST", "https://evil.example"), ("POST", "null"), ("GET", "https://evil.example")):
            status, _, body = self.call(f"/proxy/{self.task}/", method, Origin=origin, **cookie)
            self.assertEqual(status, 403, body)

    def test_a_logout_closes_an_open_connection(self):
        eve = Attacker.admin(self.cluster)
        one, line = self.open_socket(eve)
        self.assertIn(b"101", line)
        self.assertEqual(eve.call("POST", "/api/v1/auth/logout")[0], 200)
        one.settimeout(20)
        self.assertEqual(one.recv(1), b"")

    def test_a_thousand_connections_of_one_user_leave_room_for_others(self):
        mine = self.owner
        opened, refused = [], 0
        for _ in range(ATTEMPTS):
            one, line = self.open_socket(mine)
            if b"101" in line:
                opened.append(one)
            else:
                self.assertIn(b"429", line)
                refused += 1
                one.close()
        self.assertEqual((len(opened), refused), (PER_USER, ATTEMPTS - PER_USER))
        other = Attacker.editor(self.cluster, "olga")
        self.cluster.det("rbac", "assign-role", "Editor", "-u", "olga", "-w", "olivia")
        self.assertEqual(self.call(f"/proxy/{self.task}/", **self.bearer(other))[0], 200)
        for one in opened:
            one.close()
        wait_until("room for the user", lambda: self.call(f"/proxy/{self.task}/", **self.bearer(mine))[0] == 200)

    def master_bytes(self):
        status = pathlib.Path(f"/proc/{self.cluster.master.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) << 10

    def test_a_reader_that_does_not_read_stops_the_task_and_not_the_master(self):
        before = self.master_bytes()
        one = socket.socket()
        self.addCleanup(one.close)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect(("127.0.0.1", self.cluster.port))
        one.sendall(f"GET /proxy/{self.task}/flood HTTP/1.1\r\nHost: m\r\nAuthorization: Bearer {self.admin.token}\r\n\r\n".encode())
        one.recv(1)

        seen = []

        def stalled():
            seen.append(self.sent())
            return seen[-1] > 0 and len(seen) > 20 and len(set(seen[-20:])) == 1
        wait_until("the task to be stopped by back-pressure", stalled)
        self.assertLess(self.sent(), MASTER_GROWTH)
        self.assertLess(self.master_bytes() - before, MASTER_GROWTH)
        self.assertEqual(self.admin.call("GET", "/api/v1/me")[0], 200)

    def sent(self):
        return int(self.call(f"/proxy/{self.task}/sent", **self.bearer(self.admin))[2])

    @unittest.skipIf(os.geteuid() != 0, "tasks have users of their own only if the agent is root")
    def test_a_declared_port_of_another_program_is_refused(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        port = listener.getsockname()[1]
        task = self.cluster.det("cmd", "run", "-d", "-p", port, "--config", "resources.slots=0", "sleep", "600").strip()
        wait_until("it to run", lambda: self.cluster.det_json("command", "describe", task, "--json")["state"] == "STATE_RUNNING")
        status, _, body = self.call(f"/proxy/{task}/", **self.bearer(self.admin))
        self.assertEqual(status, 503, body)
        self.assertIn(b"another program", body)
        self.cluster.det("cmd", "kill", task)


if __name__ == "__main__":
    unittest.main()
