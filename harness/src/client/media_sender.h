// Sends reported media to the master, beside the stream of reports: contents are large and may be refused.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "common/base/event.h"
#include "common/base/queue.h"
#include "common/base/result.h"
#include "harness/src/client/client.h"

namespace det {

/// A queue and a thread, which starts with the first entry. Thread-safe.
class MediaSender {
 public:
  /// Sends one entry; called on the sender's thread. kUnavailable and kDeadlineExceeded are retried with
  /// back-off; other errors drop the entry with a warning, or with its `done`.
  using Send = std::function<Status(const MediaRecord&)>;
  explicit MediaSender(Send send) : send_(std::move(send)) {}
  /// Drops what is not sent.
  ~MediaSender();
  /// Queues an entry. Blocks while 32 MiB wait. Entries with the same name and step that wait together are
  /// sent once, the newest.
  void add(MediaRecord record);
  /// Blocks until all entries are sent or dropped. Returns false when `timeout` expires first.
  bool flush(std::chrono::milliseconds timeout);

 private:
  void run();
  /// Sends an entry, until it is stored, refused, or the sender ends.
  void send(const MediaRecord& record);
  /// Removes the first entry of pending_.
  void finish_first();

  const Send send_;
  Queue<MediaRecord> queue_{1 << 16};
  Event finished_some_;  ///< wakes one waiting thread
  Event stopping_;
  std::atomic<std::int64_t> bytes_{0}, added_{0}, finished_{0};
  std::once_flag started_;
  std::thread thread_;

  // Used by the sender's thread only.
  std::deque<MediaRecord> pending_;
  std::string warned_;  ///< message of the newest warning
};

}  // namespace det
