#include "common/sandbox/namespaces.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <array>
#include <string>

#include "common/base/files.h"

namespace det {
namespace {

/// Files of /proc/self/ns in the order of open_namespaces().
constexpr std::array kNames{"user", "mnt", "pid", "ipc", "uts", "cgroup", "net"};
constexpr std::array kKinds{CLONE_NEWUSER, CLONE_NEWNS,     CLONE_NEWPID, CLONE_NEWIPC,
                            CLONE_NEWUTS,  CLONE_NEWCGROUP, CLONE_NEWNET};
constexpr std::size_t kUser = 0, kMount = 1;

/// Whether two descriptors refer to one namespace.
bool is_same(const UniqueFd& a, const UniqueFd& b) {
  struct stat first {
  }, second{};
  return ::fstat(a.get(), &first) == 0 && ::fstat(b.get(), &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

Status enter(const UniqueFd& space, std::size_t kind) {
  if (::setns(space.get(), kKinds.at(kind)) == 0) return {};
  return fail_errno(std::string("entering the namespace ") + kNames.at(kind));
}

}  // namespace

Result<std::vector<UniqueFd>> open_namespaces() {
  std::vector<UniqueFd> found;
  for (const char* name : kNames) {
    const std::string path = std::string("/proc/self/ns/") + name;
    found.emplace_back(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!found.back()) return fail_errno(path);
  }
  return found;
}

Status enter_namespaces(const std::vector<UniqueFd>& namespaces) {
  if (namespaces.size() != kNames.size())
    return fail(Code::kInvalidArgument, "expected " + std::to_string(kNames.size()) + " namespaces");
  TRY_ASSIGN(const std::vector<UniqueFd> own, open_namespaces());
  // Of an agent that is not root, bubblewrap makes the mounts in one user namespace and the task's in another
  // one below it. The first is entered first: it gives the capabilities to enter the others.
  const UniqueFd maker(::ioctl(namespaces[kMount].get(), NS_GET_USERNS));
  if (!maker) return fail_errno("user namespace of the sandbox");
  if (!is_same(maker, own[kUser])) TRY(enter(maker, kUser));
  for (std::size_t i = kMount; i < namespaces.size(); ++i)
    if (!is_same(namespaces[i], own[i])) TRY(enter(namespaces[i], i));
  if (is_same(namespaces[kUser], maker) || is_same(namespaces[kUser], own[kUser])) return {};
  return enter(namespaces[kUser], kUser);
}

}  // namespace det
