// Registry of open server streams. A stream ends within about a second after its caller has lost the right to
// read it: logout, revocation, expiry, deactivation or removal of a role.
#pragma once

#include <google/protobuf/message.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/base/queue.h"
#include "master/api/auth/authorize.h"
#include "master/loop/workers.h"

namespace det::api {

/// Checks the authorization of all open streams again when rights change.
class Streams {
 public:
  /// Called on a worker with the reason, repeatedly until the stream is closed. Must not block.
  using Cut = std::function<void(const Error&)>;
  using Id = std::uint64_t;

  /// Registers a stream: `method` must stay allowed on `request`. Any thread.
  Id open(const char* method, Credentials credentials,
          std::shared_ptr<const google::protobuf::Message> request, Cut cut);
  /// Removes a stream. Any thread. `cut` may still be called shortly afterwards, so it must keep its state
  /// alive.
  void close(Id id);
  /// Checks all streams on `workers` when one was opened, when rights have changed, and every 5 s. Called on
  /// one thread several times a second.
  void tick(loop::Workers& workers, Sessions& sessions);

 private:
  struct Stream {
    const char* method;
    Credentials credentials;
    std::shared_ptr<const google::protobuf::Message> request;
    Cut cut;
  };
  /// Opening or closing of a stream.
  struct Change {
    Id id = 0;
    std::shared_ptr<const Stream> opened;  ///< null: closed
  };
  bool take_changes();

  std::atomic<Id> next_{1};
  Queue<Change> changes_{1 << 16};
  // The members below belong to the ticking thread.
  std::map<Id, std::shared_ptr<const Stream>> streams_;
  std::uint64_t seen_ = 0;  ///< generation at the last check
  MonoTime next_check_;
};

}  // namespace det::api
