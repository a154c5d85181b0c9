#include "agent/master_link/code_archive.h"

#include <algorithm>

#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/wait.h"
#include "common/build/cache.h"
#include "common/client/calls.h"
#include "common/crypto/digest.h"
#include "det/v1/agent.methods.h"

namespace det::agent {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kMaxArchiveBytes = 128LL << 20;
/// All attempts together.
constexpr Duration kFetchTimeout = 5min;

/// Downloads the archive once and verifies its digest.
Result<std::string> fetch_once(const v1::StartAllocation& start,
                               const std::shared_ptr<grpc::Channel>& channel, const std::stop_token& stop) {
  grpc::ClientContext context;
  context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(120, GPR_TIMESPAN)));
  const std::stop_callback cancel(stop, [&] { context.TryCancel(); });
  v1::GetContextRequest request;
  request.set_allocation_id(start.allocation_id());
  request.set_digest(start.code_archive());
  const auto reader = wire::open(channel, v1::AgentService::GetContext, context, request);
  std::string bytes;
  v1::GetContextResponse piece;
  while (reader->Read(&piece)) {
    bytes += piece.chunk();
    // The cancellation makes Finish() fail, so an oversized archive is rejected.
    if (static_cast<std::int64_t>(bytes.size()) > kMaxArchiveBytes) context.TryCancel();
  }
  const grpc::Status status = reader->Finish();
  if (!status.ok())
    return fail(static_cast<Code>(status.error_code()),
                "fetching the code archive failed: " + status.error_message());
  if (sha256_hex(bytes) != start.code_archive()) {
    return fail(Code::kUnavailable, "fetching the code archive failed: wrong digest");
  }
  return bytes;
}

}  // namespace

Result<std::string> fetch_code_archive(const v1::StartAllocation& start,
                                       const std::shared_ptr<grpc::Channel>& channel,
                                       const std::string& cache, const std::stop_token& stop, bool& is_new) {
  const std::string& digest = start.code_archive();
  // The digest becomes a file name.
  if (digest.size() != 64 || digest.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return fail(Code::kInvalidArgument, "digest of the code archive: must be 64 hexadecimal digits");
  }
  const std::string path = cache + "/" + digest + ".tar.gz";
  if (auto bytes = read_file(path, kMaxArchiveBytes); bytes && sha256_hex(*bytes) == digest) {
    build::touch_entry(path);
    return bytes;
  }
  Result<std::string> bytes = fail(Code::kUnavailable, "");
  const MonoTime deadline = mono_now() + kFetchTimeout;
  for (Duration nap = 200ms; mono_now() < deadline; nap = std::min<Duration>(nap * 2, 5s)) {
    bytes = fetch_once(start, channel, stop);
    if (stop.stop_requested()) return fail(Code::kCancelled, "stopped");
    const Code code = bytes ? Code::kUnknown : bytes.error().code;
    if (bytes || (code != Code::kUnavailable && code != Code::kDeadlineExceeded && code != Code::kCancelled))
      break;
    log::debug("code archive not fetched yet", {{"reason", bytes.error().message}});
    (void)wait_until([&] { return stop.stop_requested(); }, nap);
  }
  if (bytes) TRY(write_file_atomic(path, *bytes, 0600));
  is_new = true;
  return bytes;
}

}  // namespace det::agent
