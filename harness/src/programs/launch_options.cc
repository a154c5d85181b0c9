// Command line of det-launch: parsing, defaults from the environment, and the help text.
#include "harness/src/programs/launch_options.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "common/base/text.h"

namespace det {
namespace {

/// Port of rank 0 with several machines.
constexpr int kDefaultPort = 29400;
const std::vector<std::string> kWords = {"help",        "nproc-per-node", "nnodes",    "node-rank",
                                         "master-addr", "master-port",    "standalone"};

/// Options of torchrun that det-launch does not have, with the alternative.
struct Foreign {
  const char *word, *mend;
};
constexpr Foreign kForeign[] = {
    {"max-restarts", "a failed trial is restarted by the cluster (max_restarts of the experiment)"},
    {"rdzv-endpoint", "use --master-addr and --master-port"},
    {"rdzv-backend", "use --master-addr and --master-port"},
    {"rdzv-id", "set DET_LAUNCH_TOKEN to the same secret on all machines"},
    {"module", "PROGRAM is any program: write python3 -m MODULE"},
    {"no-python", "PROGRAM is any program: leave the word out"},
};

std::optional<int> number_in(std::string_view text, int least, int most) {
  int value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value < least || value > most)
    return std::nullopt;
  return value;
}

/// Counts the slots of DET_SLOT_IDS, which is "[0, 1]" or "0,1"; at least 1.
int slots_in(const char* ids) {
  int count = 0;
  bool in_number = false;
  for (const char* c = ids; c != nullptr && *c != '\0'; ++c) {
    const bool digit = *c >= '0' && *c <= '9';
    count += digit && !in_number ? 1 : 0;
    in_number = digit;
  }
  return std::max(1, count);
}

tl::unexpected<Error> wrong(std::string message) { return fail(Code::kInvalidArgument, std::move(message)); }

Status set_number(int& to, const std::string& word, const std::string& value, int least, int most) {
  const auto number = number_in(value, least, most);
  if (number) return to = *number, Status();
  if (word == "nnodes" && value.find(':') != std::string::npos) {
    return wrong("--nnodes " + value + ": the number of machines is fixed; give one number");
  }
  return wrong("--" + word + " " + value + " is not a number from " + std::to_string(least) + " to " +
               std::to_string(most));
}

tl::unexpected<Error> unknown(const std::string& word) {
  for (const Foreign& foreign : kForeign) {
    if (word == foreign.word) return wrong("det-launch has no --" + word + ": " + foreign.mend);
  }
  return wrong("det-launch has no --" + word + did_you_mean(word, kWords) +
               "; options of PROGRAM come after its name, see det-launch --help");
}

/// Options that were given explicitly.
struct Given {
  bool addr = false, port = false;
  bool layout = false;  ///< number of machines, or processes on them
};

Status apply(LaunchOptions& options, Given& given, const std::string& word, const std::string& value,
             int slots) {
  given.layout = given.layout || word == "nproc-per-node" || word == "nnodes" || word == "node-rank";
  if (word == "nproc-per-node" && value == "auto") return options.nproc_per_node = slots, Status();
  if (word == "nproc-per-node") return set_number(options.nproc_per_node, word, value, 1, 4096);
  if (word == "nnodes") return set_number(options.nnodes, word, value, 1, 65536);
  if (word == "node-rank") return set_number(options.node_rank, word, value, 0, 65535);
  if (word == "master-port") return given.port = true, set_number(options.master_port, word, value, 1, 65535);
  given.addr = true;
  options.master_addr = value;
  return value.empty() ? Status(wrong("--master-addr is empty; give the name or address of machine 0"))
                       : Status();
}

/// Sets the ranks of this machine: by the agent's variables in a gang, where machines may have different
/// numbers of slots, else by the options.
Status lay_out(LaunchOptions& options, const Given& given, const char* (*environment)(const char*)) {
  const char* nodes = environment("DET_NUM_NODES");
  // With explicit options all machines have the same number of processes.
  if (given.layout || nodes == nullptr) {
    options.first_rank = options.node_rank * options.nproc_per_node;
    options.world_size = options.nnodes * options.nproc_per_node;
    return {};
  }
  const auto read = [&](int& to, const char* name, int least) -> Status {
    const char* value = environment(name);
    const auto number = number_in(value != nullptr ? value : "", least, 1 << 20);
    if (!number)
      return wrong(std::string(name) + " is not a number from " + std::to_string(least) + " to 1048576");
    return to = *number, Status();
  };
  TRY(read(options.nnodes, "DET_NUM_NODES", 1));
  TRY(read(options.node_rank, "DET_NODE_RANK", 0));
  TRY(read(options.first_rank, "DET_FIRST_RANK", 0));
  return read(options.world_size, "DET_WORLD_SIZE", 1);
}

/// Fills in the options that were not given, and checks that all fit together.
Status complete(LaunchOptions& options, const Given& given, const char* (*environment)(const char*)) {
  const auto variable = [&](const char* first, const char* second) {
    const char* value = environment(first);
    // The cluster's variables matter only with several machines.
    if ((value == nullptr || *value == '\0') && options.nnodes > 1) value = environment(second);
    return std::string(value != nullptr ? value : "");
  };
  if (options.node_rank >= options.nnodes) {
    return wrong("--node-rank " + std::to_string(options.node_rank) + " needs --nnodes " +
                 std::to_string(options.node_rank + 1) + " or more; machines are numbered from 0");
  }
  if (const std::string value = variable("MASTER_ADDR", "DET_CHIEF_IP"); !given.addr && !value.empty()) {
    options.master_addr = value;
  } else if (!given.addr && options.nnodes > 1) {
    return wrong("--nnodes " + std::to_string(options.nnodes) +
                 " needs --master-addr, the name of machine 0");
  }
  if (given.port) return {};
  const std::string port = variable("MASTER_PORT", "C10D_PORT");
  if (!port.empty()) {
    const auto number = number_in(port, 1, 65535);
    if (!number) return wrong("MASTER_PORT=" + port + " is not a number from 1 to 65535");
    options.master_port = *number;
  } else if (options.nnodes > 1) {
    options.master_port = kDefaultPort;
  }
  return {};
}

}  // namespace

Result<LaunchOptions> parse_launch_options(const std::vector<std::string>& arguments,
                                           const char* (*environment)(const char*)) {
  LaunchOptions options;
  Given given;
  const int slots = slots_in(environment("DET_SLOT_IDS"));
  options.nproc_per_node = slots;
  std::size_t at = 0;
  for (; at < arguments.size() && arguments[at].size() > 1 && arguments[at][0] == '-'; ++at) {
    if (arguments[at] == "--") {
      ++at;
      break;
    }
    if (arguments[at] == "-h" || arguments[at] == "--help") return options.help = true, options;
    if (arguments[at].rfind("--", 0) != 0) {
      return wrong("det-launch has no " + arguments[at] + "; see det-launch --help");
    }
    const std::size_t equals = arguments[at].find('=');
    std::string word = arguments[at].substr(2, equals == std::string::npos ? equals : equals - 2);
    // torchrun accepts both spellings.
    std::replace(word.begin(), word.end(), '_', '-');
    if (std::find(kWords.begin(), kWords.end(), word) == kWords.end()) return unknown(word);
    if (word == "standalone") continue;  // torchrun's option for what is the default here
    if (equals == std::string::npos && at + 1 == arguments.size())
      return wrong("--" + word + " needs a value");
    const std::string value =
        equals == std::string::npos ? arguments[++at] : arguments[at].substr(equals + 1);
    TRY(apply(options, given, word, value, slots));
  }
  TRY(lay_out(options, given, environment));
  TRY(complete(options, given, environment));
  options.program.assign(arguments.begin() + static_cast<std::ptrdiff_t>(at), arguments.end());
  if (options.program.empty()) return wrong("no PROGRAM to start; see det-launch --help");
  return options;
}

std::string launch_help() {
  return
      R"(usage: det-launch [OPTION...] [--] PROGRAM [ARGUMENT...]
Starts PROGRAM once a slot as the ranks of one trial. Output lines are prefixed with [rank=N]. Signals are passed on.
The first rank that fails ends all; its exit code (128 + N for signal N) is det-launch's.

  --nproc-per-node N   ranks on this machine; default, and with "auto": as many as DET_SLOT_IDS names, else 1
  --nnodes N           machines; each runs det-launch with the same N and the same --nproc-per-node (default 1, or those
                       of the gang that the cluster has made, with as many ranks on each as it has slots there)
  --node-rank R        which of them this is, from 0 (default 0)
  --master-addr HOST   machine 0; needed when there are several (default MASTER_ADDR, DET_CHIEF_IP)
  --master-port PORT   where rank 0 listens (default MASTER_PORT; then a free port, for several machines C10D_PORT or 29400)
  --standalone         nothing: one machine is the default
  -h, --help           this text
Words may be written with underscores, as torchrun does.

Each rank gets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, GROUP_WORLD_SIZE, MASTER_ADDR, MASTER_PORT;
OMP_NUM_THREADS, unless set: the cores shared out among the ranks; GOMP_SPINCOUNT, unless it or OMP_WAIT_POLICY is set:
1000, so that idle threads soon sleep; DET_LAUNCH_TOKEN, unless set: a secret by which the
ranks know one another (for several machines DET_ALLOCATION_ID).
)";
}

}  // namespace det
