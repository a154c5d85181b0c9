// Owns the knowledge of which streams are open for whom, so that they end within a second when their caller
// may no longer read them: logged out, revoked, expired, put out, or without the role.
#pragma once

#include <google/protobuf/message.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/queue.h"
#include "master/api/authorize.h"
#include "master/loop/workers.h"

namespace det::api {

class Streams {
 public:
  /// Called on a worker, again and again until the stream is closed.
  using Cut = std::function<void(const Error&)>;
  using Id = std::uint64_t;

  /// From now on `method` on `request` must stay allowed. Any thread, as all that follow.
  Id open(const char* method, Credentials credentials,
          std::shared_ptr<const google::protobuf::Message> request, Cut cut);
  /// `cut` may still be called for a moment, so it must own what it touches.
  void close(Id id);
  /// On one thread, several times a second: looks at all streams on `workers` when one was opened or
  /// somebody's rights changed, and every 5 s.
  void tick(loop::Workers& workers, Sessions& sessions);

 private:
  struct Stream {
    const char* method;
    Credentials credentials;
    std::shared_ptr<const google::protobuf::Message> request;
    Cut cut;
  };
  struct Change {
    Id id = 0;
    std::shared_ptr<const Stream> opened;  ///< none: closed
  };
  bool take_changes();

  std::atomic<Id> next_{1};
  Queue<Change> changes_{1 << 16};
  // Of the ticking thread:
  std::map<Id, std::shared_ptr<const Stream>> streams_;
  std::uint64_t seen_ = 0;
  MonoTime next_look_;
};

}  // namespace det::api
