#include "offline_command.h"

#include <cstdio>

#include "common/base/log.h"

namespace det {

int run_offline(const std::vector<std::string>& options,
                const std::function<Status(const MasterConfig&)>& work) {
  const auto print = [](const Status& status, int code) {
    std::fprintf(stderr, "det-master: %s\n", status.error().message.c_str());
    return code;
  };
  auto read = Options::load(master_options(), options, process_environment());
  if (!read) return print(tl::unexpected(read.error()), 2);
  auto config = read_master_config(*read);
  if (!config) return print(tl::unexpected(config.error()), 2);
  Status status = init_log(config->log);
  if (status) status = work(*config);
  return status ? 0 : print(status, 1);
}

}  // namespace det
