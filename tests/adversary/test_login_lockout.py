"""A user, a trial or a stranger behind the same reverse proxy guesses the administrator's password, to keep the
administrator out."""
import json
import os
import unittest
import urllib.error
import urllib.request

from cluster import Cluster

BUILD = os.environ["DET_E2E_BUILD"]


class Logins:
    """Logins at a cluster over HTTP."""

    def __init__(self, cluster, name="admin"):
        self.cluster = cluster
        self.name = name

    def log_in(self, password, token=None, client=None):
        """(status, body) of a login, with a session or through a proxy on behalf of `client`."""
        headers = {"Content-Type": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if client:
            headers["X-Forwarded-For"] = client
        request = urllib.request.Request(
            self.cluster.url + "/api/v1/auth/login", method="POST", headers=headers,
            data=json.dumps({"username": self.name, "password": password}).encode())
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def guess(self, client=None):
        """Guesses until the master no longer answers at once."""
        for number in range(12):
            if self.log_in(f"guess {number}", client=client)[0] == 429:
                return True
        return False


class LoginLockout(unittest.TestCase):
    def test_guesses_from_the_same_address_do_not_lock_out_a_device_with_a_session(self):
        with Cluster(BUILD) as cluster:
            logins = Logins(cluster)
            status, body = logins.log_in(cluster.password())
            self.assertEqual(status, 200, body)
            session = json.loads(body)["token"]
            self.assertTrue(logins.guess(), "guesses are slowed down")
            self.assertEqual(logins.log_in(cluster.password(), token="made up")[0], 429)
            self.assertEqual(logins.log_in(cluster.password(), token=session)[0], 200)
            # The command line presents the session that it has.
            cluster.det("user", "login", "admin", "--password-file", cluster.dir / "master" / "admin-password")

    def test_guesses_do_not_lock_out_a_device_of_a_user_with_capitals_in_the_name(self):
        with Cluster(BUILD) as cluster:
            password = cluster.dir / "password-Alice"
            password.write_text("correct horse battery staple\n")
            cluster.det("user", "create", "Alice", "--password-file", password)
            logins = Logins(cluster, "Alice")
            status, body = logins.log_in("correct horse battery staple")
            self.assertEqual(status, 200, body)
            session = json.loads(body)["token"]
            self.assertTrue(logins.guess(), "guesses are slowed down")
            self.assertEqual(logins.log_in("correct horse battery staple", token=session)[0], 200)

    def test_an_untrusted_header_does_not_lift_the_delay(self):
        with Cluster(BUILD) as cluster:
            logins = Logins(cluster)
            self.assertTrue(logins.guess())
            self.assertEqual(logins.log_in(cluster.password(), client="203.0.113.8")[0], 429)

    def test_guesses_through_a_trusted_proxy_delay_only_their_own_client(self):
        with Cluster(BUILD, ["--trusted-proxies", "127.0.0.0/8"]) as cluster:
            logins = Logins(cluster)
            self.assertTrue(logins.guess("203.0.113.7"))
            self.assertEqual(logins.log_in(cluster.password(), client="203.0.113.7")[0], 429)
            # What the client itself has written into the header does not count.
            self.assertEqual(logins.log_in(cluster.password(), client="203.0.113.9, 203.0.113.7")[0], 429)
            self.assertEqual(logins.log_in(cluster.password(), client="203.0.113.8")[0], 200)
            rows = cluster.det_json("audit", "list", "--json", "--tail", "100")
            addresses = {row["outcome"]: row["address"] for row in rows
                         if row["action"] == "AuthService/Login" and row["address"].startswith("203.")}
            self.assertEqual(addresses, {"Unauthenticated": "203.0.113.7", "OK": "203.0.113.8"})
