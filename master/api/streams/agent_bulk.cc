// Bulk transfers of agents beside their links: code archives to agents, logs from agents.
#include "common/base/text.h"
#include "master/api/convert/convert.h"
#include "master/api/streams/agent_link.h"
#include "master/db/accounts/quotas.h"
#include "master/db/queries/allocations.h"
#include "master/db/queries/code_archives.h"

namespace det::api {
namespace {

constexpr std::size_t kChunkBytes = 1 << 20;
constexpr std::size_t kMaxAgentLogLine = 64 * 1024;
constexpr int kMaxAgentLogLines = 10'000;

/// Streams one archive from the database in chunks. Deletes itself.
class CodeArchiveSender : public grpc::ServerWriteReactor<v1::GetContextResponse> {
 public:
  CodeArchiveSender(const Context& context, AgentPeer peer, const Unread<v1::GetContextRequest>& request)
      : context_(context), peer_(std::move(peer)), request_(request.bytes) {
    if (!context_.pools.ingest.try_post([this] { load(); })) {
      Finish(to_grpc(busy()));
    }
  }
  void OnWriteDone(bool ok) override { ok ? next() : Finish(grpc::Status::CANCELLED); }
  void OnDone() override { delete this; }

 private:
  void load() {
    // The certificate is checked on the worker because it needs the database.
    auto caller = authorize_agent(peer_, context_.pool);
    if (!caller) return Finish(to_grpc(caller.error()));
    v1::GetContextRequest request;
    if (const Status read = read_request(request_, &request); !read) return Finish(to_grpc(read));
    auto bytes = db::get_code_archive(context_.pool, request.digest());
    if (!bytes) return Finish(to_grpc(bytes.error()));
    bytes_ = std::move(*bytes);
    next();
  }
  void next() {
    if (sent_ >= bytes_.size()) return Finish(grpc::Status::OK);
    response_.set_chunk(bytes_.substr(sent_, kChunkBytes));
    sent_ += response_.chunk().size();
    StartWrite(&response_);
  }

  const Context& context_;
  const AgentPeer peer_;
  const grpc::ByteBuffer request_;
  std::string bytes_;
  std::size_t sent_ = 0;
  v1::GetContextResponse response_;
};

}  // namespace

grpc::ServerWriteReactor<v1::GetContextResponse>* AgentService::GetContext(
    grpc::CallbackServerContext* call, const Unread<v1::GetContextRequest>& request) {
  return new CodeArchiveSender(context_, peer_of(*call), request);
}

namespace {

/// An agent may only ship logs of allocations it has run.
Status may_log(const AgentCaller& caller, const AllocationId& allocation, db::Pool& pool) {
  TRY_ASSIGN(const bool held, db::held_by(pool, allocation, caller.agent));
  if (held) return {};
  return fail(Code::kNotFound,
              "allocation " + make_utf8(allocation.value) + " was never on the agent " + caller.agent.value);
}

/// Checks a request and converts it to a batch without `done`. Blocks on the database.
Result<db::LogBatch> read_batch(const AgentCaller& caller, const v1::ShipLogsRequest& request,
                                db::Pool& pool) {
  TRY(caller.check_name(request.agent_id()));
  if (!is_agent_name(request.allocation_id(), 256) || request.first_line() < 1 ||
      request.lines_size() > kMaxAgentLogLines) {
    return fail(Code::kInvalidArgument, "logs: an allocation, a first line from 1, at most 10000 lines");
  }
  db::LogBatch batch{.allocation = AllocationId(request.allocation_id()),
                     .agent = AgentId(make_utf8(request.agent_id())),
                     .first_line = request.first_line()};
  TRY(may_log(caller, batch.allocation, pool));
  batch.task = task_of(batch.allocation);
  // Oversized lines are cut rather than refused: the agent would repeat the batch without end.
  for (const v1::LogLine& line : request.lines()) {
    batch.lines.push_back(from_proto(line));
    std::string& text = batch.lines.back().text;
    if (text.size() > kMaxAgentLogLine) text = text.substr(0, kMaxAgentLogLine) + " [cut]";
  }
  return batch;
}

/// Applies the quota of log bytes. Returns the number of the next line when the lines are dropped without a
/// trace. Of an allocation's first dropped batch the last line is replaced by the reason and stored. Blocks
/// on the database if an owner is at its quota.
std::optional<std::int64_t> drop_beyond_quota(const Context& context, db::LogBatch& batch) {
  constexpr auto kResource = core::QuotaResource::kLogBytes;
  if (batch.lines.empty() || context.quotas->has_room(kResource)) return std::nullopt;
  const auto owner = db::owner_of(context.pool, batch.allocation);
  const Status room = owner ? context.quotas->check(kResource, *owner) : Status();
  if (room) return std::nullopt;
  const std::int64_t next = batch.first_line + static_cast<std::int64_t>(batch.lines.size());
  if (!context.quotas->is_first_drop(batch.allocation)) return next;
  batch.first_line = next - 1;
  batch.lines = {{.time = wall_now(),
                  .level = "WARNING",
                  .source = "master",
                  .text = "further log lines are not stored: " + room.error().message}};
  return std::nullopt;
}

}  // namespace

void AgentService::ShipLogs(const Deferred& call, const v1::ShipLogsRequest* request,
                            v1::ShipLogsResponse* response) {
  grpc::ServerUnaryReactor* const reactor = call.reactor;
  auto batch = read_batch(call.agent, *request, context_.pool);
  if (!batch) return reactor->Finish(to_grpc(batch.error()));
  if (const auto next = drop_beyond_quota(context_, *batch)) {
    response->set_next_line(*next);
    return reactor->Finish(grpc::Status::OK);
  }
  // Runs on the bulk writer's thread once the batch is durable.
  batch->done = [this, reactor, response, task = batch->task,
                 lines = batch->lines.size()](Result<std::int64_t> next) {
    if (!next) return reactor->Finish(to_grpc(next.error()));
    response->set_next_line(*next);
    context_.calls->log_lines += lines;
    context_.hub.publish({.kind = loop::Change::Kind::kLogs, .task = task});
    reactor->Finish(grpc::Status::OK);
  };
  // A refusal throttles the agent: it repeats the batch after a pause.
  if (!context_.bulk.try_push(std::move(*batch))) reactor->Finish(to_grpc(busy()));
}

}  // namespace det::api
