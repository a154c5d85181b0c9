// Follows the Jobs or pods of one selector by LIST and WATCH, on a thread of its own. Never ends by itself: a
// stream that is cut, an expired version (410, also as an event inside a response with status 200) and
// unreadable events lead to a new list.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "common/base/event.h"
#include "common/base/queue.h"
#include "master/engines/kubernetes/client.h"
#include "master/engines/kubernetes/objects.h"

namespace det::engines {

/// A change that a Watch has seen.
struct Change {
  enum class Kind {
    kAll,      ///< `objects` are all that exist
    kSet,      ///< the object is new or has changed
    kRemoved,  ///< the object is gone
    kLost,     ///< the server does not reply: `problem`
  };
  Kind kind{};
  bool of_jobs = false;  ///< otherwise of pods
  std::vector<Object> objects;
  std::string problem;
};

class Watch {
 public:
  /// `out` bounds the memory for changes: the watch blocks while it is full. `client` and `out` must outlive
  /// this object.
  Watch(const Client& client, bool of_jobs, std::string selector, Queue<Change>& out);
  ~Watch() { stop(); }

  void start();
  /// Ends the thread within about a second. The queue must be closed or drained. Idempotent.
  void stop();
  /// Ends the stream in progress: a new list follows. Any thread.
  void refresh() { refresh_ = true; }

  /// Lists the objects once, and follows them until a list or a stream fails. The body of the thread.
  /// Returns the reason of the end.
  Status cycle();

 private:
  /// Returns the version of the list. A failure is reported as kLost.
  Result<std::string> list();
  /// Follows changes from `version`, and advances it. Succeeds when the server ends the stream in order.
  Status follow(std::string& version);
  /// Handles one line of a stream.
  Status take(std::string_view line, std::string& version);
  Object read(const Json& json) const { return of_jobs_ ? read_job(json) : read_pod(json); }
  void put(Change change);

  const Client& client_;
  const bool of_jobs_;
  const Resource& resource_;
  const std::string selector_;
  Queue<Change>& out_;
  std::atomic<bool> refresh_{false};
  Event stop_;
  std::thread thread_;
};

}  // namespace det::engines
