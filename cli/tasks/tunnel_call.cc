#include "cli/tasks/tunnel_call.h"

namespace det::cli {

TunnelCall::TunnelCall(Client& client, const v1::TunnelTarget& target) : client_(client) {
  client.prepare(context_, Duration(0));
  stream_ = wire::open(client.channel(), v1::TaskService::Connect, context_);
  v1::TunnelMessage first;
  *first.mutable_target() = target;
  stream_->Write(first);
}

Result<v1::TunnelOpened> TunnelCall::opened() {
  v1::TunnelMessage message;
  if (stream_->Read(&message) && message.has_opened()) return message.opened();
  TRY(finish());
  return fail(Code::kUnavailable, "the master closed the connection");
}

Status TunnelCall::finish() {
  const grpc::Status status = stream_->Finish();
  // The message of the task's side is of more use than that the call was UNAVAILABLE.
  if (client_.channel()->GetState(false) == GRPC_CHANNEL_READY && !status.ok())
    return fail(static_cast<Code>(status.error_code()), status.error_message());
  return client_.to_status(status);
}

}  // namespace det::cli
