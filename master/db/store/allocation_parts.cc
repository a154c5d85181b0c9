#include "master/db/store/allocation_parts.h"

#include "common/base/json.h"

namespace det::db {
namespace {

// Indexed by core::ExitKind; the order must match the enum.
constexpr std::string_view kExitKinds[] = {"SUCCEEDED", "FAILED",        "LOST",
                                           "STOPPED",   "OUT_OF_MEMORY", "STORAGE_FULL",
                                           "PREEMPTED", "INVALID_HP",    "HUNG"};

Json write_exit(const std::optional<core::Exit>& exit) {
  if (!exit) return nullptr;
  return {{"kind", exit_kind_name(exit->kind)}, {"code", exit->code}, {"message", exit->message}};
}

core::AllocationPart read_part(const Json& json) {
  core::AllocationPart part;
  part.agent = AgentId(json.at("agent").get<std::string>());
  json.at("instance").get_to(part.agent_instance);
  json.at("address").get_to(part.address);
  json.at("slots").get_to(part.slots);
  // A state without a known name reads as terminated.
  part.state = core::parse_allocation_state(json.at("state").get<std::string>())
                   .value_or(core::AllocationState::kTerminated);
  if (const Json& exit = json.at("exit"); !exit.is_null()) {
    part.exit = core::Exit{parse_exit_kind(exit.at("kind").get<std::string>()), exit.at("code").get<int>(),
                           exit.at("message").get<std::string>()};
  }
  // Optional in the stored form.
  part.daemon = json.value("daemon", false);
  part.token_hash = json.value("token", "");
  return part;
}

}  // namespace

std::string_view exit_kind_name(core::ExitKind kind) { return kExitKinds[static_cast<std::size_t>(kind)]; }

core::ExitKind parse_exit_kind(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kExitKinds); ++i)
    if (kExitKinds[i] == name) return static_cast<core::ExitKind>(i);
  return core::ExitKind::kLost;
}

std::string write_parts(const std::vector<core::AllocationPart>& parts) {
  Json list = Json::array();
  for (const core::AllocationPart& part : parts) {
    list.push_back({{"agent", part.agent.value},
                    {"instance", part.agent_instance},
                    {"address", part.address},
                    {"slots", part.slots},
                    {"state", core::allocation_state_name(part.state)},
                    {"exit", write_exit(part.exit)}});
    if (part.daemon) list.back()["daemon"] = true;
    if (!part.token_hash.empty()) list.back()["token"] = part.token_hash;
  }
  return dump_json(list);
}

Result<std::vector<core::AllocationPart>> read_parts(const std::string& text) {
  std::vector<core::AllocationPart> parts;
  try {
    for (const Json& json : Json::parse(text)) parts.push_back(read_part(json));
  } catch (const Json::exception& error) {
    return fail(Code::kDataLoss,
                std::string("the stored parts of an allocation cannot be read: ") + error.what());
  }
  return parts;
}

}  // namespace det::db
