// Owns the client of one bucket in an S3-compatible store: requests are signed, retried and told in words
// that name bucket, key, endpoint and the mend. Large objects go in parts, several at a time, in bounded
// memory.
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

#include "base/clock.h"
#include "base/result.h"
#include "storage/answers.h"
#include "storage/location.h"
#include "storage/reach.h"

namespace det::storage {

struct BucketOptions {
  std::int64_t part =
      8 << 20;       ///< bytes of a part; a larger object is sent and fetched in parts of at least that
  int at_once = 4;   ///< requests under way at a time, each with a part in memory
  int attempts = 6;  ///< of a request that meets 5xx, 429, SlowDown or no answer
  std::chrono::milliseconds pause{
      200};  ///< before the second attempt; twice as long before each further one, plus chance
  std::chrono::seconds connect_timeout{10}, stall_timeout{30};
  /// Since when somebody waits for this process to end; null: nobody ever does. From then on a call for which
  /// the store moves no byte for `leavers_patience` is given up, and whatever is asked of it afterwards fails
  /// at once.
  std::optional<MonoTime> (*leaving_since)() = nullptr;
  Duration leavers_patience = std::chrono::seconds(8);
  void (*part_done)() =
      nullptr;  ///< called by the threads that move files, at each part and small file; null: nobody is told
  const Reach* reach =
      nullptr;  ///< null: confines(); what is beyond it is kFailedPrecondition, and nothing is sent there
};

/// Keys are below the location's prefix and plain text; none has "." or ".." for a part. Any thread may call;
/// every call may be repeated. Errors: kNotFound (there is no such object), kPermissionDenied (keys or
/// rights), kFailedPrecondition (no such bucket, another region), kUnavailable (the store cannot be reached,
/// or is busy for longer than all attempts took), kResourceExhausted (it is full), kDataLoss (an answer or an
/// object that is not what it should be).
class Bucket {
 public:
  explicit Bucket(Location location, BucketOptions options = {});
  const Location& location() const { return location_; }
  /// For messages: `s3://bucket/prefix/key`.
  std::string name_of(const std::string& key) const;

  Status put(const std::string& key, std::string_view content) const;
  /// kResourceExhausted when it holds more than `limit` bytes.
  Result<std::string> get(const std::string& key, std::int64_t limit) const;
  /// `count` bytes from `offset`, which must be there.
  Result<std::string> get_range(const std::string& key, std::int64_t offset, std::int64_t count) const;
  /// Key → path of a file. The first failure ends the others; what was sent stays, what is half sent is taken
  /// back.
  Status put_files(const std::map<std::string, std::string>& files) const;
  struct Wanted {
    std::string key, path;
    std::int64_t size = 0;
  };
  /// Into files, which are made. An object of another size is kDataLoss, one that is not there kNotFound.
  Status get_files(const std::vector<Wanted>& files) const;

  struct Listing {
    std::vector<Object> objects;       ///< keys without the location's prefix
    std::vector<std::string> folders;  ///< "name/": what comes once with `flat`
  };
  /// All that begin with `start`, in order. With `flat` what lies below a slash behind it is told as a
  /// folder. `most` ends the listing early.
  Result<Listing> list(const std::string& start, bool flat, std::size_t most = SIZE_MAX) const;
  /// Those that are not there are removed.
  Status remove(const std::vector<std::string>& keys) const;
  /// Takes back uploads in parts that were never finished, of objects that begin with `start`.
  Status abort_uploads(const std::string& start) const;
  /// Whether it can be written, read and cleaned: with an object of its own, which goes again.
  Status check() const;

 private:
  struct Call;
  struct Part;
  Result<std::string> call(const Call& call, std::map<std::string, std::string>* headers = nullptr) const;
  tl::unexpected<Error> refuse(const Call& call, int status, const std::string& body,
                               const std::map<std::string, std::string>& headers) const;
  bool is_given_up(MonoTime begun) const;
  void wait_before(int attempt, MonoTime begun) const;
  std::string full(const std::string& key) const;
  Status put_small(const std::string& key, const std::string& path) const;
  Status put_large(const std::string& key, const std::string& path, std::int64_t size) const;
  Result<std::string> put_part(const Part& part) const;
  Status complete(const std::string& key, const std::string& id, const std::vector<std::string>& tags,
                  std::int64_t size) const;
  Status get_part(const Wanted& file, std::int64_t offset, std::int64_t count) const;
  Status remove_some(const std::vector<std::string>& keys) const;
  /// act(0) … act(count - 1) on several threads; the first failure, after which none begins.
  Status together(std::size_t count, const std::function<Status(std::size_t)>& act) const;

  Location location_;
  BucketOptions options_;
  std::string origin_;       ///< scheme and host
  std::string host_, root_;  ///< header "host", and what stands before every key in paths
  struct Patience {
    std::atomic<std::int64_t> moved{0};  ///< when the store last moved a byte, as microseconds of MonoTime
    std::atomic<bool> over{false};
  };
  std::shared_ptr<Patience> patience_ = std::make_shared<Patience>();
};

}  // namespace det::storage
