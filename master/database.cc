#include "database.h"

#include <unistd.h>

namespace det {

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
