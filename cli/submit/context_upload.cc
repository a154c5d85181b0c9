#include "cli/submit/context_upload.h"

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/output/progress.h"
#include "common/archive/archive.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/crypto/digest.h"
#include "det/v1/context.grpc.pb.h"
#include "det/v1/experiment.grpc.pb.h"

namespace det::cli {
namespace {

/// Context bytes per message, and the archive size from which a progress bar is shown.
constexpr std::size_t kContextChunk = 1 << 20, kContextWorthABar = 4 << 20;
constexpr std::size_t kMostChanges = 2 << 20;  ///< limit of the changes, which travel in one message
constexpr std::size_t kMostRemembered = 16, kMostFiles = 5000;
constexpr int kUploadCacheVersion = 1;

/// Makes one upload attempt. A repetition with the same request id returns the experiment that an earlier
/// attempt created.
grpc::Status upload_chunks(Client& client, const v1::CreateExperimentRequest& create,
                           const std::string& bytes, v1::CreateExperimentResponse& response) {
  grpc::ClientContext context;
  client.prepare(context, Duration(0));
  response.Clear();
  v1::ExperimentService::Stub stub(client.channel());
  const auto writer = stub.UploadExperiment(&context, &response);
  ProgressBar bar("uploading");
  v1::UploadExperimentRequest first;
  *first.mutable_create() = create;
  bool open = writer->Write(first);
  for (std::size_t at = 0; open && at < bytes.size(); at += kContextChunk) {
    v1::UploadExperimentRequest part;
    part.set_chunk(bytes.substr(at, kContextChunk));
    open = writer->Write(part);
    if (bytes.size() >= kContextWorthABar)
      bar.show(static_cast<double>(at) / static_cast<double>(bytes.size()));
  }
  if (open) writer->WritesDone();
  return writer->Finish();
}

/// Returns an archive of the changed files; "" when a full upload costs about as much.
Result<std::string> pack_changes(const Context& context, const ContextChanges& changes) {
  const std::set<std::string> wanted(changes.changed.begin(), changes.changed.end());
  TRY_ASSIGN(std::vector<ArchiveEntry> entries, read_archive(context.bytes));
  std::erase_if(entries, [&](const ArchiveEntry& entry) { return !wanted.contains(entry.path); });
  if (entries.empty()) return std::string();
  TRY_ASSIGN(std::string bytes, pack_entries(std::move(entries)));
  // The changes travel in one message and must save at least half of the upload.
  const bool worth_it = bytes.size() < kMostChanges && bytes.size() < context.bytes.size() / 2;
  return worth_it ? std::move(bytes) : std::string();
}

/// Creates the experiment without a full upload. Returns nothing when the master does not have the files, or
/// is too old for this call.
Result<std::optional<v1::CreateExperimentResponse>> by_digest(Client& client,
                                                              const v1::CreateExperimentRequest& create,
                                                              const Context& context,
                                                              const SentContext& before,
                                                              const std::string& digest) {
  v1::CreateFromContextRequest request;
  *request.mutable_create() = create;
  request.set_digest(digest);
  if (!before.digest.empty() && before.digest != digest) {
    const ContextChanges changes = changes_since(before, context);
    TRY_ASSIGN(std::string packed, pack_changes(context, changes));
    // No changed file is a valid delta: files may only have been removed.
    if (!packed.empty() || changes.changed.empty()) {
      request.set_base(before.digest);
      request.set_changes(std::move(packed));
      for (const std::string& path : changes.removed) request.add_removed(path);
    }
  }
  auto response = client.call(&v1::ContextService::Stub::CreateFromContext, request);
  if (!response && response.error().code != Code::kUnimplemented) return tl::unexpected(response.error());
  if (!response || response->unknown()) return std::optional<v1::CreateExperimentResponse>();
  return std::optional(std::move(*response->mutable_created()));
}

/// Returns the cache file; an empty cache when it is missing, damaged or of another version.
Json load_manifest(const std::string& path) {
  const Json nothing = {{"version", kUploadCacheVersion}, {"contexts", Json::array()}};
  const auto text = read_file(path, 64 << 20);
  if (!text) return nothing;
  auto value = parse_json(*text, {.bytes = 64 << 20});
  const bool good = value && value->is_object() && value->value("version", Json()) == kUploadCacheVersion &&
                    value->contains("contexts") && (*value)["contexts"].is_array();
  return good ? std::move(*value) : nothing;
}

}  // namespace

ContextChanges changes_since(const SentContext& before, const Context& now) {
  ContextChanges changes;
  for (const auto& [path, fingerprint] : now.fingerprints) {
    const auto found = before.fingerprints.find(path);
    if (found == before.fingerprints.end() || found->second != fingerprint) changes.changed.push_back(path);
  }
  for (const auto& [path, fingerprint] : before.fingerprints)
    if (!now.fingerprints.contains(path)) changes.removed.push_back(path);
  return changes;
}

std::string SentContexts::default_path() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache != nullptr && *cache != '\0') return std::string(cache) + "/determined/contexts.json";
  if (home != nullptr && *home != '\0') return std::string(home) + "/.cache/determined/contexts.json";
  return "";
}

SentContext SentContexts::find(const std::string& key) const {
  SentContext sent;
  if (path_.empty()) return sent;
  const Json all = load_manifest(path_);
  try {
    for (const Json& each : all.at("contexts")) {
      if (each.at("key") != key) continue;
      each.at("digest").get_to(sent.digest);
      each.at("files").get_to(sent.fingerprints);
    }
  } catch (const nlohmann::json::exception&) {
    return {};  // what cannot be read is as if it were not there
  }
  return sent;
}

void SentContexts::remember(const std::string& key, const SentContext& sent) const {
  // Bounds the size of the cache file, which every submission reads.
  if (path_.empty() || sent.fingerprints.size() > kMostFiles) return;
  Json all = load_manifest(path_),
       kept = Json::array({{{"key", key}, {"digest", sent.digest}, {"files", sent.fingerprints}}});
  for (const Json& each : all["contexts"]) {
    if (kept.size() < kMostRemembered && each.is_object() && each.value("key", Json()) != key)
      kept.push_back(each);
  }
  all["contexts"] = std::move(kept);
  if (make_directories(std::filesystem::path(path_).parent_path().string(), 0700))
    static_cast<void>(write_file_atomic(path_, dump_json(all) + "\n", 0600));
}

Result<v1::CreateExperimentResponse> submit_with_context(Client& client,
                                                         const v1::CreateExperimentRequest& create,
                                                         const Context& context,
                                                         const std::string& directory) {
  std::error_code error;
  // The same directory may have been sent to several masters.
  const std::string key =
      client.address().url() + " " + std::filesystem::absolute(directory, error).lexically_normal().string();
  const SentContexts sent(SentContexts::default_path());
  const SentContext before = sent.find(key);
  // Without files there is nothing to avoid sending.
  const std::string digest = context.file_count > 0 ? sha256_hex(context.bytes) : "";
  if (!digest.empty()) {
    TRY_ASSIGN(auto made, by_digest(client, create, context, before, digest));
    if (made) {
      if (before.digest != digest) sent.remember(key, {digest, context.fingerprints});
      return std::move(*made);
    }
  }
  v1::CreateExperimentResponse response;
  TRY(client.retry([&] { return upload_chunks(client, create, context.bytes, response); }));
  if (!digest.empty()) sent.remember(key, {digest, context.fingerprints});
  return response;
}

}  // namespace det::cli
