// Pilots as Jobs of Kubernetes: access, objects, watches against scripts of responses, and the fleet.
#include <catch2/catch.hpp>
#include <deque>

#include "common/base/files.h"
#include "common/base/secret.h"
#include "master/engines/kubernetes/engine.h"
#include "master/engines/kubernetes/gangs.h"

namespace det::engines {
namespace {

using core::PilotPhase;

ProviderConfig kubernetes_settings() {
  ProviderConfig config{.type = "kubernetes", .slots_per_node = 8};
  config.image = "registry.example/det:1";
  config.master = "https://det-master:8080";
  config.token_secret = "det-join-token";
  return config;
}

/// Replies of an API server in their order. A stream may be cut after its body.
struct Step {
  std::string method, part;  ///< `part` must be in the URL
  int status = 200;
  std::string body;
  bool cut = false;
};
struct Server {
  std::deque<Step> steps;
  std::vector<std::string> bodies;  ///< of the requests

  Result<storage::Answer> reply(const storage::Exchange& request) {
    if (steps.empty()) return fail(Code::kUnavailable, "the script has ended");
    const Step step = steps.front();
    steps.pop_front();
    INFO(request.url);
    CHECK(request.method == step.method);
    CHECK_THAT(request.url, Catch::Contains(step.part));
    CHECK(request.headers.at("authorization") == "Bearer secret");
    bodies.emplace_back(request.body);
    storage::Answer answer{.status = step.status};
    if (!request.sink || step.status != 200) {
      answer.body = step.body;
      return answer;
    }
    // Pieces of a stream end anywhere in a line.
    for (std::size_t at = 0; at < step.body.size(); at += 7) {
      if (!request.sink(std::string_view(step.body).substr(at, 7))) return fail(Code::kCancelled, "ended");
    }
    if (step.cut) return fail(Code::kUnavailable, "transfer closed with outstanding read data remaining");
    return answer;
  }
  SendHttp http() {
    return [this](const storage::Exchange& request) { return reply(request); };
  }
  Client client() {
    return Client(
        []() -> Result<Access> {
          return Access{"https://api", "ns", "secret", {}};
        },
        http(), [] { return false; });
  }
};

std::string list_of(const std::string& version, const std::string& items, const std::string& next = "") {
  return R"({"metadata": {"resourceVersion": ")" + version + R"(", "continue": ")" + next +
         R"("}, "items": [)" + items + "]}";
}
std::string job(const std::string& name, const std::string& version = "1", const std::string& rest = "") {
  return R"({"metadata": {"name": ")" + name + R"(", "resourceVersion": ")" + version +
         R"(", "creationTimestamp": "2026-01-01T00:00:0)" + name.back() +
         R"(Z"}, "spec": {"parallelism": 2})" + rest + "}";
}
std::string event(const std::string& type, const std::string& object) {
  return R"({"type": ")" + type + R"(", "object": )" + object + "}\n";
}

/// Runs cycles of a watch of Jobs, and returns the changes.
std::vector<Change> cycles(Server& server, int count) {
  const Client client = server.client();
  Queue<Change> changes(100);
  Watch watch(client, true, "s", changes);
  for (int i = 0; i < count; ++i) CHECK_FALSE(watch.cycle());
  return changes.pop_batch(100, Duration(0));
}

TEST_CASE("a watch starts at the version of the list and goes on at the newest bookmark") {
  Server server;
  server.steps = {
      {"GET", "/apis/batch/v1/namespaces/ns/jobs?labelSelector=s&limit", 200,
       list_of("10", job("a-1", "99"))},
      {"GET", "allowWatchBookmarks=true&resourceVersion=10&timeoutSeconds", 200,
       event("ADDED", job("a-2", "12")) + event("BOOKMARK", R"({"metadata": {"resourceVersion": "40"}})")},
      {"GET", "resourceVersion=40&", 200, event("DELETED", job("a-1", "41")), true}};
  const auto changes = cycles(server, 1);
  REQUIRE(changes.size() == 3);
  CHECK(changes[0].kind == Change::Kind::kAll);
  CHECK(changes[1].kind == Change::Kind::kSet);
  CHECK(changes[1].objects[0].name == "a-2");
  CHECK(changes[2].kind == Change::Kind::kRemoved);
}

TEST_CASE("an expired version inside a response with status 200 leads to a new list and loses nothing") {
  Server server;
  server.steps = {
      {"GET", "limit", 200, list_of("10", "")},
      {"GET", "watch=1", 200,
       event("ERROR", R"({"kind": "Status", "code": 410, "message": "too old resource version"})")},
      {"GET", "limit", 200, list_of("50", job("a-1"))},
      {"GET", "resourceVersion=50", 410, R"({"message": "too old"})"}};
  const auto changes = cycles(server, 2);
  REQUIRE(changes.size() == 2);
  CHECK(changes[1].kind == Change::Kind::kAll);
  CHECK(changes[1].objects.size() == 1);
}

TEST_CASE("a stream that is cut within an event drops that event and leads to a new list") {
  Server server;
  const std::string whole = event("ADDED", job("a-1", "11"));
  server.steps = {{"GET", "limit", 200, list_of("10", "")},
                  {"GET", "watch=1", 200, whole + whole.substr(0, 30), true},
                  {"GET", "limit", 200, list_of("12", job("a-1"))}};
  const auto changes = cycles(server, 2);
  REQUIRE(changes.size() == 3);
  CHECK(changes[1].kind == Change::Kind::kSet);
  CHECK(changes[2].kind == Change::Kind::kAll);
}

TEST_CASE("a list has several pages, and a list that fails is reported") {
  Server server;
  server.steps = {{"GET", "limit", 200, list_of("10", job("a-1"), "next")},
                  {"GET", "continue=next", 200, list_of("10", job("a-2"))},
                  {"GET", "watch=1", 500, ""},
                  {"GET", "limit", 503, R"({"message": "apiserver is shutting down"})"}};
  const auto changes = cycles(server, 2);
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].objects.size() == 2);
  CHECK(changes[1].kind == Change::Kind::kLost);
  CHECK_THAT(changes[1].problem, Catch::Contains("503: apiserver is shutting down"));
}

Object pod(const std::string& name, const std::string& job, PilotPhase phase,
           const std::string& reason = "") {
  return {
      .name = name, .job = job, .phase = phase, .assigned = phase != PilotPhase::kPending, .reason = reason};
}
Change all(bool of_jobs, std::vector<Object> objects) {
  return {.kind = Change::Kind::kAll, .of_jobs = of_jobs, .objects = std::move(objects)};
}

TEST_CASE("a pilot runs when all of its pods run, and before that it has the reason of a pod") {
  Fleet fleet(std::chrono::minutes(1));
  fleet.apply(all(false, {pod("p", "a-1", PilotPhase::kRunning),
                          pod("q", "a-1", PilotPhase::kPending, "Unschedulable: 0/2 nodes")}),
              {});
  CHECK_FALSE(fleet.complete());
  fleet.apply(all(true, {{.name = "a-1", .nodes = 2}}), {});
  REQUIRE(fleet.complete());
  auto jobs = fleet.jobs({});
  REQUIRE(jobs.size() == 1);
  CHECK(jobs[0].phase == PilotPhase::kPending);
  CHECK(jobs[0].reason == "Unschedulable: 0/2 nodes");
  fleet.apply({.kind = Change::Kind::kSet, .objects = {pod("q", "a-1", PilotPhase::kRunning)}}, {});
  CHECK(fleet.jobs({})[0].phase == PilotPhase::kRunning);
  CHECK(fleet.jobs({})[0].reason.empty());
}

TEST_CASE("of two pilots with parts of their nodes the newest is released, after the timeout only") {
  Fleet fleet(std::chrono::seconds(60));
  const MonoTime later{61'000'000};
  fleet.apply(all(true, {{.name = "a-1", .nodes = 2, .created = "2026-01-01T00:00:01Z"},
                         {.name = "a-2", .nodes = 2, .created = "2026-01-01T00:00:02Z"},
                         {.name = "a-3", .nodes = 2, .created = "2026-01-01T00:00:03Z"}}),
              {});
  fleet.apply(all(false, {pod("p", "a-1", PilotPhase::kRunning), pod("q", "a-2", PilotPhase::kRunning),
                          pod("r", "a-3", PilotPhase::kPending)}),
              {});
  CHECK_FALSE(fleet.partial({}));
  CHECK(fleet.partial(later) == "a-2");
  fleet.end("a-2", "released");
  fleet.apply({.kind = Change::Kind::kRemoved, .objects = {pod("q", "a-2", PilotPhase::kRunning)}}, later);
  fleet.apply({.kind = Change::Kind::kSet, .objects = {pod("s", "a-1", PilotPhase::kRunning)}}, later);
  CHECK_FALSE(fleet.partial({200'000'000}));
  CHECK(fleet.jobs(later)[1].phase == PilotPhase::kEnded);
}

TEST_CASE("a submitted pilot is listed before a watch has seen it, and 30 s without one end it") {
  Fleet fleet(std::chrono::minutes(1));
  fleet.apply(all(true, {}), {});
  fleet.expect("a-1", {});
  REQUIRE(fleet.jobs({1}).size() == 1);
  // A list that began before the submission does not have the Job.
  fleet.apply(all(true, {}), {});
  CHECK(fleet.jobs({1}).size() == 1);
  CHECK(fleet.jobs(MonoTime{} + Fleet::kUnseen).empty());
  fleet.apply({.kind = Change::Kind::kSet, .of_jobs = true, .objects = {{.name = "a-1", .nodes = 1}}}, {});
  fleet.apply({.kind = Change::Kind::kRemoved, .of_jobs = true, .objects = {{.name = "a-1"}}}, {});
  CHECK(fleet.jobs({1}).empty());
}

TEST_CASE("a failed Job has the last line of its pod, and is outdated after a while") {
  const auto failed = parse_json(job(
      "a-1", "1",
      R"(, "status": {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]})"));
  const auto ended =
      parse_json(R"({"metadata": {"name": "p", "labels": {"job-name": "a-1"}}, "spec": {"nodeName": "n"},
      "status": {"phase": "Failed", "containerStatuses": [{"state": {"terminated":
        {"exitCode": 2, "message": "first\njoin token expired\n"}}}]}})");
  REQUIRE(failed);
  REQUIRE(ended);
  Fleet fleet(std::chrono::minutes(1));
  fleet.apply(all(true, {read_job(*failed)}), {});
  fleet.apply(all(false, {read_pod(*ended)}), {});
  CHECK(fleet.jobs({})[0].phase == PilotPhase::kEnded);
  CHECK(fleet.jobs({})[0].reason == "exit code 2: join token expired");
  CHECK(fleet.outdated({}).empty());
  CHECK(fleet.outdated(MonoTime{} + Fleet::kKeepFailed).size() == 1);
  fleet.apply(all(true, {{.name = "a-2", .phase = PilotPhase::kEnded}}), {});
  CHECK(fleet.outdated({}) == std::vector<std::string>{"a-2"});
}

TEST_CASE("the Job of a pilot has its settings, and a template changes all but the rules of a pilot") {
  ProviderConfig config = kubernetes_settings();
  config.resources = {{"nvidia.com/gpu", "8"}};
  config.node_selector = {{"gpu", "a100"}};
  config.tolerations = {{{"key", "gpu"}, {"operator", "Exists"}}};
  config.priority_class = "low";
  config.queue = "team";
  config.labels = {{"owner", "physics"}, {"app.kubernetes.io/name", "other"}};
  config.walltime = std::chrono::hours(1);
  config.pod_template = {{"metadata", {{"annotations", {{"a", "b"}}}}},
                         {"spec",
                          {{"serviceAccountName", "pilots"},
                           {"containers",
                            {{{"name", "agent"}, {"env", {{{"name", "HTTPS_PROXY"}, {"value", "p"}}}}},
                             {{"name", "sidecar"}}}}}}};
  const Json made = pilot_job(config, "det-c-gpu", "gpu", "det-c-gpu-7", 2, "u1");
  const auto at = [&](const char* path) { return made.at(Json::json_pointer(path)); };
  CHECK(at("/metadata/name") == "det-c-gpu-7");
  CHECK(at("/metadata/ownerReferences/0/uid") == "u1");
  CHECK(at("/metadata/labels/kueue.x-k8s.io~1queue-name") == "team");
  CHECK(at("/spec/suspend") == true);
  CHECK(at("/spec/parallelism") == 2);
  CHECK(at("/spec/completions") == 2);
  CHECK(at("/spec/completionMode") == "Indexed");
  CHECK(at("/spec/backoffLimit") == 0);
  CHECK(at("/spec/template/metadata/labels/app.kubernetes.io~1name") == "det-agent");
  CHECK(at("/spec/template/metadata/labels/app.kubernetes.io~1instance") == "det-c-gpu");
  CHECK(at("/spec/template/metadata/labels/owner") == "physics");
  CHECK(at("/spec/template/metadata/annotations/a") == "b");
  const Json pods = at("/spec/template/spec");
  CHECK(pods["restartPolicy"] == "Never");
  CHECK(pods["terminationGracePeriodSeconds"] == 60);
  CHECK(pods["activeDeadlineSeconds"] == 3600 + 900);
  CHECK(pods["automountServiceAccountToken"] == false);
  CHECK(pods["serviceAccountName"] == "pilots");
  CHECK(pods["nodeSelector"]["gpu"] == "a100");
  CHECK(pods["priorityClassName"] == "low");
  CHECK(pods["tolerations"][0]["key"] == "gpu");
  CHECK(
      pods.at(Json::json_pointer("/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/"
                                 "labelSelector/matchLabels/job-name")) == "det-c-gpu-7");
  REQUIRE(pods["containers"].size() == 2);
  const Json agent = pods["containers"][0];
  CHECK(agent["resources"]["limits"]["nvidia.com/gpu"] == "8");
  CHECK(agent["env"].size() == 3);
  const auto arguments = agent["args"].get<std::vector<std::string>>();
  for (const char* one :
       {"--id=det-c-gpu-7-$(DET_POD_INDEX)", "--pool=gpu", "--master=https://det-master:8080", "--ephemeral",
        "--exit-when-idle=1500s", "--until=3600s"}) {
    INFO(one);
    CHECK(std::find(arguments.begin(), arguments.end(), one) != arguments.end());
  }
  CHECK(pilot_job(config, "i", "gpu", "n", 1, "u")["spec"]["template"]["spec"].contains("affinity") == false);
}

TEST_CASE("with PodGroups the pods of a gang join one, and its Job owns it") {
  ProviderConfig config = kubernetes_settings();
  config.gang = "pod_group";
  const auto template_of = [&](int nodes) {
    return pilot_job(config, "i", "gpu", "det-c-gpu-7", nodes, "u")["spec"]["template"];
  };
  CHECK(template_of(2)["spec"]["schedulingGroup"]["podGroupName"] == "det-c-gpu-7");
  CHECK_FALSE(template_of(1)["spec"].contains("schedulingGroup"));
  const Object job{.name = "det-c-gpu-7", .uid = "u7", .nodes = 2};
  const Json made = pod_group(config, pod_group_kinds(config)[1], job);
  CHECK(made == *parse_json(R"({"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup",
    "metadata": {"name": "det-c-gpu-7", "ownerReferences": [
      {"apiVersion": "batch/v1", "kind": "Job", "name": "det-c-gpu-7", "uid": "u7"}]},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}})"));
  config.gang = "volcano";
  config.queue = "team";
  const Json pods = template_of(2);
  CHECK(pods["spec"]["schedulerName"] == "volcano");
  CHECK(pods["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "det-c-gpu-7");
  CHECK_FALSE(pilot_job(config, "i", "gpu", "n", 2, "u")["spec"].contains("suspend"));
  const Json group = pod_group(config, pod_group_kinds(config)[0], job);
  CHECK(group["apiVersion"] == "scheduling.volcano.sh/v1beta1");
  CHECK(group["spec"] == Json{{"minMember", 2}, {"queue", "team"}});
}

/// Writes a kubeconfig and returns its path.
std::string write_kubeconfig(const std::string& directory) {
  const std::string path = directory + "/config";
  REQUIRE(write_file_atomic(path, R"({contexts: [{name: c, context: {cluster: k, user: u}}],
    clusters: [{name: k, cluster: {server: 'https://api/'}}], users: [{name: u, user: {token: secret}}],
    current-context: c})"));
  return path;
}

/// Calls of a pilot's submission against a script.
Result<std::string> submit(Server& server, std::deque<Step> steps) {
  auto dir = TemporaryDirectory::create("det-kubernetes");
  REQUIRE(dir);
  ProviderConfig config = kubernetes_settings();
  config.kubeconfig = write_kubeconfig(dir->path());
  server.steps = std::move(steps);
  Kubernetes engine(config, "det-c-gpu", server.http());
  return engine.submit({.pool = "gpu", .name = "det-c-gpu-1"});
}
const Step kOwner{"GET", "/api/v1/namespaces/default/configmaps/det-c-gpu", 200,
                  R"({"metadata": {"uid": "u"}})"};

TEST_CASE("a repeated submission finds the Job of the first") {
  Server server;
  const auto id = submit(server, {{"GET", "configmaps/det-c-gpu", 404, "{}"},
                                  {"POST", "configmaps", 201, R"({"metadata": {"uid": "u"}})"},
                                  {"POST", "/jobs", 409, R"({"message": "already exists"})"}});
  REQUIRE(id);
  CHECK(*id == "det-c-gpu-1");
  CHECK_THAT(server.bodies.back(), Catch::Contains("\"uid\":\"u\""));
}

TEST_CASE("a refused Job and a server that is away are different errors") {
  Server server;
  const auto refused =
      submit(server, {kOwner, {"POST", "/jobs", 403, R"({"message": "exceeded quota: gpus"})"}});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kInvalidArgument);
  CHECK_THAT(refused.error().message, Catch::Contains("exceeded quota"));
  for (const int status : {401, 429, 500, 503}) {
    const auto away = submit(server, {kOwner, {"POST", "/jobs", status, ""}});
    REQUIRE_FALSE(away);
    CHECK(away.error().code == Code::kUnavailable);
  }
}

TEST_CASE("a gang gets its PodGroup once, in the version that the server has") {
  auto dir = TemporaryDirectory::create("det-kubernetes");
  REQUIRE(dir);
  ProviderConfig config = kubernetes_settings();
  config.gang = "pod_group";
  config.kubeconfig = write_kubeconfig(dir->path());
  // Calls that change something come from the thread of the test, those of the watches do not.
  std::vector<std::string> made, removed;
  int refusal = 0;
  Kubernetes engine(config, "det-c-gpu", [&](const storage::Exchange& request) -> Result<storage::Answer> {
    const auto is = [&](const char* part) { return request.url.find(part) != request.url.npos; };
    if (request.method == "DELETE") removed.push_back(request.url);
    if (request.method == "POST") {
      made.push_back(request.url);
      if (is("v1alpha3")) return storage::Answer{.status = 404, .body = "{}"};
      return storage::Answer{.status = refusal ? refusal : 201, .body = R"({"message": "not today"})"};
    }
    if (is("watch=")) {
      while (!request.expired()) Event().wait_for(std::chrono::milliseconds(5));
      return fail(Code::kUnavailable, "ended");
    }
    return storage::Answer{
        .status = 200,
        .body = list_of("1", is("/jobs") ? job("det-c-gpu-1") + "," + job("det-c-gpu-2") : "")};
  });
  SECTION("and no further one") {
    REQUIRE(engine.list());
    REQUIRE(engine.list());
    REQUIRE(made.size() == 4);
    CHECK_THAT(made[1], Catch::EndsWith("/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"));
    CHECK(removed.empty());
  }
  SECTION("or ends with the reason") {
    refusal = 403;
    const auto jobs = engine.list();
    REQUIRE(jobs);
    REQUIRE(jobs->size() == 2);
    CHECK((*jobs)[0].phase == PilotPhase::kEnded);
    CHECK_THAT((*jobs)[0].reason, Catch::Contains("not today"));
    CHECK(removed.size() >= 2);
  }
}

TEST_CASE("a kubeconfig is read with its files, and what is not supported is refused") {
  auto dir = TemporaryDirectory::create("det-kubernetes");
  REQUIRE(dir);
  ProviderConfig config = kubernetes_settings();
  config.kubeconfig = dir->path() + "/config";
  const auto with = [&](const std::string& cluster, const std::string& user) {
    REQUIRE(write_file_atomic(
        config.kubeconfig,
        "{contexts: [{name: c, context: {cluster: k, user: u, namespace: team}}], clusters: "
        "[{name: k, cluster: {server: 'https://api'" +
            cluster + "}}], users: [{name: u, user: {" + user + "}}], current-context: c}"));
    return read_access(config);
  };
  REQUIRE(write_file_atomic(dir->path() + "/token", "first\n"));
  const std::string files = ", certificate-authority-data: " + to_base64("CA");
  auto access = with(files, "tokenFile: token");
  REQUIRE(access);
  CHECK(access->server == "https://api");
  CHECK(access->name_space == "team");
  CHECK(access->token == "first");
  CHECK(access->tls.authorities == "CA");
  REQUIRE(write_file_atomic(dir->path() + "/token", "second\n"));
  CHECK(read_access(config)->token == "second");
  config.name_space = "pilots";
  CHECK(with(files, "tokenFile: token")->name_space == "pilots");
  const std::pair<Result<Access>, const char*> refused[] = {
      {with(", insecure-skip-tls-verify: true", "token: t"), "insecure-skip-tls-verify"},
      {with("", "exec: {command: x}"), "exec"},
      {with(", certificate-authority: missing.pem", "token: t"), "missing.pem"}};
  for (const auto& [result, part] : refused) {
    REQUIRE_FALSE(result);
    CHECK_THAT(result.error().message, Catch::Contains(part));
  }
  config.context = "other";
  CHECK_THAT(with("", "token: t").error().message, Catch::Contains("no context \"other\""));
  config.kubeconfig.clear();
  CHECK_THAT(read_access(config, dir->path()).error().message, Catch::Contains("kubeconfig of the provider"));
}

}  // namespace
}  // namespace det::engines
