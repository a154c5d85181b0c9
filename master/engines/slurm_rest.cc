#include "master/engines/slurm_rest.h"

#include <algorithm>

#include "common/base/files.h"
#include "common/base/text.h"
#include "master/engines/job_size.h"
#include "master/engines/slurm.h"

namespace det::engines {
namespace {

constexpr auto kRestConnect = std::chrono::seconds(4);
constexpr auto kRestStall = std::chrono::seconds(8);
constexpr JsonLimits kRestLimits{.bytes = 16 << 20, .depth = 64};
constexpr std::int64_t kMaxToken = 64 << 10;

/// Returns a number that releases write as 7 or as {"set": true, "infinite": false, "number": 7}; 0 if unset.
std::int64_t number_of(const Json& value) {
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_object() || !value.value("set", false) || value.value("infinite", false)) return 0;
  return value.contains("number") && value["number"].is_number_integer() ? value["number"].get<std::int64_t>()
                                                                         : 0;
}
/// Returns a text that releases write as "A" or as ["A", …].
std::string text_of(const Json& value) {
  const Json& one = value.is_array() && !value.empty() ? value[0] : value;
  return one.is_string() ? one.get<std::string>() : "";
}

/// Returns the errors of a response, or "".
std::string errors_of(const Json& response) {
  if (!response.contains("errors") || !response["errors"].is_array()) return "";
  std::vector<std::string> texts;
  for (const Json& one : response["errors"]) {
    std::vector<std::string> parts;
    for (const char* key : {"description", "error"}) {
      if (one.is_object() && one.contains(key) && !text_of(one[key]).empty())
        parts.push_back(text_of(one[key]));
    }
    texts.push_back(join(parts, ": "));
  }
  return join(texts, "; ");
}

/// Returns what slurmrestd says about fields of a request that it has dropped, or "".
std::string dropped_fields(const Json& response) {
  if (!response.contains("warnings") || !response["warnings"].is_array()) return "";
  std::vector<std::string> texts;
  for (const Json& one : response["warnings"]) {
    const std::string text = one.is_object() ? text_of(one.value("description", Json())) : "";
    if (text.find("Ignoring") != text.npos) texts.push_back(text);
  }
  return join(texts, "; ");
}

/// Slurm's controller does not reply to slurmrestd, or refuses the token. Slurm 22.05 says "Unspecified
/// error" in both cases.
bool is_away(const std::string& errors) {
  constexpr const char* kTexts[] = {"Unspecified error",  "Unable to contact", "timed out",
                                    "Connection refused", "communication",     "Zero Bytes",
                                    "authentication"};
  return std::any_of(std::begin(kTexts), std::end(kTexts),
                     [&](const char* text) { return errors.find(text) != errors.npos; });
}

/// Rewrites a job in the form of v0.0.40 and later. They accept that of v0.0.38, but drop with a warning what
/// they do not know, such as gres.
Json later_form(Json job, std::string script) {
  if (job["nodes"].is_number()) job["nodes"] = std::to_string(number_of(job["nodes"]));
  if (job.contains("time_limit") && job["time_limit"].is_number())
    job["time_limit"] = {{"set", true}, {"infinite", false}, {"number", number_of(job["time_limit"])}};
  if (const Json environment = job["environment"]; environment.is_object()) {
    job["environment"] = Json::array();
    for (const auto& [name, value] : environment.items())
      job["environment"].push_back(name + "=" +
                                   (value.is_string() ? value.get<std::string>() : dump_json(value)));
  }
  if (job.contains("gres") && job["gres"].is_string()) {
    std::vector<std::string> resources = split(job["gres"].get<std::string>(), ',');
    for (std::string& one : resources) one = "gres/" + one;
    job["tres_per_node"] = join(resources, ",");
    job.erase("gres");
  }
  job["script"] = std::move(script);
  return job;
}

}  // namespace

Result<std::vector<EngineJob>> parse_rest_jobs(const Json& response, const std::string& user) {
  const auto list = response.find("jobs");
  if (list == response.end() || !list->is_array())
    return fail(Code::kDataLoss, "slurmrestd replied without a list of jobs");
  std::vector<EngineJob> jobs;
  for (const Json& one : *list) {
    if (!one.is_object() || one.value("user_name", Json()) != user) continue;
    const std::string state = text_of(one.value("job_state", Json()));
    EngineJob job{.id = std::to_string(number_of(one.value("job_id", Json()))),
                  .name = text_of(one.value("name", Json())),
                  .phase = slurm_phase(state),
                  .reason = text_of(one.value("state_reason", Json())),
                  .until = std::nullopt};
    if (job.phase == core::PilotPhase::kEnded && (job.reason.empty() || job.reason == "None"))
      job.reason = state;
    if (job.phase == core::PilotPhase::kRunning) {
      job.reason.clear();
      const std::int64_t end = number_of(one.value("end_time", Json()));
      if (end > 0) job.until = WallTime{end * 1'000'000};
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

Json rest_submission(const ProviderConfig& config, const core::SubmitPilot& pilot) {
  Json job = {{"name", pilot.name},
              {"nodes", pilot.nodes},
              {"tasks", pilot.nodes},
              {"tasks_per_node", 1},
              {"requeue", false},
              {"standard_output", "/dev/null"},
              {"current_working_directory", "/"},
              {"environment", {{"PATH", "/usr/local/bin:/usr/bin:/bin"}}}};
  if (config.walltime > Duration(0))
    job["time_limit"] = std::chrono::ceil<std::chrono::minutes>(config.walltime).count();
  const std::pair<const char*, const std::string*> texts[] = {{"partition", &config.partition},
                                                              {"qos", &config.qos},
                                                              {"account", &config.account},
                                                              {"constraints", &config.constraint},
                                                              {"gres", &config.gres}};
  for (const auto& [key, value] : texts) {
    if (!value->empty()) job[key] = *value;
  }
  if (config.rest_job.is_object()) job.merge_patch(config.rest_job);
  std::string script = batch_script(config, pilot.pool, pilot.name);
  if (config.rest_version != kRestVersions[0])
    return {{"job", later_form(std::move(job), std::move(script))}};
  return {{"job", std::move(job)}, {"script", std::move(script)}};
}

Result<Json> SlurmRest::call(const std::string& method, const std::string& path, const Json& body) {
  ++requests_;
  auto token = read_file(config_.rest_token_file, kMaxToken);
  if (!token) return fail(Code::kUnavailable, token.error().message);
  storage::Exchange request{.method = method,
                            .url = config_.rest_url + "/slurm/" + config_.rest_version + path};
  request.headers["accept"] = "application/json";
  request.headers["x-slurm-user-name"] = config_.rest_user;
  request.headers["x-slurm-user-token"] = std::string(trim(*token));
  const std::string text = body.is_null() ? "" : dump_json(body);
  if (!text.empty()) request.headers["content-type"] = "application/json";
  request.body = text;
  request.connect_timeout = kRestConnect;
  request.stall_timeout = kRestStall;
  request.most_bytes = kRestLimits.bytes;
  request.expired = [this] { return stopped_.is_set(); };
  const auto answer = http_(request);
  if (!answer) return fail(Code::kUnavailable, answer.error().message);
  auto json = parse_json(answer->body, kRestLimits);
  const bool readable = json && json->is_object();
  const std::string errors = readable ? errors_of(*json) : "";
  if (answer->status / 100 == 2 && errors.empty()) {
    if (readable) return std::move(*json);
    return fail(Code::kUnavailable, "slurmrestd replied with text that is no JSON object");
  }
  std::string message =
      errors.empty() ? "slurmrestd replied with HTTP " + std::to_string(answer->status) : errors;
  if (answer->status == 404 && errors.empty())
    message += "; check rest_url, and that its release offers rest_version " + config_.rest_version;
  // An expired token is replaced by the administrator, and the call repeated.
  const bool away = answer->status == 401 || answer->status >= 502 || errors.empty() || is_away(errors);
  return fail(away ? Code::kUnavailable : Code::kInvalidArgument, message);
}

Result<std::vector<EngineJob>> SlurmRest::list() {
  auto response = call("GET", "/jobs", nullptr);
  if (!response) return fail(Code::kUnavailable, response.error().message);
  return parse_rest_jobs(*response, config_.rest_user);
}

Result<std::string> SlurmRest::submit(const core::SubmitPilot& pilot) {
  const auto response = call("POST", "/job/submit", rest_submission(with_slots(config_, pilot.slots), pilot));
  if (!response && response.error().code == Code::kInvalidArgument) {
    // Slurm 22.05 also replies with an error when it has accepted a job that must wait for nodes.
    const auto jobs = list();
    if (!jobs) return fail(Code::kUnavailable, jobs.error().message);
    for (const EngineJob& job : *jobs) {
      if (job.name == pilot.name && job.phase != core::PilotPhase::kEnded) return job.id;
    }
  }
  if (!response) return tl::unexpected<Error>(response.error());
  const std::int64_t id = number_of(response->value("job_id", Json()));
  if (id <= 0)
    return fail(Code::kUnavailable, "slurmrestd replied to a submission without the id of its job");
  const std::string dropped = dropped_fields(*response);
  if (dropped.empty()) return std::to_string(id);
  // The job would run without what the administrator has asked for.
  TRY(cancel({std::to_string(id)}));
  return fail(Code::kInvalidArgument,
              dropped + "; spell the keys of rest_job as " + config_.rest_version + " does");
}

Status SlurmRest::cancel(const std::vector<std::string>& ids) {
  for (const std::string& id : ids) {
    const auto done = call("DELETE", "/job/" + id, nullptr);
    // A job that has ended cannot be canceled.
    if (!done && done.error().code == Code::kUnavailable) return tl::unexpected<Error>(done.error());
  }
  return {};
}

}  // namespace det::engines
