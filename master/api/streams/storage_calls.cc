#include "master/api/streams/storage_calls.h"

#include "master/api/status.h"

namespace det::api {

Result<storage::Done> StorageCalls::call(Send send, Duration timeout) {
  const auto promise = std::make_shared<std::promise<Result<storage::Done>>>();
  auto result = promise->get_future();
  const std::int64_t number = next_++;
  const bool posted = edge_.post([this, number, promise, send = std::move(send)] {
    const std::uint64_t session = send(number);
    if (session == 0) return promise->set_value(fail(Code::kUnavailable, "it is not connected"));
    calls_.emplace(number, Call{session, promise});
  });
  if (!posted) return tl::unexpected(shutting_down());
  if (result.wait_for(timeout) == std::future_status::ready) return result.get();
  // A late result finds no call and is ignored.
  edge_.post([this, number] { calls_.erase(number); });
  return fail(Code::kDeadlineExceeded,
              "it did not answer in " +
                  std::to_string(std::chrono::ceil<std::chrono::seconds>(timeout).count()) + " s");
}

void StorageCalls::complete(std::uint64_t session, std::int64_t number, storage::Done done) {
  const auto found = calls_.find(number);
  if (found == calls_.end() || found->second.session != session) return;
  found->second.result->set_value(std::move(done));
  calls_.erase(found);
}

void StorageCalls::expire(std::uint64_t session) {
  std::erase_if(calls_, [&](const auto& entry) {
    if (entry.second.session != session) return false;
    entry.second.result->set_value(fail(Code::kUnavailable, "it has left"));
    return true;
  });
}

}  // namespace det::api
