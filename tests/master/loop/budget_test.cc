#include "master/loop/budget.h"

#include <catch2/catch.hpp>

namespace det::loop {
namespace {

TEST_CASE("a budget bounds each owner and all owners together") {
  Budget budget(10, 6);
  auto first = budget.take("ada", 6);
  REQUIRE(first);
  CHECK_FALSE(budget.take("ada", 1));
  CHECK_FALSE(budget.take("eve", 5));
  auto second = budget.take("eve", 3);
  REQUIRE(second);
  CHECK(second->grow(1));
  CHECK_FALSE(second->grow(1));
  CHECK(budget.held() == 10);
  first.reset();
  CHECK(budget.held() == 4);
  CHECK(second->grow(2));
  CHECK_FALSE(second->grow(1));
}

TEST_CASE("a moved lease returns its units once, and may outlive the budget") {
  auto budget = std::make_optional<Budget>(4, 4);
  auto lease = budget->take("ada", 3);
  REQUIRE(lease);
  {
    const Budget::Lease moved = std::move(*lease);
    CHECK(budget->held() == 3);
  }
  CHECK(budget->held() == 0);
  lease.reset();
  CHECK(budget->held() == 0);
  const auto last = budget->take("ada", 4);
  budget.reset();
  CHECK(last);
}

}  // namespace
}  // namespace det::loop
