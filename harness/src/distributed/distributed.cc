// DistributedContext: ranks from the environment, and JSON exchanges over the star of connections.
#include "det/distributed.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "common/base/text.h"
#include "common/base/wait.h"
#include "harness/src/base/collective_log.h"
#include "harness/src/distributed/distributed_star.h"

namespace det {
namespace {

/// Reads numbers from the environment and collects all problems.
class Variables {
 public:
  static const char* text(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : nullptr;
  }

  /// Returns nullopt when the variable is absent (a problem unless `optional`) or not in [least, most].
  std::optional<int> number(const char* name, int least, int most, bool optional = false) {
    const char* value = text(name);
    if (value == nullptr) {
      if (!optional) add(std::string(name) + " is not set");
      return std::nullopt;
    }
    char* end = nullptr;
    const long read = std::strtol(value, &end, 10);
    if (*end != '\0' || read < least || read > most) {
      add(std::string(name) + "=" + value + " is not a number from " + std::to_string(least) + " to " +
          std::to_string(most));
      return std::nullopt;
    }
    return static_cast<int>(read);
  }

  void add(std::string problem) { problems_.push_back(std::move(problem)); }

  void throw_problems() const {
    if (problems_.empty()) return;
    throw std::invalid_argument(
        "this process cannot join the others of its trial: " + join(problems_, "; ") +
        "; start it with det-launch or torchrun, or without WORLD_SIZE to train alone");
  }

 private:
  std::vector<std::string> problems_;
};

constexpr int kMaxRanks = 65536;

void read_machine(Variables& variables, RankInfo& info) {
  const auto local_size = variables.number("LOCAL_WORLD_SIZE", 1, info.size);
  info.local_size = local_size.value_or(1);
  info.local_rank =
      variables.number("LOCAL_RANK", 0, local_size ? info.local_size - 1 : info.size - 1).value_or(0);
  if (!local_size) return;
  // torchrun sets both group variables; other launchers leave them out, and ranks are then assumed to be
  // consecutive on each machine.
  const auto machines = variables.number("GROUP_WORLD_SIZE", 1, info.size, true);
  if (!machines && info.size % info.local_size != 0) {
    variables.add("WORLD_SIZE=" + std::to_string(info.size) + " is not a multiple of LOCAL_WORLD_SIZE=" +
                  std::to_string(info.local_size) + " and GROUP_WORLD_SIZE is not set");
  }
  info.cross_size = machines.value_or(std::max(1, info.size / info.local_size));
  info.cross_rank = variables.number("GROUP_RANK", 0, info.cross_size - 1, true)
                        .value_or(std::min(info.rank / info.local_size, info.cross_size - 1));
  if (info.cross_size == 1 && info.local_size != info.size) {
    variables.add("LOCAL_WORLD_SIZE=" + std::to_string(info.local_size) +
                  " is less than WORLD_SIZE=" + std::to_string(info.size) + " though there is one machine");
  }
}

using collective::Operation;

/// Runs an exchange of `bytes` and records it for the hang report.
template <typename Exchange>
auto recorded(Operation operation, std::size_t bytes, const Exchange& exchange) {
  const CollectiveScope scope(collective::Channel::kValues, operation, bytes);
  return exchange();
}

std::string to_bytes(const Json& value) {
  const auto bytes = Json::to_cbor(value);  // lossless, including NaN and infinities
  return {bytes.begin(), bytes.end()};
}

std::vector<Json> from_bytes(const std::vector<std::string>& all) {
  std::vector<Json> values;
  for (const std::string& bytes : all) values.push_back(Json::from_cbor(bytes));
  return values;
}

}  // namespace

RankInfo rank_info_from_environment() {
  RankInfo info;
  Variables variables;
  if (Variables::text("WORLD_SIZE") == nullptr) {
    // Each agent would train the whole trial, and each start would take over the run of the other.
    const int nodes = variables.number("DET_NUM_NODES", 1, kMaxRanks, true).value_or(1);
    if (nodes == 1) return info;
    throw std::invalid_argument(
        "this trial's slots are on " + std::to_string(nodes) +
        " agents, and nothing has started a process for each slot; put det-launch before the "
        "program in `entrypoint`, or set resources.is_single_node: true");
  }
  const auto size = variables.number("WORLD_SIZE", 1, kMaxRanks);
  info.size = size.value_or(1);
  info.rank = variables.number("RANK", 0, size ? info.size - 1 : kMaxRanks).value_or(0);
  if (size && info.size > 1) {
    read_machine(variables, info);
    if (const char* address = Variables::text("MASTER_ADDR")) {
      info.chief_address = address;
    } else {
      variables.add("MASTER_ADDR is not set");
    }
    info.chief_port = variables.number("MASTER_PORT", 1, 65535).value_or(0);
    const char* agent_store = Variables::text("TORCHELASTIC_USE_AGENT_STORE");
    // torchrun's own store listens on MASTER_PORT, so the next port is used.
    if (agent_store != nullptr && std::string(agent_store) == "True" && info.chief_port > 0) {
      info.chief_port = info.chief_port == 65535 ? 65534 : info.chief_port + 1;
    }
  }
  variables.throw_problems();
  return info;
}

DistributedContext::DistributedContext() = default;

DistributedContext::DistributedContext(const RankInfo& info, int timeout_seconds) : info_(info) {
  if (info.size > 1) star_ = std::make_unique<Star>(info, std::chrono::seconds(timeout_seconds));
}

DistributedContext::~DistributedContext() = default;

std::vector<Json> DistributedContext::gather(const Json& value) {
  if (!star_) return {value};
  const std::string bytes = to_bytes(value);
  return from_bytes(recorded(Operation::kGather, bytes.size(), [&] { return star_->gather(bytes); }));
}

std::vector<Json> DistributedContext::allgather(const Json& value) {
  return star_ ? from_bytes(allgather_bytes(to_bytes(value))) : std::vector<Json>{value};
}

Json DistributedContext::broadcast(const Json& value) {
  return star_ ? Json::from_cbor(broadcast_bytes(is_chief() ? to_bytes(value) : "")) : value;
}

void DistributedContext::barrier() {
  if (star_)
    (void)recorded(Operation::kBarrier, 0, [&] { return star_->allgather(Star::Call::kBarrier, ""); });
}

std::vector<Json> DistributedContext::gather_local(const Json& value) {
  if (!star_) return {value};
  const std::string bytes = to_bytes(value);
  return from_bytes(recorded(Operation::kGather, bytes.size(), [&] { return star_->gather_local(bytes); }));
}

std::vector<Json> DistributedContext::allgather_local(const Json& value) {
  return star_ ? from_bytes(allgather_local_bytes(to_bytes(value))) : std::vector<Json>{value};
}

Json DistributedContext::broadcast_local(const Json& value) {
  if (!star_) return value;
  const std::string bytes = info_.local_rank == 0 ? to_bytes(value) : "";
  return Json::from_cbor(
      recorded(Operation::kBroadcast, bytes.size(), [&] { return star_->broadcast_local(bytes); }));
}

std::vector<std::string> DistributedContext::allgather_bytes(const std::string& value) {
  if (!star_) return {value};
  return recorded(Operation::kAllGather, value.size(),
                  [&] { return star_->allgather(Star::Call::kAllgather, value); });
}

std::vector<std::string> DistributedContext::allgather_local_bytes(const std::string& value) {
  if (!star_) return {value};
  return recorded(Operation::kAllGather, value.size(), [&] { return star_->allgather_local(value); });
}

std::string DistributedContext::broadcast_bytes(const std::string& value) {
  if (!star_) return value;
  return recorded(Operation::kBroadcast, value.size(), [&] { return star_->broadcast(value); });
}

std::string DistributedContext::absence(int rank) const { return star_ ? star_->absence(rank) : ""; }
std::string DistributedContext::first_gone() const { return star_ ? star_->first_gone() : ""; }

std::string DistributedContext::await_absence(double seconds) const {
  if (!star_) return "";
  wait_until([&] { return !star_->first_gone().empty(); },
             Duration(static_cast<std::int64_t>(seconds * 1e6)));
  return star_->first_absence();
}

std::string DistributedContext::address() const { return star_ ? star_->address() : "127.0.0.1"; }

}  // namespace det
