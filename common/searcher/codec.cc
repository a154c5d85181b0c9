// JSON forms of events and of a stored search. Stored searches outlive releases: fields may be added, never
// renamed or removed.
#include <array>

#include "common/base/json.h"
#include "common/searcher/state.h"

namespace det::searcher {
namespace {

constexpr std::array<const char*, 4> kReasons = {"completed", "errored", "canceled", "invalid_hp"};
/// One letter for each TrialState, in the order of the enum.
constexpr std::string_view kStateLetters = "rshCEXI";
static_assert(kStateLetters.size() == kTrialStates);

tl::unexpected<Error> damaged(const std::string& what) {
  return fail(Code::kDataLoss, "stored search: " + what);
}

/// Returns the member `key` if it is present and of the right type. Errors: kDataLoss.
template <typename T>
Result<T> member(const nlohmann::json& json, const char* key, bool (nlohmann::json::*is)() const noexcept) {
  auto it = json.is_object() ? json.find(key) : json.end();
  if (!json.is_object() || it == json.end() || !((*it).*is)())
    return damaged(std::string("\"") + key + "\" is missing or of the wrong type");
  return it->get<T>();
}

Result<TrialNumber> read_trial(const nlohmann::json& json) {
  TRY_ASSIGN(const auto trial, member<std::uint64_t>(json, "trial", &nlohmann::json::is_number_unsigned));
  if (trial > std::numeric_limits<TrialNumber>::max()) return damaged("\"trial\" is too large");
  return static_cast<TrialNumber>(trial);
}

Result<double> read_real(const nlohmann::json& json, const char* key) {
  const auto value = json.contains(key) ? read_double(Json(json[key])) : std::nullopt;
  if (!value) return damaged(std::string("\"") + key + "\" is missing or no number");
  return *value;
}

Result<std::optional<std::int64_t>> read_total(const nlohmann::json& json, const char* key) {
  if (!json.contains(key)) return std::nullopt;
  TRY_ASSIGN(const auto value, member<std::int64_t>(json, key, &nlohmann::json::is_number_integer));
  return value;
}

/// The trials of "behind", which only extensions of running trials have.
Result<std::vector<TrialNumber>> read_behind(const nlohmann::json& json) {
  std::vector<TrialNumber> trials;
  const auto behind = json.find("behind");
  if (behind == json.end()) return trials;
  if (!behind->is_array()) return damaged("\"behind\" is no list");
  for (const nlohmann::json& trial : *behind) {
    if (!trial.is_number_unsigned() || trial.get<std::uint64_t>() > std::numeric_limits<TrialNumber>::max())
      return damaged("\"behind\" names no trial: " + trial.dump());
    trials.push_back(trial.get<TrialNumber>());
  }
  return trials;
}

Result<ExitReason> read_reason(const nlohmann::json& json) {
  TRY_ASSIGN(const auto reason, member<std::string>(json, "reason", &nlohmann::json::is_string));
  for (std::size_t i = 0; i < kReasons.size(); ++i) {
    if (reason == kReasons[i]) return static_cast<ExitReason>(i);
  }
  return damaged("unknown exit reason \"" + reason + "\"");
}

}  // namespace

nlohmann::json to_json(const Event& event) {
  if (auto* validated = std::get_if<Validated>(&event)) {
    return {{"type", "validated"},
            {"trial", validated->trial},
            {"steps_completed", validated->steps_completed},
            {"metric", nlohmann::json(json_double(validated->metric))},
            {"time", nlohmann::json(json_double(validated->time))}};
  }
  if (auto* exited = std::get_if<Exited>(&event)) {
    return {{"type", "exited"},
            {"trial", exited->trial},
            {"reason", kReasons[static_cast<std::size_t>(exited->reason)]}};
  }
  if (auto* extended = std::get_if<Extended>(&event)) {
    nlohmann::json json{{"type", "extended"}};
    if (extended->max_trials) json["max_trials"] = *extended->max_trials;
    if (extended->max_time) json["max_time"] = *extended->max_time;
    if (!extended->behind.empty()) json["behind"] = extended->behind;
    return json;
  }
  if (auto* retried = std::get_if<Retried>(&event)) {
    nlohmann::json json{{"type", "retried"}, {"trial", retried->trial}};
    if (retried->canceled) json["canceled"] = true;
    return json;
  }
  return {{"type", "started"}};
}

Result<Event> event_from_json(const nlohmann::json& json) {
  TRY_ASSIGN(const auto type, member<std::string>(json, "type", &nlohmann::json::is_string));
  if (type == "started") return Event{Started{}};
  if (type == "extended") {
    TRY_ASSIGN(const auto max_trials, read_total(json, "max_trials"));
    TRY_ASSIGN(const auto max_time, read_total(json, "max_time"));
    TRY_ASSIGN(auto behind, read_behind(json));
    return Event{Extended{max_trials, max_time, std::move(behind)}};
  }
  if (type != "validated" && type != "exited" && type != "retried")
    return damaged("unknown event \"" + type + "\"");
  TRY_ASSIGN(const auto trial, read_trial(json));
  if (type == "retried") {
    // Absent in events of earlier releases.
    const auto canceled = json.find("canceled");
    if (canceled == json.end()) return Event{Retried{trial}};
    if (!canceled->is_boolean()) return damaged("\"canceled\" is not a boolean");
    return Event{Retried{trial, canceled->get<bool>()}};
  }
  if (type == "exited") {
    TRY_ASSIGN(const auto reason, read_reason(json));
    return Event{Exited{trial, reason}};
  }
  TRY_ASSIGN(const auto steps,
             member<std::int64_t>(json, "steps_completed", &nlohmann::json::is_number_integer));
  TRY_ASSIGN(const auto metric, read_real(json, "metric"));
  TRY_ASSIGN(const auto time, read_real(json, "time"));
  return Event{Validated{trial, steps, metric, time}};
}

// The seed is not stored: it is part of the configuration. The generator is its counter.
nlohmann::json Searcher::snapshot() const {
  std::string trials;
  for (TrialState state : state_->book.states) trials += kStateLetters[static_cast<std::size_t>(state)];
  nlohmann::json json{{"version", 2},
                      {"counter", state_->random.counter},
                      {"trials", std::move(trials)},
                      {"max_trials", state_->book.max_trials},
                      {"max_time", state_->book.max_time},
                      {"gave_up", state_->book.too_many_invalid},
                      {"shut_down", state_->shut_down},
                      {"sampler", state_->sampler->snapshot()},
                      {"method", state_->method->snapshot()}};
  if (!state_->book.behind.empty()) json["behind"] = state_->book.behind;
  return json;
}

// Starts from a new search of the same configuration and replaces its state. Every value is checked: a
// damaged snapshot is an error, never undefined behavior.
Result<Searcher> Searcher::restore(std::shared_ptr<const expconf::ExperimentConfig> config,
                                   const nlohmann::json& snapshot, Fault fault) {
  TRY_ASSIGN(auto searcher, create(std::move(config), fault));
  State& state = *searcher.state_;
  TRY_ASSIGN(const auto version, member<int>(snapshot, "version", &nlohmann::json::is_number_integer));
  if (version != 2) return damaged("version " + std::to_string(version) + " is unknown");
  TRY_ASSIGN(state.random.counter,
             member<std::uint64_t>(snapshot, "counter", &nlohmann::json::is_number_unsigned));
  TRY_ASSIGN(const auto trials, member<std::string>(snapshot, "trials", &nlohmann::json::is_string));
  for (char letter : trials) {
    const auto index = kStateLetters.find(letter);
    if (index == std::string_view::npos) return damaged(std::string("unknown trial state '") + letter + "'");
    state.book.states.push_back(static_cast<TrialState>(index));
    ++state.book.counts[index];
  }
  TRY_ASSIGN(state.book.max_trials,
             member<std::int64_t>(snapshot, "max_trials", &nlohmann::json::is_number_integer));
  TRY_ASSIGN(state.book.max_time,
             member<std::int64_t>(snapshot, "max_time", &nlohmann::json::is_number_integer));
  TRY_ASSIGN(state.book.too_many_invalid, member<bool>(snapshot, "gave_up", &nlohmann::json::is_boolean));
  TRY_ASSIGN(state.shut_down, member<bool>(snapshot, "shut_down", &nlohmann::json::is_boolean));
  TRY_ASSIGN(const auto behind, read_behind(snapshot));
  state.book.behind.insert(behind.begin(), behind.end());
  TRY(state.sampler->restore(snapshot.contains("sampler") ? snapshot["sampler"] : nlohmann::json()));
  TRY(state.method->restore(snapshot.contains("method") ? snapshot["method"] : nlohmann::json(), state.book));
  return searcher;
}

}  // namespace det::searcher
