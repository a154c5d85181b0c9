// Shells of a task: the real det-supervisor, det-task-init and det-task-shell.
#include <poll.h>
#include <signal.h>

#include <optional>

#include "agent/task/shell_frames.h"
#include "common/base/wait.h"
#include "shell_task.h"

using namespace det;
using namespace det::agent;
using namespace std::chrono_literals;

namespace {

/// The agent's end of a shell.
class TestShell {
 public:
  TestShell(const ShellTask& task, const ShellRequest& request) {
    // The supervisor listens once it has started the task, and refuses shells until the task runs.
    REQUIRE(wait_until(
        [&] {
          auto socket = connect_shell(task.at);
          if (!socket) return false;
          socket_ = std::move(*socket);
          return send_frame(socket_.get(), ShellFrame::kStart, encode(request)) && next();
        },
        10s));
    first_ = kind_;
  }
  ShellFrame first() const { return first_; }
  const std::string& text() const { return bytes_; }
  void send(ShellFrame kind, const std::string& bytes = "") {
    REQUIRE(wait_until([&] { return send_frame(socket_.get(), kind, bytes).has_value(); }, 10s));
  }
  /// Reads output until `part` is in it.
  bool reads(const std::string& part) {
    while (output_.find(part) == std::string::npos) {
      if (!next() || kind_ != ShellFrame::kData) return false;
      output_ += bytes_;
    }
    return true;
  }
  /// Reads to the end. Returns the exit code; -1 without one.
  int exit_code() {
    while (next()) {
      if (kind_ == ShellFrame::kExit) return std::stoi(bytes_);
      output_ += bytes_;
    }
    return -1;
  }
  const std::string& output() const { return output_; }
  void close() { socket_.reset(); }

 private:
  bool next() {
    for (;;) {
      pollfd ready{socket_.get(), POLLIN, 0};
      if (::poll(&ready, 1, 10'000) <= 0) return false;
      const auto got = receive_frame(socket_.get(), kind_, bytes_);
      if (!got) return false;
      if (*got) return true;
    }
  }

  UniqueFd socket_;
  ShellFrame kind_{}, first_{};
  std::string bytes_, output_;
};

}  // namespace

TEST_CASE("requests for shells survive their encoding, and others are refused", "[shell]") {
  const ShellRequest with{{"echo", "a b", ""}, TerminalSize{24, 80}, "xterm-256color"};
  CHECK(need(decode_shell_request(encode(with))) == with);
  const ShellRequest without{{}, std::nullopt, ""};
  CHECK(need(decode_shell_request(encode(without))) == without);
  for (const std::string& wrong :
       {std::string(), std::string("x"), std::string("0 80\0xterm\0", 11), std::string("24 80\0x;y\0", 10),
        std::string("24\0\0", 4), std::string("\0\0echo", 6)})
    CHECK(decode_shell_request(wrong).error().code == Code::kInvalidArgument);
}

TEST_CASE("a shell runs a command in the directory and environment of the task", "[shell]") {
  const ShellTask task;
  TestShell shell(task, {{"/bin/sh", "-c", "pwd; echo $COLOR; echo wrong >&2; exit 7"}, std::nullopt, ""});
  CHECK(shell.first() == ShellFrame::kOpened);
  CHECK(shell.exit_code() == 7);
  CHECK(shell.output() == task.dir.path() + "\ngreen\nwrong\n");
}

TEST_CASE("a shell without a terminal reads its input to the end", "[shell]") {
  const ShellTask task;
  TestShell shell(task, {{"cat"}, std::nullopt, ""});
  const std::string sent(kMaxShellData, 'x');
  for (int i = 0; i < 8; ++i) shell.send(ShellFrame::kData, sent);
  shell.send(ShellFrame::kEnd);
  CHECK(shell.exit_code() == 0);
  CHECK(shell.output() == std::string(8 * kMaxShellData, 'x'));
}

TEST_CASE("a shell has a terminal with a size, and Ctrl-C interrupts what runs in it", "[shell]") {
  const ShellTask task;
  TestShell shell(task, {{"/bin/sh"}, TerminalSize{30, 101}, "dumb"});
  shell.send(ShellFrame::kData, "stty size; echo term=$TERM\n");
  CHECK(shell.reads("30 101"));
  CHECK(shell.reads("term=dumb"));
  shell.send(ShellFrame::kSize, encode(TerminalSize{31, 77}));
  shell.send(ShellFrame::kData, "stty size\n");
  CHECK(shell.reads("31 77"));
  shell.send(ShellFrame::kData, "yes\n");
  CHECK(shell.reads("y\r\ny\r\n"));
  shell.send(ShellFrame::kData, "\x03");
  shell.send(ShellFrame::kData, "\necho again=$((40+2))\n");
  CHECK(shell.reads("again=42"));
  shell.send(ShellFrame::kData, "exit 5\n");
  CHECK(shell.exit_code() == 5);
}

TEST_CASE("a program that is not there is reported with its exit code", "[shell]") {
  const ShellTask task;
  TestShell shell(task, {{"/none/such"}, std::nullopt, ""});
  CHECK(shell.exit_code() == 127);
  CHECK(shell.output().find("/none/such: No such file") == 0);
}

TEST_CASE("a shell ends with its connection, and the task goes on", "[shell]") {
  const ShellTask task;
  std::optional<TestShell> shell;
  shell.emplace(task, ShellRequest{{"/bin/sh"}, TerminalSize{24, 80}, ""});
  shell->send(ShellFrame::kData, "trap '' HUP; echo ready=$((40+2))\n");
  REQUIRE(shell->reads("ready=42"));
  const std::size_t before = with_environment(task.mark).size();
  shell->close();
  // det-task-shell and its shell have gone; supervisor, det-task-init and the task are left.
  CHECK(wait_until([&] { return with_environment(task.mark).size() + 2 <= before; }, 10s));
  TestShell second(task, {{"true"}, std::nullopt, ""});
  CHECK(second.exit_code() == 0);
}

TEST_CASE("a shell ends with its task", "[shell]") {
  ShellTask task;
  TestShell shell(task, {{"/bin/sh", "-c", "trap '' TERM; echo up; sleep 1000"}, std::nullopt, ""});
  REQUIRE(shell.reads("up\n"));
  REQUIRE(::sigqueue(task.child->pid(), SIGTERM, {}) == 0);
  CHECK(shell.exit_code() == -1);
  CHECK(task.child->wait(20s));
}
