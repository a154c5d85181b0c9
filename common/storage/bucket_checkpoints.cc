#include "common/storage/bucket_checkpoints.h"

#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/secret.h"
#include "common/base/text.h"
#include "common/crypto/digest.h"
#include "common/storage/checkpoint_files.h"

namespace det::storage {
namespace {

constexpr char kManifest[] = "/manifest.json", kPartial[] = ".partial";
constexpr std::int64_t kManifestBytes = 16 << 20;

/// True for a relative path without "." and ".." parts and with names that a file system accepts. Manifests
/// are untrusted.
bool is_inner_path(const std::string& path) {
  if (path.empty() || path.size() > 4096 || path.find('\0') != path.npos) return false;
  for (const std::string& part : split(path, '/')) {
    if (part.empty() || part == "." || part == ".." || part.size() > 255) return false;
  }
  return true;
}

/// Returns the files that the manifest lists, to be downloaded into `directory`.
Result<std::vector<Bucket::Wanted>> files_of_manifest(const Bucket& bucket, const std::string& uuid,
                                                      const std::string& text, const std::string& directory) {
  const auto damaged = [&](const std::string& how) {
    return fail(Code::kDataLoss, "checkpoint " + bucket.name_of(uuid) + ": " + how);
  };
  const auto manifest = parse_json(text, {.bytes = static_cast<std::size_t>(kManifestBytes)});
  const Json* files = manifest && manifest->is_object() ? find_path(*manifest, "files") : nullptr;
  if (files == nullptr || !files->is_object()) return damaged("manifest.json is damaged");
  std::vector<Bucket::Wanted> wanted;
  for (const auto& [path, entry] : files->items()) {
    const Json* size = entry.is_object() ? find_path(entry, "size") : nullptr;
    if (!is_inner_path(path)) return damaged(make_utf8(path) + " leads out of the checkpoint");
    if (size == nullptr || !size->is_number_integer() || size->get<std::int64_t>() < 0)
      return damaged(make_utf8(path) + " has no size in the manifest");
    wanted.push_back({uuid + "/" + path, directory + "/" + path, size->get<std::int64_t>()});
  }
  return wanted;
}

/// Verifies the SHA-256 digests of the manifest. CRC-64 sums of large files are verified while those are read
/// (harness/src/checkpoint/checksum.h).
Status check_digests(const Bucket& bucket, const std::string& uuid, const std::string& text,
                     const std::string& directory) {
  TRY_ASSIGN(const Json manifest, parse_json(text, {.bytes = static_cast<std::size_t>(kManifestBytes)}));
  for (const auto& [path, entry] : manifest["files"].items()) {
    const Json* wanted = find_path(entry, "sha256");
    if (wanted == nullptr) continue;
    TRY_ASSIGN(const std::string found, sha256_file(directory + "/" + path));
    if (*wanted != found)
      return fail(Code::kDataLoss,
                  bucket.name_of(uuid + "/" + path) + " is damaged: its digest is not the manifest's");
  }
  return {};
}

/// Returns the objects of a checkpoint without manifest, as other programs write them.
Result<std::vector<Bucket::Wanted>> files_of_another(const Bucket& bucket, const std::string& uuid,
                                                     const std::string& directory) {
  TRY_ASSIGN(const auto listing, bucket.list(uuid + "/", false));
  TRY_ASSIGN(const auto mark, bucket.list(uuid + kPartial, false, 1));
  // The mark distinguishes an unfinished upload from a checkpoint of another program.
  if (!mark.objects.empty())
    return fail(Code::kDataLoss, bucket.name_of(uuid) + " was never finished, or is being removed");
  if (listing.objects.empty()) {
    TRY_ASSIGN(const auto any, bucket.list("", false, 1));
    if (any.objects.empty()) {
      return fail(Code::kUnavailable, "the checkpoint storage " + bucket.location().name() +
                                          " is empty; are bucket and prefix those it was saved to?");
    }
    return fail(Code::kNotFound, bucket.name_of(uuid) + " is missing");
  }
  std::vector<Bucket::Wanted> wanted;
  for (const Object& object : listing.objects) {
    const std::string path = object.key.substr(uuid.size() + 1);
    if (path.ends_with('/') || path.empty()) continue;  // a folder marker of a web console
    if (!is_inner_path(path))
      return fail(Code::kDataLoss, bucket.name_of(object.key) + " leads out of the checkpoint");
    wanted.push_back({object.key, directory + "/" + path, object.size});
  }
  return wanted;
}

Owner owner_in(const std::string& text) {
  const auto json = parse_json(text, {.bytes = static_cast<std::size_t>(kManifestBytes)});
  return json && json->is_object() ? read_owner(*json) : Owner{};
}

std::string owner_text(const Owner& owner) {
  if (owner.cluster.empty()) return "{}";
  return dump_json(
      Json{{"owner", {{"cluster", owner.cluster}, {"trial", owner.trial.value}, {"run", owner.run}}}});
}

/// Removes one checkpoint. Returns false if nothing of it existed. The `.partial` mark stays until all
/// objects are gone, so that an interrupted removal is found and continued.
Result<bool> remove_one(const Bucket& bucket, const std::string& uuid) {
  TRY_ASSIGN(const auto listing, bucket.list(uuid, false));
  std::vector<std::string> keys;
  bool has_manifest = false, has_mark = false;
  for (const Object& object : listing.objects) {
    if (object.key == uuid + kManifest) {
      has_manifest = true;
    } else if (object.key == uuid + kPartial) {
      has_mark = true;
    } else if (object.key.starts_with(uuid + "/")) {
      keys.push_back(object.key);
    }
  }
  if (has_manifest) {
    // kNotFound: a concurrent removal has deleted the manifest since the listing, and has set the mark.
    const auto manifest = bucket.get(uuid + kManifest, kManifestBytes);
    if (!manifest && manifest.error().code != Code::kNotFound) return tl::unexpected(manifest.error());
    if (manifest && !has_mark) TRY(bucket.put(uuid + kPartial, owner_text(owner_in(*manifest))));
    has_mark = true;
    // The manifest goes first, so that readers never see a checkpoint with missing files.
    if (manifest) TRY(bucket.remove({uuid + kManifest}));
  }
  TRY(bucket.remove(keys));
  // Unfinished multipart uploads cost storage but appear in no listing of objects.
  TRY(bucket.abort_uploads(uuid + "/"));
  if (has_mark) TRY(bucket.remove({uuid + kPartial}));
  return has_manifest || has_mark || !keys.empty();
}

/// Removes all objects below a directory of media. Returns false if there were none.
Result<bool> remove_below(const Bucket& bucket, const std::string& name) {
  TRY_ASSIGN(const auto listing, bucket.list(name + "/", false));
  std::vector<std::string> keys;
  for (const Object& object : listing.objects) keys.push_back(object.key);
  TRY(bucket.remove(keys));
  return !keys.empty();
}

/// Appends the marked (unfinished) and the complete checkpoints to `done.found`.
Status find_all(const Bucket& bucket, Done& done) {
  TRY_ASSIGN(const auto listing, bucket.list("", true));
  std::set<std::string> marked;
  // An object that vanished since the listing is skipped.
  const auto note = [&](const std::string& name, const std::string& file) -> Status {
    const auto text = bucket.get(file, kManifestBytes);
    if (text) done.found.push_back({name, owner_in(*text)});
    if (text || text.error().code == Code::kNotFound) return {};
    return tl::unexpected(text.error());
  };
  for (const Object& object : listing.objects) {
    const std::string name =
        object.key.substr(0, object.key.size() - std::min(object.key.size(), sizeof kPartial - 1));
    if (!object.key.ends_with(kPartial) || !parse_checkpoint_id(name)) continue;
    marked.insert(name);
    TRY(note(name, object.key));
  }
  for (const std::string& folder : listing.folders) {
    const std::string name = folder.substr(0, folder.size() - 1);
    if (parse_checkpoint_id(name) && !marked.contains(name)) TRY(note(name, name + kManifest));
  }
  return {};
}

}  // namespace

Status begin_upload(const Bucket& bucket, const std::string& uuid, const Owner& owner) {
  return bucket.put(uuid + kPartial, owner_text(owner));
}

Status upload_files(const Bucket& bucket, const std::string& uuid, const std::string& directory,
                    const std::vector<std::string>& files) {
  std::map<std::string, std::string> keys;
  for (const std::string& file : files) keys[uuid + "/" + file] = directory + "/" + file;
  return bucket.put_files(keys);
}

Status finish_upload(const Bucket& bucket, const std::string& uuid, std::string_view manifest) {
  TRY(bucket.put(uuid + kManifest, manifest));
  // The manifest makes the checkpoint complete. A mark that remains is removed together with the checkpoint.
  (void)bucket.remove({uuid + kPartial});
  return {};
}

Status fetch(const Bucket& bucket, const std::string& uuid, const std::string& into) {
  // rename() would find this only after the transfer.
  TRY_ASSIGN(const std::string directory, vacant_directory(into));
  // A random name keeps concurrent downloads of the same checkpoint apart; rename publishes the result.
  const std::string partial = directory + "." + to_hex(random_bytes(8)) + kPartial;
  TRY(make_directories(partial));
  const auto attempt = [&]() -> Status {
    const auto manifest = bucket.get(uuid + kManifest, kManifestBytes);
    if (!manifest && manifest.error().code != Code::kNotFound) return tl::unexpected(manifest.error());
    TRY_ASSIGN(const auto files, manifest ? files_of_manifest(bucket, uuid, *manifest, partial)
                                          : files_of_another(bucket, uuid, partial));
    Status got = bucket.get_files(files);
    // A file that the manifest lists is missing.
    if (!got && got.error().code == Code::kNotFound) return fail(Code::kDataLoss, got.error().message);
    if (!got) return got;
    if (manifest) TRY(check_digests(bucket, uuid, *manifest, partial));
    if (manifest) TRY(write_file_atomic(partial + kManifest, *manifest));
    if (::rename(partial.c_str(), directory.c_str()) != 0) return fail_errno(directory);
    return {};
  };
  Status done = attempt();
  if (!done) (void)remove_tree(partial);
  return done;
}

Result<std::vector<std::string>> list_checkpoints(const Bucket& bucket) {
  TRY_ASSIGN(const auto listing, bucket.list("", true));
  std::vector<std::string> names;
  for (const std::string& folder : listing.folders) {
    const std::string name = folder.substr(0, folder.size() - 1);
    if (!parse_checkpoint_id(name)) continue;
    TRY_ASSIGN(const auto manifest, bucket.list(name + kManifest, false, 1));
    if (!manifest.objects.empty()) names.push_back(name);
  }
  return names;
}

Done perform(const Bucket& bucket, const std::vector<std::string>& remove, bool list) {
  Done done;
  for (const std::string& name : remove) {
    const auto was_there = parse_checkpoint_id(name)  ? remove_one(bucket, name)
                           : is_media_directory(name) ? remove_below(bucket, name)
                                                      : Result<bool>(false);
    // Continues after a failure; the first error is reported.
    if (!was_there) {
      if (done.error.empty()) done.error = was_there.error().message;
    } else {
      (*was_there ? done.removed : done.absent).push_back(name);
    }
  }
  if (!list) return done;
  const Status found = find_all(bucket, done);
  if (!found && done.error.empty()) done.error = found.error().message;
  return done;
}

}  // namespace det::storage
