// Implements the public Bucket on the storage library's client.
#include "det/bucket.h"

#include <stdexcept>

#include "common/base/files.h"
#include "common/storage/bucket.h"
#include "harness/src/base/heartbeat.h"
#include "harness/src/base/or_throw.h"

namespace det {
namespace {

/// Largest object that fetch() reads into memory.
constexpr std::int64_t kMaxBytes = 1 << 30;

storage::Location location_at(const std::string& url) {
  auto location = storage::location_of_url(url);
  if (!location) throw std::invalid_argument(location.error().message);
  return std::move(*location);
}

}  // namespace

class Bucket::Impl {
 public:
  explicit Impl(const std::string& url) : bucket(location_at(url)) {}
  storage::Bucket bucket;
};

Bucket::Bucket(const std::string& url) : impl_(std::make_unique<Impl>(url)) {}
Bucket::~Bucket() = default;
Bucket::Bucket(Bucket&&) noexcept = default;

std::vector<std::string> Bucket::list(const std::string& prefix) const {
  std::vector<std::string> keys;
  for (storage::Object& object : value_or_throw(impl_->bucket.list(prefix, false)).objects)
    keys.push_back(std::move(object.key));
  return keys;
}

void Bucket::fetch(const std::string& key, const std::string& path) const {
  // A large download takes a while: keep the hang watch from firing.
  beat();
  const std::string content = value_or_throw(impl_->bucket.get(key, kMaxBytes));
  const std::size_t slash = path.rfind('/');
  if (slash != std::string::npos) ok_or_throw(make_directories(path.substr(0, slash)));
  // The rename inside makes the file appear complete or not at all, even with several processes fetching it.
  ok_or_throw(write_file_atomic(path, content));
}

}  // namespace det
