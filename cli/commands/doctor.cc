// `det doctor`: checks everything between the user and a running trial, and prints a remedy for each problem.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/output/print.h"
#include "cli/output/terminal.h"
#include "common/base/units.h"
#include "common/client/config_file.h"
#include "det/v1/cluster.methods.h"
#include "det/v1/diagnosis.methods.h"

namespace det::cli {
namespace {

/// Thresholds: round trip to the master and database query in ms; clock difference in s.
constexpr double kSlowMs = 200, kSlowDatabaseMs = 50, kClockWarn = 2, kClockFail = 60;
/// Free storage below which a warning is printed: 5 GiB.
constexpr std::int64_t kLittleSpace = 5LL << 30;

/// Result of one check; `remedy` is "" without a problem.
struct Finding {
  enum class Level { kOk, kWarn, kFail };
  Level level = Level::kOk;
  std::string what, found, remedy;
};
using Level = Finding::Level;

/// Collects findings in the order of the checks.
class Report {
 public:
  void ok(std::string what, std::string found) { add({Level::kOk, std::move(what), std::move(found), ""}); }
  void warn(std::string what, std::string found, std::string remedy) {
    add({Level::kWarn, std::move(what), std::move(found), std::move(remedy)});
  }
  void fail(std::string what, std::string found, std::string remedy) {
    add({Level::kFail, std::move(what), std::move(found), std::move(remedy)});
  }
  const std::vector<Finding>& findings() const { return findings_; }
  bool failed() const {
    return std::any_of(findings_.begin(), findings_.end(),
                       [](const Finding& each) { return each.level == Level::kFail; });
  }

 private:
  void add(Finding finding) { findings_.push_back(std::move(finding)); }
  std::vector<Finding> findings_;
};

const char* level_text(Level level) {
  return level == Level::kOk ? "ok" : level == Level::kWarn ? "warn" : "fail";
}

std::string milliseconds_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f ms", value);
  return text;
}

/// Checks det.yaml.
void check_client(Report& report) {
  const std::string directory = config_directory();
  if (directory.empty()) {
    report.warn("configuration", "HOME and XDG_CONFIG_HOME are not set", "set HOME or XDG_CONFIG_HOME");
    return;
  }
  const auto config = read_config_file(directory + "/det.yaml");
  if (!config) {
    const Error& error = config.error();
    report.fail("configuration", error.problems.empty() ? error.message : error.problems.front().message,
                "correct " + directory + "/det.yaml");
  } else {
    report.ok("configuration", directory);
  }
}

/// Checks address, response time and version of the master. Returns false when the master is unreachable:
/// further checks would fail for the same reason.
bool check_master(Client& client, Report& report, std::string& version) {
  const MonoTime begin = mono_now();
  const auto response = client.call(v1::ClusterService::GetMaster, v1::GetMasterRequest());
  const double took = static_cast<double>((mono_now() - begin).count()) / 1000;
  if (!response) {
    report.fail("master", response.error().message,
                "start det-master, or select another master with -m or DET_MASTER");
    return false;
  }
  version = response->release();
  const std::string found = client.address().url() + ", " + milliseconds_text(took);
  if (took > kSlowMs) {
    report.warn("master", found, "check the network and the load of the master's machine");
  } else {
    report.ok("master", found);
  }
  if (version == DET_VERSION) {
    report.ok("versions", "det and master are " + version);
  } else {
    report.warn("versions", "det is " DET_VERSION ", the master is " + version, "install the same version");
  }
  return true;
}

/// Checks the login. Returns false without one.
bool check_login(Session& session, Report& report) {
  const auto client = session.client();
  if (!client) {
    report.fail("login", client.error().message, "run `det user login`");
    return false;
  }
  const auto user = session.user_name();
  // user_name() succeeds locally for a stored login, which may have expired. This call needs a valid one.
  const auto asked = (*client)->call(v1::DiagnosisService::GetDiagnosis, v1::GetDiagnosisRequest());
  if (!user || (!asked && asked.error().code == Code::kUnauthenticated)) {
    report.fail("login", (user ? asked.error() : user.error()).message, "run `det user login`");
    return false;
  }
  report.ok("login", *user);
  return true;
}

/// Compares this machine's clock with the master's.
void check_clock(const v1::GetDiagnosisResponse& answer, Report& report) {
  const double theirs = static_cast<double>(answer.now().seconds()) + answer.now().nanos() / 1e9;
  const double off = std::abs(static_cast<double>(wall_now().micros) / 1e6 - theirs);
  char text[64];
  std::snprintf(text, sizeof text, "%.1f s from the master's", off);
  if (off > kClockFail) {
    report.fail("clock", text, "set the clock of this machine or the master's (NTP)");
  } else if (off > kClockWarn) {
    report.warn("clock", text, "set the clock of this machine or the master's (NTP)");
  } else {
    report.ok("clock", text);
  }
}

void check_storage(const v1::StorageDiagnosis& storage, Report& report) {
  const std::string found = storage.type() + (storage.path().empty() ? "" : " " + storage.path());
  if (!storage.problem().empty()) {
    report.fail("storage", (found.empty() ? "" : found + ": ") + storage.problem(),
                "set checkpoint_storage in the master's configuration to a writable path");
  } else if (storage.path().starts_with("s3://")) {
    // Buckets report no free space.
    report.ok("storage", found + ", written and read");
  } else if (storage.path().empty()) {
    report.warn("storage", found, "the master does not check this storage type; run a trial to test it");
  } else if (storage.free_bytes() < kLittleSpace) {
    report.warn("storage", found + ", " + format_bytes(storage.free_bytes()) + " free",
                "delete experiments or checkpoints");
  } else {
    report.ok("storage", found + ", " + format_bytes(storage.free_bytes()) + " free");
  }
}

/// Checks database, storage and clock with a diagnosis made by the master.
void check_diagnosis(Client& client, Report& report) {
  const auto answer = client.call(v1::DiagnosisService::GetDiagnosis, v1::GetDiagnosisRequest());
  if (!answer && answer.error().code == Code::kUnimplemented) {
    report.warn("database", "the master does not support diagnosis", "upgrade the master");
    return;
  }
  if (!answer) {
    report.fail("database", answer.error().message, "see the master's log");
    return;
  }
  const v1::DatabaseDiagnosis& database = answer->database();
  const std::string found = "PostgreSQL " + database.version() + ", " + format_bytes(database.bytes()) +
                            ", " + milliseconds_text(database.milliseconds());
  if (database.milliseconds() > kSlowDatabaseMs) {
    report.warn("database", found, "check the load and the disk of the database machine");
  } else {
    report.ok("database", found);
  }
  check_storage(answer->storage(), report);
  check_clock(*answer, report);
}

std::string count_text(std::size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

/// Counts the slots of all agents by kind, and those that can be scheduled.
void check_slots(const v1::GetAgentsResponse& response, Report& report) {
  std::map<v1::Device::Type, std::size_t> kinds;
  std::size_t usable = 0;
  for (const v1::Agent& agent : response.agents()) {
    for (const auto& [id, slot] : agent.slots()) {
      ++kinds[slot.device().type()];
      usable += agent.connected() && agent.enabled() && slot.enabled();
    }
  }
  const std::size_t gpus = kinds[v1::Device::TYPE_CUDA] + kinds[v1::Device::TYPE_ROCM];
  const std::string found = count_text(gpus, "GPU") + ", " +
                            count_text(kinds[v1::Device::TYPE_CPU], "CPU slot") + ", " +
                            std::to_string(usable) + " in service";
  if (usable == 0) {
    report.fail("slots", found, "start det-agent, or enable slots with `det slot enable`");
  } else if (gpus == 0) {
    report.warn("slots", found, "trials train on CPUs; for GPUs load the driver on the agents' machines");
  } else {
    report.ok("slots", found);
  }
}

/// Lists every agent that is disconnected, disabled, draining or of another version; counts the others.
void check_agents(Client& client, const std::string& version, Report& report) {
  const auto response = client.call(v1::ClusterService::GetAgents, v1::GetAgentsRequest());
  if (!response) {
    report.fail("agents", response.error().message, "see the master's log");
    return;
  }
  if (response->agents().empty()) {
    report.fail("agents", "none", "start det-agent on a machine with slots");
    return;
  }
  std::size_t healthy = 0;
  for (const v1::Agent& agent : response->agents()) {
    const std::string name = "agent " + agent.id();
    if (!agent.connected()) {
      report.fail(name, "disconnected", "check that det-agent runs, and see its log");
    } else if (agent.release() != version) {
      report.warn(name, "version " + agent.release(), "install the version of the master: " + version);
    } else if (!agent.enabled()) {
      report.warn(name, agent.draining() ? "draining" : "disabled", "det agent enable " + agent.id());
    } else {
      ++healthy;
    }
  }
  if (healthy > 0) report.ok("agents", count_text(healthy, "agent") + " connected");
  check_slots(*response, report);
}

void print_findings(const Report& report) {
  const bool color = wants_color(1);
  for (const Finding& each : report.findings()) {
    const char* paint = each.level == Level::kOk     ? "\033[32m"
                        : each.level == Level::kWarn ? "\033[33m"
                                                     : "\033[31m";
    const std::string level = level_text(each.level);
    std::cout << (color ? paint : "") << level << (color ? "\033[0m" : "")
              << std::string(6 - level.size(), ' ') << printable(each.what) << ": " << printable(each.found)
              << (each.remedy.empty() ? "" : "; " + printable(each.remedy)) << '\n';
  }
}

Result<int> run_checks(Session& session, const ValueOutput& output) {
  Report report;
  check_client(report);
  const auto client = session.anonymous();
  std::string version;
  // Each check presupposes the one before.
  if (client && check_master(**client, report, version) && check_login(session, report)) {
    check_diagnosis(**client, report);
    check_agents(**client, version, report);
  }
  if (output.structured()) {
    Json list = Json::array();
    for (const Finding& each : report.findings())
      list.push_back({{"level", level_text(each.level)},
                      {"what", each.what},
                      {"found", each.found},
                      {"mend", each.remedy}});
    output.print_value(list);
  } else {
    print_findings(report);
  }
  // Warnings do not change the exit code.
  return report.failed() ? 1 : 0;
}

}  // namespace

Command doctor_command() {
  return {{"doctor"}, "Check master, login, database, storage, clock and agents.", action(run_checks)};
}

}  // namespace det::cli
