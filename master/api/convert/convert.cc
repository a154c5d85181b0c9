// Conversions of values, accounts and agents. Database rows are in convert_rows.cc.
#include "master/api/convert/convert.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/yaml/yaml.h"
#include "master/api/context.h"
#include "master/core/build_id.h"

namespace det::api {

namespace pb = google::protobuf;

void to_proto(WallTime time, pb::Timestamp* out) {
  std::int64_t seconds = time.micros / 1'000'000, rest = time.micros % 1'000'000;
  // Timestamps before 1970 need a non-negative fraction.
  if (rest < 0) {
    rest += 1'000'000;
    --seconds;
  }
  out->set_seconds(seconds);
  out->set_nanos(static_cast<int>(rest * 1000));
}

WallTime from_proto(const pb::Timestamp& time) {
  // Bounded to the years 1 to 9999, which every store and text format can represent.
  const std::int64_t seconds = std::clamp<std::int64_t>(time.seconds(), -62135596800, 253402300799);
  return {seconds * 1'000'000 + std::clamp(time.nanos(), 0, 999'999'999) / 1000};
}

void json_to_struct(std::string_view json, pb::Struct* out) {
  out->Clear();
  if (json.empty()) return;
  if (!pb::util::JsonStringToMessage(pb::StringPiece(json.data(), json.size()), out).ok()) out->Clear();
}

void to_struct(const Json& json, pb::Struct* out) { json_to_struct(dump_json(json), out); }

void yaml_to_struct(std::string_view yaml, pb::Struct* out) {
  out->Clear();
  const auto root = parse_yaml(yaml, "");
  // Policies and templates may be empty or scalar documents.
  if (root && root->is_map()) to_struct(det::to_json(*root), out);
}

Result<Json> from_struct(const pb::Struct& value, std::string_view field) {
  std::string text;
  if (!pb::util::MessageToJsonString(value, &text).ok())
    return fail(Code::kInvalidArgument, std::string(field) + ": has no form in JSON");
  auto json = parse_json(text);
  if (!json) json.error().message.insert(0, std::string(field) + ": ");
  return json;
}

v1::State to_proto(core::State state) {
  switch (state) {
    case core::State::kActive:
      return v1::STATE_ACTIVE;
    case core::State::kPaused:
      return v1::STATE_PAUSED;
    case core::State::kStoppingCompleted:
      return v1::STATE_STOPPING_COMPLETED;
    case core::State::kStoppingCanceled:
      return v1::STATE_STOPPING_CANCELED;
    case core::State::kStoppingKilled:
      return v1::STATE_STOPPING_KILLED;
    case core::State::kStoppingError:
      return v1::STATE_STOPPING_ERROR;
    case core::State::kCompleted:
      return v1::STATE_COMPLETED;
    case core::State::kCanceled:
      return v1::STATE_CANCELED;
    case core::State::kError:
      return v1::STATE_ERROR;
  }
  return v1::STATE_UNSPECIFIED;
}

v1::State to_proto(core::State state, const std::optional<core::AllocationState>& live) {
  // Only an active experiment or trial has a finer state.
  if (state != core::State::kActive) return to_proto(state);
  if (!live) return v1::STATE_QUEUED;
  switch (*live) {
    case core::AllocationState::kAssigned:
    case core::AllocationState::kPulling:
      return v1::STATE_PULLING;
    case core::AllocationState::kStarting:
      return v1::STATE_STARTING;
    case core::AllocationState::kRunning:
    case core::AllocationState::kTerminating:
      return v1::STATE_RUNNING;
    case core::AllocationState::kTerminated:
      return v1::STATE_QUEUED;
  }
  return v1::STATE_ACTIVE;
}

std::optional<core::State> from_proto(v1::State state) {
  switch (state) {
    case v1::STATE_ACTIVE:
    case v1::STATE_QUEUED:
    case v1::STATE_PULLING:
    case v1::STATE_STARTING:
    case v1::STATE_RUNNING:
      return core::State::kActive;
    case v1::STATE_PAUSED:
      return core::State::kPaused;
    case v1::STATE_STOPPING_COMPLETED:
      return core::State::kStoppingCompleted;
    case v1::STATE_STOPPING_CANCELED:
      return core::State::kStoppingCanceled;
    case v1::STATE_STOPPING_KILLED:
      return core::State::kStoppingKilled;
    case v1::STATE_STOPPING_ERROR:
      return core::State::kStoppingError;
    case v1::STATE_COMPLETED:
      return core::State::kCompleted;
    case v1::STATE_CANCELED:
      return core::State::kCanceled;
    case v1::STATE_ERROR:
      return core::State::kError;
    default:
      return std::nullopt;
  }
}

v1::Checkpoint::CheckpointState checkpoint_state(std::string_view name) {
  v1::Checkpoint::CheckpointState state = v1::Checkpoint::STATE_UNSPECIFIED;
  v1::Checkpoint::CheckpointState_Parse("STATE_" + std::string(name), &state);
  return state;
}

std::string checkpoint_state_name(v1::Checkpoint::CheckpointState state) {
  const std::string name = v1::Checkpoint::CheckpointState_Name(state);
  return name.starts_with("STATE_") ? name.substr(6) : name;
}

v1::LogLevel log_level(std::string_view name) {
  v1::LogLevel level = v1::LOG_LEVEL_UNSPECIFIED;
  const std::string upper = to_upper(name);
  v1::LogLevel_Parse("LOG_LEVEL_" + (upper == "WARN" ? "WARNING" : upper), &level);
  return level;
}

std::string log_level_name(v1::LogLevel level) {
  const std::string name = v1::LogLevel_Name(level);
  return level == v1::LOG_LEVEL_UNSPECIFIED || name.empty() ? "" : name.substr(10);
}

db::Window to_window(int offset, int limit, v1::OrderBy order, int otherwise) {
  return {.offset = offset,
          // -2 is a valid limit: only the total is counted.
          .limit = limit == 0 ? otherwise : std::max(limit, -2),
          .descending = order == v1::ORDER_BY_DESC};
}

db::Window to_bounded_window(int offset, int limit, v1::OrderBy order) {
  db::Window window = to_window(offset, limit, order, kMaxListRows);
  if (window.limit == -1 || window.limit > kMaxListRows) window.limit = kMaxListRows;
  return window;
}

void to_proto(const db::User& user, v1::User* out) {
  out->set_id(static_cast<int>(user.id.value));
  out->set_username(user.name);
  out->set_admin(user.admin);
  out->set_active(user.active);
  out->set_display_name(user.display_name);
  if (user.agent) {
    v1::AgentUserGroup* agent = out->mutable_agent_user_group();
    agent->set_agent_uid(user.agent->uid);
    agent->set_agent_gid(user.agent->gid);
    agent->set_agent_user(user.agent->user);
    agent->set_agent_group(user.agent->group);
  }
  if (user.last_auth) to_proto(*user.last_auth, out->mutable_last_auth_at());
}

// ---- agents

namespace {

/// Clients of Determined AI accept only these states for a container.
v1::State container_state(core::AllocationState state) {
  switch (state) {
    case core::AllocationState::kAssigned:
    case core::AllocationState::kPulling:
      return v1::STATE_PULLING;
    case core::AllocationState::kStarting:
      return v1::STATE_STARTING;
    default:
      return v1::STATE_RUNNING;
  }
}

void count(const v1::Slot& slot, v1::DeviceStats& stats) {
  stats.set_total(stats.total() + 1);
  if (!slot.enabled() || !slot.problem().empty()) stats.set_disabled(stats.disabled() + 1);
  if (slot.draining()) stats.set_draining(stats.draining() + 1);
  if (slot.has_container()) ++(*stats.mutable_states())[v1::State_Name(slot.container().state())];
}

}  // namespace

void to_proto(const core::Agent& agent, const core::AgentSettings& settings,
              const std::vector<RunningPart>& running, v1::Agent* out) {
  out->set_id(agent.id.value);
  to_proto(agent.registered, out->mutable_registered_time());
  out->add_addresses(agent.address);
  out->set_enabled(settings.enabled);
  out->set_draining(settings.draining);
  out->set_version(kDeterminedVersion);
  out->set_release(agent.version);
  out->set_sandbox(agent.sandbox);
  out->set_sandbox_missing(agent.sandbox_missing);
  out->set_problem(agent.problem);
  out->add_resource_pools(agent.pool);
  out->set_connected(agent.session != 0);
  for (std::size_t i = 0; i < agent.slots.size(); ++i) {
    const std::string id = std::to_string(i);
    v1::Slot& slot = (*out->mutable_slots())[id];
    slot.set_id(id);
    slot.set_enabled(settings.enabled && !settings.disabled_slots.contains(static_cast<int>(i)));
    slot.set_draining(settings.draining);
    if (const auto problem = agent.slot_problems.find(static_cast<int>(i));
        problem != agent.slot_problems.end())
      slot.set_problem(problem->second);
    v1::Device* device = slot.mutable_device();
    device->set_id(static_cast<int>(i));
    device->set_brand(agent.slots[i].brand);
    device->set_uuid(agent.slots[i].uuid);
    // An artificial slot is shown as a CPU.
    device->set_type(agent.slots[i].type == "CUDA" ? v1::Device::TYPE_CUDA : v1::Device::TYPE_CPU);
  }
  for (const RunningPart& part : running) {
    v1::Container container;
    container.set_id(part.allocation.value);
    container.set_state(container_state(part.state));
    const std::size_t dot = part.allocation.value.rfind('.');
    // Allocation ids are "<task>.<run>".
    container.set_task_id(part.allocation.value.substr(0, dot));
    if (const auto trial = part.task.as<TrialId>()) container.set_trial_id(static_cast<int>(trial->value));
    for (const int slot : part.slots) {
      auto it = out->mutable_slots()->find(std::to_string(slot));
      if (it == out->mutable_slots()->end()) continue;
      *container.add_devices() = it->second.device();
    }
    // A second pass: the container in each slot lists all devices.
    for (const int slot : part.slots) {
      auto it = out->mutable_slots()->find(std::to_string(slot));
      if (it == out->mutable_slots()->end()) continue;
      *it->second.mutable_container() = container;
      // Drain is not a setting of single slots: a disabled one with work drains until the work has ended.
      if (settings.disabled_slots.contains(slot)) it->second.set_draining(true);
    }
    (*out->mutable_containers())[container.id()] = container;
  }
  for (const auto& [id, slot] : out->slots()) {
    count(slot,
          (*out->mutable_slot_stats()->mutable_type_stats())[v1::Device::Type_Name(slot.device().type())]);
    count(slot, (*out->mutable_slot_stats()->mutable_brand_stats())[slot.device().brand()]);
  }
  // Present even for an agent without slots.
  out->mutable_slot_stats();
}

Result<core::HeldAllocation> from_proto(const v1::AllocationUpdate& update) {
  core::HeldAllocation held{.id = AllocationId(update.allocation_id())};
  if (held.id.value.empty()) return fail(Code::kInvalidArgument, "an allocation without an id");
  switch (update.state()) {
    case v1::AllocationUpdate::STATE_PULLING:
      held.state = core::AllocationState::kPulling;
      break;
    case v1::AllocationUpdate::STATE_STARTING:
      held.state = core::AllocationState::kStarting;
      break;
    case v1::AllocationUpdate::STATE_RUNNING:
      held.state = core::AllocationState::kRunning;
      break;
    case v1::AllocationUpdate::STATE_TERMINATED:
      held.state = core::AllocationState::kTerminated;
      break;
    default:
      // Only the end of an allocation carries an exit.
      return fail(Code::kInvalidArgument, "allocation " + held.id.value + ": unknown state");
  }
  if (held.state != core::AllocationState::kTerminated) return held;
  core::Exit exit{.code = update.exit().code(), .message = make_utf8(update.exit().message())};
  switch (update.exit().kind()) {
    case v1::AllocationExit::KIND_SUCCEEDED:
      exit.kind = core::ExitKind::kSucceeded;
      break;
    case v1::AllocationExit::KIND_FAILED:
      exit.kind = core::ExitKind::kFailed;
      break;
    case v1::AllocationExit::KIND_STOPPED:
      exit.kind = core::ExitKind::kStopped;
      break;
    case v1::AllocationExit::KIND_OUT_OF_MEMORY:
      exit.kind = core::ExitKind::kOutOfMemory;
      break;
    case v1::AllocationExit::KIND_STORAGE_FULL:
      exit.kind = core::ExitKind::kStorageFull;
      break;
    case v1::AllocationExit::KIND_HUNG:
      exit.kind = core::ExitKind::kHung;
      break;
    default:
      // Unknown kinds of newer agents count as lost: the run is repeated.
      exit.kind = core::ExitKind::kLost;
      break;
  }
  held.exit = std::move(exit);
  return held;
}

void to_proto(const core::HeldAllocation& held, v1::AllocationUpdate* out) {
  out->set_allocation_id(held.id.value);
  switch (held.state) {
    case core::AllocationState::kAssigned:
    case core::AllocationState::kPulling:
      out->set_state(v1::AllocationUpdate::STATE_PULLING);
      break;
    case core::AllocationState::kStarting:
      out->set_state(v1::AllocationUpdate::STATE_STARTING);
      break;
    case core::AllocationState::kRunning:
    case core::AllocationState::kTerminating:
      out->set_state(v1::AllocationUpdate::STATE_RUNNING);
      break;
    case core::AllocationState::kTerminated:
      out->set_state(v1::AllocationUpdate::STATE_TERMINATED);
      break;
  }
  if (!held.exit) return;
  v1::AllocationExit* exit = out->mutable_exit();
  exit->set_code(held.exit->code);
  exit->set_message(held.exit->message);
  switch (held.exit->kind) {
    case core::ExitKind::kSucceeded:
    // Set by the core after the end of a run; for the agent the process has succeeded.
    case core::ExitKind::kPreempted:
    case core::ExitKind::kInvalidHp:
      exit->set_kind(v1::AllocationExit::KIND_SUCCEEDED);
      break;
    case core::ExitKind::kFailed:
      exit->set_kind(v1::AllocationExit::KIND_FAILED);
      break;
    case core::ExitKind::kLost:
      exit->set_kind(v1::AllocationExit::KIND_LOST);
      break;
    case core::ExitKind::kStopped:
      exit->set_kind(v1::AllocationExit::KIND_STOPPED);
      break;
    case core::ExitKind::kOutOfMemory:
      exit->set_kind(v1::AllocationExit::KIND_OUT_OF_MEMORY);
      break;
    case core::ExitKind::kStorageFull:
      exit->set_kind(v1::AllocationExit::KIND_STORAGE_FULL);
      break;
    case core::ExitKind::kHung:
      exit->set_kind(v1::AllocationExit::KIND_HUNG);
      break;
  }
}

/// The parts of a command's configuration that agents read.
static Json read_by_agents(const Json& config) {
  Json parts = Json::object();
  for (const auto& [section, key] :
       {std::pair{"resources", "shm_size"}, std::pair{"environment", "image"},
        std::pair{"environment", "force_pull_image"}, std::pair{"environment", "registry_auth"}}) {
    const Json values = config.value(section, Json::object());
    if (values.is_object() && values.contains(key)) parts[section][key] = values.at(key);
  }
  for (const char* name : {"bind_mounts", "agent_user_group"})
    if (config.contains(name) && !config.at(name).empty()) parts[name] = config.at(name);
  return parts;
}

static void command_to_proto(const core::Command& command, v1::StartAllocation* out) {
  out->set_task_id(command.task.value);
  const Json& config = command.config->resolved;
  if (config.contains("work_dir")) {
    // A fixed script; user input is only passed as arguments, so that no shell interprets it.
    for (const char* word : {"/bin/sh", "-c", "cd -- \"$1\" || exit 1; shift; exec \"$@\"", "command"})
      out->add_entrypoint(word);
    out->add_entrypoint(config.at("work_dir").get<std::string>());
  }
  for (const std::string& word : command.config->entrypoint) out->add_entrypoint(word);
  out->set_entrypoint_is_list(true);
  out->set_experiment_config(dump_json(read_by_agents(config)));
  for (const auto& [name, value] : command.config->environment_variables)
    (*out->mutable_environment())[name] = value;
  for (const Json& each : config.value("event_files", Json::array())) {
    v1::EventFiles* files = out->add_event_files();
    files->set_base(each.at("base").get<std::string>());
    files->set_below(each.at("below").get<std::string>());
    files->set_name(each.at("name").get<std::string>());
  }
}

void to_proto(const core::StartAllocation& start, v1::StartAllocation* out) {
  out->set_allocation_id(start.allocation.id.value);
  out->set_run(start.allocation.run);
  const auto& parts = start.allocation.parts;
  for (const int slot : parts.at(static_cast<std::size_t>(start.part)).slots) out->add_slots(slot);
  // Parts of a gang need the addresses of all others.
  if (parts.size() > 1) {
    for (const core::AllocationPart& part : parts) {
      v1::GangPart* member = out->add_gang();
      member->set_agent_id(part.agent.value);
      member->set_address(part.address);
      member->set_slots(static_cast<int>(part.slots.size()));
    }
    out->set_part(start.part);
    out->set_gang_port(start.allocation.port);
  }
  out->set_code_archive(start.code_archive);
  out->set_token(start.token);
  // The remaining fields only exist for trials.
  if (start.command) return command_to_proto(*start.command, out);
  out->set_task_id(start.trial.task.value);
  out->set_experiment_id(static_cast<int>(start.experiment.value));
  out->set_trial_id(static_cast<int>(start.trial.id.value));
  out->set_trial_seed(start.trial.seed);
  out->set_hparams(start.trial.hparams);
  out->set_experiment_config(dump_json(start.config->resolved));
  // Without a checkpoint of its own a trial starts from the one in its configuration, if any.
  out->set_latest_checkpoint(start.trial.latest_checkpoint.empty()
                                 ? start.config->searcher.source_checkpoint_uuid
                                 : start.trial.latest_checkpoint);
  out->set_steps_completed(start.trial.latest_steps);
  out->set_hang_timeout_seconds(start.config->hang_timeout);
  if (core::is_build(start.allocation.id)) {
    // Without an entrypoint, an agent of an older release starts nothing: it refuses the allocation.
    out->set_build(start.config->entrypoint.front());
  } else {
    for (const std::string& word : start.config->entrypoint) out->add_entrypoint(word);
    out->set_entrypoint_is_list(start.config->entrypoint_is_list);
    out->set_library(start.library);
  }
  for (const auto& [name, value] : start.config->environment_variables)
    (*out->mutable_environment())[name] = value;
}

db::LogLine from_proto(const v1::LogLine& line) {
  return {.time = from_proto(line.time()),
          .rank = line.rank(),
          .level = make_utf8(line.level()),
          .stdtype = make_utf8(line.stdtype()),
          .source = make_utf8(line.source()),
          .text = line.text()};
}

}  // namespace det::api
