// Cache of sessions by token hash, so that not every call queries the database. Counts changes of rights;
// streams and agent links are checked again after each.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/clock.h"
#include "common/base/shared.h"
#include "master/api/auth/allocation_tokens.h"
#include "master/db/accounts/sessions.h"

namespace det::api {

/// Thread-safe. Bounded to 1,024 entries.
class Sessions {
 public:
  /// With `task_tokens`, user tokens of tasks (task_user_token) are accepted. Without `allocations`, no token
  /// of an allocation is.
  explicit Sessions(db::Pool& pool, bool task_tokens = false,
                    std::shared_ptr<AllocationTokens> allocations = nullptr)
      : pool_(pool), task_tokens_(task_tokens), allocations_(std::move(allocations)) {}

  /// Returns the session of a token, as db::find_session. A cached entry is valid until rights change, until
  /// it expires, and for at most kMaxAge. Changes by other processes take effect after that time. Errors:
  /// those of db::find_session.
  Result<db::Session> find(const std::string& token_hash);
  /// As find(), for the user token of a task; a cached entry is valid until an allocation of the task
  /// changes, too. Errors: also kNotFound when they are not accepted.
  Result<db::Session> find_task(const AllocationId& allocation, const std::string& token_hash);
  /// Checks the token of an allocation, as AllocationTokens::check(). Errors: kUnauthenticated, kUnavailable.
  Status check_allocation(const std::string& token_hash);
  static constexpr Duration kMaxAge = std::chrono::seconds(5);

  /// Invalidates the entries of a task. Called after each durable change of its allocations. Does not block.
  void forget_task(const TaskId& task) { ++changes_of(task); }
  /// Invalidates all entries. Called after a change of rights is durable.
  void changed() { ++generation_; }
  /// Incremented by each changed().
  std::uint64_t generation() const { return generation_; }

  db::Pool& pool() const { return pool_; }

 private:
  struct Known {
    std::string key;
    db::Session session;
    std::uint64_t generation = 0;  ///< read before the query
    std::uint64_t changes = 0;     ///< of the task, read before the query
    MonoTime asked;                ///< time of the query
  };

  /// Returns the cached session of `key`, or the result of `query`. `changes` counts the changes of what the
  /// session depends on beside rights.
  template <typename Query>
  Result<db::Session> cached(const std::string& key, const std::atomic<std::uint64_t>& changes,
                             const Query& query);
  std::atomic<std::uint64_t>& changes_of(const TaskId& task);

  db::Pool& pool_;
  const bool task_tokens_;
  const std::shared_ptr<AllocationTokens> allocations_;
  std::atomic<std::uint64_t> generation_{0};
  /// Indexed by the hash of the key. Two tokens at the same index replace each other.
  std::array<Shared<Known>, 1024> known_;
  /// Changes of tasks. Two tasks at the same index are forgotten together.
  std::array<std::atomic<std::uint64_t>, 1024> task_changes_{};
  const std::atomic<std::uint64_t> no_changes_{0};  ///< of logins and access tokens
};

/// Whether a method may grant or revoke rights.
bool changes_rights(std::string_view method);

}  // namespace det::api
