#include "harness/src/checkpoint/checkpoint_parts.h"

#include <sys/resource.h>

#include <cstdio>
#include <filesystem>

#include "common/base/files.h"
#include "common/base/wait.h"
#include "harness/src/checkpoint/state.h"
#include "harness/src/checkpoint/state_optimizer.h"

namespace det {
namespace {

constexpr char kPrefix[] = "optimizer_state_";
/// Time for a rank to write its file after the chief has written its own.
constexpr auto kPartPatience = std::chrono::minutes(30);

std::string part_name(int rank, int ranks) {
  return kPrefix + std::to_string(rank) + "_of_" + std::to_string(ranks) + ".pth";
}

pickle::Value collect_parts(const WrappedObjects& wrapped) {
  const ParameterNames names = parameter_names(wrapped);
  pickle::List parts;
  for (std::size_t i = 0; i < wrapped.optimizers.size(); ++i)
    parts.push_back(collect_optimizer_part(names, *wrapped.optimizers[i], *wrapped.zero[i]));
  pickle::Dict out;
  out.add("optimizers", std::move(parts));
  return out;
}

/// The number of ranks that wrote the parts in `directory`; 0 without parts.
int ranks_of_parts(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    int ranks = 0;
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kPrefix) && std::sscanf(name.c_str(), "optimizer_state_%*d_of_%d.pth", &ranks) == 1)
      return ranks;
  }
  return 0;
}

}  // namespace

PartWriter::PartWriter(const RunInfo& run, const WrappedObjects& wrapped)
    : run_(run), wrapped_(wrapped), snapshot_(run.device) {}

PartWriter::~PartWriter() {
  jobs_.close();
  if (thread_.joinable()) thread_.join();
}

void PartWriter::save(const std::string& uuid) {
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  snapshot_.take(collect_parts(wrapped_));
  failed_ = false;
  under_way_ = true;
  (void)jobs_.push(std::string(uuid));
}

Status PartWriter::wait() {
  if (!under_way_) return {};
  under_way_ = false;
  return *results_.pop();
}

void PartWriter::work() {
  // The priority of the thread that writes checkpoints, see checkpoint_saver.cc.
  constexpr int kNice = 5;
  (void)::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + kNice);
  while (const auto uuid = jobs_.pop()) {
    Status written = write(*uuid);
    if (!written) failure_ = written, failed_ = true;
    (void)results_.push(std::move(written));
  }
}

/// Writes under a hidden name and renames, so that the chief sees complete files only.
Status PartWriter::write(const std::string& uuid) {
  const std::string directory = run_.info.checkpoint_dir + "/" + uuid + ".partial";
  std::string gone;
  // The chief makes the directory.
  const bool there =
      wait_until([&] { return path_exists(directory) || !(gone = run_.distributed->first_gone()).empty(); },
                 kPartPatience);
  if (!gone.empty()) return fail(Code::kUnavailable, gone);
  if (!there)
    return fail(Code::kUnavailable, directory + " does not appear; do all ranks mount the storage?");
  const std::string name = part_name(run_.distributed->rank(), run_.distributed->size());
  const std::string hidden = directory + "/." + name;
  TRY(snapshot_.write(hidden));
  std::error_code error;
  std::filesystem::rename(hidden, directory + "/" + name, error);
  return error ? fail(Code::kUnavailable, directory + "/" + name + ": " + error.message()) : Status();
}

Status PartWriter::await_all(const std::string& directory) const {
  const int ranks = run_.distributed->size();
  int rank = 0;
  std::string gone;
  wait_until(
      [&] {
        while (rank < ranks && path_exists(directory + "/" + part_name(rank, ranks))) ++rank;
        return rank == ranks || failed_ || !(gone = run_.distributed->first_gone()).empty();
      },
      kPartPatience);
  if (rank == ranks) return {};
  if (failed_) return failure_;
  return fail(Code::kUnavailable,
              gone.empty() ? "rank " + std::to_string(rank) + " did not save its optimizer state" : gone);
}

void add_parts(pickle::Value& state, const std::string& directory) {
  const int ranks = ranks_of_parts(directory);
  if (ranks == 0) return;
  std::vector<pickle::Value> files;
  for (int rank = 0; rank < ranks; ++rank)
    files.push_back(pickle::load(directory + "/" + part_name(rank, ranks)));
  auto* const dict = std::get_if<pickle::Dict>(&state.data);
  if (dict == nullptr) pickle::wrong_kind(state, "the state");
  for (auto& [key, value] : dict->items) {
    auto* const optimizers =
        key == "optimizers_state_dict" ? std::get_if<pickle::List>(&value.data) : nullptr;
    if (optimizers == nullptr) continue;
    for (std::size_t i = 0; i < optimizers->size(); ++i) {
      std::vector<const pickle::Value*> parts;
      for (const pickle::Value& file : files) {
        const auto& of_rank = pickle::expect<pickle::List>(pickle::member(file, "optimizers"), "optimizers");
        if (i < of_rank.size()) parts.push_back(&of_rank[i]);
      }
      add_optimizer_parts((*optimizers)[i], parts);
    }
  }
}

}  // namespace det
