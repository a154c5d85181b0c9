// Owns what is remembered of who holds which token, so that not every call asks the database who is calling;
// and the count of changes of rights, by which whatever was judged before is judged again.
#pragma once

#include <array>
#include <atomic>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/shared.h"
#include "master/db/accounts.h"

namespace det::api {

/// Any thread.
class Sessions {
 public:
  explicit Sessions(db::Pool& pool) : pool_(pool) {}

  /// As db::find_session. What was found counts until somebody's rights may have changed, until the session
  /// expires, and for kLongest: so long may it take until what was changed past this master is seen.
  Result<db::Session> find(const std::string& token_hash);
  static constexpr Duration kLongest = std::chrono::seconds(5);

  /// Somebody's rights may have changed, durably: nothing found before counts any more.
  void changed() { ++generation_; }
  /// Grows with every changed().
  std::uint64_t generation() const { return generation_; }

  db::Pool& pool() const { return pool_; }

 private:
  struct Known {
    std::string token_hash;
    db::Session session;
    std::uint64_t generation = 0;  ///< before it was asked
    MonoTime asked;
  };

  db::Pool& pool_;
  std::atomic<std::uint64_t> generation_{0};
  /// By hash: two that meet in a place put each other out.
  std::array<Shared<Known>, 1024> known_;
};

/// True of methods that may give rights to somebody or take them away.
bool changes_rights(std::string_view method);

}  // namespace det::api
