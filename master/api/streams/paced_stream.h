// Base of server streams that are paced by their client: downloads and streams of metric reports.
//
//   start → [read pool: authorize, reserve a place] → [stream pool: run(), which sends message by message] →
//   end
#pragma once

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "common/base/event.h"
#include "master/api/service.h"

namespace det::api {

/// One stream. It holds a thread of the stream pool while the client reads, and the memory of one message. A
/// caller has at most kPacedStreamsPerCaller of them; a client that does not take a message within
/// Context::stream_write_time is disconnected. Ends within about a second after its caller has lost the right
/// to read. Deletes itself.
template <typename Request, typename Response>
class PacedStream : public grpc::ServerWriteReactor<Response> {
 public:
  PacedStream(const Context& context, grpc::CallbackServerContext* call, const char* method,
              const Unread<Request>& request)
      : context_(context),
        call_(call),
        method_(method),
        credentials_(read_credentials(*call)),
        bytes_(request.bytes) {}

  /// Queues the stream and returns it. Called once, by the handler of the method.
  grpc::ServerWriteReactor<Response>* start() {
    if (!context_.pools.read.try_post([this] { admit(); })) this->Finish(to_grpc(busy()));
    return this;
  }
  void OnWriteDone(bool ok) override {
    taken_ = ok;
    written_.set();
  }
  void OnDone() override { delete this; }

 protected:
  /// Sends all messages. Runs on the stream pool and blocks while the client reads.
  virtual Status run() = 0;
  /// Sends `message` and waits until the client has taken it. Returns false when the stream is over.
  bool send(const Response& message) {
    if (*cut_ || call_->IsCancelled()) return false;
    taken_ = false;
    this->StartWrite(&message);
    if (!written_.take_for(context_.stream_write_time)) {
      stalled_ = true;
      call_->TryCancel();
      // The canceled write still refers to the message.
      while (!written_.take_for(context_.stream_write_time)) continue;
    }
    return taken_;
  }
  const Request& request() const { return *request_; }

  const Context& context_;

 private:
  void admit() {
    if (call_->IsCancelled()) return this->Finish(grpc::Status::CANCELLED);
    auto admitted = api::read_authorized<Request>(context_, method_, credentials_, bytes_);
    if (!admitted) return this->Finish(to_grpc(admitted.error()));
    request_ = std::move(admitted->request);
    place_ = context_.paced_streams->take(budget_owner(admitted->caller), 1);
    if (!place_)
      return this->Finish(
          to_grpc(Error{Code::kResourceExhausted,
                        "at most " + std::to_string(kPacedStreamsPerCaller) +
                            " downloads and metric streams of one user at once; try again when "
                            "one has ended",
                        {}}));
    if (!context_.pools.stream.try_post([this] { this->Finish(serve()); })) this->Finish(to_grpc(busy()));
  }

  /// Runs the stream while its caller may read what it sends.
  grpc::Status serve() {
    if (call_->IsCancelled()) return grpc::Status::CANCELLED;
    const auto id =
        context_.streams->open(method_, credentials_, request_, [cut = cut_](const Error&) { *cut = true; });
    const Status done = run();
    context_.streams->close(id);
    if (*cut_)
      return to_grpc(Error{Code::kUnauthenticated, "the right to read this has ended; log in again", {}});
    if (stalled_) return to_grpc(Error{Code::kDeadlineExceeded, "the client did not read in time", {}});
    return to_grpc(done);
  }

  grpc::CallbackServerContext* const call_;
  const char* const method_;
  const Credentials credentials_;
  const grpc::ByteBuffer bytes_;
  std::shared_ptr<const Request> request_;  ///< set when the caller is authorized
  const std::shared_ptr<std::atomic<bool>> cut_ = std::make_shared<std::atomic<bool>>(false);
  std::optional<loop::Budget::Lease> place_;
  Event written_;
  std::atomic<bool> taken_{false};
  bool stalled_ = false;
};

}  // namespace det::api
