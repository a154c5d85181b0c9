// The database of this master: an external one, or a private server in the data directory.
#pragma once

#include <memory>

#include "master/config/options.h"
#include "master/db/pg/pool.h"
#include "master/db/pg/private_server.h"
#include "master/db/store/pg_store.h"

namespace det {

/// The database connection settings, the store, and the private server if there is one.
struct Database {
  std::unique_ptr<db::DiskWatch> disk;     ///< of the private server
  std::shared_ptr<db::PrivateServer> own;  ///< null with an external one
  db::ConnectOptions connect;
  std::unique_ptr<db::PgStore> store;
};

/// Pools of connections by kind of work. A statement of the API and of streams takes at most 60 s; large
/// deletions lift that limit (db::kNoTimeout). Background work (collector, webhooks, chores, start) has none.
struct DatabasePools {
  explicit DatabasePools(const db::ConnectOptions& connect);
  db::Pool background, api, stream;
};

/// Connects to the database, starting the private server if no URL is configured, brings its schema up to
/// date and takes the lock of the writing master. Errors: those of PrivateServer::start() and
/// PgStore::open().
Result<Database> open_database(const MasterConfig& config);

}  // namespace det
