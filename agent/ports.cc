#include "agent/ports.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/base/log.h"

namespace det::agent {
namespace {

/// Binds an abstract Unix socket as a lock. The kernel releases it with the process, and its names belong to
/// the network namespace, as ports do.
UniqueFd hold(const std::string& name) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (!socket || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) return {};
  return socket;
}

}  // namespace

PortBlock::PortBlock(const std::string& instance) {
  // FNV-1a: its values do not depend on the release.
  std::uint32_t mixed = 2166136261u;
  for (const char c : instance) mixed = (mixed ^ static_cast<unsigned char>(c)) * 16777619u;
  const int first = static_cast<int>(mixed % kBlocks);
  for (int i = 0; i < kBlocks && !held_; ++i) {
    number_ = (first + i) % kBlocks;
    held_ = hold("determinant-agent-ports-" + std::to_string(number_));
  }
  if (!held_) log::warn("more agents than port blocks on this machine; their tasks may use the same ports");
}

}  // namespace det::agent
