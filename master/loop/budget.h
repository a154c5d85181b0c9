// A bounded resource of the process (bytes in memory, open streams) with a bound for each owner. Lock-free.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace det::loop {

/// Thread-safe. Owners are counted in 1,024 cells by the hash of their name; owners of one cell share the
/// bound.
class Budget {
 private:
  struct State;

 public:
  /// `total`: units that may be reserved at once; `per_owner`: units of one owner.
  Budget(std::int64_t total, std::int64_t per_owner) : state_(std::make_shared<State>(total, per_owner)) {}

  /// A reservation. Returns its units when it is destroyed; may outlive the budget.
  class Lease {
   public:
    Lease(Lease&& other) noexcept
        : state_(std::move(other.state_)), cell_(other.cell_), amount_(std::exchange(other.amount_, 0)) {}
    Lease& operator=(Lease&& other) noexcept {
      std::swap(state_, other.state_);
      std::swap(cell_, other.cell_);
      std::swap(amount_, other.amount_);
      return *this;
    }
    ~Lease() {
      if (state_) state_->release(cell_, amount_);
    }
    /// Reserves `more` units. Returns false, and keeps what it has, beyond a bound.
    bool grow(std::int64_t more) {
      if (!state_->reserve(cell_, more)) return false;
      amount_ += more;
      return true;
    }
    /// The cell of the owner.
    std::size_t cell() const { return cell_; }

   private:
    friend class Budget;
    Lease(std::shared_ptr<State> state, std::size_t cell, std::int64_t amount)
        : state_(std::move(state)), cell_(cell), amount_(amount) {}
    std::shared_ptr<State> state_;
    std::size_t cell_ = 0;
    std::int64_t amount_ = 0;
  };

  /// Reserves `amount` units for `owner`. Returns nothing beyond a bound. Never blocks.
  std::optional<Lease> take(std::string_view owner, std::int64_t amount) {
    const std::size_t cell = std::hash<std::string_view>()(owner) % State::kCells;
    if (!state_->reserve(cell, amount)) return std::nullopt;
    return Lease(state_, cell, amount);
  }
  /// Units reserved at the moment.
  std::int64_t held() const { return state_->held; }

 private:
  struct State {
    static constexpr std::size_t kCells = 1024;

    State(std::int64_t most, std::int64_t most_per_owner) : total(most), per_owner(most_per_owner) {}

    bool reserve(std::size_t cell, std::int64_t amount) {
      if (!add(by_owner[cell], amount, per_owner)) return false;
      if (add(held, amount, total)) return true;
      by_owner[cell] -= amount;
      return false;
    }
    void release(std::size_t cell, std::int64_t amount) {
      by_owner[cell] -= amount;
      held -= amount;
    }

    const std::int64_t total, per_owner;
    std::atomic<std::int64_t> held{0};
    std::array<std::atomic<std::int64_t>, kCells> by_owner{};

   private:
    static bool add(std::atomic<std::int64_t>& count, std::int64_t amount, std::int64_t most) {
      if (count.fetch_add(amount) + amount <= most) return true;
      count -= amount;
      return false;
    }
  };

  std::shared_ptr<State> state_;
};

}  // namespace det::loop
