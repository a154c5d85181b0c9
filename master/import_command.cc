#include "import_command.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "common/base/files.h"
#include "database.h"
#include "first_start.h"
#include "master/import/determined.h"
#include "offline_command.h"

namespace det {
namespace {

constexpr const char* kUsage =
    "usage: det-master migrate from-determined SOURCE_URL [--no-logs] [OPTION…]\n"
    "Imports the PostgreSQL database of a Determined AI 0.38 cluster into the empty database of this "
    "master.\n"
    "SOURCE_URL: postgresql://USER@HOST:PORT/DATABASE; the password is read from PGPASSWORD or ~/.pgpass.\n"
    "OPTION: options of det-master, such as --config FILE. Neither master may run.\n";

/// Prints the state of a long import, at most once a second.
class Progress {
 public:
  void operator()(const std::string& what, std::int64_t rows) {
    const MonoTime now = mono_now();
    if (now - printed_ < std::chrono::seconds(1)) return;
    std::printf("%s: %" PRId64 " rows so far\n", what.c_str(), rows);
    std::fflush(stdout);
    printed_ = now;
  }

 private:
  MonoTime printed_ = mono_now();
};

void print(const import::ImportReport& report) {
  std::printf("\nImported:\n");
  for (const auto& [what, rows] : report.counts) std::printf("  %12" PRId64 "  %s\n", rows, what.c_str());
  if (!report.notes.empty()) std::printf("Different from the source:\n");
  for (const std::string& note : report.notes) std::printf("  %s\n", note.c_str());
}

Status import_into(const MasterConfig& config, const std::string& source, bool logs) {
  TRY(make_directories(config.data_dir, 0700));
  TRY_ASSIGN(db::Connection from, db::Connection::open({.url = source, .application = "det-master migrate"}));
  TRY_ASSIGN(Database database, open_database(config));
  db::Pool pool(database.connect, 2);
  TRY(protect_secrets(config, pool));
  TRY(create_admin(pool, config));
  TRY_ASSIGN(db::Connection to, db::Connection::open(database.connect));
  Progress progress;
  TRY_ASSIGN(const import::ImportReport report,
             import::import_determined(from, to, {.logs = logs, .progress = std::ref(progress)}));
  // The imported configurations and templates may contain secrets.
  TRY(protect_secrets(config, pool));
  print(report);
  database.store.reset();
  if (database.own) TRY(database.own->stop());
  return {};
}

}  // namespace

int run_import(const std::vector<std::string>& arguments) {
  std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  const bool logs = std::erase(rest, "--no-logs") == 0;
  if (rest.size() < 2 || rest[0] != "from-determined" || rest[1].starts_with("-"))
    return std::fputs(kUsage, stderr) < 0 ? 1 : 2;
  const std::string source = rest[1];
  rest.erase(rest.begin(), rest.begin() + 2);
  return run_offline(rest, [&](const MasterConfig& config) { return import_into(config, source, logs); });
}

}  // namespace det
