#include "agent/task/hang_report.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <tuple>

#include "common/base/text.h"
#include "common/base/units.h"
#include "common/base/wait.h"

namespace det::agent {
namespace {

using collective::Channel;
using collective::Memory;
using collective::Operation;
using collective::Record;
using collective::State;

constexpr std::uint32_t kMaxRanks = 65536;

/// Opens the memory of a process by its descriptors. None when it has no memory of this name.
UniqueFd open_memory(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), &::closedir);
  if (!entries) return {};
  const std::string wanted = "/memfd:" + std::string(collective::kMemoryName) + " (deleted)";
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string path = folder + "/" + entry->d_name;
    char target[64];
    const ssize_t size = ::readlink(path.c_str(), target, sizeof target);
    if (size < 0 || std::string_view(target, static_cast<std::size_t>(size)) != wanted) continue;
    // The link may be one of the task to a pipe or a device of that name.
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat file {};
    if (fd && ::fstat(fd.get(), &file) == 0 && S_ISREG(file.st_mode)) return fd;
  }
  return {};
}

bool read_memory(int fd, Memory& memory) {
  return ::pread(fd, &memory, sizeof memory, 0) == static_cast<ssize_t>(sizeof memory) &&
         memory.magic == collective::kMagic && memory.version == collective::kVersion &&
         memory.capacity == collective::kCapacity && memory.ranks >= 1 && memory.ranks <= kMaxRanks &&
         memory.rank < memory.ranks;
}

bool is_valid(const Record& record) {
  return static_cast<std::size_t>(record.channel) < collective::kChannels &&
         record.operation > Operation::kNone && record.operation <= Operation::kBarrier &&
         record.state > State::kNone && record.state <= State::kFailed;
}

RankRecord record_of(pid_t pid, const Memory& memory) {
  RankRecord rank{.pid = pid,
                  .rank = static_cast<int>(memory.rank),
                  .ranks = static_cast<int>(memory.ranks),
                  .stack_signal = static_cast<int>(memory.stack_signal)};
  const std::uint64_t kept = std::min<std::uint64_t>(memory.calls, collective::kCapacity);
  for (std::uint64_t i = memory.calls - kept; i != memory.calls; ++i) {
    const Record& record = memory.records[i % collective::kCapacity];
    if (is_valid(record)) rank.calls.push_back(record);
  }
  return rank;
}

std::string_view name_of(Operation operation) {
  switch (operation) {
    case Operation::kAllReduce:
      return "all_reduce";
    case Operation::kAllGather:
      return "all_gather";
    case Operation::kBroadcast:
      return "broadcast";
    case Operation::kGather:
      return "gather";
    case Operation::kBarrier:
      return "barrier";
    case Operation::kNone:
      break;
  }
  return "no call";
}

/// "all_reduce 10 (3.9KB)": the number tells calls of the same kind apart.
std::string describe(const Record& call) {
  std::string text = std::string(name_of(call.operation)) + " " + std::to_string(call.number);
  if (call.bytes > 0)
    text +=
        " (" + format_bytes(static_cast<std::int64_t>(std::min<std::uint64_t>(call.bytes, INT64_MAX))) + ")";
  return text;
}

/// "rank 1", "ranks 0, 2".
std::string describe(const std::vector<RankRecord>& ranks, const std::vector<std::size_t>& which) {
  std::vector<std::string> numbers;
  for (const std::size_t i : which) numbers.push_back(std::to_string(ranks[i].rank));
  return (which.size() == 1 ? "rank " : "ranks ") + join(numbers, ", ");
}
std::string_view verb(const std::vector<std::size_t>& which, std::string_view one, std::string_view several) {
  return which.size() == 1 ? one : several;
}

const Record* running_of(const RankRecord& rank) {
  for (auto call = rank.calls.rbegin(); call != rank.calls.rend(); ++call)
    if (call->state == State::kRunning) return &*call;
  return nullptr;
}

std::string last_of(const RankRecord& rank) {
  const std::string name = "rank " + std::to_string(rank.rank);
  if (rank.calls.empty()) return name + " has made no call";
  return "the last call of " + name + " was " + describe(rank.calls.back());
}

std::string waited(const Record& call, MonoTime now) {
  return human_duration(Duration(std::max<std::int64_t>(now.micros - call.started, 0)));
}

/// Calls are the same on all ranks when these are.
using Identity = std::tuple<Channel, std::uint64_t, Operation, std::uint64_t>;
Identity identity(const Record& call) { return {call.channel, call.number, call.operation, call.bytes}; }

/// Bytes of values, unlike those of tensors, may differ between ranks.
bool same(const Record& a, const Record& b) {
  return a.operation == b.operation && (a.channel == Channel::kValues || a.bytes == b.bytes);
}

/// "; the calls differ since number 5: rank 1 made broadcast 5 (8.0B), rank 0 all_reduce 5 (4.0KB)": the
/// first call that two ranks have recorded differently. "" when there is none.
std::string first_difference(const std::vector<RankRecord>& ranks) {
  for (const Channel channel : {Channel::kTensors, Channel::kValues}) {
    std::map<std::uint64_t, std::pair<const RankRecord*, const Record*>> known;
    std::map<std::uint64_t, std::string> differences;
    for (const RankRecord& rank : ranks) {
      for (const Record& call : rank.calls) {
        if (call.channel != channel) continue;
        const auto [at, first] = known.try_emplace(call.number, &rank, &call);
        if (first || same(*at->second.second, call)) continue;
        differences.try_emplace(call.number, "rank " + std::to_string(rank.rank) + " made " + describe(call) +
                                                 ", rank " + std::to_string(at->second.first->rank) + " " +
                                                 describe(*at->second.second));
      }
    }
    if (differences.empty()) continue;
    const auto& [number, text] = *differences.begin();
    return "; the calls differ since number " + std::to_string(number) + ": " + text;
  }
  return "";
}

}  // namespace

std::vector<RankRecord> read_ranks(const std::vector<pid_t>& processes) {
  std::vector<RankRecord> ranks;
  std::set<std::pair<dev_t, ino_t>> seen;
  const auto memory = std::make_unique<Memory>();
  for (const pid_t pid : processes) {
    UniqueFd fd = open_memory(pid);
    struct stat file {};
    if (!fd || ::fstat(fd.get(), &file) != 0 || !seen.emplace(file.st_dev, file.st_ino).second) continue;
    if (!read_memory(fd.get(), *memory)) continue;
    ranks.push_back(record_of(pid, *memory));
    ranks.back().memory = std::move(fd);
  }
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const RankRecord& a, const RankRecord& b) { return a.rank < b.rank; });
  return ranks;
}

HangDiagnosis diagnose(const std::vector<RankRecord>& ranks, MonoTime now) {
  if (ranks.empty()) return {};
  std::vector<std::size_t> outside;
  std::map<Identity, std::vector<std::size_t>> waiting;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const Record* const call = running_of(ranks[i]);
    if (call == nullptr) {
      outside.push_back(i);
    } else {
      waiting[identity(*call)].push_back(i);
    }
  }
  const auto call_of = [&](const std::vector<std::size_t>& some) { return *running_of(ranks[some.front()]); };
  // A process without other ranks makes no calls; its stack tells everything.
  if (waiting.empty() && ranks.front().ranks == 1) return {"", outside};
  if (waiting.empty()) {
    return {describe(ranks, outside) + std::string(verb(outside, " is", " are")) +
                " in no collective call; " + last_of(ranks[outside.front()]),
            outside};
  }
  // The call in which most ranks wait.
  const auto& most = std::max_element(waiting.begin(), waiting.end(), [](const auto& a, const auto& b) {
                       return a.second.size() < b.second.size();
                     })->second;
  const Record call = call_of(most);
  const std::string others = describe(ranks, most) + std::string(verb(most, " waits", " wait")) + " in " +
                             describe(call) + " since " + waited(call, now);
  if (!outside.empty()) {
    return {describe(ranks, outside) + std::string(verb(outside, " is", " are")) + " stuck outside of " +
                describe(call) + "; " + last_of(ranks[outside.front()]) + "; " + others +
                first_difference(ranks),
            outside};
  }
  if (waiting.size() == 1) {
    if (static_cast<int>(ranks.size()) < ranks.front().ranks)
      return {others + ", for ranks on other machines", most};
    return {"all ranks are in " + describe(call) + " since " + waited(call, now) +
                ": the connections between them are stuck",
            most};
  }
  for (const auto& [which, group] : waiting) {
    if (&group == &most) continue;
    return {describe(ranks, group) + std::string(verb(group, " is", " are")) + " stuck in " +
                describe(call_of(group)) + "; " + others + first_difference(ranks),
            group};
  }
  return {};
}

std::vector<std::string> take_stacks(const std::vector<const RankRecord*>& ranks, Duration patience) {
  const auto memory = std::make_unique<Memory>();
  const auto complete = [&](const RankRecord& rank) {
    return read_memory(rank.memory.get(), *memory) &&
           memory->stack_state == collective::StackState::kComplete &&
           memory->stack_bytes <= sizeof memory->stack;
  };
  for (const RankRecord* rank : ranks) {
    // Real-time signals have no other meaning than the one that the process gives them.
    if (rank->stack_signal < SIGRTMIN || rank->stack_signal > SIGRTMAX) continue;
    (void)::syscall(SYS_tgkill, rank->pid, rank->pid, rank->stack_signal);
  }
  wait_until(
      [&] {
        return std::all_of(ranks.begin(), ranks.end(), [&](const RankRecord* rank) {
          return rank->stack_signal == 0 || complete(*rank);
        });
      },
      patience);
  std::vector<std::string> stacks;
  for (const RankRecord* rank : ranks) {
    const bool answered = complete(*rank);
    stacks.emplace_back(answered ? std::string(memory->stack, memory->stack_bytes) : std::string());
  }
  return stacks;
}

}  // namespace det::agent
