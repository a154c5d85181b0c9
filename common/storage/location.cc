#include "common/storage/location.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/base/process.h"
#include "common/base/secret.h"

namespace det::storage {
namespace {

std::string text_at(const Json& map, const char* key) {
  const auto found = map.find(key);
  return found != map.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// Removes slashes at both ends.
std::string trimmed(std::string text) {
  while (text.ends_with('/')) text.pop_back();
  text.erase(0, std::min(text.find_first_not_of('/'), text.size()));
  return text;
}

/// Fills in credentials and region. The key pair is taken as a whole, so that halves of two pairs are never
/// combined.
void use_environment(Location& at) {
  if (at.access_key.empty() || at.secret_key.empty()) {
    at.access_key = environment_variable("AWS_ACCESS_KEY_ID");
    at.secret_key = environment_variable("AWS_SECRET_ACCESS_KEY");
    at.session_token = environment_variable("AWS_SESSION_TOKEN");
  }
  // AWS_REGION comes last and takes precedence.
  for (const char* name : {"AWS_DEFAULT_REGION", "AWS_REGION"}) {
    if (const std::string region = environment_variable(name); !region.empty()) at.region = region;
  }
}

}  // namespace

std::string Location::name() const {
  const std::string inner = trimmed(prefix);
  return "s3://" + bucket + (inner.empty() ? "" : "/" + inner);
}

bool is_bucket(const Json& storage) { return storage.is_object() && text_at(storage, "type") == "s3"; }

std::string check_endpoint(const std::string& endpoint) {
  const std::size_t begin = endpoint.starts_with("https://") ? 8 : endpoint.starts_with("http://") ? 7 : 0;
  const std::string host =
      begin == 0 ? "" : endpoint.substr(begin, endpoint.size() - begin - endpoint.ends_with('/'));
  // Excludes '@', '?' and '#', which could redirect the request to another host.
  const bool good = !host.empty() && std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view(".-:[]").find(static_cast<char>(c)) != std::string_view::npos;
  });
  return good ? "" : "must be http://HOST or https://HOST, with a port where needed and nothing behind it";
}

std::string check_bucket_name(const std::string& bucket) {
  const bool good = bucket.size() >= 3 && bucket.size() <= 63 && bucket.front() != '.' &&
                    std::all_of(bucket.begin(), bucket.end(), [](unsigned char c) {
                      return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
                    });
  return good ? "" : "must be a bucket's name: 3 to 63 letters, digits, dots, hyphens and underscores";
}

Result<Location> read_location(const Json& storage) {
  Location at{.bucket = text_at(storage, "bucket"),
              .prefix = trimmed(text_at(storage, "prefix")),
              .endpoint = text_at(storage, "endpoint_url"),
              .access_key = text_at(storage, "access_key"),
              .secret_key = text_at(storage, "secret_key"),
              .session_token = {}};
  if (at.endpoint.ends_with('/')) at.endpoint.pop_back();
  if (const std::string wrong = check_bucket_name(at.bucket); !wrong.empty())
    return fail(Code::kInvalidArgument, "checkpoint_storage.bucket: " + wrong);
  if (const std::string wrong = at.endpoint.empty() ? "" : check_endpoint(at.endpoint); !wrong.empty())
    return fail(Code::kInvalidArgument, "checkpoint_storage.endpoint_url: " + wrong);
  // A masked key in a configuration read back from the master counts as missing.
  if (at.access_key == kSecretMask || at.secret_key == kSecretMask) at.access_key.clear();
  use_environment(at);
  return at;
}

Result<Location> location_of_url(const std::string& url) {
  const std::size_t scheme = url.find("://"),
                    slash = scheme == url.npos ? url.npos : url.find('/', scheme + 3);
  Location at{.bucket = slash == url.npos ? "" : trimmed(url.substr(slash)),
              .prefix = {},
              .endpoint = url.substr(0, slash)};
  if (!check_bucket_name(at.bucket).empty() || !check_endpoint(at.endpoint).empty())
    return fail(Code::kInvalidArgument, "\"" + url + "\" is no bucket; expected https://HOST/BUCKET");
  use_environment(at);
  return at;
}

}  // namespace det::storage
