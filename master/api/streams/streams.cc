#include "master/api/streams/streams.h"

namespace det::api {
namespace {

constexpr Duration kStreamScanInterval = std::chrono::seconds(5);

}  // namespace

Streams::Id Streams::open(const char* method, Credentials credentials,
                          std::shared_ptr<const google::protobuf::Message> request, Cut cut) {
  const Id id = next_++;
  changes_.push({id, std::make_shared<const Stream>(
                         Stream{method, std::move(credentials), std::move(request), std::move(cut)})});
  return id;
}

void Streams::close(Id id) { changes_.push({id, nullptr}); }

/// Returns whether a stream was opened. Rights may have changed between its own check and its registration.
bool Streams::take_changes() {
  bool opened = false;
  for (Change& change : changes_.pop_batch(1 << 16, Duration(0))) {
    opened = opened || change.opened;
    if (change.opened)
      streams_[change.id] = std::move(change.opened);
    else
      streams_.erase(change.id);
  }
  return opened;
}

void Streams::tick(loop::Workers& workers, Sessions& sessions) {
  const std::uint64_t newest = sessions.generation();
  const bool opened = take_changes();
  const MonoTime now = mono_now();
  if (!opened && newest == seen_ && now < next_check_) return;
  seen_ = newest;
  next_check_ = now + kStreamScanInterval;
  for (const auto& [id, stream] : streams_) {
    // If the queue is full, the check is repeated within 5 s.
    workers.try_post([stream = stream, &sessions] {
      const auto allowed = authorize(stream->method, stream->credentials, sessions, stream->request.get());
      // Streams survive an outage of the database; only a definite refusal ends them.
      if (allowed || allowed.error().code == Code::kUnavailable ||
          allowed.error().code == Code::kResourceExhausted)
        return;
      stream->cut(allowed.error());
    });
  }
}

}  // namespace det::api
