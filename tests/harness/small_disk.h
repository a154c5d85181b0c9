// A disk that is full soon.
#pragma once

#include <sys/mount.h>

#include <string>
#include <utility>

namespace det::testing {

/// A file system with 256 KiB; absent where none can be mounted. The path is a directory.
class SmallDisk {
 public:
  explicit SmallDisk(std::string path) : path_(std::move(path)) {
    mounted_ = ::mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=256k") == 0;
  }
  ~SmallDisk() {
    if (mounted_) (void)::umount2(path_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }

 private:
  std::string path_;
  bool mounted_;
};

}  // namespace det::testing
