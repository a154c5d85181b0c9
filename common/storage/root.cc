#include "common/storage/root.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>

#include "common/base/files.h"

namespace det::storage {
namespace {

UniqueFd open_without_links(int directory, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  long fd = -1;
  // EAGAIN: a rename elsewhere made the kernel unsure that the path stays beneath.
  do fd = ::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how);
  while (fd < 0 && (errno == EAGAIN || errno == EINTR));
  return UniqueFd(static_cast<int>(fd));
}

}  // namespace

Result<PinnedRoot> PinnedRoot::open(const Root& root) {
  UniqueFd fd(::open(root.base.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd && !root.below.empty()) fd = open_without_links(fd.get(), root.below, O_RDONLY | O_DIRECTORY);
  if (fd) return PinnedRoot(std::move(fd));
  const bool link = errno == ELOOP || errno == EXDEV;
  return fail(Code::kFailedPrecondition,
              "the storage " + root.path() +
                  (link ? " is reached by a symbolic link below " + root.base + ", which is not followed"
                        : std::string(" is not there: ") + std::strerror(errno)));
}

Result<UniqueFd> PinnedRoot::open_beneath(const std::string& path, int flags) const {
  UniqueFd fd = open_without_links(fd_.get(), path, flags);
  if (fd) return fd;
  if (errno == ELOOP || errno == EXDEV)
    return fail(Code::kFailedPrecondition, path + ": symbolic links in a storage are not followed");
  return fail_errno(path);
}

Result<PinnedRoot> PinnedRoot::directory(const std::string& path) const {
  TRY_ASSIGN(UniqueFd fd, open_beneath(path, O_RDONLY | O_DIRECTORY));
  return PinnedRoot(std::move(fd));
}

}  // namespace det::storage
