#include "harness/src/client/trial_info.h"

#include <dlfcn.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/secret.h"
#include "common/base/shared_library.h"
#include "common/crypto/digest.h"
#include "common/expconf/parse.h"
#include "common/storage/bucket.h"
#include "common/yaml/yaml.h"
#include "harness/src/base/heartbeat.h"
#include "harness/src/base/termination.h"
#include "harness/src/client/setting.h"

namespace det {
namespace {

/// An environment variable; "" when unset.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// An environment variable as a number. kInvalidArgument naming the variable.
Result<std::int64_t> number(const char* name) {
  const std::string text = variable(name);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return fail(Code::kInvalidArgument, std::string(name) + ": expected a number, got \"" + text + "\"");
  }
  return value;
}

/// An environment variable as a JSON object. kInvalidArgument naming the variable.
Result<Json> object(const char* name) {
  auto value = parse_json(variable(name));
  if (!value) return fail(Code::kInvalidArgument, std::string(name) + ": " + value.error().message);
  if (!value->is_object())
    return fail(Code::kInvalidArgument, std::string(name) + ": expected a JSON object");
  return value;
}

Result<std::vector<int>> slot_ids() {
  std::vector<int> slots;
  const std::string text = variable("DET_SLOT_IDS");
  if (text.empty()) return slots;
  const auto list = parse_json(text);
  bool good = list && list->is_array();
  for (std::size_t i = 0; good && i < list->size(); ++i) {
    good = (*list)[i].is_number_integer();
    if (good) slots.push_back((*list)[i].get<int>());
  }
  if (!good)
    return fail(Code::kInvalidArgument, "DET_SLOT_IDS: expected a JSON list of numbers, got " + text);
  return slots;
}

std::string text_at(const Json& config, std::string_view path) {
  const Json* value = find_path(config, path);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

/// The local directory for checkpoint files of a bucket. On a cluster it is part of the allocation's
/// directory, which is removed with it; otherwise it is a cache directory per bucket.
std::string staging_directory(const storage::Location& location) {
  const std::string run = variable("DET_RUN_DIR"), home = variable("HOME");
  if (!run.empty()) return run + "/checkpoints";
  std::string cache = variable("XDG_CACHE_HOME");
  if (cache.empty()) cache = home.empty() ? "." : home + "/.cache";
  return cache + "/determinant/checkpoints/" +
         sha256_hex(location.endpoint + " " + location.name()).substr(0, 16);
}

/// The directory of `checkpoint_storage`; "" when the configuration has none.
Result<std::string> storage_directory(const Json& config) {
  const Json* storage = find_path(config, "checkpoint_storage");
  if (storage == nullptr || storage->is_null()) return std::string();
  const std::string type = text_at(config, "checkpoint_storage.type");
  if (type == "directory") return text_at(config, "checkpoint_storage.container_path");
  if (type == "shared_fs") {
    const std::filesystem::path host = text_at(config, "checkpoint_storage.host_path");
    const std::string below = text_at(config, "checkpoint_storage.storage_path");
    return below.empty() ? host.string() : (host / below).string();
  }
  return fail(Code::kUnimplemented,
              "checkpoint_storage.type: \"" + type +
                  "\" cannot be written by this harness; use shared_fs, directory or s3");
}

/// Resolves constants and nested maps of the hyperparameters into values. kInvalidArgument for a range, which
/// only a search can resolve.
Status resolve_hparams(const Json& declared, const std::string& prefix, Json& out) {
  for (const auto& [name, value] : declared.items()) {
    const std::string path = prefix + name;
    const bool typed = value.is_object() && value.contains("type") && value["type"].is_string();
    if (typed && value["type"] == "const" && value.contains("val")) {
      out[name] = value["val"];
    } else if (typed) {
      return fail(Code::kInvalidArgument, "hyperparameters." + path + ": a range of type \"" +
                                              value["type"].get<std::string>() +
                                              "\" needs a search on a cluster; without one give a value");
    } else if (value.is_object()) {
      out[name] = Json::object();
      TRY(resolve_hparams(value, path + ".", out[name]));
    } else {
      out[name] = value;
    }
  }
  return {};
}

std::int64_t seed_of(const Json& config) {
  const Json& seed = *find_setting(config, "reproducibility.experiment_seed");
  return seed.is_number_integer() ? seed.get<std::int64_t>() : 0;
}

/// The path of libdet_cluster.so, which is installed beside the library that contains this function.
std::string cluster_library() {
  Dl_info self{};
  if (::dladdr(reinterpret_cast<void*>(&cluster_library), &self) == 0) return "libdet_cluster.so";
  return (std::filesystem::path(self.dli_fname).parent_path() / "libdet_cluster.so").string();
}

}  // namespace

/// Removes "http://": agents pass a URL, messages show host:port for a master without TLS.
static std::string shown_master(const std::string& address) {
  constexpr std::string_view kPlain = "http://";
  return address.starts_with(kPlain) ? address.substr(kPlain.size()) : address;
}

const Json* find_setting(const Json& config, std::string_view path) {
  return expconf::find_setting(config, path);
}

bool on_cluster() { return !variable("DET_MASTER").empty() && !variable("DET_ALLOCATION_ID").empty(); }

Result<TrialInfo> cluster_trial_info() {
  TrialInfo info;
  info.on_cluster = true;
  TRY_ASSIGN(info.experiment_id, number("DET_EXPERIMENT_ID"));
  TRY_ASSIGN(info.trial_id, number("DET_TRIAL_ID"));
  TRY_ASSIGN(const std::int64_t run, number("DET_TRIAL_RUN_ID"));
  info.run = static_cast<std::int32_t>(run);
  TRY_ASSIGN(info.seed, number("DET_TRIAL_SEED"));
  TRY_ASSIGN(info.experiment_config, object("DET_EXPERIMENT_CONFIG"));
  TRY_ASSIGN(info.hparams, object("DET_HPARAMS"));
  info.latest_checkpoint = variable("DET_LATEST_CHECKPOINT");
  info.master = shown_master(variable("DET_MASTER"));
  info.cluster_id = variable("DET_CLUSTER_ID");
  info.agent_id = variable("DET_AGENT_ID");
  info.task_id = variable("DET_TASK_ID");
  info.allocation_id = variable("DET_ALLOCATION_ID");
  TRY_ASSIGN(info.slot_ids, slot_ids());
  info.model_dir = variable("DET_WORKDIR");
  TRY(open_storage(info));
  if (info.checkpoint_dir.empty()) {
    return fail(Code::kInvalidArgument, "DET_EXPERIMENT_CONFIG: checkpoint_storage is missing");
  }
  return info;
}

Status open_storage(TrialInfo& info) {
  if (!info.checkpoint_dir.empty()) return {};
  Json* storage = info.experiment_config.is_object() && info.experiment_config.contains("checkpoint_storage")
                      ? &info.experiment_config["checkpoint_storage"]
                      : nullptr;
  if (storage == nullptr || !storage::is_bucket(*storage)) {
    TRY_ASSIGN(info.checkpoint_dir, storage_directory(info.experiment_config));
    return {};
  }
  TRY_ASSIGN(storage::Location location, storage::read_location(*storage));
  info.checkpoint_dir = staging_directory(location);
  info.bucket = std::make_shared<const storage::Bucket>(
      std::move(location),
      storage::BucketOptions{.terminating_since = &termination_since, .part_done = &beat});
  // The configuration is stored in checkpoints, so it must not contain keys.
  for (const char* key : {"access_key", "secret_key"}) {
    if (storage->contains(key)) (*storage)[key] = kSecretMask;
  }
  return {};
}

Result<TrialInfo> local_trial_info(const std::string& config_file, const std::string& checkpoint_dir) {
  if (config_file.empty()) return local_trial_info(Json::object(), "", checkpoint_dir);
  TRY_ASSIGN(const std::string text, read_file(config_file));
  TRY_ASSIGN(const YamlNode tree, parse_yaml(text, config_file));
  return local_trial_info(to_json(tree), config_file + ": ", checkpoint_dir);
}

Result<TrialInfo> local_trial_info(Json config, const std::string& source,
                                   const std::string& checkpoint_dir) {
  TrialInfo info;
  info.experiment_config = std::move(config);
  if (!info.experiment_config.is_object()) {
    return fail(Code::kInvalidArgument, source + "expected a map of settings");
  }
  const Json& declared = *find_setting(info.experiment_config, "hyperparameters");
  if (!declared.is_object()) return fail(Code::kInvalidArgument, source + "hyperparameters: expected a map");
  TRY(resolve_hparams(declared, "", info.hparams));
  info.seed = seed_of(info.experiment_config);
  info.checkpoint_dir = checkpoint_dir;
  TRY(open_storage(info));
  if (info.checkpoint_dir.empty()) info.checkpoint_dir = "checkpoints";
  return info;
}

namespace {

/// A function of libdet_cluster.so. The library resolves its own symbols first, because its gRPC and protobuf
/// conflict with those in some builds of LibTorch. It is never unloaded.
template <typename Function>
Result<Function> cluster_function(const char* name) {
  const std::string path = cluster_library();
  auto library = SharedLibrary::open(path, SharedLibrary::Symbols::kOwnFirst);
  if (!library) return fail(Code::kUnavailable, "cannot load the cluster client: " + library.error().message);
  Function function;
  library->find(function, name);
  if (!library->complete())
    return fail(Code::kUnavailable, path + " is not libdet_cluster.so of this release");
  return function;
}

}  // namespace

void preload_cluster_client() { (void)cluster_function<DetMakeClusterClient>("det_make_cluster_client"); }

static ClusterAddress address_of(const TrialInfo& info) {
  return {variable("DET_MASTER"), variable("DET_ALLOCATION_ID"), variable("DET_SESSION_TOKEN"),
          static_cast<std::int32_t>(info.trial_id), info.run};
}

FallBack fall_back_at(const TrialInfo& info) {
  return [address = address_of(info)](const std::string& uuid,
                                      const std::string& reason) -> Result<std::string> {
    TRY_ASSIGN(const auto ask, cluster_function<DetFallBack>("det_fall_back"));
    Result<std::string> instead;
    ask(&address, &uuid, &reason, &instead);
    return instead;
  };
}

Result<std::unique_ptr<Client>> make_client(const TrialInfo& info) {
  if (!info.on_cluster) return make_local_client(info.checkpoint_dir + "/media");
  TRY_ASSIGN(const auto make, cluster_function<DetMakeClusterClient>("det_make_cluster_client"));
  ClusterAddress address = address_of(info);
  address.preempted = &begin_termination;
  return std::unique_ptr<Client>(make(&address));
}

Result<std::unique_ptr<Client>> make_detached_client(const std::string& master, const std::string& user,
                                                     const std::string& config, TrialInfo& info) {
  TRY_ASSIGN(const auto make, cluster_function<DetMakeDetachedClient>("det_make_detached_client"));
  // The request id makes the creation idempotent when the request is retried.
  const DetachedRequest request{master, user, config, uuid4()};
  DetachedTrial trial;
  std::unique_ptr<Client> client(make(&request, &trial));
  if (!client) return fail(Code::kUnavailable, trial.error);
  info.master = trial.master;
  info.experiment_id = trial.experiment_id;
  info.trial_id = trial.trial_id;
  // A detached trial has one run; it is not restarted by the master.
  info.run = 1;
  TRY_ASSIGN(info.experiment_config, parse_json(trial.experiment_config, {.bytes = 64 << 20}));
  info.seed = seed_of(info.experiment_config);
  TRY(open_storage(info));
  return client;
}

}  // namespace det
