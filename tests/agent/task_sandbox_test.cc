// Plans of sandboxes: users, and the checkpoint storage.
#include "agent/task_sandbox.h"

#include <unistd.h>

#include <algorithm>

#include "agent/config.h"
#include "common/base/files.h"
#include "need.h"

using namespace det;
using namespace det::agent;

namespace {

/// A site with a data directory of its own.
struct PlanBench {
  TemporaryDirectory dir = need(TemporaryDirectory::create());
  Settings settings;
  DataDir data = need(DataDir::open(dir.path() + "/data"));
  Site site{.settings = settings,
            .data = data,
            .devices = {},
            .prefix = "/usr",
            .channel = {},
            .trust = {},
            .models = dir.path() + "/cache"};

  Result<Sandbox> plan(const std::string& storage, const std::string& below = "") {
    Order order;
    order.message.set_experiment_config(R"({"checkpoint_storage": {"type": "shared_fs", "host_path": ")" +
                                        storage + R"(", "storage_path": ")" + below + "\"}}");
    return task_sandbox(order, need(data.allocation(AllocationId("a"))), site, "");
  }
};

}  // namespace

TEST_CASE("each allocation has a user that no other live allocation has", "[task_sandbox]") {
  TaskUids uids(5000, 3, 1);
  const AllocationId a("a"), b("b"), c("c"), d("d");
  CHECK(uids.take(a) == 5001);
  CHECK(uids.take(a) == 5001);
  CHECK(uids.take(b) == 5002);
  uids.release(a);
  CHECK(uids.take(c) == 5000);
  CHECK(uids.take(d) == 5001);
}

TEST_CASE("a restarted agent keeps the users of its allocations", "[task_sandbox]") {
  TaskUids uids(5000, 2, 0);
  uids.keep(AllocationId("a"), 5000);
  CHECK(uids.take(AllocationId("b")) == 5001);
}

TEST_CASE("a checkpoint storage is mounted writable, as its owner", "[task_sandbox]") {
  PlanBench bench;
  const std::string storage = bench.dir.path() + "/checkpoints";
  const Sandbox sandbox = need(bench.plan(storage));
  CHECK(path_exists(storage));
  REQUIRE_FALSE(sandbox.mounts.empty());
  CHECK(sandbox.mounts.back() == SandboxMount{storage, storage, SandboxMount::Access::kWriteAsOwner});
}

TEST_CASE("resources.shm_size is the size of shared memory", "[task_sandbox]") {
  CHECK(shared_memory(R"({"resources": {"shm_size": 1610612736}})") == 1'610'612'736);
  CHECK(shared_memory(R"({"resources": {"shm_size": null}})") == 0);
  CHECK(shared_memory("") == 0);
  PlanBench bench;
  Order order;
  order.message.set_experiment_config(R"({"resources": {"shm_size": 4096}})");
  CHECK(need(task_sandbox(order, need(bench.data.allocation(AllocationId("a"))), bench.site, "")).shm_bytes ==
        4096);
}

TEST_CASE("a task with an account sees itself as its user and group", "[task_sandbox]") {
  PlanBench bench;
  Order order;
  order.uid = 70'000;
  order.message.set_experiment_config(
      R"({"agent_user_group": {"uid": 2000000000, "user": "ada", "gid": 300, "group": "lab"}})");
  const TaskDir dir = need(bench.data.allocation(AllocationId("a")));
  need(make_directories(dir.path()));
  const Sandbox sandbox = need(task_sandbox(order, dir, bench.site, ""));
  CHECK(sandbox.uid == 70'000u);
  CHECK(sandbox.shown == ShownUser{2'000'000'000, 300});
  CHECK(need(read_file(dir.passwd())).starts_with("ada:x:2000000000:300::" + dir.run() + "/home:/bin/sh\n"));
  CHECK(need(read_file(dir.group())).starts_with("lab:x:300:\n"));
  const SandboxMount passwd{dir.passwd(), "/etc/passwd", SandboxMount::Access::kRead};
  CHECK(std::find(sandbox.mounts.begin(), sandbox.mounts.end(), passwd) != sandbox.mounts.end());
  order.message.set_experiment_config("{}");
  CHECK_FALSE(need(task_sandbox(order, dir, bench.site, "")).shown);
}

TEST_CASE("bind mounts of a task show only what tasks see anyway", "[task_sandbox]") {
  PlanBench bench;
  const std::string shared = bench.dir.path() + "/shared", other = bench.dir.path() + "/other";
  need(make_directories(shared + "/inner"));
  need(make_directories(other));
  REQUIRE(::symlink(other.c_str(), (shared + "/link").c_str()) == 0);
  bench.settings.bind_mounts = {{.path = shared, .writable = true}};
  const TaskDir dir = need(bench.data.allocation(AllocationId("a")));
  const auto plan = [&](const std::string& from, const std::string& more) {
    Order order;
    order.message.set_experiment_config(R"({"bind_mounts": [{"host_path": ")" + from + "\", " + more + "}]}");
    return task_sandbox(order, dir, bench.site, "");
  };
  using Access = SandboxMount::Access;
  const auto last = [&](const std::string& from, const std::string& more) {
    return need(plan(from, more)).mounts.back();
  };
  CHECK(last("/usr/bin", R"("container_path": "/tools")") ==
        SandboxMount{"/usr/bin", "/tools", Access::kRead});
  CHECK(last(shared + "/inner", R"("container_path": "data/in")") ==
        SandboxMount{shared + "/inner", dir.workdir() + "/data/in", Access::kWriteAsOwner});
  CHECK(last(shared, R"("container_path": "/s", "read_only": true)") ==
        SandboxMount{shared, "/s", Access::kReadAsOwner});
  for (const std::string& hidden : {other, shared + "/link", bench.data.path(), bench.dir.path(),
                                    std::string("/etc"), std::string("/")}) {
    const auto refused = plan(hidden, R"("container_path": "/x")");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Code::kPermissionDenied);
  }
}

TEST_CASE("a read-only part of a writable bind mount stays read-only, also at another place",
          "[task_sandbox]") {
  using Access = SandboxMount::Access;
  PlanBench bench;
  const std::string shared = bench.dir.path() + "/shared", part = shared + "/ref";
  need(make_directories(part + "/sets"));
  // The inner one is named first.
  bench.settings.bind_mounts = {{.path = part}, {.path = shared, .writable = true}};
  const TaskDir dir = need(bench.data.allocation(AllocationId("a")));
  const auto plan = [&](const std::string& from) {
    Order order;
    order.message.set_experiment_config(R"({"bind_mounts": [{"host_path": ")" + from +
                                        R"(", "container_path": "/x"}]})");
    return need(task_sandbox(order, dir, bench.site, "")).mounts;
  };
  const auto outer = plan(shared);
  const auto place = [&](const SandboxMount& mount) { return std::find(outer.begin(), outer.end(), mount); };
  CHECK(place({part, part, Access::kRead}) != outer.end());
  CHECK(place({shared, shared, Access::kWriteAsOwner}) < place({part, part, Access::kRead}));
  CHECK(outer.end()[-2] == SandboxMount{shared, "/x", Access::kWriteAsOwner});
  CHECK(outer.back() == SandboxMount{part, "/x/ref", Access::kReadAsOwner});
  CHECK(plan(part).back() == SandboxMount{part, "/x", Access::kReadAsOwner});
  CHECK(plan(part + "/sets").back() == SandboxMount{part + "/sets", "/x", Access::kReadAsOwner});
}

TEST_CASE("a bind mount below another one needs a place in it, which the error names", "[task_sandbox]") {
  PlanBench bench;
  const std::string sets = bench.dir.path() + "/sets", more = bench.dir.path() + "/more";
  for (const std::string& path : {sets + "/inner", more}) need(make_directories(path));
  need(write_file_atomic(sets + "/file", ""));
  REQUIRE(::symlink("/oldroot/root", (sets + "/link").c_str()) == 0);
  bench.settings.bind_mounts = {{.path = sets}, {.path = more}};
  const TaskDir dir = need(bench.data.allocation(AllocationId("a")));
  const auto plan = [&](const std::string& place) {
    Order order;
    order.message.set_experiment_config(R"({"bind_mounts": [{"host_path": ")" + more +
                                        R"(", "container_path": ")" + place + R"("}, {"host_path": ")" +
                                        sets + R"(", "container_path": "/data"}]})");
    return task_sandbox(order, dir, bench.site, "");
  };
  // The outer mount comes first, and does not cover the inner one.
  const Sandbox nested = need(plan("/data/inner"));
  CHECK(nested.mounts.back().inside == "/data/inner");
  for (const std::string place : {"/anywhere/at/all", "/tmp/in", "/var/tmp/in", "/run/in", "in/workdir",
                                  "/dev/in", "/usr/share", "/data"})
    CHECK(plan(place));
  for (const std::string place : {"/data/missing", "/data/inner/x/y", "/data/file", "/data/link/x",
                                  "/usr/share/no-such-directory", "/lib/no-such-directory", "/proc/x"}) {
    CAPTURE(place);
    const auto refused = plan(place);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Code::kInvalidArgument);
    CHECK_THAT(refused.error().message, Catch::Contains(more + " cannot be mounted at " + place));
  }
  CHECK_THAT(plan("/data/missing").error().message, Catch::Contains("create " + sets + "/missing"));
}

TEST_CASE("a task sees only its own part of a checkpoint storage", "[task_sandbox]") {
  PlanBench bench;
  const std::string storage = bench.dir.path() + "/checkpoints";
  const Sandbox sandbox = need(bench.plan(storage, "vision"));
  const std::string own = storage + "/vision";
  CHECK(sandbox.mounts.back() == SandboxMount{own, own, SandboxMount::Access::kWriteAsOwner});
  REQUIRE(::symlink((storage + "/vision").c_str(), (storage + "/link").c_str()) == 0);
  CHECK(bench.plan(storage, "link").error().code == Code::kPermissionDenied);
}

TEST_CASE("event files are mounted read-only below /run/events, and only below their storage",
          "[task_sandbox]") {
  PlanBench bench;
  const std::string storage = bench.dir.path() + "/checkpoints",
                    events = storage + "/tensorboard/experiment_1";
  need(make_directories(events));
  const auto plan = [&](const std::string& below, const std::string& name) {
    Order order;
    v1::EventFiles* files = order.message.add_event_files();
    files->set_base(storage);
    files->set_below(below);
    files->set_name(name);
    return task_sandbox(order, need(bench.data.allocation(AllocationId("a"))), bench.site, "");
  };
  const std::string below = "tensorboard/experiment_1";
  CHECK(need(plan(below, "experiment_1")).mounts.back() ==
        SandboxMount{events, "/run/events/experiment_1", SandboxMount::Access::kReadAsOwner});
  const Sandbox without = need(plan("tensorboard/experiment_2", "experiment_2"));
  CHECK(without.mounts.back().access != SandboxMount::Access::kReadAsOwner);
  need(write_file_atomic(bench.dir.path() + "/outside", ""));
  REQUIRE(::symlink(bench.dir.path().c_str(), (storage + "/link").c_str()) == 0);
  for (const std::string wrong : {"link", "..", "tensorboard/../..", ""})
    CHECK(plan(wrong, "x").error().code == Code::kPermissionDenied);
  for (const std::string wrong : {"../x", "/x", "a/../../x"})
    CHECK(plan(below, wrong).error().code == Code::kPermissionDenied);
}

TEST_CASE("a checkpoint storage cannot expose the system or the agent", "[task_sandbox]") {
  PlanBench bench;
  const std::string link = bench.dir.path() + "/link";
  REQUIRE(::symlink("/etc", link.c_str()) == 0);
  const std::string data = bench.data.path();
  for (const std::string& path :
       {std::string("/"), std::string("/etc"), std::string("/etc/ssl"), std::string("/root"),
        std::string("/var"), std::string("/usr/lib"), std::string("/tmp"), data, data + "/allocations",
        bench.dir.path(), link, bench.site.models}) {
    INFO(path);
    const auto planned = bench.plan(path);
    REQUIRE_FALSE(planned);
    CHECK(planned.error().code == Code::kPermissionDenied);
    CHECK_THAT(planned.error().message, Catch::Contains("name a directory that holds only checkpoints"));
  }
  for (const std::string below : {"etc", "../etc", "tmp/../root", "var/lib"}) {
    INFO(below);
    CHECK(bench.plan("/", below).error().code == Code::kPermissionDenied);
  }
}

TEST_CASE("a checkpoint storage may be below a directory with files of others", "[task_sandbox]") {
  PlanBench bench;
  // As a rule /tmp, which is no storage by itself.
  const std::size_t slash = bench.dir.path().rfind('/');
  const std::string own = bench.dir.path() + "/checkpoints/vision";
  const Sandbox sandbox = need(bench.plan(bench.dir.path().substr(0, slash), own.substr(slash + 1)));
  CHECK(sandbox.mounts.back() == SandboxMount{own, own, SandboxMount::Access::kWriteAsOwner});
}

TEST_CASE("the build cache is hidden below mounts that contain it, also by another name", "[task_sandbox]") {
  PlanBench bench;
  need(make_directories(bench.site.models));
  const std::string link = bench.dir.path() + "/link";
  REQUIRE(::symlink(bench.dir.path().c_str(), link.c_str()) == 0);
  bench.settings.bind_mounts = {{bench.dir.path(), true}, {link, false}};
  const Sandbox sandbox = need(bench.plan(bench.dir.path() + "/checkpoints"));
  const auto hides = [&](const std::string& inside) {
    return std::find(sandbox.mounts.begin(), sandbox.mounts.end(),
                     SandboxMount{"", inside, SandboxMount::Access::kHide}) != sandbox.mounts.end();
  };
  CHECK(hides(bench.site.models));
  CHECK(hides(link + "/cache"));
}

TEST_CASE("a compiler reads its precompiled header and writes to its own directory only", "[task_sandbox]") {
  PlanBench bench;
  const std::string work = bench.site.models + "/building-1",
                    header = bench.site.models + "/header/header.pch";
  const std::string scratch = bench.dir.path() + "/scratch";
  need(make_directories(work));
  bench.settings.bind_mounts = {{scratch, true}};
  const TaskDir dir = need(bench.data.allocation(AllocationId("a")));
  const Sandbox sandbox = need(build_sandbox(Order(), dir, bench.site, work, header));
  std::vector<std::string> writable;
  for (const SandboxMount& mount : sandbox.mounts)
    if (mount.access == SandboxMount::Access::kWrite || mount.access == SandboxMount::Access::kWriteAsOwner)
      writable.push_back(mount.inside);
  CHECK(writable == std::vector<std::string>{work});
  CHECK(sandbox.mounts.back() == SandboxMount{header, header, SandboxMount::Access::kRead});
}

TEST_CASE("the directory of the agent is hidden below mounts that contain it", "[task_sandbox]") {
  PlanBench bench;
  bench.settings.bind_mounts = {{bench.dir.path(), true}};
  const Sandbox sandbox = need(bench.plan(bench.dir.path() + "/checkpoints"));
  std::size_t shown = 0, hidden = 0;
  for (std::size_t i = 0; i < sandbox.mounts.size(); ++i) {
    if (sandbox.mounts[i].inside == bench.dir.path()) shown = i + 1;
    if (sandbox.mounts[i].inside == bench.data.path()) hidden = i + 1;
  }
  REQUIRE(shown > 0);
  CHECK(hidden > shown);
}

TEST_CASE("a task on a slot of a shared GPU sees the pipes of the MPS daemon and the memory it shares",
          "[task_sandbox]") {
  PlanBench bench;
  bench.site.mps_pipes = bench.data.path() + "/mps/pipes";
  const auto shows = [&](const Order& order, const std::string& path) {
    const Sandbox sandbox =
        need(task_sandbox(order, need(bench.data.allocation(AllocationId("a"))), bench.site, ""));
    const auto& mounts = sandbox.mounts;
    return std::find(mounts.begin(), mounts.end(), SandboxMount{path, path, SandboxMount::Access::kWrite}) !=
           mounts.end();
  };
  Order order;
  CHECK_FALSE(shows(order, bench.site.mps_pipes));
  CHECK_FALSE(shows(order, "/dev/shm"));
  order.message.add_slots(0);
  CHECK(shows(order, bench.site.mps_pipes));
  CHECK(shows(order, "/dev/shm"));
}
