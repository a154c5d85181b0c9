#include "master/db/pg/private_server_find.h"

#include <dirent.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "common/base/files.h"
#include "common/base/process.h"
#include "common/base/text.h"

namespace det::db {
namespace {

/// Directories that may hold PostgreSQL: pg_config, the layout of Debian, then PATH.
std::vector<std::string> candidates() {
  std::vector<std::string> directories;
  if (auto asked = run_process({.argv = {"pg_config", "--bindir"}}); asked && asked->ok())
    directories.emplace_back(trim(asked->out));
  const std::string root = "/usr/lib/postgresql";
  if (DIR* listing = opendir(root.c_str())) {
    while (const dirent* entry = readdir(listing))
      if (entry->d_name[0] != '.') directories.push_back(root + "/" + entry->d_name + "/bin");
    closedir(listing);
  }
  const char* path = std::getenv("PATH");
  for (std::string& directory : split(path == nullptr ? "" : path, ':'))
    if (!directory.empty()) directories.push_back(std::move(directory));
  return directories;
}

/// Major version of a directory with postgres and initdb, 0 if unusable. Parses "postgres (PostgreSQL) 15.4
/// (Debian …)".
int major_of(const std::string& directory) {
  if (access((directory + "/postgres").c_str(), X_OK) != 0 ||
      access((directory + "/initdb").c_str(), X_OK) != 0)
    return 0;
  auto asked = run_process({.argv = {directory + "/postgres", "--version"}});
  if (!asked || !asked->ok()) return 0;
  const std::size_t at = asked->out.find(") ");
  return at == std::string::npos ? 0 : std::atoi(asked->out.c_str() + at + 2);
}

}  // namespace

Result<PostgresPrograms> find_postgres(int major) {
  PostgresPrograms best;
  for (const std::string& directory : candidates()) {
    const int found = major_of(directory);
    if (found >= 13 && found > best.major && (major == 0 || found == major)) best = {directory, found};
  }
  if (best.major != 0) return best;
  if (major == 0)
    return fail(Code::kNotFound,
                "no PostgreSQL >= 13 is installed; install it (Debian: apt-get install postgresql), or give"
                " --database-url");
  const std::string number = std::to_string(major);
  return fail(Code::kFailedPrecondition, "the data is of PostgreSQL " + number +
                                             ", which is not installed; install it (Debian:"
                                             " apt-get install postgresql-" +
                                             number + "), or move the data over with pg_upgrade");
}

std::vector<std::string> ServerUser::command(std::vector<std::string> argv) const {
  if (!switched) return argv;
  // setpriv drops privileges without a shell or a login session.
  std::vector<std::string> line = {"setpriv", "--reuid=" + std::to_string(uid),
                                   "--regid=" + std::to_string(gid), "--clear-groups", "--no-new-privs"};
  if (needs_override) {
    line.emplace_back("--inh-caps=-all,+dac_override");
    line.emplace_back("--ambient-caps=-all,+dac_override");
  }
  line.insert(line.end(), std::make_move_iterator(argv.begin()), std::make_move_iterator(argv.end()));
  return line;
}

Status ServerUser::own(const std::string& path) const {
  if (switched && chown(path.c_str(), uid, gid) != 0) return fail_errno(path);
  return {};
}

Result<std::string> own_user_name() {
  const passwd* me = getpwuid(geteuid());
  if (me == nullptr)
    return fail(Code::kFailedPrecondition, "the user id " + std::to_string(geteuid()) +
                                               " has no name, which PostgreSQL needs;"
                                               " add it to /etc/passwd, or give --database-url");
  return std::string(me->pw_name);
}

Result<ServerUser> choose_server_user(const std::string& directory, const std::string& data) {
  ServerUser user;
  if (geteuid() != 0) {
    TRY_ASSIGN(user.name, own_user_name());
    user.uid = geteuid();
    user.gid = getegid();
    return user;
  }
  struct stat status {};
  const passwd* entry = stat(data.c_str(), &status) == 0 ? getpwuid(status.st_uid) : getpwnam("postgres");
  if (entry == nullptr || entry->pw_uid == 0)
    return fail(Code::kFailedPrecondition,
                "PostgreSQL does not run as root, and there is no other user for it; create the user"
                " postgres, or give --database-url");
  user.uid = entry->pw_uid;
  user.gid = entry->pw_gid;
  user.name = entry->pw_name;
  user.switched = true;
  // The data directory may lie below a directory that the other user cannot enter.
  TRY_ASSIGN(const ProcessResult reached,
             run_process({.argv = user.command({"test", "-x", directory}), .cwd = "/"}));
  user.needs_override = !reached.ok();
  return user;
}

}  // namespace det::db
