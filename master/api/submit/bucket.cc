#include "master/api/submit/bucket.h"

#include <nlohmann/json.hpp>

namespace det::api {
namespace {

/// Short timeouts: a user waits for the result.
constexpr storage::BucketOptions kShortTimeouts{
    .attempts = 2, .connect_timeout = std::chrono::seconds(5), .stall_timeout = std::chrono::seconds(10)};

}  // namespace

Result<std::optional<storage::Bucket>> bucket_of(const std::string& config_json) {
  TRY_ASSIGN(const Json config, parse_json(config_json, {.bytes = 16 << 20, .depth = 64}));
  const Json* storage = config.is_object() ? find_path(config, "checkpoint_storage") : nullptr;
  // File storages are accessed through the mounted directory.
  if (storage == nullptr || !storage::is_bucket(*storage)) return std::nullopt;
  TRY_ASSIGN(const storage::Location location, storage::read_location(*storage));
  return storage::Bucket(location);
}

Status check_bucket(const Json& storage) {
  if (!storage::is_bucket(storage)) return {};
  TRY_ASSIGN(const storage::Location location, storage::read_location(storage));
  return storage::Bucket(location, kShortTimeouts).check();
}

}  // namespace det::api
