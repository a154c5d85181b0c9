// SSH connections to a task: the real det-supervisor, det-task-init, det-task-shell and det-task-ssh, and the
// client of OpenSSH.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "agent/task/shell_frames.h"
#include "common/base/files.h"
#include "common/base/text.h"
#include "common/base/wait.h"
#include "common/task/message.h"
#include "shell_task.h"

using namespace det;
using namespace det::agent;
using namespace std::chrono_literals;

namespace {

/// A key pair that ssh-keygen has made.
struct KeyPair {
  explicit KeyPair(const std::string& place) : path(place) {
    const auto made = need(run_process(
        {.argv = {"ssh-keygen", "-q", "-t", "ecdsa", "-b", "256", "-m", "PEM", "-N", "", "-f", path}}));
    REQUIRE(made.ok());
    const std::vector<std::string> words =
        split(std::string(trim(need(read_file(path + ".pub", 4096)))), ' ');
    line = words.at(0) + " " + words.at(1);
  }
  std::string path, line;
};

/// Makes connections of clients to a task, as the agent does.
class SshDoor {
 public:
  SshDoor(const ShellTask& task, const std::string& authorized) : task_(task), authorized_(authorized) {
    listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(listener_.get(), 8) == 0);
    REQUIRE(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { accept_all(); });
  }
  ~SshDoor() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

  /// Command of ssh with the key at `key`, "" for none. `options` precede the host.
  std::vector<std::string> argv(const std::string& key, const std::vector<std::string>& command,
                                const std::vector<std::string>& options) const {
    std::vector<std::string> argv{"ssh", "-F", "none"};
    for (const char* option :
         {"UserKnownHostsFile=/dev/null", "StrictHostKeyChecking=no", "IdentitiesOnly=yes",
          "IdentityAgent=none", "BatchMode=yes", "LogLevel=ERROR"}) {
      argv.push_back("-o");
      argv.push_back(option);
    }
    if (!key.empty()) argv.insert(argv.end(), {"-i", key});
    argv.insert(argv.end(), {"-p", std::to_string(port_)});
    argv.insert(argv.end(), options.begin(), options.end());
    argv.push_back("anyone@127.0.0.1");
    argv.insert(argv.end(), command.begin(), command.end());
    return argv;
  }
  ProcessResult ssh(const std::string& key, const std::vector<std::string>& command,
                    const std::string& input = "", const std::vector<std::string>& options = {}) const {
    return need(run_process({.argv = argv(key, command, options)}, {.timeout = 60s}, input));
  }

 private:
  void accept_all() {
    for (;;) {
      const UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client) return;
      // The supervisor refuses shells until the task runs.
      (void)wait_until(
          [&] {
            const auto socket = connect_shell(task_.at);
            if (!socket || !send_message(socket->get(), static_cast<char>(ShellFrame::kSsh) + authorized_,
                                         {client.get()}))
              return false;
            pollfd ready{socket->get(), POLLIN, 0};
            ShellFrame kind{};
            std::string bytes;
            return ::poll(&ready, 1, 10'000) == 1 &&
                   receive_frame(socket->get(), kind, bytes).value_or(false) && kind == ShellFrame::kOpened;
          },
          10s);
    }
  }

  const ShellTask& task_;
  const std::string authorized_;
  UniqueFd listener_;
  int port_ = 0;
  std::thread thread_;
};

struct SshTask {
  ShellTask task;
  TemporaryDirectory keys = need(TemporaryDirectory::create());
  KeyPair owner{keys.path() + "/owner"};
  SshDoor door{task, owner.line};
};

}  // namespace

TEST_CASE("ssh with the key of the task runs a command line in the task", "[ssh]") {
  SshTask at;
  const auto done = at.door.ssh(at.owner.path, {"pwd; echo $COLOR; exit 7"});
  INFO(done.err);
  CHECK(done.status.code == 7);
  CHECK(done.out == at.task.dir.path() + "\ngreen\n");
}

TEST_CASE("ssh with another key, and without one, is refused", "[ssh]") {
  SshTask at;
  const KeyPair other(at.keys.path() + "/other");
  for (const std::string& key : {other.path, std::string()}) {
    const auto done = at.door.ssh(key, {"echo in"});
    CHECK(done.status.code == 255);
    CHECK(done.out.empty());
    CHECK(done.err.find("Permission denied (publickey)") != std::string::npos);
  }
}

TEST_CASE("ssh passes input to its end and output of any size", "[ssh]") {
  SshTask at;
  std::string sent;
  for (int i = 0; sent.size() < (2U << 20); ++i) sent += std::to_string(i) + '\n';
  const auto done = at.door.ssh(at.owner.path, {"cat"}, sent);
  INFO(done.err);
  CHECK(done.status.ok());
  CHECK(done.out == sent);
  const auto flood = at.door.ssh(at.owner.path, {"yes | head -c 2097152"});
  CHECK(flood.out.size() == 2U << 20);
}

TEST_CASE("ssh keeps standard error apart unless there is a terminal", "[ssh]") {
  SshTask at;
  const auto apart = at.door.ssh(at.owner.path, {"echo out; echo err >&2"});
  CHECK(apart.out == "out\n");
  CHECK(apart.err == "err\n");
  const auto joined = at.door.ssh(at.owner.path, {"echo out; echo err >&2"}, "", {"-tt"});
  CHECK(joined.out == "out\r\nerr\r\n");
}

TEST_CASE("ssh gets a terminal, and only variables of the locale", "[ssh]") {
  SshTask at;
  const auto done = at.door.ssh(at.owner.path, {"tty; stty size; echo $TERM $LC_TIME $PATH"}, "",
                                {"-tt", "-o", "SetEnv=LC_TIME=C.UTF-8 PATH=/evil LD_PRELOAD=/evil"});
  INFO(done.out);
  const auto lines = split(done.out, '\n');
  REQUIRE(lines.size() >= 3);
  CHECK(lines[0].starts_with("/dev/pts/"));
  CHECK(lines[1] == "24 80\r");
  CHECK(lines[2].find("C.UTF-8 /usr/bin:/bin") != std::string::npos);
}

TEST_CASE("an interactive shell over ssh reads commands and ends with them", "[ssh]") {
  SshTask at;
  const auto done = at.door.ssh(at.owner.path, {}, "echo sum=$((40+2))\nexit 5\n", {"-tt"});
  INFO(done.out);
  CHECK(done.status.code == 5);
  CHECK(done.out.find("sum=42") != std::string::npos);
}

TEST_CASE("several sessions share one SSH connection", "[ssh]") {
  SshTask at;
  const std::vector<std::string> shared{"-o", "ControlPath=" + at.keys.path() + "/control"};
  auto first = shared;
  first.insert(first.end(), {"-o", "ControlMaster=yes", "-o", "ControlPersist=yes"});
  REQUIRE(at.door.ssh(at.owner.path, {"true"}, "", first).status.ok());
  std::vector<std::thread> threads;
  std::atomic<int> passed{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, text = std::string(300'000, static_cast<char>('a' + i))] {
      if (at.door.ssh(at.owner.path, {"cat"}, text, shared).out == text) ++passed;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(passed == 8);
  auto last = shared;
  last.insert(last.end(), {"-O", "exit"});
  CHECK(at.door.ssh(at.owner.path, {}, "", last).status.ok());
}

TEST_CASE("ssh refuses forwarding and subsystems", "[ssh]") {
  SshTask at;
  CHECK(at.door.ssh(at.owner.path, {"sftp"}, "", {"-s"}).status.code == 255);
  CHECK(at.door.ssh(at.owner.path, {}, "", {"-W", "127.0.0.1:1"}).status.code == 255);
  CHECK(at.door.ssh(at.owner.path, {"true"}, "", {"-R", "0:127.0.0.1:1", "-o", "ExitOnForwardFailure=yes"})
            .status.code == 255);
}

TEST_CASE("processes of an SSH connection end with it, and the task goes on", "[ssh]") {
  SshTask at;
  REQUIRE(at.door.ssh(at.owner.path, {"true"}).status.ok());
  const auto processes = [&] { return with_environment(at.task.mark).size(); };
  REQUIRE(wait_until([&] { return processes() == 1; }, 10s));
  Child client =
      need(Child::spawn({.argv = at.door.argv(at.owner.path, {"trap '' HUP; echo up; sleep 1000; true"}, {}),
                         .in = Stream::pipe(),
                         .out = Stream::pipe()}));
  char up[3] = {};
  REQUIRE(::read(client.out().get(), up, sizeof up) == sizeof up);
  CHECK(processes() > 1);
  need(client.signal(SIGKILL));
  CHECK(wait_until([&] { return processes() == 1; }, 10s));
  CHECK(at.door.ssh(at.owner.path, {"true"}).status.ok());
}

TEST_CASE("a connection without a login ends in time", "[ssh]") {
  const TemporaryDirectory keys = need(TemporaryDirectory::create());
  const KeyPair owner(keys.path() + "/owner");
  int frames[2], stream[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, frames) == 0);
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream) == 0);
  UniqueFd agent(frames[0]), task(frames[1]), mine(stream[0]), theirs(stream[1]);
  Child child = need(
      Child::spawn({.argv = {build_path("/bin/det-task-ssh"), "1"}, .in = Stream::descriptor(task.get())}));
  task.reset();
  need(send_message(agent.get(), static_cast<char>(ShellFrame::kSsh) + owner.line, {theirs.get()}));
  theirs.reset();
  std::string got;
  char buffer[4096];
  for (ssize_t count = 0; (count = ::read(mine.get(), buffer, sizeof buffer)) > 0;)
    got.append(buffer, static_cast<std::size_t>(count));
  CHECK(got.starts_with("SSH-2.0-"));
  CHECK(child.wait(10s) == ExitStatus{0, SIGALRM});
}
