// Messages with descriptors between the programs of one task, over a SOCK_SEQPACKET socket.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/fd.h"
#include "common/base/result.h"

namespace det {

/// Limits of one message.
constexpr std::size_t kMaxMessageBytes = 8192;
constexpr std::size_t kMaxMessageFds = 16;

/// A message that was received.
struct Message {
  std::string text;
  std::vector<UniqueFd> fds;
};

/// Sends `text`, cut to kMaxMessageBytes, with copies of the descriptors. Errors: the socket is closed or
/// full.
Status send_message(int socket, std::string_view text, const std::vector<int>& fds = {});

/// Waits for a message until `deadline`. Errors: kUnavailable (the other end is closed), kDeadlineExceeded.
Result<Message> receive_message(int socket, MonoTime deadline);

/// Connects to the SOCK_SEQPACKET socket at `path`. Errors: nothing listens there, a path of more than 107
/// bytes.
Result<UniqueFd> connect_messages(const std::string& path);

/// Returns a socket that listens at `path`, which is replaced if it exists. Only the user of this process may
/// connect. Errors: those of the file system, a path of more than 107 bytes.
Result<UniqueFd> listen_messages(const std::string& path);

}  // namespace det
