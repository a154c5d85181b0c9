#include "common/storage/checkpoint_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/base/files.h"
#include "common/base/text.h"

namespace det::storage {

Result<CheckpointId> parse_checkpoint_id(std::string_view text) {
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  bool good = text.size() == kForm.size();
  for (std::size_t i = 0; good && i < kForm.size(); ++i) {
    const bool digit = std::string_view("0123456789abcdef").find(text[i]) != std::string_view::npos;
    good = kForm[i] == 'x' ? digit : text[i] == '-';
  }
  if (good) return CheckpointId(std::string(text));
  return fail(Code::kInvalidArgument,
              "checkpoint uuid: \"" + make_utf8(text.substr(0, 64)) +
                  "\" is not a UUID, 8-4-4-4-12 lower-case hexadecimal digits; let the client make one");
}

Status check_file_name(std::string_view name) {
  const std::string shown = "checkpoint file \"" + make_utf8(name.substr(0, 100)) + "\": ";
  if (name.size() > kMaxFileNameBytes)
    return fail(Code::kInvalidArgument,
                shown + "the name is longer than " + std::to_string(kMaxFileNameBytes) + " bytes");
  if (find_bad_utf8(name) || has_control_characters(name) || name.find('\\') != name.npos)
    return fail(Code::kInvalidArgument,
                shown + "the name must be UTF-8 without control characters and backslashes");
  const std::string_view path = name.ends_with('/') ? name.substr(0, name.size() - 1) : name;
  for (const std::string& part : split(path, '/')) {
    if (part.empty() || part == "." || part == "..")
      return fail(Code::kInvalidArgument,
                  shown + "the name must be a relative path without empty, \".\" and \"..\" parts");
  }
  return {};
}

Result<std::string> StoredFile::read(std::int64_t limit) const {
  constexpr std::int64_t kPieceBytes = 256 * 1024;
  std::string buffer(static_cast<std::size_t>(std::min(kPieceBytes, limit)), '\0');
  ssize_t count = 0;
  do count = ::read(fd_->get(), buffer.data(), buffer.size());
  while (count < 0 && errno == EINTR);
  if (count < 0) return fail_errno("checkpoint file " + name_);
  if (count == 0)
    return fail(Code::kDataLoss, "checkpoint file " + name_ + " became shorter while it was read");
  buffer.resize(static_cast<std::size_t>(count));
  return buffer;
}

Result<CheckpointFiles> CheckpointFiles::open(const PinnedRoot& root, const CheckpointId& id) {
  // Ids stored by earlier releases were not checked.
  TRY_ASSIGN(const CheckpointId name, parse_checkpoint_id(id.value));
  TRY_ASSIGN(PinnedRoot directory, root.directory(name.value));
  return CheckpointFiles(std::move(directory));
}

Result<StoredFile> CheckpointFiles::file(const std::string& name) const {
  TRY(check_file_name(name));
  // O_NONBLOCK: a pipe in place of the file must not block.
  TRY_ASSIGN(UniqueFd fd, directory_.open_beneath(name, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return fail_errno("checkpoint file " + name);
  if (!S_ISREG(status.st_mode))
    return fail(Code::kDataLoss, "checkpoint file " + name + " is not a regular file");
  return StoredFile(name, std::move(fd), status.st_size, status.st_mtime);
}

Status CheckpointFiles::remove(const std::string& name) const {
  TRY(check_file_name(name));
  const std::size_t slash = name.rfind('/');
  const auto parent =
      directory_.open_beneath(slash == name.npos ? "." : name.substr(0, slash), O_PATH | O_DIRECTORY);
  if (!parent && parent.error().code == Code::kNotFound) return {};
  TRY(parent);
  // unlinkat() does not follow a link in the last part.
  if (::unlinkat(parent->get(), name.substr(slash + 1).c_str(), 0) == 0 || errno == ENOENT) return {};
  return fail_errno("checkpoint file " + name);
}

}  // namespace det::storage
