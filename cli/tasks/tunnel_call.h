// A call of TaskService.Connect: a connection to a port of a task, or to a shell in it.
#pragma once

#include <memory>

#include "common/client/client.h"
#include "det/v1/task.methods.h"

namespace det::cli {

/// One reader and one writer at a time, which may be different threads.
class TunnelCall {
 public:
  using Stream = grpc::ClientReaderWriter<v1::TunnelMessage, v1::TunnelMessage>;

  /// Starts the call. `client` must outlive it.
  TunnelCall(Client& client, const v1::TunnelTarget& target);
  /// Waits until the task's side is connected. Errors: those of TaskService.Connect.
  Result<v1::TunnelOpened> opened();
  Stream& stream() { return *stream_; }
  /// Ends the call. Any thread.
  void cancel() { context_.TryCancel(); }
  /// Returns how the call ended, after the last read.
  Status finish();

 private:
  Client& client_;
  grpc::ClientContext context_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace det::cli
