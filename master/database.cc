#include "database.h"

#include <unistd.h>

#include "master/loop/worker_pools.h"

namespace det {
namespace {

/// Connections of the API: one for each thread that queries, and two for deletions and passwords.
constexpr int kApiConnections = loop::kQueryingWorkers + 2;
constexpr int kStreamConnections = 6;
/// The collector also works on the threads of the API that delete.
constexpr int kBackgroundConnections = 6;
constexpr Duration kApiStatementTimeout = std::chrono::seconds(60);

db::ConnectOptions with_timeout(db::ConnectOptions connect) {
  connect.statement_timeout = kApiStatementTimeout;
  return connect;
}

}  // namespace

DatabasePools::DatabasePools(const db::ConnectOptions& connect)
    : background(connect, kBackgroundConnections),
      api(with_timeout(connect), kApiConnections),
      stream(with_timeout(connect), kStreamConnections) {}

Result<Database> open_database(const MasterConfig& config) {
  Database database;
  if (config.database_url.empty()) {
    TRY_ASSIGN(db::PrivateServer server,
               db::PrivateServer::start({.directory = config.data_dir + "/postgres"}));
    database.own = std::make_shared<db::PrivateServer>(std::move(server));
    database.connect.url = database.own->url();
    database.disk = std::make_unique<db::DiskWatch>(config.data_dir + "/postgres");
  } else {
    database.connect.url = config.database_url;
  }
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  TRY_ASSIGN(database.store,
             db::PgStore::open({.connect = database.connect, .host = host, .disk = database.disk.get()}));
  return database;
}

}  // namespace det
