#include "agent/environment.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "agent/gpu/mps.h"
#include "agent/ports.h"
#include "common/base/json.h"
#include "common/base/openmp.h"
#include "common/base/text.h"

namespace det::agent {
namespace {

/// CPU threads of one process. A trial runs one process for each slot.
int thread_count(const v1::StartAllocation& order, const Surroundings& around) {
  const int slots = static_cast<int>(around.devices.size());
  if (slots == 0 || order.slots_size() == 0 || around.devices[0].type == "ARTIFICIAL") return 1;
  return std::max(1, around.cpus / slots);
}

std::string visible_cuda(const v1::StartAllocation& order, const Surroundings& around) {
  std::string list;
  for (const Device& device : devices_of(order, around.devices))
    if (device.type == "CUDA") list += (list.empty() ? "" : ",") + device.uuid;
  return list;
}

// Variables of the agent's environment that tasks get. All others may be secrets of its shell.
constexpr std::array<std::string_view, 7> kPassed{
    "PATH", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "AWS_REGION", "AWS_CA_BUNDLE"};
constexpr std::array<std::string_view, 8> kPassedPrefixes{"LC_",   "CUDA_", "NVIDIA_", "NCCL_",
                                                          "GLOO_", "OMP_",  "MKL_",    "UCX_"};

/// `image`: the task has an image, in which the machine's paths and locale mean nothing.
bool is_passed(std::string_view name, const std::vector<std::string>& further, bool image) {
  if (name.starts_with("DET_")) return false;
  if (std::find(further.begin(), further.end(), name) != further.end()) return true;
  if (image) return false;
  return std::find(kPassed.begin(), kPassed.end(), name) != kPassed.end() ||
         std::any_of(kPassedPrefixes.begin(), kPassedPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// Variables that launchers need for a gang across several agents.
void add_gang(const v1::StartAllocation& order, std::map<std::string, std::string>& variables) {
  if (order.gang_size() == 0) return;
  int ranks = 0, before = 0;
  for (int i = 0; i < order.gang_size(); ++i) {
    if (i == order.part()) before = ranks;
    ranks += order.gang(i).slots();
  }
  variables["DET_CHIEF_IP"] = order.gang(0).address();
  variables["DET_NUM_NODES"] = std::to_string(order.gang_size());
  variables["DET_NODE_RANK"] = std::to_string(order.part());
  variables["DET_FIRST_RANK"] = std::to_string(before);
  variables["DET_WORLD_SIZE"] = std::to_string(ranks);
}

/// Rendezvous ports of Determined AI's launchers and its DistributedContext. Tasks share the network of their
/// machine, so each needs its own ports: a gang has a port assigned by the master, any other task derives one
/// from its first slot, which no other task of this agent holds.
void add_ports(const v1::StartAllocation& order, int block, std::map<std::string, std::string>& variables) {
  if (order.gang_size() == 0 && order.slots_size() == 0) return;
  const bool gang = order.gang_size() > 0;
  const auto port = [&](int below_gang, int single) {
    return std::to_string(gang ? order.gang_port() - below_gang
                               : single + block * PortBlock::kSlots + order.slots(0) % PortBlock::kSlots);
  };
  variables["C10D_PORT"] = port(0, 13'000);
  variables["INTER_TRAIN_PROCESS_COMM_PORT_1"] = port(10'000, 14'000);
  variables["INTER_TRAIN_PROCESS_COMM_PORT_2"] = port(12'000, 15'000);
}

void add_trial(const v1::StartAllocation& order, int port_block,
               std::map<std::string, std::string>& variables) {
  variables["DET_EXPERIMENT_ID"] = std::to_string(order.experiment_id());
  variables["DET_TRIAL_ID"] = std::to_string(order.trial_id());
  variables["DET_TRIAL_RUN_ID"] = std::to_string(order.run());
  variables["DET_TRIAL_SEED"] = std::to_string(order.trial_seed());
  variables["DET_EXPERIMENT_CONFIG"] = order.experiment_config();
  variables["DET_HPARAMS"] = order.hparams();
  variables["DET_STEPS_COMPLETED"] = std::to_string(order.steps_completed());
  if (!order.latest_checkpoint().empty()) variables["DET_LATEST_CHECKPOINT"] = order.latest_checkpoint();
  add_gang(order, variables);
  add_ports(order, port_block, variables);
}

/// Lets a task with slots use its share of a GPU.
void add_mps(const v1::StartAllocation& order, const Surroundings& around,
             std::map<std::string, std::string>& variables) {
  if (around.mps_pipes.empty() || order.slots_size() == 0) return;
  variables["CUDA_MPS_PIPE_DIRECTORY"] = around.mps_pipes;
  variables["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = std::to_string(thread_percentage(around.slots_per_device));
}

}  // namespace

std::vector<Device> devices_of(const v1::StartAllocation& order, const std::vector<Device>& devices) {
  std::vector<Device> found;
  for (const int slot : order.slots()) {
    if (slot >= 0 && slot < static_cast<int>(devices.size()))
      found.push_back(devices[static_cast<std::size_t>(slot)]);
  }
  return found;
}

std::string web_address(const std::string& master) {
  return master.find("://") == std::string::npos ? "http://" + master : master;
}

std::vector<std::string> task_environment(const v1::StartAllocation& order, const Surroundings& around,
                                          std::vector<std::string>& refused) {
  std::map<std::string, std::string> variables;
  const auto take = [&](const std::string& line, bool passed) {
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos && passed) variables[line.substr(0, equals)] = line.substr(equals + 1);
  };
  if (around.image) {
    for (const std::string& line : *around.image) take(line, !line.starts_with("DET_"));
  }
  for (const std::string& line : around.base)
    take(line, is_passed(line.substr(0, line.find('=')), around.pass, around.image.has_value()));
  const std::string path = variables.try_emplace("PATH", "/usr/local/bin:/usr/bin:/bin").first->second;
  // The programs of the installation do not run with the libraries of an image.
  if (!around.image) variables["PATH"] = around.programs + ":" + path;
  // The user of a sandbox has no entry in /etc/passwd.
  variables["HOME"] = around.home;
  variables["USER"] = variables["LOGNAME"] = "determinant";
  // Python buffers up to 8 KiB of output when it writes to a pipe, and loses it when killed.
  variables.try_emplace("PYTHONUNBUFFERED", "1");
  const std::string threads = std::to_string(thread_count(order, around));
  variables["OMP_NUM_THREADS"] = threads;
  // Tells this default from a number that the user chose.
  if (!order.environment().contains("OMP_NUM_THREADS")) variables["DET_DEFAULT_THREADS"] = threads;
  variables["OPENBLAS_NUM_THREADS"] = threads;
  variables["CUDA_VISIBLE_DEVICES"] = visible_cuda(order, around);

  for (const auto& [name, value] : order.environment()) {
    if (!is_variable_name(name) || name.starts_with("DET_") || value.find('\0') != std::string::npos) {
      refused.push_back(name);
    } else {
      variables[name] = value;
    }
  }
  if (!around.driver.empty()) {
    std::string& libraries = variables["LD_LIBRARY_PATH"];
    libraries = around.driver + (libraries.empty() ? "" : ":" + libraries);
  }
  add_mps(order, around, variables);
  // After the user's variables, because either of two names is a choice.
  if (needs_spin_count([&](const char* name) { return variables.contains(name); }))
    variables["GOMP_SPINCOUNT"] = kSpinCount;

  Json slots = Json::array();
  for (const int slot : order.slots()) slots.push_back(slot);
  variables["DET_MASTER"] = web_address(around.master);
  if (!around.master_cert.empty()) variables["DET_MASTER_CERT_FILE"] = around.master_cert;
  if (!around.master_cert_name.empty()) variables["DET_MASTER_CERT_NAME"] = around.master_cert_name;
  variables["DET_CLUSTER_ID"] = around.cluster_id;
  variables["DET_AGENT_ID"] = around.agent_id;
  variables["DET_SLOT_IDS"] = dump_json(slots);
  variables["DET_TASK_ID"] = order.task_id();
  variables["DET_TASK_TYPE"] = order.trial_id() == 0 ? "COMMAND" : "TRIAL";
  variables["DET_ALLOCATION_ID"] = order.allocation_id();
  variables["DET_RESOURCES_ID"] = order.allocation_id() + "." + std::to_string(order.part());
  // Of Determined AI's kinds, the one for which its harness requests the rendezvous from the master. Tasks
  // have no user's token, so DET_USER names the trial.
  variables["DET_RESOURCES_TYPE"] = "docker-container";
  variables["DET_USER"] = "trial-" + std::to_string(order.trial_id());
  variables["DET_CONTAINER_ID"] = order.allocation_id();
  variables["DET_SESSION_TOKEN"] = order.token();
  if (!order.user_token().empty()) variables["DET_USER_TOKEN"] = order.user_token();
  if (order.trial_id() != 0) add_trial(order, around.port_block, variables);
  variables["DET_WORKDIR"] = around.workdir;
  variables["DET_RUN_DIR"] = around.run_dir;

  std::vector<std::string> lines;
  for (const auto& [name, value] : variables) lines.push_back(name + "=" + value);
  return lines;
}

std::vector<std::string> load_environment(std::vector<std::string> task) {
  constexpr std::array<std::string_view, 4> kOfTask{"HOME", "USER", "LOGNAME", "C10D_PORT"};
  std::erase_if(task, [&](const std::string& line) {
    const std::string_view name = std::string_view(line).substr(0, line.find('='));
    return name.starts_with("DET_") || name.starts_with("INTER_TRAIN_PROCESS_COMM_PORT_") ||
           std::find(kOfTask.begin(), kOfTask.end(), name) != kOfTask.end();
  });
  std::sort(task.begin(), task.end());
  return task;
}

}  // namespace det::agent
