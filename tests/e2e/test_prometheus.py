"""The Prometheus endpoints of a real master: access, strict format, and correct values."""
import json
import os
import re
import unittest

from cluster import Cluster, wait_until

BUILD = os.environ["DET_E2E_BUILD"]
NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')


def parse(text):
    """{name: (type, {labels: value})}, strict about text format 0.0.4. Histograms are keyed by their base
    name."""
    assert text.endswith("\n"), "the last line does not end"
    metrics, current, helped = {}, None, set()
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            assert NAME.fullmatch(name) and name not in helped, line
            helped.add(name)
            continue
        if line.startswith("# TYPE "):
            _, _, current, kind = line.split(" ")
            assert current in helped and current not in metrics and kind in ("gauge", "counter", "histogram"), line
            metrics[current] = (kind, {})
            continue
        name = NAME.match(line).group()
        rest, labels = line[len(name):], {}
        if rest.startswith("{"):
            inner, rest = rest[1:].rsplit("}", 1)
            while inner:
                match = LABEL.match(inner)
                assert match and match.group(1) not in labels, line
                labels[match.group(1)] = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m.group(1), m.group(1)), match.group(2))
                inner = inner[match.end():]
                assert not inner or inner.startswith(","), line
                inner = inner[1:]
        assert rest.startswith(" ") and rest.count(" ") == 1, line
        kind, samples = metrics[current]
        suffix = name.removeprefix(current)
        assert name.startswith(current) and suffix in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",)), line
        assert kind != "counter" or name.endswith("_total"), line
        key = (suffix, *sorted(labels.items()))
        assert key not in samples, "twice: " + line
        samples[key] = float(rest)
    return metrics


def value(metrics, name, suffix="", **labels):
    return metrics[name][1].get((suffix, *sorted(labels.items())), 0)


class Prometheus(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_agent(slots=2)
        status, body = cls.cluster.post("/api/v1/auth/login", {"username": "admin", "password": cls.cluster.password()})
        assert status == 200, body
        cls.token = json.loads(body)["token"]

    def scrape(self, path):
        status, text = self.cluster.get(path, self.token)
        self.assertEqual(status, 200, text)
        return parse(text)

    def test_the_endpoints_require_access_to_the_whole_cluster(self):
        for path in ("/metrics", "/debug/prom/metrics", "/prom/det-state-metrics", "/prom/det-http-sd-config"):
            self.assertEqual(self.cluster.get(path)[0], 401)
            self.assertEqual(self.cluster.get(path, "guessed")[0], 401)

    def test_the_state_metrics_match_the_cluster(self):
        before = self.scrape("/prom/det-state-metrics")
        self.assertEqual(value(before, "det_agents", pool="default"), 1)
        self.assertEqual(value(before, "det_slots", pool="default"), 2)
        self.assertEqual(value(before, "det_slots_used", pool="default"), 0)
        running = self.cluster.det("cmd", "run", "-d", "--config", "resources.slots=2", "sleep", "600").strip()
        self.cluster.det("cmd", "run", "-d", "true")
        wait_until("the slots to be used", lambda: value(
            self.scrape("/prom/det-state-metrics"), "det_slots_used", pool="default") == 2)
        during = self.scrape("/prom/det-state-metrics")
        self.assertEqual(value(during, "det_queue_requests", pool="default"), 1)
        self.assertEqual(value(during, "det_commands", state="ACTIVE"), 2)
        self.assertEqual(value(during, "det_allocation_id_task_id_task_actor", allocation_id=running + ".1",
                               task_id=running, task_actor="command"), 1)
        self.cluster.det("cmd", "kill", running)
        wait_until("both to end", lambda: value(
            self.scrape("/prom/det-state-metrics"), "det_commands", state="ACTIVE") == 0)
        after = self.scrape("/prom/det-state-metrics")
        for state in ("CANCELED", "COMPLETED"):
            self.assertEqual(value(after, "det_commands", state=state) - value(before, "det_commands", state=state), 1)

    def test_the_masters_counters_grow_with_its_work(self):
        before = self.scrape("/metrics")
        self.cluster.det("cmd", "run", "--config", "resources.slots=0", "sh", "-c", "for i in 1 2 3 4 5; do echo $i; done")
        for _ in range(7):
            self.assertEqual(self.cluster.get("/api/v1/commands", self.token)[0], 200)
        after = self.scrape("/metrics")

        def grown(name, suffix="", **labels):
            return value(after, name, suffix, **labels) - value(before, name, suffix, **labels)
        self.assertGreaterEqual(grown("det_log_lines_total"), 5)
        self.assertGreaterEqual(grown("det_core_steps_total"), 3)
        self.assertGreater(value(after, "det_core_step_seconds_total"), 0)
        self.assertEqual(grown("det_call_seconds", "_count", method="CommandService/GetCommands"), 7)
        self.assertGreater(grown("det_call_seconds", "_sum", method="CommandService/GetCommands"), 0)
        self.assertLess(value(after, "det_writer_depth"), 100)

    def test_histograms_are_consistent(self):
        kind, samples = self.scrape("/metrics")["det_call_seconds"]
        self.assertEqual(kind, "histogram")
        methods = {dict(key[1:])["method"] for key in samples}
        self.assertIn("AuthService/Login", methods)
        for method in methods:
            buckets = sorted((float(dict(key[1:])["le"]), count) for key, count in samples.items()
                             if key[0] == "_bucket" and dict(key[1:])["method"] == method)
            counts = [count for _, count in buckets]
            self.assertEqual(buckets[-1][0], float("inf"))
            self.assertEqual(counts, sorted(counts))
            self.assertEqual(counts[-1], samples[("_count", ("method", method))])

    def test_the_targets_are_the_agents(self):
        status, text = self.cluster.get("/prom/det-http-sd-config", self.token)
        self.assertEqual(status, 200)
        targets = json.loads(text)
        self.assertEqual([one["labels"] for one in targets], [{"det_agent_id": "a1", "det_resource_pool": "default"}])
        self.assertEqual(targets[0]["targets"], ["127.0.0.1:8080", "127.0.0.1:9400"])


if __name__ == "__main__":
    unittest.main()
