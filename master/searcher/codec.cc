// Owns the JSON forms of events and of a whole search. What is written here is read back years later: only
// add.
#include <array>

#include "base/json.h"
#include "master/searcher/searcher.h"

namespace det::searcher {
namespace {

constexpr std::array<const char*, 4> kReasons = {"completed", "errored", "canceled", "invalid_hp"};

nlohmann::json reason_to_json(ExitReason reason) { return kReasons[static_cast<std::size_t>(reason)]; }

Result<ExitReason> reason_from_json(const nlohmann::json& json) {
  for (std::size_t i = 0; i < kReasons.size(); ++i) {
    if (json == kReasons[i]) return static_cast<ExitReason>(i);
  }
  return fail(Code::kDataLoss, "stored search: unknown exit reason " + json.dump());
}

/// The member, when it is there and has the right type.
template <typename T>
Result<T> member(const nlohmann::json& json, const char* key, bool (nlohmann::json::*is)() const noexcept) {
  auto it = json.is_object() ? json.find(key) : json.end();
  if (it == json.end() || !((*it).*is)()) {
    return fail(Code::kDataLoss,
                std::string("stored search: \"") + key + "\" is missing or of the wrong type");
  }
  return it->get<T>();
}

Result<RequestId> request_id(const nlohmann::json& json) {
  TRY_ASSIGN(auto id, member<std::string>(json, "request_id", &nlohmann::json::is_string));
  return RequestId(std::move(id));
}

}  // namespace

nlohmann::json to_json(const Event& event) {
  if (auto* validated = std::get_if<Validated>(&event)) {
    return {{"type", "validated"},
            {"request_id", validated->request_id.value},
            {"steps_completed", validated->steps_completed},
            {"metric", nlohmann::json(json_double(validated->metric))}};
  }
  if (auto* exited = std::get_if<Exited>(&event)) {
    return {{"type", "exited"},
            {"request_id", exited->request_id.value},
            {"reason", reason_to_json(exited->reason)}};
  }
  return {{"type", "started"}};
}

Result<Event> event_from_json(const nlohmann::json& json) {
  TRY_ASSIGN(const auto type, member<std::string>(json, "type", &nlohmann::json::is_string));
  if (type == "started") return Event{Started{}};
  TRY_ASSIGN(auto id, request_id(json));
  if (type == "validated") {
    TRY_ASSIGN(const auto steps,
               member<std::int64_t>(json, "steps_completed", &nlohmann::json::is_number_integer));
    const auto metric = json.contains("metric") ? read_double(Json(json["metric"])) : std::nullopt;
    if (!metric) return fail(Code::kDataLoss, "stored search: \"metric\" is missing or no number");
    return Event{Validated{std::move(id), steps, *metric}};
  }
  if (type == "exited") {
    if (!json.contains("reason")) return fail(Code::kDataLoss, "stored search: \"reason\" is missing");
    TRY_ASSIGN(const auto reason, reason_from_json(json["reason"]));
    return Event{Exited{std::move(id), reason}};
  }
  return fail(Code::kDataLoss, "stored search: unknown event \"" + type + "\"");
}

nlohmann::json Searcher::snapshot() const {
  nlohmann::json trials = nlohmann::json::object();
  for (const auto& [id, closed] : trials_)
    trials[id.value] = closed ? reason_to_json(*closed) : nlohmann::json();
  return {{"version", 1},
          {"random", {{"seed", random_.seed}, {"counter", random_.counter}}},
          {"trials", std::move(trials)},
          {"shut_down", shut_down_},
          {"method", method_->snapshot()}};
}

Result<Searcher> Searcher::restore(std::shared_ptr<const expconf::ExperimentConfig> config,
                                   const nlohmann::json& snapshot) {
  TRY_ASSIGN(auto searcher, create(std::move(config)));
  TRY_ASSIGN(const auto version, member<int>(snapshot, "version", &nlohmann::json::is_number_integer));
  if (version != 1)
    return fail(Code::kDataLoss, "stored search: version " + std::to_string(version) + " is unknown");
  TRY_ASSIGN(const auto random, member<nlohmann::json>(snapshot, "random", &nlohmann::json::is_object));
  TRY_ASSIGN(searcher.random_.seed,
             member<std::uint64_t>(random, "seed", &nlohmann::json::is_number_integer));
  TRY_ASSIGN(searcher.random_.counter,
             member<std::uint64_t>(random, "counter", &nlohmann::json::is_number_integer));
  TRY_ASSIGN(const auto trials, member<nlohmann::json>(snapshot, "trials", &nlohmann::json::is_object));
  for (const auto& [id, closed] : trials.items()) {
    std::optional<ExitReason> reason;
    if (!closed.is_null()) {
      TRY_ASSIGN(reason, reason_from_json(closed));
    }
    if (!reason) ++searcher.open_;
    searcher.trials_.emplace(RequestId(id), reason);
  }
  TRY_ASSIGN(searcher.shut_down_, member<bool>(snapshot, "shut_down", &nlohmann::json::is_boolean));
  TRY(searcher.method_->restore(snapshot.contains("method") ? snapshot["method"] : nlohmann::json()));
  return searcher;
}

}  // namespace det::searcher
