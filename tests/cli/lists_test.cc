// Lists, descriptions, logs, control verbs and downloads of the real program.
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "common/archive/archive.h"
#include "common/archive/gzip.h"
#include "common/base/json.h"
#include "common/base/text.h"
#include "fake_master.h"

namespace det::cli::test {
namespace {

v1::Experiment experiment(int id, v1::State state) {
  v1::Experiment made;
  made.set_id(id);
  made.set_name("mnist");
  made.set_username("admin");
  made.set_state(state);
  made.mutable_progress()->set_value(0.5);
  made.mutable_start_time()->set_seconds(1646187318);
  made.set_resource_pool("default");
  auto& fields = *made.mutable_config()->mutable_fields();
  (*fields["searcher"].mutable_struct_value()->mutable_fields())["smaller_is_better"].set_bool_value(false);
  fields["max_restarts"].set_number_value(5);
  return made;
}

v1::Checkpoint checkpoint(const std::string& uuid, double metric, int steps) {
  v1::Checkpoint made;
  made.set_uuid(uuid);
  made.set_state(v1::Checkpoint::STATE_COMPLETED);
  made.set_steps_completed(steps);
  made.mutable_training()->mutable_searcher_metric()->set_value(metric);
  made.mutable_training()->mutable_trial_id()->set_value(3);
  (*made.mutable_resources())["state_dict.pth"] = 2048;
  return made;
}

v1::WorkloadContainer training(int batches, double loss) {
  v1::WorkloadContainer made;
  made.mutable_training()->set_total_batches(batches);
  auto& fields = *made.mutable_training()->mutable_metrics()->mutable_avg_metrics()->mutable_fields();
  fields["loss"].set_number_value(loss);
  return made;
}

void fill(World& world) {
  world.experiments[1] = experiment(1, v1::STATE_COMPLETED);
  world.experiments[2] = experiment(2, v1::STATE_RUNNING);
  v1::Trial trial;
  trial.set_id(3);
  trial.set_experiment_id(1);
  trial.set_state(v1::STATE_COMPLETED);
  trial.set_latest_checkpoint_uuid("aaaa");
  for (const char* name : {"width", "lr", "depth", "batch", "gamma"}) {
    (*trial.mutable_hparams()->mutable_fields())[name].set_number_value(0.5);
  }
  world.trials = {trial};
  world.workloads = {training(100, 0.5), training(200, 0.25)};
  world.checkpoints = {checkpoint("aaaa", 0.8, 100), checkpoint("bbbb", 0.9, 200)};
  for (int i = 1; i <= 5; ++i) {
    v1::LogEntry entry;
    entry.set_id(std::to_string(i));
    entry.set_message("line " + std::to_string(i));
    world.log.push_back(entry);
  }
}

Json json_of(const ProcessResult& done) {
  INFO(done.err);
  REQUIRE(done.status.code == 0);
  auto json = parse_json(done.out);
  REQUIRE(json);
  return *json;
}

}  // namespace

TEST_CASE("experiment list prints a table, CSV or JSON, and the noun alone lists") {
  FakeMaster master;
  fill(master.world);
  const auto table = master.det({"experiment"});
  CHECK(table.status.code == 0);
  const auto lines = split(table.out, '\n');
  REQUIRE(lines.size() == 5);
  CHECK(lines[0].starts_with(" ID | Owner | Name  | Parent ID | State     | Progress | Started"));
  CHECK(lines[3].find("COMPLETED |    50.0% | 2022-03-02 02:15:18+0000 | N/A") != std::string::npos);
  const auto csv = split(master.det({"e", "ls", "--csv"}).out, '\n');
  CHECK(csv[0] == "ID,Owner,Name,Parent ID,State,Progress,Started,Ended,Resource Pool,Trials,Metric\r");
  CHECK(csv[1] == "2,admin,mnist,,RUNNING,50.0%,2022-03-02 02:15:18+0000,N/A,default,0,\r");
  const Json json = json_of(master.det({"e", "list", "--json"}));
  REQUIRE(json.size() == 2);
  CHECK(json[1]["state"] == "STATE_COMPLETED");
}

TEST_CASE("the best metric of an experiment is a column") {
  FakeMaster master;
  fill(master.world);
  master.world.experiments[1].set_searcher_metric("accuracy");
  master.world.experiments[1].mutable_best_trial_searcher_metric()->set_value(0.8213);
  CHECK(master.det({"e", "ls", "--csv"}).out.find(",0,accuracy=0.8213\r\n") != std::string::npos);
}

/// Lines in a fixed order: a Struct of protobuf is an unordered map, so its fields change places. Without
/// commas at their ends, which move with the last field.
static std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  for (std::string& line : lines)
    if (line.ends_with(',')) line.pop_back();
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST_CASE("-o selects the format of a list, and excludes the flags of the same meaning") {
  FakeMaster master;
  fill(master.world);
  for (const auto& [format, flag] : {std::pair{"json", "--json"}, std::pair{"yaml", "--yaml"},
                                     std::pair{"csv", "--csv"}, std::pair{"name", "--quiet"}}) {
    INFO(format);
    const auto done = master.det({"e", "ls", "-o", format});
    CHECK(sorted_lines(done.out) == sorted_lines(master.det({"e", "ls", flag}).out));
    CHECK(done.out != master.det({"e", "ls"}).out);
    CHECK(master.det({"e", "ls", "-o", format, flag}).status.code == 2);
  }
  CHECK(master.det({"e", "ls", "-o", "name"}).out == "2\n1\n");
  CHECK(master.det({"e", "ls", "-o", "xml"}).status.code == 2);
  // A description has no names.
  CHECK(master.det({"e", "describe", "1", "-o", "name"}).status.code == 2);
  CHECK(sorted_lines(master.det({"e", "describe", "1", "--output=json"}).out) ==
        sorted_lines(master.det({"e", "describe", "1", "--json"}).out));
}

TEST_CASE("--limit limits a list, and --pages all does not") {
  FakeMaster master;
  for (int id = 1; id <= 25; ++id) master.world.experiments[id] = experiment(id, v1::STATE_COMPLETED);
  CHECK(json_of(master.det({"e", "list", "--json"})).size() == 25);
  CHECK(json_of(master.det({"e", "list", "--json", "--limit", "10"})).size() == 10);
  CHECK(json_of(master.det({"e", "list", "--json", "--limit", "10", "--pages", "all"})).size() == 25);
  const Json page =
      json_of(master.det({"e", "list", "--json", "--limit", "10", "--offset", "5", "--pages", "1"}));
  REQUIRE(page.size() == 10);
  CHECK(page[0]["id"] == 20);
}

TEST_CASE("experiment describe --json is the experiment with its trials") {
  FakeMaster master;
  fill(master.world);
  const Json one = json_of(master.det({"experiment", "describe", "1", "--json"}));
  CHECK(one["id"] == 1);
  CHECK(one["state"] == "STATE_COMPLETED");
  REQUIRE(one["trials"].size() == 1);
  CHECK(one["trials"][0]["hparams"]["lr"] == 0.5);
  const Json two = json_of(master.det({"experiment", "describe", "1,2", "--json"}));
  CHECK(two.size() == 2);
  const std::string text = master.det({"experiment", "describe", "1", "--metrics"}).out;
  CHECK(text.find("loss=0.25") != std::string::npos);
  CHECK(text.find(R"({"batch":0.5,"depth":0.5,"gamma":0.5,"lr":0.5,"width":0.5})") != std::string::npos);
}

TEST_CASE("trial describe --metrics --json is the trial with its workloads") {
  FakeMaster master;
  fill(master.world);
  const Json trial = json_of(master.det({"trial", "describe", "3", "--metrics", "--json"}));
  CHECK(trial["latestCheckpointUuid"] == "aaaa");
  CHECK(trial["restarts"] == 0);
  REQUIRE(trial["workloads"].size() == 2);
  CHECK(trial["workloads"][1]["training"]["totalBatches"] == 200);
  CHECK(trial["workloads"][1]["training"]["metrics"]["avgMetrics"]["loss"] == 0.25);
}

TEST_CASE("control verbs print the action taken") {
  FakeMaster master;
  fill(master.world);
  CHECK(master.det({"e", "pause", "1"}).out == "Paused experiment 1\n");
  CHECK(master.det({"e", "unpause", "1"}).out == "Activated experiment 1\n");
  CHECK(master.det({"e", "cancel", "1"}).out == "Canceled experiment 1\n");
  CHECK(master.det({"e", "kill", "1"}).out == "Killed experiment 1\n");
  CHECK(master.det({"t", "kill", "3"}).out == "Killed trial 3\n");
  CHECK(master.world.actions ==
        std::vector<std::string>{"pause 1", "activate 1", "cancel 1", "kill 1", "kill trial 3"});
}

TEST_CASE("logs can be printed in full, from the head or tail, and filtered") {
  FakeMaster master;
  fill(master.world);
  CHECK(master.det({"trial", "logs", "3"}).out == "line 1\nline 2\nline 3\nline 4\nline 5\n");
  CHECK(master.det({"experiment", "logs", "1", "--head", "2"}).out == "line 1\nline 2\n");
  CHECK(master.det({"trial", "logs", "3", "--tail", "2"}).out == "line 4\nline 5\n");
  CHECK(master.det({"trial", "logs", "3", "--tail", "2", "-f"}).out == "line 4\nline 5\n");
  CHECK(master.det({"trial", "logs", "3", "--head", "2", "-f"}).out == "line 1\nline 2\n");
  CHECK(master.det({"task", "logs", "0f3a", "--head", "2"}).out == "line 1\nline 2\n");
  CHECK(master.det({"trial", "logs", "3", "-f", "--json"}).out.starts_with("{\"id\":\"1\""));
  master.world.log_requests.clear();
  master.det({"trial", "logs", "3", "--level", "warning", "--rank-id", "1", "--rank-id", "2", "--stdtype",
              "stderr", "--timestamp-after", "2022-03-02T02:15:18Z"});
  REQUIRE(master.world.log_requests.size() == 1);
  const v1::TrialLogsRequest& request = master.world.log_requests.front();
  CHECK(request.levels_size() == 3);
  CHECK(request.rank_ids_size() == 2);
  CHECK(request.stdtypes(0) == "stderr");
  CHECK(request.timestamp_after().seconds() == 1646187318);
  CHECK(master.det({"trial", "logs", "3", "--timestamp-after", "yesterday"}).status.code == 2);
}

TEST_CASE("a log is followed with growing pauses while the master is not ready") {
  FakeMaster master;
  fill(master.world);
  master.world.log_refusals = 4;
  const MonoTime start = mono_now();
  CHECK(master.det({"trial", "logs", "3", "-f", "--head", "1"}).out == "line 1\n");
  // 0.1 s + 0.2 s + 0.4 s + 0.8 s.
  CHECK(mono_now() - start >= std::chrono::milliseconds(1500));
  CHECK(master.world.log_requests.size() == 5);
}

TEST_CASE("wait ends with the experiment and returns 0 only if it completed") {
  FakeMaster master;
  fill(master.world);
  master.world.experiments[4] = experiment(4, v1::STATE_ERROR);
  CHECK(master.det({"experiment", "wait", "1"}).status.code == 0);
  CHECK(master.det({"experiment", "wait", "4"}).status.code == 1);
  CHECK(master.det({"experiment", "wait", "9"}).status.code == 1);
}

TEST_CASE("checkpoints are listed, best first on request, and downloaded completely") {
  FakeMaster master;
  fill(master.world);
  const Json best = json_of(master.det({"experiment", "lc", "1", "--best", "1", "--json"}));
  REQUIRE(best.size() == 1);
  CHECK(best[0]["uuid"] == "bbbb");
  CHECK(master.det({"checkpoint", "list", "1"}).out.find("1 files, 2.0KB") != std::string::npos);
  for (const char* uuid : {"aaaa", "bbbb"}) {
    master.world.checkpoint_archives[uuid] =
        pack_entries({{"state_dict.pth", std::string(2000, uuid[0])}, {"manifest.json", "{}"}}).value();
  }
  auto home = TemporaryDirectory::create();
  REQUIRE(home);
  const auto content = [&](const std::string& path) {
    return read_file(home->path() + "/" + path).value_or("nothing").substr(0, 1);
  };
  CHECK(master.det({"checkpoint", "download", "aaaa", "-o", "one"}, home->path()).status.code == 0);
  CHECK(content("one/state_dict.pth") == "a");
  const auto taken = master.det({"checkpoint", "download", "nope", "-o", "one"}, home->path());
  CHECK(taken.status.code != 0);
  CHECK(has(taken.err, "one is not empty; select another directory with -o"));
  REQUIRE(make_directories(home->path() + "/empty"));
  CHECK(master.det({"checkpoint", "download", "aaaa", "-o", "empty/"}, home->path()).status.code == 0);
  CHECK(content("empty/state_dict.pth") == "a");
  CHECK(master.det({"trial", "download", "3", "-q"}, home->path()).out == "checkpoints/aaaa\n");
  CHECK(master.det({"trial", "download", "3", "--best", "-o", "two"}, home->path()).status.code == 0);
  CHECK(content("two/state_dict.pth") == "b");
  CHECK(
      master.det({"experiment", "download", "1", "-o", "three", "--top-n", "2"}, home->path()).status.code ==
      0);
  CHECK(content("three/aaaa/state_dict.pth") == "a");
  CHECK(content("three/bbbb/state_dict.pth") == "b");
  CHECK(master.det({"checkpoint", "download", "nope"}, home->path()).status.code == 1);
}

TEST_CASE("files of a trial are listed, selected and downloaded, and none escapes the directory") {
  FakeMaster master;
  fill(master.world);
  auto home = TemporaryDirectory::create();
  REQUIRE(home);
  master.world.trial_files = {{"media/digit/1-d-image.png", "png"},
                              {"tensorboard/events", std::string(250, 'e')},
                              {"tensorboard2/other", "o"}};
  CHECK(json_of(master.det({"trial", "files", "3", "--json"})).size() == 3);
  CHECK(master.det({"trial", "download-files", "3", "tensorboard"}, home->path()).out ==
        "Downloaded 1 file to trial_3\n");
  CHECK(read_file(home->path() + "/trial_3/tensorboard/events").value() == std::string(250, 'e'));
  CHECK(master.det({"trial", "download-files", "3", "-o", "all"}, home->path()).out ==
        "Downloaded 3 files to all\n");
  CHECK(master.det({"trial", "download-files", "3", "none"}, home->path()).status.code == 1);
  master.world.trial_files = {{"../escaped", "x"}};
  CHECK(master.det({"trial", "download-files", "3", "-o", "bad"}, home->path()).status.code != 0);
  CHECK_FALSE(path_exists(home->path() + "/escaped"));
}

v1::TrialProfile profile_of(v1::ProfileStatus::State state, int batches = 0, const std::string& path = "") {
  v1::TrialProfile out;
  out.set_state(state);
  out.set_batches(batches);
  out.set_path(path);
  return out;
}

TEST_CASE("a trace is requested, awaited and written, compressed or not by the name of the file") {
  FakeMaster master;
  fill(master.world);
  auto home = TemporaryDirectory::create();
  REQUIRE(home);
  const std::string path = "media/profile/r/8-d-batches-4-7.pt.trace.json.gz",
                    text = R"({"traceEvents": []})";
  master.world.trial_files[path] = gzip(text);
  const std::vector replies{profile_of(v1::ProfileStatus::STATE_WAITING),
                            profile_of(v1::ProfileStatus::STATE_RECORDING, 2),
                            profile_of(v1::ProfileStatus::STATE_DONE, 4, path)};
  master.world.profiles = replies;
  const auto done = master.det({"trial", "profile", "3", "--batches", "4", "--memory"}, home->path());
  CHECK(done.out ==
        "Wrote trial_3.trace.json.gz. Open it at https://ui.perfetto.dev or in chrome://tracing\n");
  CHECK(read_file(home->path() + "/trial_3.trace.json.gz").value() == gzip(text));
  REQUIRE(master.world.profile_requests.size() == 1);
  CHECK(master.world.profile_requests[0].batches() == 4);
  CHECK(master.world.profile_requests[0].profile_memory());
  CHECK_FALSE(master.world.profile_requests[0].with_stack());

  // A restarted process has forgotten the request: it is sent again, with the same id.
  master.world.profile_requests.clear();
  master.world.profiles = replies;
  master.world.profiles.insert(master.world.profiles.begin() + 1, v1::TrialProfile());
  master.world.profiles.back().set_message("training has ended");
  const auto again = master.det({"trial", "profile", "3", "--batches", "9", "-o", "t.json"}, home->path());
  CHECK(again.status.ok());
  CHECK(has(again.err, "note: 4 of 9 batches were recorded: training has ended"));
  CHECK(read_file(home->path() + "/t.json").value() == text);
  REQUIRE(master.world.profile_requests.size() == 2);
  CHECK(master.world.profile_requests[0].request_id() == master.world.profile_requests[1].request_id());
}

TEST_CASE("a trace that cannot be recorded ends with the reason") {
  FakeMaster master;
  fill(master.world);
  auto home = TemporaryDirectory::create();
  REQUIRE(home);
  auto failed = profile_of(v1::ProfileStatus::STATE_FAILED);
  failed.set_message("the program has no batches");
  master.world.profiles = {profile_of(v1::ProfileStatus::STATE_WAITING), failed};
  auto result = master.det({"trial", "profile", "3"}, home->path());
  CHECK(result.status.code == 1);
  CHECK(has(result.err, "trial 3 has recorded no trace: the program has no batches"));
  result = master.det({"trial", "profile", "3"}, home->path());
  CHECK(result.status.code == 1);
  CHECK(has(result.err, "trial 3 has ended"));
  CHECK(master.det({"trial", "profile", "3", "--batches", "1001"}, home->path()).status.code != 0);
  CHECK_FALSE(path_exists(home->path() + "/trial_3.trace.json.gz"));
}

TEST_CASE("an archive that escapes its directory is refused and leaves no file") {
  FakeMaster master;
  fill(master.world);
  master.world.checkpoint_archives["aaaa"] = "this is no archive";
  auto home = TemporaryDirectory::create();
  REQUIRE(home);
  CHECK(master.det({"checkpoint", "download", "aaaa", "-o", "one"}, home->path()).status.code != 0);
  CHECK_FALSE(path_exists(home->path() + "/one/state_dict.pth"));
}

TEST_CASE("config prints YAML, and the model directory downloads as uploaded") {
  FakeMaster master;
  fill(master.world);
  CHECK(master.det({"experiment", "config", "1"}).out.find("max_restarts: 5\n") != std::string::npos);
  auto home = TemporaryDirectory::create();
  REQUIRE(home);
  CHECK(master.det({"e", "download-model-def", "1"}, home->path()).status.code == 0);
  CHECK(read_file(home->path() + "/experiment_1_model_def.tgz").value_or("") == "hello");
}

TEST_CASE("agents and slots are listed") {
  FakeMaster master;
  v1::Agent agent;
  agent.set_id("a1");
  agent.set_connected(true);
  agent.add_resource_pools("default");
  for (const char* id : {"0", "10", "2"}) {
    v1::Slot slot;
    slot.set_id(id);
    slot.set_enabled(true);
    slot.mutable_device()->set_type(v1::Device::TYPE_CUDA);
    (*agent.mutable_slots())[id] = slot;
  }
  (*agent.mutable_slots())["2"].mutable_container()->set_id("1.uuid.1");
  (*agent.mutable_slots())["2"].mutable_container()->set_trial_id(3);
  master.world.agents = {agent};
  const Json agents = json_of(master.det({"agent", "list", "--json"}));
  REQUIRE(agents.size() == 1);
  CHECK(agents[0]["id"] == "a1");
  CHECK(agents[0]["connected"] == true);
  CHECK(json_of(master.det({"slot", "list", "--json"})).size() == 3);
  const auto lines = split(master.det({"slot", "list", "--csv"}).out, '\n');
  REQUIRE(lines.size() == 5);
  CHECK(lines[1] == "a1,default,0,True,False,FREE,,cuda,,\r");
  CHECK(lines[2] == "a1,default,2,True,False,1.uuid.1,Trial 3,cuda,,\r");
  CHECK(lines[3].starts_with("a1,default,10,"));
}

TEST_CASE("each rung of a search is a row, and a search without rungs prints the reason") {
  FakeMaster master;
  const auto none = master.det({"experiment", "brackets", "1"});
  CHECK(none.status.code == 0);
  CHECK(none.out == "Experiment 1 has no brackets: its searcher stops no trial early\n");
  CHECK(json_of(master.det({"experiment", "brackets", "1", "--json"}))["brackets"].empty());

  master.world.brackets.set_time_metric("epochs");
  const auto add = [&](int most, std::vector<std::pair<int, int>> rungs, std::vector<int> trials) {
    v1::Bracket* bracket = master.world.brackets.add_brackets();
    bracket->set_max_trials(most);
    for (const auto& [length, reached] : rungs) {
      v1::Rung* rung = bracket->add_rungs();
      rung->set_length(length);
      rung->set_trials(reached);
    }
    for (int trial : trials) bracket->add_trial_ids(trial);
  };
  add(4, {{40, 3}, {80, 1}}, {1, 2, 4});
  add(2, {{80, 0}}, {3});
  CHECK(master.det({"e", "brackets", "1", "--csv"}).out ==
        "Bracket,Trials Created,Rung,Length (epochs),Trials Reached\r\n"
        "1,3/4,1,40,3\r\n1,3/4,2,80,1\r\n2,1/2,1,80,0\r\n");
  const Json json = json_of(master.det({"e", "brackets", "1", "--json"}));
  REQUIRE(json["brackets"].size() == 2);
  CHECK(json["brackets"][0]["trialIds"] == Json::array({1, 2, 4}));
}

}  // namespace det::cli::test
