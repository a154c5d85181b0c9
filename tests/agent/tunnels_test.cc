// Ownership of listeners on a port.
#include "agent/master_link/tunnels.h"

#include <catch2/catch.hpp>

namespace det::agent {
namespace {

// Two listeners on port 8000 (1F40), one established connection of another user on the same port.
const std::string kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 111 1\n"
    "   1: 0100007F:1F40 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 112 1\n"
    "   2: 00000000000000000000000000000000:1F40 00000000000000000000000000000000:0000 0A 00000000:00000000 "
    "00:00000000 00000000  1000        0 113 1\n"
    "   3: 0100007F:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 114 1\n";

TEST_CASE("a port is a user's only if all its listeners are") {
  CHECK(listens_as(kTable, 8000, 1000));
  CHECK_FALSE(listens_as(kTable, 8000, 0));
  CHECK_FALSE(listens_as(kTable, 8000, 100));
  CHECK_FALSE(listens_as(kTable, 22, 1000));
  CHECK_FALSE(listens_as(kTable, 54321, 0));
  CHECK_FALSE(listens_as("", 8000, 1000));
  const std::string other =
      kTable +
      "   4: 0200007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 115 1\n";
  CHECK_FALSE(listens_as(other, 8000, 1000));
}

}  // namespace
}  // namespace det::agent
