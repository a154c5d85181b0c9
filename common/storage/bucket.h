// Client of one bucket in an S3-compatible store. Signs and retries requests. Large objects are transferred
// in parallel parts with bounded memory. Error messages name bucket, key, endpoint and a remedy.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/storage/answers.h"
#include "common/storage/egress_policy.h"
#include "common/storage/location.h"

namespace det::storage {

/// Tuning and hooks of a Bucket.
struct BucketOptions {
  /// Minimum part size in bytes; larger objects are transferred in parts.
  std::int64_t part = 8 << 20;
  int at_once = 4;   ///< concurrent requests; each holds one part in memory
  int attempts = 6;  ///< per request, on 5xx, 429, SlowDown or a network failure
  /// Back-off before the second attempt; doubles with each further one (at most 20 s), with jitter.
  std::chrono::milliseconds pause{200};
  std::chrono::seconds connect_timeout{10}, stall_timeout{30};
  /// Returns the time at which termination of this process was requested, or nothing. Null means never. After
  /// that time, a request that transfers no byte for terminating_patience fails with kUnavailable, and all
  /// later requests fail at once.
  std::optional<MonoTime> (*terminating_since)() = nullptr;
  Duration terminating_patience = std::chrono::seconds(8);
  /// Called after each transferred part and small file, by the transferring threads. Null disables it.
  void (*part_done)() = nullptr;
  /// Egress policy; null means egress_policy(). A request to a forbidden endpoint fails with
  /// kFailedPrecondition before anything is sent.
  const EgressPolicy* egress = nullptr;
};

/// Access to the objects below the prefix of a location. Keys are plain text, relative to the prefix, without
/// "." and ".." parts. Thread-safe. Calls block; all of them are idempotent.
///
/// Errors:
///    kNotFound            no such object
///    kPermissionDenied    bad keys, insufficient rights, or a clock that differs from the store's
///    kFailedPrecondition  no such bucket, another region, forbidden endpoint, no libcurl
///    kUnavailable         the store was unreachable or overloaded in all attempts
///    kResourceExhausted   the store is full, or a response exceeds its limit
///    kUnimplemented       the store does not offer this call
///    kInternal            any other rejection
///    kDataLoss            unexpected response, or an object that is not as expected
class Bucket {
 public:
  explicit Bucket(Location location, BucketOptions options = {});
  /// The location that was passed to the constructor.
  const Location& location() const { return location_; }
  /// Returns `s3://bucket/prefix/key` for messages.
  std::string name_of(const std::string& key) const;

  /// Writes an object in one request.
  Status put(const std::string& key, std::string_view content) const;
  /// Reads a whole object. Errors: kResourceExhausted (larger than `limit` bytes).
  Result<std::string> get(const std::string& key, std::int64_t limit) const;
  /// Reads `count` bytes at `offset`. Errors: kDataLoss (the store returned fewer bytes).
  Result<std::string> get_range(const std::string& key, std::int64_t offset, std::int64_t count) const;
  /// Uploads files; `files` maps keys to paths. The first failure stops the upload. Objects that are complete
  /// remain; unfinished multipart uploads are aborted.
  Status put_files(const std::map<std::string, std::string>& files) const;
  /// An object to download: its key, the file to create, and its expected size in bytes.
  struct Wanted {
    std::string key, path;
    std::int64_t size = 0;
  };
  /// Downloads objects into files, which are created with their parent directories.
  /// Errors: kDataLoss (an object of another size), kNotFound (no such object).
  Status get_files(const std::vector<Wanted>& files) const;

  /// Result of list.
  struct Listing {
    std::vector<Object> objects;       ///< keys without the location's prefix
    std::vector<std::string> folders;  ///< "name/", only with `flat`
  };
  /// Lists the objects with keys that begin with `start`, in order. With `flat`, keys with a slash after
  /// `start` are grouped into folders. Stops after the page that reaches `most` entries.
  Result<Listing> list(const std::string& start, bool flat, std::size_t most = SIZE_MAX) const;
  /// Deletes objects. Keys that do not exist are ignored.
  Status remove(const std::vector<std::string>& keys) const;
  /// Aborts unfinished multipart uploads of keys that begin with `start`.
  Status abort_uploads(const std::string& start) const;
  /// Tests write, read, list and delete access with a temporary object.
  Status check() const;

 private:
  /// One request before signing (bucket_call.h).
  struct Call;
  struct Part;
  /// Sends a request with retries and returns the response body. `headers` receives the response headers.
  Result<std::string> call(const Call& call, std::map<std::string, std::string>* headers = nullptr) const;
  /// Maps a failed response to an error with a remedy.
  tl::unexpected<Error> refuse(const Call& call, int status, const std::string& body,
                               const std::map<std::string, std::string>& headers) const;
  /// True once the process terminates and the store has stalled for terminating_patience. Stays true
  /// afterwards.
  bool is_expired(MonoTime begun) const;
  /// Sleeps for the back-off of an attempt; returns early if the request expires.
  void wait_before(int attempt, MonoTime begun) const;
  /// Returns prefix + "/" + key.
  std::string full(const std::string& key) const;
  Status put_small(const std::string& key, const std::string& path) const;
  Status put_large(const std::string& key, const std::string& path, std::int64_t size) const;
  Result<std::string> put_part(const Part& part) const;
  Status complete(const std::string& key, const std::string& id, const std::vector<std::string>& tags,
                  std::int64_t size) const;
  Status get_part(const Wanted& file, std::int64_t offset, std::int64_t count) const;
  Status remove_some(const std::vector<std::string>& keys) const;
  /// Runs act(0) ... act(count - 1) on up to `at_once` threads. Returns the first failure; no call starts
  /// after one.
  Status together(std::size_t count, const std::function<Status(std::size_t)>& act) const;

  Location location_;
  BucketOptions options_;
  std::string origin_;  ///< scheme and host
  /// Host header, and the path in front of every key: "/" or "/bucket/".
  std::string host_, root_;
  /// Progress of the store, shared by all threads and copies of this bucket.
  struct Patience {
    std::atomic<std::int64_t> moved{0};  ///< time of the last transferred byte, in microseconds of MonoTime
    std::atomic<bool> over{false};       ///< all requests have expired
  };
  std::shared_ptr<Patience> patience_ = std::make_shared<Patience>();
};

}  // namespace det::storage
