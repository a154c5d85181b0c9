// The master's options. deploy/master.yaml must equal the output of the option table.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "common/base/files.h"
#include "common/base/stop_signal.h"
#include "master/api/submit/secrets.h"
#include "master/config/options.h"
#include "test_paths.h"

namespace det {
namespace {

Result<MasterConfig> read(std::vector<std::string> arguments) {
  auto options = Options::load(master_options(), arguments, {});
  REQUIRE(options);
  return read_master_config(*options);
}

std::string problem(const Result<MasterConfig>& config) {
  REQUIRE_FALSE(config);
  return config.error().message;
}

TEST_CASE("deploy/master.yaml is the table of options, key for key") {
  CHECK(*read_file(source_path("/deploy/master.yaml")) == sample_config(master_options()));
}

TEST_CASE("the sample file itself is accepted") {
  auto options = Options::load(master_options(),
                               {"--config", source_path("/deploy/master.yaml"), "--data-dir", "/tmp/x"}, {});
  REQUIRE(options);
  CHECK(read_master_config(*options));
}

TEST_CASE("a data directory alone gives the defaults") {
  const auto config = read({"--data-dir", "/var/lib/det/"});
  REQUIRE(config);
  CHECK(config->data_dir == "/var/lib/det");
  CHECK(config->listen_address == "127.0.0.1");
  CHECK(config->listen_port == 8080);
  CHECK(config->agent_lease == std::chrono::minutes(10));
  CHECK(config->agent_kill_grace == kDefaultKillGrace);
  CHECK(config->checkpoint_storage.dump() ==
        R"({"type":"shared_fs","host_path":"/var/lib/det/checkpoints"})");
}

TEST_CASE("storage destinations come from the master storage and the list of allowed hosts") {
  const auto config = read({"--data-dir", "/d"});
  REQUIRE(config);
  CHECK_FALSE(config->storage_egress.anywhere);
  CHECK(config->storage_egress.hosts.empty());
  CHECK(config->storage_egress.own.empty());
  const auto listed =
      read({"--data-dir", "/d", "--allowed-storage-hosts", " 127.0.0.1, Minio.Example.org ,::1,"});
  REQUIRE(listed);
  CHECK(listed->storage_egress.hosts == std::vector<std::string>{"127.0.0.1", "minio.example.org", "::1"});
  CHECK_THAT(problem(read({"--data-dir", "/d", "--allowed-storage-hosts", "http://h"})),
             Catch::Contains("names of hosts"));
  const TemporaryDirectory place = TemporaryDirectory::create().value();
  REQUIRE(write_file_atomic(
      place.path() + "/master.yaml",
      "checkpoint_storage: {type: s3, bucket: abc, endpoint_url: \"http://127.0.0.1:9000\"}\n"));
  const auto owner = read({"--data-dir", "/d", "--config", place.path() + "/master.yaml"});
  REQUIRE(owner);
  CHECK(owner->storage_egress.own == "http://127.0.0.1:9000");
}

TEST_CASE("experiments may name the master's own storage and what the options add") {
  const auto config = read({"--data-dir", "/d"});
  REQUIRE(config);
  const auto shared = [](const char* path) { return Json{{"type", "shared_fs"}, {"host_path", path}}; };
  CHECK(config->storages.check(shared("/d/checkpoints")));
  CHECK_FALSE(config->storages.check(shared("/d")));
  CHECK_FALSE(config->storages.check(shared("/srv")));
  const auto more = read({"--data-dir", "/d", "--allowed-storage-paths", "/srv, /nfs/a",
                          "--allowed-storage-buckets", "s3://models/team, https://minio:9000/lab"});
  REQUIRE(more);
  CHECK(more->storages.check(shared("/nfs/a/b")));
  CHECK(more->storages.check({{"type", "s3"}, {"bucket", "lab"}, {"endpoint_url", "https://minio:9000"}}));
  CHECK_FALSE(more->storages.check({{"type", "s3"}, {"bucket", "lab"}}));
  CHECK_THAT(problem(read({"--data-dir", "/d", "--allowed-storage-paths", "srv"})),
             Catch::Contains("allowed_storage_paths") && Catch::Contains("absolute"));
  CHECK_THAT(problem(read({"--data-dir", "/d", "--allowed-storage-buckets", "models"})),
             Catch::Contains("allowed_storage_buckets") && Catch::Contains("s3://BUCKET"));
}

TEST_CASE("storages are defined by name, and their keys are not shown") {
  const TemporaryDirectory place = TemporaryDirectory::create().value();
  const std::string file = place.path() + "/master.yaml";
  const auto with = [&](const std::string& storages) {
    REQUIRE(write_file_atomic(file, "storages:\n" + storages));
    return read({"--data-dir", "/d", "--config", file});
  };
  const auto good = with(
      "- {name: cold, type: s3, bucket: models, prefix: det, access_key: key-4711, secret_key: secret-4711}\n"
      "- {name: archive, type: shared_fs, host_path: /nfs, per_workspace: true}\n");
  REQUIRE(good);
  CHECK(good->storages.section_of("archive", 3)->dump() ==
        R"({"type":"shared_fs","host_path":"/nfs","storage_path":"workspace-3","name":"archive"})");
  CHECK_FALSE(good->storages.section_of("cold", 3)->contains("secret_key"));
  CHECK(good->storages.bucket_of(good->storages.section_of("cold", 3).value())->secret_key == "secret-4711");
  Json shown = good->shown;
  api::mask_master_config(shown);
  CHECK_THAT(shown.dump(), !Catch::Contains("4711") && Catch::Contains("archive"));
  const std::vector<std::pair<std::string, std::string>> bad{
      {"- {type: shared_fs, host_path: /nfs}", "storages[0].name"},
      {"- {name: A B, type: shared_fs, host_path: /nfs}", "storages[0].name"},
      {"- {name: a}", "needs type"},
      {"- {name: a, type: shared_fs}", "needs type"},
      {"- {name: a, type: gcs, bucket: b}", "not available yet"},
      {"- {name: a, type: shared_fs, host_path: nfs}", "storages[0].host_path"},
      {"- {name: a, type: shared_fs, host_path: /nfs, size: 3}", "storages[0].size"},
      {"- {name: a, type: shared_fs, host_path: /nfs, save_trial_best: 3}", "storages[0].save_trial_best"},
      {"- {name: a, type: shared_fs, host_path: /nfs, per_workspace: 3}", "storages[0].per_workspace"},
      {"- {name: a, type: s3}", "storages[0].bucket"},
      {"- {name: a, type: directory, container_path: /a}\n- {name: a, type: directory, container_path: /b}",
       "twice"}};
  for (const auto& [text, words] : bad) {
    INFO(text);
    CHECK_THAT(problem(with(text + "\n")), Catch::Contains(words));
  }
}

TEST_CASE("listening beyond loopback requires TLS or explicit permission") {
  CHECK(problem(read({"--data-dir", "/d", "--listen", "0.0.0.0:80"})).find("security.tls.enabled") !=
        std::string::npos);
  CHECK(problem(read({"--data-dir", "/d", "--listen", "[::]:80"})).find("security.tls.enabled") !=
        std::string::npos);
  CHECK(read({"--data-dir", "/d", "--listen", "0.0.0.0:80", "--insecure-i-understand"}));
  CHECK(read({"--data-dir", "/d", "--listen", "0.0.0.0:80", "--security-tls-enabled"})->tls.enabled);
  CHECK(read({"--data-dir", "/d", "--listen", "[::1]:0"})->listen_address == "::1");
}

TEST_CASE("a custom certificate requires its key and enables TLS") {
  const auto config = read({"--data-dir", "/d", "--listen", "0.0.0.0:80", "--security-tls-cert", "/c",
                            "--security-tls-key", "/k"});
  REQUIRE(config);
  CHECK(config->tls.enabled);
  CHECK(config->tls.cert == "/c");
  CHECK(problem(read({"--data-dir", "/d", "--security-tls-cert", "/c"})).find("security.tls.key") !=
        std::string::npos);
  CHECK(problem(read({"--data-dir", "/d", "--security-tls-key", "/k"})).find("security.tls.cert") !=
        std::string::npos);
  CHECK(read({"--data-dir", "/d", "--security-tls-names", "a, b"})->tls.names ==
        std::vector<std::string>{"a", "b"});
}

TEST_CASE("malformed addresses are refused") {
  for (const char* text : {"8080", "localhost:8080", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:80x"}) {
    INFO(text);
    CHECK(problem(read({"--data-dir", "/d", "--listen", text})).find("numeric address") != std::string::npos);
  }
}

TEST_CASE("pool scheduling options override the top-level ones field by field") {
  auto dir = TemporaryDirectory::create("det-config");
  REQUIRE(dir);
  const auto with = [&](const std::string& text) {
    REQUIRE(write_file_atomic(dir->path() + "/m.yaml", text, 0600));
    return read({"--config", dir->path() + "/m.yaml", "--data-dir", "/d"});
  };
  const auto config = with(
      "scheduler: {preemption: false}\n"
      "resource_pools:\n  - pool_name: gpu\n    scheduler: {type: fair_share, preemption: true}\n  - "
      "pool_name: cpu\n");
  REQUIRE(config);
  CHECK(config->scheduler == SchedulerConfig{"priority", false});
  CHECK(config->pools.at("gpu") == SchedulerConfig{"fair_share", true});
  CHECK(config->pools.at("cpu") == SchedulerConfig{"priority", false});
  CHECK(read({"--data-dir", "/d"})->scheduler == SchedulerConfig{});
  const std::string message =
      problem(with("scheduler: {type: fair, preemption: 1}\n"
                   "resource_pools: [{pool_name: a}, {pool_name: a}, {scheduler: {}}]\n"));
  for (const char* part :
       {"scheduler.type", "scheduler.preemption", "there twice", "resource_pools[2].pool_name"}) {
    CHECK_THAT(message, Catch::Contains(part));
  }
}

TEST_CASE("task defaults of a pool are read and shown, with the startup hook") {
  auto dir = TemporaryDirectory::create("det-config");
  REQUIRE(dir);
  const auto with = [&](const std::string& defaults) {
    const std::string text =
        "resource_pools:\n  - pool_name: gpu\n    task_container_defaults: " + defaults + "\n";
    REQUIRE(write_file_atomic(dir->path() + "/m.yaml", text, 0600));
    return read({"--config", dir->path() + "/m.yaml", "--data-dir", "/d"});
  };
  const auto config = with("{startup_hook: 'echo hello', preemption_timeout: 30, work_dir: /x}");
  REQUIRE(config);
  const expconf::TaskDefaults& gpu = config->pool_task_defaults.at("gpu");
  CHECK(gpu.startup_hook == "echo hello");
  CHECK(gpu.config.at("preemption_timeout") == 30);
  REQUIRE(config->warnings.size() == 1);
  CHECK(config->warnings[0].path == "resource_pools[0].task_container_defaults.work_dir");
  const Json& shown = config->shown.at("resource_pools").at(0).at("task_container_defaults");
  CHECK(shown == Json{{"preemption_timeout", 30}, {"startup_hook", "echo hello"}});
  CHECK_THAT(problem(with("{preemption_timeout: x}")),
             Catch::Contains("resource_pools[0].task_container_defaults.preemption_timeout"));
  CHECK_THAT(problem(with("{startup_hook: [a]}")), Catch::Contains("startup_hook"));
  CHECK(read({"--data-dir", "/d"})->pool_task_defaults.empty());
}

TEST_CASE("the provider of a pool is read with all of its keys, and other keys are refused") {
  auto dir = TemporaryDirectory::create("det-config");
  REQUIRE(dir);
  const auto with = [&](const std::string& provider) {
    const std::string text = "resource_pools:\n  - pool_name: gpu\n    provider: " + provider + "\n";
    REQUIRE(write_file_atomic(dir->path() + "/m.yaml", text, 0600));
    return read({"--config", dir->path() + "/m.yaml", "--data-dir", "/d"});
  };
  const auto config = with(
      "{type: slurm, pilot: per_allocation, max_pilots: 3, slots_per_node: 4, max_nodes: 2, idle_timeout: "
      "90s, agent: "
      "/opt/det-agent,"
      " agent_config: /etc/agent.yaml, walltime: 4h, min_time_left: 5m, partition: gpu, qos: high, account: "
      "physics,"
      " constraint: a100, gres: 'gpu:4', sbatch_options: [--exclusive, --mem=4G]}");
  REQUIRE(config);
  const ProviderConfig expected{.max_pilots = 3,
                                .slots_per_node = 4,
                                .max_nodes = 2,
                                .per_allocation = true,
                                .idle_timeout = std::chrono::seconds(90),
                                .min_time_left = std::chrono::minutes(5),
                                .agent = "/opt/det-agent",
                                .walltime = std::chrono::hours(4),
                                .agent_config = "/etc/agent.yaml",
                                .partition = "gpu",
                                .qos = "high",
                                .account = "physics",
                                .constraint = "a100",
                                .gres = "gpu:4",
                                .sbatch_options = {"--exclusive", "--mem=4G"}};
  CHECK(config->providers.at("gpu") == expected);
  CHECK(with("{type: agents}")->providers.empty());
  const std::pair<const char*, const char*> refused[] = {
      {"{type: nomad}", "provider.type"},
      {"{type: agents, max_pilots: 2}", "provider.max_pilots"},
      {"{type: slurm, agent_config: a}", "slots_per_node"},
      {"{type: slurm, slots_per_node: 1, agent_config: a, pilot: per_alocation}", "did you mean"},
      {"{type: slurm, slots_per_node: 4}", "agent_config"},
      {"{type: slurm, slots_per_node: 0, agent_config: a}", "from 1 to 1024"},
      {"{type: slurm, slots_per_node: 1, agent_config: a, partitions: x}", "did you mean"},
      {"{type: slurm, slots_per_node: 1, agent_config: a, idle_timeout: soon}", "idle_timeout"},
      {"{type: slurm, slots_per_node: 1, agent_config: a, walltime: 2m}", "min_time_left"},
      {"{type: slurm, slots_per_node: 1, agent_config: a, sbatch_options: [-N2]}", "long options"},
      {"{type: slurm, slots_per_node: 1, agent_config: a, sbatch_options: [--requeue]}",
       "the master sets it"},
      {"{type: slurm, slots_per_node: 1, agent_config: a, rest_user: det}", "without rest_url"},
      {"{type: slurm, slots_per_node: 1, agent_config: a, rest_url: 'http://l:6820'}", "rest_token_file"},
      {"{type: slurm, slots_per_node: 1, agent_config: a, rest_url: l, rest_user: det, rest_token_file: /t}",
       "http://"},
      {"{type: slurm, slots_per_node: 1, agent_config: a, rest_url: 'http://l:6820', rest_user: det, "
       "rest_token_file: /t, sbatch_options: [--exclusive]}",
       "rest_job"},
      {"slurm", "must be a map"}};
  for (const auto& [provider, part] : refused) {
    INFO(provider);
    CHECK_THAT(problem(with(provider)), Catch::Contains(part));
  }
}

TEST_CASE("a provider of type kubernetes is read with all of its keys, and other keys are refused") {
  auto dir = TemporaryDirectory::create("det-config");
  REQUIRE(dir);
  const auto with = [&](const std::string& pool, const std::string& provider) {
    const std::string text = "resource_pools:\n  - pool_name: " + pool +
                             "\n    provider: {type: kubernetes, slots_per_node: 8, " + provider + "}\n";
    REQUIRE(write_file_atomic(dir->path() + "/m.yaml", text, 0600));
    return read({"--config", dir->path() + "/m.yaml", "--data-dir", "/d"});
  };
  const std::string least = "image: i, master: 'https://m:8080', join_token_secret: s";
  const auto config = with(
      "gpu", least +
                 ", kubeconfig: /k, context: c, namespace: n, resources: {nvidia.com/gpu: 8}, node_selector: "
                 "{a: b}, tolerations: [{key: k}], priority_class: low, labels: {l: m}, agent: a, "
                 "agent_arguments: [--slot-type=cuda], queue: q, gang: volcano, grace: 90s, start_timeout: "
                 "5m, pod_template: "
                 "{spec: {hostNetwork: true}}, max_pilots: 2, max_nodes: 4, idle_timeout: 1m, walltime: 2h");
  REQUIRE(config);
  ProviderConfig expected{.type = "kubernetes", .max_pilots = 2, .slots_per_node = 8, .max_nodes = 4};
  expected.idle_timeout = std::chrono::minutes(1);
  expected.agent = "a";
  expected.walltime = std::chrono::hours(2);
  expected.kubeconfig = "/k";
  expected.context = "c";
  expected.name_space = "n";
  expected.image = "i";
  expected.master = "https://m:8080";
  expected.token_secret = "s";
  expected.priority_class = "low";
  expected.queue = "q";
  expected.gang = "volcano";
  expected.agent_arguments = {"--slot-type=cuda"};
  expected.grace = std::chrono::seconds(90);
  expected.start_timeout = std::chrono::minutes(5);
  expected.resources = {{"nvidia.com/gpu", "8"}};
  expected.node_selector = {{"a", "b"}};
  expected.labels = {{"l", "m"}};
  expected.tolerations = Json::array({{{"key", "k"}}});
  expected.pod_template = {{"spec", {{"hostNetwork", true}}}};
  CHECK(config->providers.at("gpu") == expected);
  const std::pair<std::string, const char*> refused[] = {
      {"image: i", "join_token_secret"},
      {least + ", partition: p", "is no key of provider type kubernetes"},
      {least + ", grace: 5s", "at least 20s"},
      {least + ", gang: podgroup", "did you mean"},
      {least + ", gang: pod_group, queue: q", "Kueue"},
      {least + ", tolerations: {a: b}", "list of maps"},
      {least + ", resources: [a]", "map of texts"},
      {least + ", agent_arguments: [--id=x]", "the master sets it"},
      {least + ", pod_template: {status: {}}", "no field of a pod template"},
      {least + ", pod_template: {spec: {restartPolicy: Always}}", "restartPolicy"}};
  for (const auto& [provider, part] : refused) {
    INFO(provider);
    CHECK_THAT(problem(with("gpu", provider)), Catch::Contains(part));
  }
  CHECK_THAT(problem(with("GPU_1", least)), Catch::Contains("small letters"));
}

TEST_CASE("all contradictions are reported at once") {
  const std::string message =
      problem(read({"--agent-lease", "5s", "--kill-repeat", "0s", "--log-level", "loud"}));
  for (const char* part : {"data_dir", "agent_lease", "kill_repeat", "log.level"}) {
    INFO(part);
    CHECK(message.find(part) != std::string::npos);
  }
}

}  // namespace
}  // namespace det
