// Commands of Slurm, and rounds of its edge against a Slurm in memory.
#include "master/engines/slurm.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "common/base/files.h"
#include "common/base/secret.h"
#include "master/engines/edge.h"
#include "master/engines/job_size.h"
#include "master/engines/slurm_rest.h"

namespace det::engines {
namespace {

using core::PilotPhase;

ProviderConfig settings() {
  ProviderConfig config;
  config.slots_per_node = 4;
  config.agent_config = "/etc/det/agent.yaml";
  return config;
}

bool has(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

TEST_CASE("lines of squeue become jobs") {
  const auto jobs = parse_squeue(
      "12|PENDING|N/A|det-c-gpu-1|Resources\n"
      "13|RUNNING|1700000000|det-c-gpu-2|None\n"
      "14|CANCELLED|1700000000|det-c-gpu-3|None\n"
      "15|COMPLETING|1700000000|other|\n");
  REQUIRE(jobs);
  REQUIRE(jobs->size() == 4);
  CHECK((*jobs)[0] == EngineJob{"12", "det-c-gpu-1", PilotPhase::kPending, "Resources", std::nullopt});
  CHECK((*jobs)[1] == EngineJob{"13", "det-c-gpu-2", PilotPhase::kRunning, "",
                                WallTime{std::int64_t{1700000000} * 1'000'000}});
  CHECK((*jobs)[2].phase == PilotPhase::kEnded);
  CHECK((*jobs)[2].reason == "CANCELLED");
  CHECK((*jobs)[3].phase == PilotPhase::kEnded);
  CHECK(parse_squeue("")->empty());
  CHECK_FALSE(parse_squeue("slurm_load_jobs error"));
}

TEST_CASE("every setting of a provider reaches sbatch") {
  ProviderConfig config = settings();
  config.partition = "gpu";
  config.qos = "high";
  config.account = "physics";
  config.constraint = "a100";
  config.gres = "gpu:4";
  config.walltime = std::chrono::seconds(90);
  config.sbatch_options = {"--exclusive"};
  const auto argv = sbatch_arguments(config, "det-c-gpu-1", 3);
  for (const char* one : {"--parsable", "--job-name=det-c-gpu-1", "--no-requeue", "--nodes=3", "--ntasks=3",
                          "--ntasks-per-node=1", "--time=2", "--partition=gpu", "--qos=high",
                          "--account=physics", "--constraint=a100", "--gres=gpu:4", "--exclusive"}) {
    INFO(one);
    CHECK(has(argv, one));
  }
  CHECK(argv.back() == "--exclusive");
}

TEST_CASE("the slots of a job replace their placeholder in every setting that has a size") {
  ProviderConfig config = settings();
  config.gres = "gpu:{slots}";
  config.sbatch_options = {"--exclusive", "--cpus-per-task={slots}", "--comment={slots} of {slots}"};
  config.agent_arguments = {"--cpu-slots={slots}"};
  config.resources = {{"nvidia.com/gpu", "{slots}"}, {"memory", "32Gi"}};
  const ProviderConfig sized = with_slots(config, 3);
  const auto argv = sbatch_arguments(sized, "n", 1);
  for (const char* one : {"--gres=gpu:3", "--exclusive", "--cpus-per-task=3", "--comment=3 of 3"}) {
    INFO(one);
    CHECK(has(argv, one));
  }
  CHECK(sized.agent_arguments == std::vector<std::string>{"--cpu-slots=3"});
  CHECK(sized.resources == Json{{"nvidia.com/gpu", "3"}, {"memory", "32Gi"}});
}

TEST_CASE("words of the script are quoted, and the agent has its pool and its guard") {
  ProviderConfig config = settings();
  CHECK_THAT(
      batch_script(config, "gpu", "n"),
      Catch::Contains("--config '/etc/det/agent.yaml' --pool 'gpu' --ephemeral --exit-when-idle 900s"));
  config.agent = "/opt/it's here/det-agent";
  CHECK_THAT(batch_script(config, "gpu", "n"), Catch::Contains("'/opt/it'\\''s here/det-agent'"));
}

TEST_CASE("jobs of slurmrestd are read in the forms of its releases, and those of other users are left out") {
  const Json response = *parse_json(R"({"jobs": [
    {"job_id": 12, "name": "det-c-gpu-1", "user_name": "det", "job_state": "PENDING",
     "state_reason": "Resources", "end_time": 0},
    {"job_id": 13, "name": "det-c-gpu-2", "user_name": "det", "job_state": ["RUNNING"],
     "state_reason": "None", "end_time": {"set": true, "infinite": false, "number": 1700000000}},
    {"job_id": 14, "name": "det-c-gpu-3", "user_name": "eve", "job_state": "RUNNING"},
    {"job_id": 15, "name": "det-c-gpu-4", "user_name": "det", "job_state": "TIMEOUT", "state_reason": "None"}
  ]})");
  const auto jobs = parse_rest_jobs(response, "det");
  REQUIRE(jobs);
  REQUIRE(jobs->size() == 3);
  CHECK((*jobs)[0] == EngineJob{"12", "det-c-gpu-1", PilotPhase::kPending, "Resources", std::nullopt});
  CHECK((*jobs)[1] == EngineJob{"13", "det-c-gpu-2", PilotPhase::kRunning, "",
                                WallTime{std::int64_t{1700000000} * 1'000'000}});
  CHECK((*jobs)[2].phase == PilotPhase::kEnded);
  CHECK((*jobs)[2].reason == "TIMEOUT");
  CHECK_FALSE(parse_rest_jobs(*parse_json(R"({"errors": []})"), "det"));
}

TEST_CASE("a call of slurmrestd has the token of its file, and its errors are classified") {
  auto dir = TemporaryDirectory::create("det-rest");
  REQUIRE(dir);
  ProviderConfig config = settings();
  config.rest_url = "http://login:6820";
  config.rest_user = "det";
  config.rest_token_file = dir->path() + "/token";
  config.rest_job = {{"comment", "trials"}};
  config.gres = "gpu:{slots}";
  std::vector<storage::Exchange> calls;
  std::string body;
  storage::Answer answer{.status = 200};
  SlurmRest engine(config, [&](const storage::Exchange& request) -> Result<storage::Answer> {
    calls.push_back(request);
    body = std::string(request.body);
    return answer;
  });
  const core::SubmitPilot pilot{.pool = "gpu", .name = "det-c-gpu-1", .nodes = 2, .slots = 4};
  CHECK(engine.submit(pilot).error().code == Code::kUnavailable);  // there is no token
  REQUIRE(write_file_atomic(config.rest_token_file, "secret\n", 0600));
  answer.body = R"({"job_id": 7, "errors": []})";
  CHECK(*engine.submit(pilot) == "7");
  REQUIRE(calls.size() == 1);
  CHECK(calls[0].url == "http://login:6820/slurm/v0.0.38/job/submit");
  CHECK(calls[0].headers.at("x-slurm-user-name") == "det");
  CHECK(calls[0].headers.at("x-slurm-user-token") == "secret");
  const Json sent = *parse_json(body);
  CHECK(sent["job"]["name"] == "det-c-gpu-1");
  CHECK(sent["job"]["nodes"] == 2);
  CHECK(sent["job"]["gres"] == "gpu:4");
  CHECK(sent["job"]["comment"] == "trials");
  CHECK(sent["script"] == batch_script(config, "gpu", "det-c-gpu-1"));
  config.rest_version = "v0.0.42";
  config.walltime = std::chrono::minutes(90);
  config.rest_job["environment"] = {{"SLURM_CONF", "/etc/slurm.conf"}};
  config.gres = "gpu:4,license:1";
  const Json later = rest_submission(config, pilot);
  CHECK(later["job"]["nodes"] == "2");
  CHECK(later["job"]["time_limit"]["number"] == 90);
  CHECK(later["job"]["environment"] ==
        Json{"PATH=/usr/local/bin:/usr/bin:/bin", "SLURM_CONF=/etc/slurm.conf"});
  CHECK(later["job"]["tres_per_node"] == "gres/gpu:4,gres/license:1");
  CHECK_FALSE(later["job"].contains("gres"));
  CHECK(later["job"]["script"] == batch_script(config, "gpu", "det-c-gpu-1"));
  // Slurm 24.11: it accepts the job without the field.
  answer.body = R"({"job_id": 9, "errors": [], "warnings": [{"source": "#/job/gres/", "description":
    "Ignoring unknown field \"gres\" of type string in DATA_PARSER_JOB_DESC_MSG"}]})";
  const auto dropped = engine.submit(pilot);
  REQUIRE_FALSE(dropped);
  CHECK(dropped.error().code == Code::kInvalidArgument);
  CHECK_THAT(dropped.error().message, Catch::Contains("unknown field \"gres\""));
  CHECK(calls.back().method == "DELETE");
  CHECK_THAT(calls.back().url, Catch::EndsWith("/job/9"));
  answer = {.status = 500, .body = R"({"errors": [{"error": "Invalid partition name specified"}]})"};
  CHECK_FALSE(engine.submit(pilot));
  answer = {.status = 500, .body = R"({"errors": [{"error": "Unable to contact slurm controller"}]})"};
  CHECK(engine.submit(pilot).error().code == Code::kUnavailable);
  // Slurm 22.05, when its controller does not reply or refuses the token.
  answer.body = R"({"errors": [{"description": "Failed while looking for jobs", "error_number": -1,
    "error": "Unspecified error", "source": "slurm_load_jobs"}], "jobs": []})";
  CHECK(engine.list().error().code == Code::kUnavailable);
  CHECK(engine.list().error().message == "Failed while looking for jobs: Unspecified error");
  answer = {.status = 401, .body = "Authentication failure"};
  CHECK(engine.list().error().code == Code::kUnavailable);
  answer = {.status = 404, .body = "Unable find requested URL."};
  CHECK_THAT(engine.list().error().message, Catch::Contains("rest_version v0.0.38"));
  CHECK(engine.take_requests() == 11);
}

/// A Slurm in memory, and a core that records its inputs.
struct Cluster {
  struct Job {
    std::string name, state = "PENDING", reason = "Priority";
  };
  std::map<int, Job> jobs;
  int next = 1, squeues = 0;
  bool away = false, loses_reply = false;
  std::string refusal;
  std::vector<core::Input> inputs;
  std::map<std::string, core::Pilot> pilots;

  Result<ProcessResult> run(const std::vector<std::string>& argv) {
    ProcessResult result;
    if (argv[0] == "squeue") ++squeues;
    if (away) return failed("slurm_load_jobs error: Unable to contact slurm controller");
    if (argv[0] == "squeue") {
      for (const auto& [id, job] : jobs)
        result.out += std::to_string(id) + "|" + job.state + "|N/A|" + job.name + "|" + job.reason + "\n";
    } else if (argv[0] == "sbatch") {
      if (!refusal.empty()) return failed("sbatch: error: " + refusal);
      const auto name = std::find_if(argv.begin(), argv.end(),
                                     [](const std::string& one) { return one.starts_with("--job-name="); });
      const int id = next++;
      jobs[id].name = name->substr(11);
      if (loses_reply) return failed("sbatch: error: Socket timed out on send/recv operation");
      result.out = std::to_string(id) + "\n";
    } else {
      for (std::size_t i = 2; i < argv.size(); ++i) jobs.at(std::stoi(argv[i])).state = "CANCELLED";
    }
    return result;
  }
  static Result<ProcessResult> failed(const std::string& text) {
    ProcessResult result;
    result.status.code = 1;
    result.err = text + "\n";
    return result;
  }
  Round round() {
    return Round({"gpu"}, "det-c-",
                 std::make_unique<Slurm>(
                     std::map<std::string, ProviderConfig>{{"gpu", settings()}},
                     [this](std::vector<std::string> argv, std::string_view) { return run(argv); }),
                 {.submit = [this](core::Input input) { inputs.push_back(std::move(input)); },
                  .pilots = [this]() -> Result<std::map<std::string, core::Pilot>> { return pilots; }});
  }
  template <typename T>
  std::vector<T> take() {
    std::vector<T> found;
    for (const core::Input& input : inputs) {
      if (auto* one = std::get_if<T>(&input)) found.push_back(*one);
    }
    inputs.clear();
    return found;
  }
};

const core::SubmitPilot kSubmit{"gpu", "det-c-gpu-1", 1};

TEST_CASE("a pilot is submitted once, and its changes are reported") {
  Cluster cluster;
  Round round = cluster.round();
  round.run({kSubmit});
  auto states = cluster.take<core::PilotState>();
  REQUIRE(states.size() == 1);
  CHECK(states[0].job == "1");
  CHECK(states[0].phase == PilotPhase::kPending);
  round.run({kSubmit});
  CHECK(cluster.jobs.size() == 1);
  states = cluster.take<core::PilotState>();
  REQUIRE_FALSE(states.empty());
  CHECK(states.back().reason == "Priority");
  round.run({});
  CHECK(cluster.take<core::PilotState>().empty());
  cluster.jobs[1].state = "RUNNING";
  round.run({});
  states = cluster.take<core::PilotState>();
  REQUIRE(states.size() == 1);
  CHECK(states[0].phase == PilotPhase::kRunning);
}

TEST_CASE("a submission whose reply is lost is found by its name after a restart") {
  Cluster cluster;
  cluster.loses_reply = true;
  cluster.round().run({kSubmit});
  cluster.loses_reply = false;
  cluster.round().run({kSubmit});
  CHECK(cluster.jobs.size() == 1);
}

TEST_CASE("the later one of two jobs with one name is canceled") {
  Cluster cluster;
  cluster.jobs[9] = {"det-c-gpu-1"};
  cluster.jobs[10] = {"det-c-gpu-1"};
  cluster.round().run({});
  CHECK(cluster.jobs[9].state == "PENDING");
  CHECK(cluster.jobs[10].state == "CANCELLED");
}

TEST_CASE("a refused submission ends the pilot with the reason of Slurm") {
  Cluster cluster;
  cluster.refusal = "invalid partition specified: gpu";
  cluster.round().run({kSubmit});
  const auto states = cluster.take<core::PilotState>();
  REQUIRE(states.size() == 1);
  CHECK(states[0].phase == PilotPhase::kEnded);
  CHECK_THAT(states[0].reason, Catch::Contains("invalid partition"));
}

TEST_CASE("jobs of other clusters and other users' names are left alone") {
  Cluster cluster;
  cluster.jobs[1] = {"det-other-gpu-1"};
  cluster.jobs[2] = {"train.sh"};
  cluster.jobs[3] = {"det-c-unknown-1"};
  cluster.round().run({core::CancelPilot{"gpu", "det-c-gpu-8"}});
  for (const auto& [id, job] : cluster.jobs) CHECK(job.state == "PENDING");
  const auto states = cluster.take<core::PilotState>();
  REQUIRE(states.size() == 1);
  CHECK(states[0].name == "det-c-gpu-8");
  CHECK(states[0].phase == PilotPhase::kEnded);
}

TEST_CASE("a Slurm that does not reply is said once, ends no pilot, and is said to be back") {
  Cluster cluster;
  cluster.jobs[1] = {"det-c-gpu-1"};
  cluster.pilots["det-c-gpu-1"] = {.id = 1, .name = "det-c-gpu-1", .pool = "gpu", .job = "1"};
  Round round = cluster.round();
  round.run({});
  cluster.take<core::PilotState>();
  cluster.away = true;
  round.run({kSubmit});
  round.run({});
  CHECK(std::count_if(cluster.inputs.begin(), cluster.inputs.end(), [](const core::Input& input) {
          return std::holds_alternative<core::PilotState>(input);
        }) == 0);
  auto said = cluster.take<core::ProviderState>();
  REQUIRE(said.size() == 1);
  CHECK_THAT(said[0].problem, Catch::Contains("Unable to contact"));
  cluster.away = false;
  round.run({});
  said = cluster.take<core::ProviderState>();
  REQUIRE(said.size() == 1);
  CHECK(said[0].problem.empty());
}

TEST_CASE("a Slurm that replies again may still carry out an abandoned submission") {
  Cluster cluster;
  Round round = cluster.round();
  round.run({});
  cluster.away = true;
  round.run({kSubmit});  // sbatch waits, and is ended after its time
  cluster.away = false;
  round.run({kSubmit});
  std::vector<core::Send> early{kSubmit};
  round.run_early(early);
  CHECK(cluster.jobs.empty());
  SECTION("Slurm carries it out behind the first list: there is one job") {
    cluster.jobs[cluster.next++] = {"det-c-gpu-1"};
    round.run({});
    round.run({kSubmit});
    CHECK(cluster.jobs.size() == 1);
  }
  SECTION("Slurm never received it: the second list decides that") {
    round.run({});
    CHECK(cluster.jobs.size() == 1);
  }
}

TEST_CASE("a pilot that Slurm has forgotten has ended") {
  Cluster cluster;
  cluster.pilots["det-c-gpu-1"] = {.id = 1, .name = "det-c-gpu-1", .pool = "gpu", .job = "5"};
  cluster.pilots["det-c-gpu-2"] = {.id = 2, .name = "det-c-gpu-2", .pool = "gpu"};
  cluster.round().run({});
  const auto states = cluster.take<core::PilotState>();
  REQUIRE(states.size() == 1);
  CHECK(states[0].name == "det-c-gpu-1");
  CHECK(states[0].phase == PilotPhase::kEnded);
}

TEST_CASE("a round follows after a second for each request, and has few submissions") {
  Cluster cluster;
  Round round = cluster.round();
  CHECK(round.run({}) == std::chrono::seconds(1));
  std::vector<core::Send> messages;
  for (int number = 1; number <= 6; ++number)
    messages.emplace_back(core::SubmitPilot{"gpu", "det-c-gpu-" + std::to_string(number), 1});
  CHECK(round.run(messages) == std::chrono::seconds(5));
  CHECK(cluster.jobs.size() == kMaxSubmissions);
  // A repeated message queues nothing twice.
  CHECK(round.run({messages.back()}) == std::chrono::seconds(3));
  CHECK(cluster.jobs.size() == 6);
  CHECK(round.run({}) == std::chrono::seconds(1));
  CHECK(cluster.jobs.size() == 6);
}

TEST_CASE("messages between two rounds are carried out at once on the newest list") {
  Cluster cluster;
  cluster.jobs[1] = {"det-c-gpu-1"};
  cluster.jobs[2] = {"det-c-gpu-5"};
  cluster.next = 3;
  Round round = cluster.round();
  std::vector<core::Send> messages{kSubmit, core::CancelPilot{"gpu", "det-c-gpu-5"},
                                   core::CancelPilot{"gpu", "det-c-gpu-6"},
                                   core::SubmitPilot{"gpu", "det-c-gpu-2", 1}};
  // Before the first list, jobs of an earlier process are not known.
  CHECK(round.run_early(messages) == Duration(0));
  CHECK(messages.size() == 4);
  round.run({});
  CHECK(round.run_early(messages) == std::chrono::seconds(2));
  CHECK(cluster.squeues == 1);
  CHECK(cluster.jobs.size() == 3);
  CHECK(cluster.jobs[2].state == "CANCELLED");
  // A pilot without a job waits for the next list.
  REQUIRE(messages.size() == 1);
  CHECK(std::get<core::CancelPilot>(messages[0]).name == "det-c-gpu-6");
  cluster.away = true;
  round.run({});
  messages = {core::SubmitPilot{"gpu", "det-c-gpu-3", 1}};
  cluster.away = false;
  CHECK(round.run_early(messages) == Duration(0));
  CHECK(cluster.jobs.size() == 3);
}

TEST_CASE("the jobs of several pilots are canceled by one request, and a queued submission is dropped") {
  Cluster cluster;
  for (int id = 1; id <= 3; ++id) cluster.jobs[id] = {"det-c-gpu-" + std::to_string(id)};
  Round round = cluster.round();
  CHECK(round.run({core::CancelPilot{"gpu", "det-c-gpu-1"}, core::CancelPilot{"gpu", "det-c-gpu-3"}}) ==
        std::chrono::seconds(2));
  CHECK(cluster.jobs[1].state == "CANCELLED");
  CHECK(cluster.jobs[2].state == "PENDING");
  CHECK(cluster.jobs[3].state == "CANCELLED");
  round.run({core::SubmitPilot{"gpu", "det-c-gpu-9", 1}, core::CancelPilot{"gpu", "det-c-gpu-9"}});
  CHECK(cluster.jobs.size() == 3);
}

TEST_CASE("one round calls squeue once, however many pilots there are") {
  Cluster cluster;
  for (int id = 1; id <= 500; ++id) cluster.jobs[id] = {"det-c-gpu-" + std::to_string(id)};
  cluster.round().run({});
  CHECK(cluster.squeues == 1);
}

}  // namespace
}  // namespace det::engines
