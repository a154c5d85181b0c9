#include "master/engines/slurm.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "common/base/text.h"
#include "master/engines/job_size.h"

namespace det::engines {
namespace {

constexpr std::int64_t kMaxOutput = 8 << 20;

/// Quotes a word for the shell.
std::string quote(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string first_line(std::string_view text) { return std::string(trim(text.substr(0, text.find('\n')))); }

/// Returns why a command failed.
std::string why(const std::string& program, const ProcessResult& result) {
  if (result.timed_out)
    return program + " did not end within " + std::to_string(kCommandLimit.count()) + " s";
  const std::string line = first_line(result.err);
  return line.empty() ? program + " ended with " + to_string(result.status) : line;
}

/// Whether the error of sbatch is about the connection and not about the job.
bool is_unreachable(const ProcessResult& result) {
  constexpr std::array kTexts = {"Unable to contact",           "Socket timed out",
                                 "Connection refused",          "Communication connection failure",
                                 "Zero Bytes were transmitted", "Munge encode failed",
                                 "slurm_persist_conn"};
  return result.timed_out || std::any_of(kTexts.begin(), kTexts.end(), [&](const char* text) {
           return result.err.find(text) != std::string::npos;
         });
}

/// Reads one line of squeue.
Result<EngineJob> read_job(std::string_view line) {
  std::array<std::string_view, 4> fields;
  for (std::string_view& field : fields) {
    const std::size_t bar = line.find('|');
    if (bar == line.npos) return fail(Code::kDataLoss, "squeue printed an unknown line");
    field = line.substr(0, bar);
    line.remove_prefix(bar + 1);
  }
  EngineJob job{.id = std::string(fields[0]),
                .name = std::string(fields[3]),
                .phase = slurm_phase(fields[1]),
                .reason = std::string(line),
                .until = std::nullopt};
  // Ended jobs have no reason more often than not; the state says enough then.
  if (job.phase == core::PilotPhase::kEnded && (job.reason.empty() || job.reason == "None"))
    job.reason = std::string(fields[1]);
  if (job.phase == core::PilotPhase::kRunning) {
    job.reason.clear();
    std::int64_t seconds = 0;
    const auto read = std::from_chars(fields[2].data(), fields[2].data() + fields[2].size(), seconds);
    if (read.ec == std::errc() && seconds > 0) job.until = WallTime{seconds * 1'000'000};
  }
  return job;
}

}  // namespace

core::PilotPhase slurm_phase(std::string_view state) {
  constexpr std::array kPending = {"PENDING",     "CONFIGURING",  "REQUEUED",     "REQUEUE_HOLD",
                                   "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"};
  constexpr std::array kRunning = {"RUNNING", "SUSPENDED", "RESIZING", "SIGNALING", "STOPPED", "STAGE_OUT"};
  const auto is = [&](const char* name) { return state == name; };
  if (std::any_of(kPending.begin(), kPending.end(), is)) return core::PilotPhase::kPending;
  if (std::any_of(kRunning.begin(), kRunning.end(), is)) return core::PilotPhase::kRunning;
  // COMPLETING, too: the job takes no new work.
  return core::PilotPhase::kEnded;
}

Result<std::vector<EngineJob>> parse_squeue(std::string_view text) {
  std::vector<EngineJob> jobs;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (trim(line).empty()) continue;
    TRY_ASSIGN(EngineJob job, read_job(line));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

std::vector<std::string> sbatch_arguments(const ProviderConfig& config, const std::string& name, int nodes) {
  const std::string count = std::to_string(nodes);
  // Options of the administrator come last and replace output and chdir.
  std::vector<std::string> argv{
      "sbatch",           "--parsable",        "--job-name=" + name,  "--no-requeue",
      "--nodes=" + count, "--ntasks=" + count, "--ntasks-per-node=1", "--output=/dev/null",
      "--chdir=/"};
  if (config.walltime > Duration(0)) {
    // Slurm counts in minutes.
    const auto minutes = std::chrono::ceil<std::chrono::minutes>(config.walltime).count();
    argv.push_back("--time=" + std::to_string(minutes));
  }
  const std::pair<const char*, const std::string*> texts[] = {{"--partition=", &config.partition},
                                                              {"--qos=", &config.qos},
                                                              {"--account=", &config.account},
                                                              {"--constraint=", &config.constraint},
                                                              {"--gres=", &config.gres}};
  for (const auto& [option, value] : texts) {
    if (!value->empty()) argv.push_back(option + *value);
  }
  argv.insert(argv.end(), config.sbatch_options.begin(), config.sbatch_options.end());
  return argv;
}

std::string batch_script(const ProviderConfig& config, const std::string& pool, const std::string& name) {
  const auto idle = std::chrono::ceil<std::chrono::seconds>(config.idle_timeout).count() * kIdleTimeouts;
  // Slurm 22.05 does not set SLURM_JOB_END_TIME. Slurm sends SIGTERM to every process of the step:
  // the shell of a node stays to remove the directory.
  return R"(#!/bin/sh
end=${SLURM_JOB_END_TIME:-$(SLURM_TIME_FORMAT=%s squeue --noheader --jobs="$SLURM_JOB_ID" --format=%e)}
case $end in '' | *[!0-9]*) end= ;; esac
export DET_JOB_END="$end"
exec srun sh -c 'trap : TERM
dir=$(mktemp -d) || exit 1
"$@" --id "$0-$SLURM_PROCID" --data-dir "$dir" ${DET_JOB_END:+--until "$DET_JOB_END"}
code=$?
rm -rf "$dir"
exit $code' )" +
         quote(name) + " " + quote(config.agent) + " --config " + quote(config.agent_config) + " --pool " +
         quote(pool) + " --ephemeral --exit-when-idle " + std::to_string(idle) + "s\n";
}

RunCommand child_commands() {
  std::vector<std::string> env{"SLURM_TIME_FORMAT=%s"};
  for (const char* name : {"PATH", "HOME", "USER", "LOGNAME", "SLURM_CONF"}) {
    if (const std::string value = environment_variable(name); !value.empty())
      env.push_back(std::string(name) + "=" + value);
  }
  return [env](std::vector<std::string> argv, std::string_view input) {
    return run_process({.argv = std::move(argv), .env = env, .cwd = "/"},
                       {.timeout = kCommandLimit, .output_bytes = kMaxOutput}, input);
  };
}

Result<ProcessResult> Slurm::run(std::vector<std::string> argv, std::string_view input) {
  ++requests_;
  return run_(std::move(argv), input);
}

Result<std::vector<EngineJob>> Slurm::list() {
  const auto result = run({"squeue", "--me", "--noheader", "--states=all", "--format=%i|%T|%e|%j|%r"}, {});
  if (!result) return fail(Code::kUnavailable, result.error().message);
  if (!result->ok()) return fail(Code::kUnavailable, why("squeue", *result));
  if (result->truncated) return fail(Code::kUnavailable, "squeue printed more than 8 MiB");
  return parse_squeue(result->out);
}

Result<std::string> Slurm::submit(const core::SubmitPilot& pilot) {
  const ProviderConfig config = with_slots(pools_.at(pilot.pool), pilot.slots);
  const auto result =
      run(sbatch_arguments(config, pilot.name, pilot.nodes), batch_script(config, pilot.pool, pilot.name));
  if (!result) return fail(Code::kUnavailable, result.error().message);
  if (!result->ok())
    return fail(is_unreachable(*result) ? Code::kUnavailable : Code::kInvalidArgument,
                why("sbatch", *result));
  // "ID" or "ID;CLUSTER".
  const std::string line = first_line(result->out);
  return line.substr(0, line.find(';'));
}

Status Slurm::cancel(const std::vector<std::string>& ids) {
  std::vector<std::string> argv{"scancel", "--quiet"};
  argv.insert(argv.end(), ids.begin(), ids.end());
  const auto result = run(std::move(argv), {});
  if (!result) return fail(Code::kUnavailable, result.error().message);
  if (!result->ok()) return fail(Code::kUnavailable, why("scancel", *result));
  return {};
}

}  // namespace det::engines
