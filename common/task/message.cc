#include "common/task/message.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "common/base/files.h"

namespace det {
namespace {

constexpr int kBacklog = 64;

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return fail(Code::kInvalidArgument, path + ": longer than a socket's path can be");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

UniqueFd new_socket() { return UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)); }

/// Room for the descriptors of a message.
union Control {
  cmsghdr header;
  std::array<char, CMSG_SPACE(sizeof(int) * kMaxMessageFds)> bytes;
};

/// Takes the descriptors out of a received message.
std::vector<UniqueFd> take_fds(msghdr& header) {
  std::vector<UniqueFd> fds;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; at + sizeof(int) <= part->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + at, sizeof fd);
      fds.emplace_back(fd);
    }
  }
  return fds;
}

}  // namespace

Status send_message(int socket, std::string_view text, const std::vector<int>& fds) {
  text = text.substr(0, kMaxMessageBytes);
  if (fds.size() > kMaxMessageFds) return fail(Code::kInvalidArgument, "too many descriptors for a message");
  iovec part{const_cast<char*>(text.data()), text.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  Control control{};
  if (!fds.empty()) {
    header.msg_control = control.bytes.data();
    header.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(rights), fds.data(), sizeof(int) * fds.size());
  }
  return ::sendmsg(socket, &header, MSG_NOSIGNAL) >= 0 ? Status() : fail_errno("sendmsg");
}

Result<Message> receive_message(int socket, MonoTime deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - mono_now()).count();
    pollfd ready{socket, POLLIN, 0};
    const int found = ::poll(&ready, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30)));
    if (found < 0 && errno != EINTR) return fail_errno("poll");
    if (found == 0) return fail(Code::kDeadlineExceeded, "no message arrived in time");
    if (found < 0) continue;
    Message message{std::string(kMaxMessageBytes, '\0'), {}};
    iovec part{message.text.data(), message.text.size()};
    Control control{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.bytes.data();
    header.msg_controllen = sizeof control.bytes;
    const ssize_t got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got < 0) return fail_errno("recvmsg");
    message.fds = take_fds(header);
    if (got == 0) return fail(Code::kUnavailable, "the other process has ended");
    message.text.resize(static_cast<std::size_t>(got));
    return message;
  }
}

Result<UniqueFd> connect_messages(const std::string& path) {
  TRY_ASSIGN(const sockaddr_un address, address_of(path));
  UniqueFd socket = new_socket();
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return fail_errno(path);
  return socket;
}

Result<UniqueFd> listen_messages(const std::string& path) {
  TRY_ASSIGN(const sockaddr_un address, address_of(path));
  UniqueFd socket = new_socket();
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return fail_errno(path);
  // Between bind() and chmod() no connection is possible, because nothing listens yet.
  if (!socket || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), 0600) != 0 || ::listen(socket.get(), kBacklog) != 0)
    return fail_errno(path);
  return socket;
}

}  // namespace det
