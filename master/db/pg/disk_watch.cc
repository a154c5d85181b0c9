#include "master/db/pg/disk_watch.h"

#include "common/base/files.h"
#include "common/base/log.h"

namespace det::db {

void DiskWatch::look() {
  const auto free = free_space(directory_);
  if (!free) return;
  const bool full = full_ ? *free < kEnough : *free < kFull;
  if (full == full_.exchange(full)) return;
  if (full) {
    log::error("the disk of the database is full; changes are refused until there is space",
               {{"directory", directory_}, {"free_bytes", *free}});
  } else {
    log::info("the disk of the database has space again", {{"directory", directory_}, {"free_bytes", *free}});
  }
}

Status DiskWatch::check() const {
  if (!full_) return {};
  return fail(Code::kUnavailable, "E-DISK-FULL: the disk of the master's database is full (" + directory_ +
                                      "); free at least 48 MiB there, the master goes on by itself");
}

bool is_disk_full(const Error& error) {
  return error.message.find("No space left on device") != std::string::npos ||
         error.message.find("Disk quota exceeded") != std::string::npos;
}

}  // namespace det::db
