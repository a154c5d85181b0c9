#include "harness/src/client/media_sender.h"

#include <algorithm>
#include <cstdio>

#include "common/base/clock.h"

namespace det {
namespace {

constexpr std::int64_t kQueuedMediaBytes = 32 << 20;
constexpr std::chrono::milliseconds kFirstMediaWait{100}, kMaxMediaWait{5000};
/// Several threads may wait, but each wake-up reaches only one; none waits longer than this.
constexpr Duration kMediaNudge = std::chrono::milliseconds(200);

bool may_pass(Code code) { return code == Code::kUnavailable || code == Code::kDeadlineExceeded; }

}  // namespace

MediaSender::~MediaSender() {
  stopping_.set();
  queue_.close();
  if (thread_.joinable()) thread_.join();
}

void MediaSender::add(MediaRecord record) {
  std::call_once(started_, [this] { thread_ = std::thread([this] { run(); }); });
  while (bytes_ > kQueuedMediaBytes) (void)finished_some_.take_for(kMediaNudge);
  bytes_ += static_cast<std::int64_t>(record.content.size());
  ++added_;
  (void)queue_.push(std::move(record));
}

bool MediaSender::flush(std::chrono::milliseconds timeout) {
  const MonoTime deadline = mono_now() + timeout;
  const std::int64_t last = added_;
  while (finished_ < last) {
    const Duration left = deadline - mono_now();
    if (left.count() <= 0) return false;
    (void)finished_some_.take_for(std::min(left, kMediaNudge));
  }
  return true;
}

void MediaSender::run() {
  while (auto first = queue_.pop()) {
    pending_.push_back(std::move(*first));
    while (!pending_.empty() && !stopping_.is_set()) {
      for (MediaRecord& record : queue_.pop_batch(SIZE_MAX, std::chrono::seconds(0)))
        pending_.push_back(std::move(record));
      const MediaRecord& record = pending_.front();
      const bool replaced = std::any_of(pending_.begin() + 1, pending_.end(), [&](const MediaRecord& later) {
        return later.steps_completed == record.steps_completed && later.name == record.name;
      });
      if (!replaced) send(record);
      finish_first();
    }
    if (stopping_.is_set()) return;
  }
}

void MediaSender::send(const MediaRecord& record) {
  for (std::chrono::milliseconds wait = kFirstMediaWait;; wait = std::min(2 * wait, kMaxMediaWait)) {
    const Status done = send_(record);
    if (!done && may_pass(done.error().code)) {
      if (stopping_.wait_for(wait)) return;
      continue;
    }
    if (record.done) return record.done(done);
    if (done) return;
    const Error& error = done.error();
    // One warning for a quota that stays used.
    if (error.message != warned_)
      std::fprintf(stderr, "warning: media \"%s\" is not stored: %s\n", record.name.c_str(),
                   error.message.c_str());
    warned_ = error.message;
    return;
  }
}

void MediaSender::finish_first() {
  bytes_ -= static_cast<std::int64_t>(pending_.front().content.size());
  pending_.pop_front();
  ++finished_;
  finished_some_.set();
}

}  // namespace det
