// Requests for traces on their way from the stream to the training thread, and their progress on the way
// back.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/queue.h"
#include "common/base/shared.h"
#include "harness/src/client/client.h"

namespace det {

/// Holds one request. Functions of the reporter thread: receive(), resend(), take_outgoing(). The others are
/// thread-safe.
class ProfileMailbox {
 public:
  /// Takes a request of the master. A repeated id is replied to with its progress; another id is refused
  /// while a request is in progress.
  void receive(ProfileRequest request) {
    if (request.id == id_) {
      resend();
      return;
    }
    const std::string reason = is_active() ? "another trace is being recorded" : refusal();
    if (!reason.empty()) {
      rejected_ = {.id = std::move(request.id), .state = ProfileProgress::State::kFailed, .message = reason};
      return;
    }
    id_ = request.id;
    update({.id = id_});
    (void)requests_.try_push(std::move(request));
    has_request_ = true;
    withdraw();  // refuse() may have looked before the request was there
  }
  /// Returns a new request, once. One atomic read without one.
  std::optional<ProfileRequest> take() {
    if (!has_request_.load(std::memory_order_relaxed) || !has_request_.exchange(false)) return std::nullopt;
    std::vector<ProfileRequest> requests = requests_.pop_batch(1, Duration(0));
    if (requests.empty()) return std::nullopt;
    return std::move(requests.front());
  }
  /// Sets the progress of the request that was taken last.
  void update(ProfileProgress progress) {
    progress_.set(std::make_shared<const ProfileProgress>(std::move(progress)));
  }
  /// Refuses requests from now on, and one that was not taken; "" accepts them.
  void refuse(const std::string& reason) {
    refusal_.set(std::make_shared<const std::string>(reason));
    withdraw();
  }
  /// The stream is new, or the master has repeated its request: the progress is sent again.
  void resend() { sent_ = nullptr; }
  /// Returns the next progress to send.
  std::optional<ProfileProgress> take_outgoing() {
    if (rejected_) return std::exchange(rejected_, std::nullopt);
    auto progress = progress_.get();
    if (progress == sent_) return std::nullopt;
    sent_ = progress;
    return *progress;
  }

 private:
  std::string refusal() const {
    const auto reason = refusal_.get();
    return reason ? *reason : "";
  }
  bool is_active() const {
    const auto progress = progress_.get();
    return progress && progress->state != ProfileProgress::State::kDone &&
           progress->state != ProfileProgress::State::kFailed;
  }
  /// Fails a request that was not taken, if requests are refused.
  void withdraw() {
    const std::string reason = refusal();
    if (reason.empty()) return;
    if (auto request = take())
      update({.id = std::move(request->id), .state = ProfileProgress::State::kFailed, .message = reason});
  }

  Shared<ProfileProgress> progress_;  ///< null before the first request
  Shared<std::string> refusal_;
  Queue<ProfileRequest> requests_{1};
  std::atomic<bool> has_request_{false};
  // Of the reporter thread.
  std::string id_;  ///< of the newest accepted request
  std::shared_ptr<const ProfileProgress> sent_;
  std::optional<ProfileProgress> rejected_;
};

}  // namespace det
