#include "agent/warm_start.h"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "agent/environment.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/text.h"

namespace det::agent {
namespace {

/// Room for the arguments and variables that /proc shows of a trial, beside those of the server.
constexpr std::size_t kArgumentBytes = 2048, kVariableBytes = 64 << 10;

/// Returns the name of a variable that is in one of two sorted lists or has different values; "" if they are
/// equal.
std::string first_difference(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::string> lines;
  std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(lines));
  return lines.empty() ? "" : lines[0].substr(0, lines[0].find('='));
}

}  // namespace

WarmStart::WarmStart(std::string program, std::string socket, std::vector<std::string> environment)
    : program_(std::move(program)),
      socket_(std::move(socket)),
      environment_(load_environment(std::move(environment))) {
  // An earlier agent's; nothing listens there any more.
  (void)remove_tree(socket_);
}

WarmStart::CodeFile WarmStart::code_file(std::string path) {
  struct stat status {};
  const bool there = ::stat(path.c_str(), &status) == 0;
  return {std::move(path), there ? status.st_dev : 0, there ? status.st_ino : 0};
}

bool WarmStart::has_replaced_code() {
  if (!path_exists(socket_)) return false;  // is loading
  if (code_.empty()) {
    // The mappings of LibTorch take milliseconds to read, so they are read once.
    const auto maps = read_file("/proc/" + std::to_string(server_->pid()) + "/maps");
    if (!maps) return true;
    std::set<std::string> paths;
    for (const std::string& line : split(*maps, '\n')) {
      if (line.find(" r-xp ") == line.npos || line.find('/') == line.npos) continue;
      if (line.ends_with(" (deleted)")) return true;
      paths.insert(line.substr(line.find('/')));
    }
    for (const std::string& path : paths) code_.push_back(code_file(path));
  }
  return std::any_of(code_.begin(), code_.end(),
                     [](const CodeFile& file) { return code_file(file.path) != file; });
}

Status WarmStart::start() {
  if (server_ && !server_->ended() && !has_replaced_code()) return {};
  const bool died = server_ && server_->ended();
  if (died) log::warn("det-fork-server has ended", {{"exit", to_string(*server_->wait(kRestartInterval))}});
  if (server_ && !died) log::info("det-fork-server is restarted: its libraries were replaced");
  server_.reset();
  code_.clear();
  (void)remove_tree(socket_);
  if (started_ && mono_now() < *started_ + kRestartInterval)
    return fail(Code::kUnavailable, "det-fork-server has ended");
  started_ = mono_now();
  std::vector<std::string> environment = environment_;
  environment.push_back("DET_PADDING=" + std::string(kVariableBytes, ' '));
  TRY_ASSIGN(server_, Child::spawn({.argv = {program_, socket_, std::string(kArgumentBytes, ' ')},
                                    .env = std::move(environment),
                                    .cwd = "/",
                                    .in = Stream::pipe(),  // ends with the agent
                                    // An inherited stream would keep the output of a pilot's job open.
                                    .err = Stream::file(socket_ + ".err"),
                                    .new_session = true,
                                    .dies_with_us = true}));
  return {};
}

Result<std::string> WarmStart::socket_for(const TaskSpec& spec, const std::string& harness) {
  if (!spec.sandbox) return fail(Code::kFailedPrecondition, "the task has no sandbox");
  if (spec.argv.empty() || spec.argv[0] != harness)
    return fail(Code::kFailedPrecondition, "a hook or a launcher starts the trial");
  if (const std::string name = first_difference(load_environment(spec.env), environment_); !name.empty())
    return fail(Code::kFailedPrecondition, "the trial has an environment variable " + name + " of its own");
  TRY(start());
  if (!path_exists(socket_)) return fail(Code::kUnavailable, "det-fork-server is loading");
  return socket_;
}

}  // namespace det::agent
