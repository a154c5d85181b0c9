// A task for shells, without an agent.
#pragma once

#include <optional>
#include <string>

#include "agent/task/processes.h"
#include "common/base/process.h"
#include "common/base/secret.h"
#include "common/task/task_dir.h"
#include "need.h"
#include "test_paths.h"

namespace det::agent {

/// A task that runs until its end is asked for. An environment variable marks all its processes.
struct ShellTask {
  ShellTask() {
    need(make_directories(at.run()));
    need(at.write_spec({.argv = {"sleep", "1000"},
                        .env = {mark, "PATH=/usr/bin:/bin", "COLOR=green"},
                        .cwd = dir.path(),
                        .grace = std::chrono::milliseconds(500)}));
    child =
        need(Child::spawn({.argv = {build_path("/bin/det-supervisor"), dir.path()}, .new_session = true}));
  }
  ~ShellTask() {
    if (child) child->stop(std::chrono::seconds(0));
    CHECK(kill_with_environment(mark, std::chrono::seconds(10)));
  }
  TemporaryDirectory dir = need(TemporaryDirectory::create());
  std::string mark = "DET_TEST_MARK=" + uuid4();
  TaskDir at{dir.path()};
  std::optional<Child> child;
};

}  // namespace det::agent
