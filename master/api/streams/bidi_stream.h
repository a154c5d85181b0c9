// Base of the master's bidirectional streams: agent links and harness sessions.
//
// gRPC calls back on threads of its own. Each callback becomes a job of the edge worker, so the state of a
// stream needs no lock. All functions belong to the edge worker, except start() and authenticate().
#pragma once

#include <grpcpp/support/server_callback.h>

#include <deque>
#include <memory>
#include <utility>

#include "master/api/status.h"
#include "master/loop/workers.h"

namespace det::api {

/// A stream that receives `In` and sends `Out`, one read and one write at a time.
template <typename In, typename Out>
class BidiStream : public grpc::ServerBidiReactor<In, Out> {
 public:
  /// Authenticates the caller on `workers`, then starts the first read. `self` keeps the stream alive until
  /// gRPC has released it. Called once, on any thread.
  void start(std::shared_ptr<BidiStream> self, loop::Workers& workers) {
    self_ = self;
    const bool taken = workers.try_post([self] {
      const Status known = self->authenticate();
      self->on_edge([self, known] {
        if (!known) return self->finish(to_grpc(known.error()));
        if (!self->finished_) self->read_next();
      });
    });
    if (!taken) on_edge([self] { self->finish(to_grpc(busy())); });
  }
  /// Queues a message. Does nothing after finish().
  void send(Out message) {
    if (finished_) return;
    outgoing_.push_back(std::move(message));
    if (!writing_) write_next();
  }
  /// Ends the stream with `status` after the write in flight. Queued messages are dropped. Idempotent.
  void finish(const grpc::Status& status) {
    if (finished_) return;
    finished_ = true;
    status_ = status;
    ended(status);
    if (!writing_) this->Finish(status_);
  }

  void OnReadDone(bool ok) final {
    on_edge([self = self_, ok] { self->read_done(ok); });
  }
  void OnWriteDone(bool ok) final {
    on_edge([self = self_, ok] { self->write_done(ok); });
  }
  void OnDone() final {
    on_edge([self = std::move(self_)] { self->released(); });
  }

 protected:
  explicit BidiStream(loop::Workers& edge) : edge_(edge) {}

  /// Identifies the caller by its credentials, before the first message is read. Runs on a worker and may
  /// block. An error ends the stream.
  virtual Status authenticate() = 0;
  /// Handles a message. It is valid until read_next(), which must follow unless the stream has finished.
  virtual void received(const In& message) = 0;
  /// Called once, by the first finish().
  virtual void ended(const grpc::Status&) {}
  /// Called when the last queued message has been written.
  virtual void drained() {}
  /// Called when gRPC has released the stream.
  virtual void released() {}

  /// Sends `first`, then the messages queued so far. Nothing is sent before this call.
  void open(Out first) {
    outgoing_.push_front(std::move(first));
    opened_ = true;
    write_next();
  }
  /// Starts the next read.
  void read_next() { this->StartRead(&incoming_); }
  /// Newest queued message, which may still be changed; null if it is being written or there is none.
  Out* last_unsent() { return outgoing_.size() > (writing_ ? 1U : 0U) ? &outgoing_.back() : nullptr; }
  bool finished() const { return finished_; }
  /// Queues a job of the edge worker. Any thread.
  void on_edge(loop::Workers::Job job) { edge_.post(std::move(job)); }

 private:
  void read_done(bool ok) {
    if (finished_) return;
    ok ? received(incoming_) : finish(grpc::Status::OK);
  }
  void write_next() {
    writing_ = opened_ && !outgoing_.empty();
    if (writing_) this->StartWrite(&outgoing_.front());
  }
  void write_done(bool ok) {
    writing_ = false;
    outgoing_.pop_front();
    if (finished_) return this->Finish(status_);
    if (!ok) return finish(grpc::Status::OK);
    write_next();
    if (!writing_) drained();
  }

  loop::Workers& edge_;
  std::shared_ptr<BidiStream> self_;
  In incoming_;
  std::deque<Out> outgoing_;  ///< the first one is being written if `writing_`
  bool opened_ = false, writing_ = false, finished_ = false;
  grpc::Status status_;
};

/// Stream that ends at once with `error`. Deletes itself.
template <typename In, typename Out>
class RefusedStream final : public grpc::ServerBidiReactor<In, Out> {
 public:
  explicit RefusedStream(const Error& error) { this->Finish(to_grpc(error)); }
  void OnDone() override { delete this; }
};

}  // namespace det::api
