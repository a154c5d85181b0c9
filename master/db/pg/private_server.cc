#include "master/db/pg/private_server.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/process.h"
#include "common/base/shared.h"
#include "common/base/text.h"
#include "master/db/pg/pg.h"
#include "master/db/pg/private_server_find.h"

namespace det::db {
namespace {

// sun_path has room for 107 characters.
constexpr std::size_t kMaxSocketDirectory = 107 - std::string_view("/.s.PGSQL.5432").size();
constexpr std::string_view kTemporarySocket = "/tmp/det-pg";

/// Contents of postmaster.pid, which a running server writes into its data directory.
struct PostmasterFile {
  pid_t pid = 0;
  std::string socket;
};

std::optional<PostmasterFile> read_postmaster_file(const std::string& data) {
  const auto text = read_file(data + "/postmaster.pid");
  if (!text) return std::nullopt;
  const std::vector<std::string> lines = split(*text, '\n');
  PostmasterFile file;
  // Line 1 is the pid, negative for a standalone backend; line 5 the socket directory.
  file.pid = std::abs(std::atoi(lines[0].c_str()));
  if (lines.size() > 4) file.socket = trim(lines[4]);
  if (file.pid == 0) return std::nullopt;
  return file;
}

/// True when the process is a live PostgreSQL. Pids are reused after a reboot, and a zombie does not count.
bool is_postgres(pid_t pid) {
  const auto status = read_file("/proc/" + std::to_string(pid) + "/stat");
  return status && status->find("(postgres) ") != std::string::npos &&
         status->find("(postgres) Z") == std::string::npos;
}

/// A process that cannot be mistaken for a later one with its pid.
struct Process {
  pid_t pid = 0;
  UniqueFd fd;  ///< pidfd; invalid when the process has ended
};

Process open_process(pid_t pid) { return {pid, UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)))}; }

void send_signal(const Process& process, int number) {
  if (process.fd) (void)syscall(SYS_pidfd_send_signal, process.fd.get(), number, nullptr, 0);
}

bool ends_within(const Process& process, Duration timeout) {
  if (!process.fd) return true;
  pollfd waiting{process.fd.get(), POLLIN, 0};
  return poll(&waiting, 1, static_cast<int>(timeout.count() / 1000)) == 1;
}

std::vector<Process> children_of(pid_t pid) {
  const std::string name = std::to_string(pid);
  const auto text = read_file("/proc/" + name + "/task/" + name + "/children");
  std::vector<Process> children;
  if (!text) return children;
  for (const std::string& child : split(trim(*text), ' ')) {
    if (const pid_t id = std::atoi(child.c_str()); id > 0) children.push_back(open_process(id));
  }
  return children;
}

std::string connection_text(const std::string& socket, const std::string& database) {
  return "host='" + socket + "' port=5432 user=det dbname='" + database +
         "' sslmode=disable gssencmode=disable";
}

/// Returns the last four lines of a file, joined.
std::string last_words(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return "";
  std::vector<std::string> lines = split(trim(*text), '\n');
  if (lines.size() > 4) lines.erase(lines.begin(), lines.end() - 4);
  return join(lines, "; ");
}

/// Resources of a killed server are released only after a few seconds.
bool worth_retrying(const std::string& words) {
  return words.find("lock file") != std::string::npos ||
         words.find("shared memory block") != std::string::npos;
}

}  // namespace

struct PrivateServer::Impl {
  Impl(PrivateServerOptions o, FileLock l) : options(std::move(o)), lock(std::move(l)) {}

  PrivateServerOptions options;
  FileLock lock;
  ServerUser user;
  std::string data, socket;
  pid_t pid = 0;               ///< 0: stopped.
  std::optional<Child> child;  ///< Set when this process started the server.
  UniqueFd pidfd;              ///< Set when the server was taken over.
  Pause pause;
  /// What other threads asked for.
  enum class Phase { kRunning, kNoRestarts, kEnding };
  std::atomic<Phase> phase{Phase::kRunning};
  /// The server of `pid`, for end_now(). Null: none.
  Shared<Process> process;

  std::string path(const char* name) const { return options.directory + "/" + name; }

  Status ensure_data() {
    if (path_exists(data)) return {};
    // Renamed when complete: a kill leaves no half-initialized data directory behind.
    const std::string fresh = data + ".new";
    TRY(remove_tree(fresh));
    TRY_ASSIGN(const PostgresPrograms programs, find_postgres(0));
    std::string words;
    // C.UTF-8 is missing on some systems; C sorts the same and always exists.
    for (const char* locale : {"C.UTF-8", "C"}) {
      TRY(make_directories(fresh, 0700));
      TRY(user.own(fresh));
      log::info("creating private database", {{"directory", data}});
      TRY_ASSIGN(
          const ProcessResult made,
          run_process({.argv = user.command({programs.directory + "/initdb", "-D", fresh, "-U", "det",
                                             "--encoding=UTF8", std::string("--locale=") + locale,
                                             "--data-checksums", "--auth-local=peer", "--auth-host=reject"}),
                       .env = clean_environment(),
                       .cwd = "/"},
                      {.timeout = options.patience}));
      if (made.ok()) {
        if (rename(fresh.c_str(), data.c_str()) != 0) return fail_errno(data);
        return sync_directory(options.directory);
      }
      words = std::string(trim(made.err));
      TRY(remove_tree(fresh));
    }
    return fail(Code::kFailedPrecondition, "initdb failed in " + data + ": " + words);
  }

  /// Variables of the user's own PostgreSQL must not reach the server.
  static std::vector<std::string> clean_environment() {
    return environment_with(
        {"PGDATA", "PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGPASSWORD", "PGOPTIONS"});
  }

  /// Admits only the system users of the master and of the server, over the socket.
  Status write_access_files() {
    TRY_ASSIGN(const std::string me, own_user_name());
    std::string map = "det \"" + me + "\" det\n";
    if (user.name != me) map += "det \"" + user.name + "\" det\n";
    for (const auto& [name, text] :
         {std::pair<const char*, std::string>{"/pg_hba.conf", "local all all peer map=det\n"},
          {"/pg_ident.conf", map}}) {
      TRY(write_file_atomic(data + name, text, 0600));
      TRY(user.own(data + name));
    }
    return {};
  }

  Status choose_socket() {
    // A temporary socket directory is kept across restarts: url() must not change.
    if (socket.starts_with(kTemporarySocket) && path_exists(socket)) return {};
    socket = path("socket");
    if (socket.size() > kMaxSocketDirectory || socket.find_first_of("',\\") != std::string::npos) {
      TRY_ASSIGN(TemporaryDirectory directory, TemporaryDirectory::create("det-pg", "/tmp"));
      socket = directory.release();
    }
    TRY(make_directories(socket, 0700));
    return user.own(socket);
  }

  Status check_phase() const {
    if (phase == Phase::kRunning) return {};
    return fail(Code::kUnavailable, "the master is shutting down");
  }

  /// Makes the started server known to end_now(), which may have run meanwhile.
  void publish() {
    auto started = std::make_shared<Process>(open_process(pid));
    process.set(started);
    if (phase == Phase::kEnding) send_signal(*started, SIGQUIT);
  }

  void forget() {
    pid = 0;
    child.reset();
    pidfd.reset();
    process.set(nullptr);
  }

  Status launch(const PostgresPrograms& programs) {
    TRY(check_phase());
    TRY(write_access_files());
    TRY(choose_socket());
    TRY(make_directories(path("log"), 0700));
    TRY(user.own(path("log")));
    // Stale output would be mistaken for that of this start.
    unlink(path("start.log").c_str());
    std::vector<std::string> argv = {programs.directory + "/postgres", "-D", data};
    for (const std::string& setting :
         {std::string("listen_addresses="), "unix_socket_directories=" + socket, std::string("port=5432"),
          std::string("max_connections=60"), std::string("logging_collector=on"),
          "log_directory=" + path("log"), std::string("log_filename=postgresql-%a.log"),
          std::string("log_truncate_on_rotation=on"), std::string("log_rotation_age=1d"),
          std::string("log_rotation_size=0"), std::string("fsync=on")}) {
      argv.emplace_back("-c");
      argv.push_back(setting);
    }
    TRY_ASSIGN(child, Child::spawn({.argv = user.command(std::move(argv)),
                                    .env = clean_environment(),
                                    .cwd = "/",
                                    .in = Stream::null(),
                                    .out = Stream::file(path("start.log")),
                                    .err = Stream::file(path("start.log")),
                                    .new_session = true}));
    pid = child->pid();
    publish();
    return {};
  }

  /// True when the server answers and uses our data directory.
  bool answers() {
    auto connection = Connection::open({.url = connection_text(socket, "postgres")});
    if (!connection) return false;
    auto rows = connection->query("SELECT current_setting('data_directory')");
    return rows && (*rows)[0].next<std::string>() == data;
  }

  /// Takes over a running server. Returns false when there is none.
  Result<bool> attach(MonoTime deadline) {
    for (BackOff back_off; mono_now() < deadline; pause.wait(back_off.next())) {
      TRY(check_phase());
      const auto file = read_postmaster_file(data);
      if (!file || !is_postgres(file->pid)) return false;
      socket = file->socket;
      if (socket.empty() || !answers()) continue;
      // A pidfd is immune to reuse of the pid.
      pidfd.reset(static_cast<int>(syscall(SYS_pidfd_open, file->pid, 0)));
      if (!pidfd) continue;
      pid = file->pid;
      publish();
      log::info("private database is already running", {{"pid", pid}});
      return true;
    }
    return fail(Code::kUnavailable,
                "a PostgreSQL runs on " + data + " but does not answer; look into " + path("log"));
  }

  Status start_new(const PostgresPrograms& programs, MonoTime deadline) {
    TRY(launch(programs));
    for (BackOff back_off;;) {
      if (answers()) return {};
      TRY(check_phase());
      if (child->wait(back_off.next())) {
        const std::string words = last_words(path("start.log"));
        forget();
        drop_socket();
        if (mono_now() >= deadline || !worth_retrying(words))
          return fail(Code::kUnavailable,
                      "the private PostgreSQL does not start: " + words + "; see " + path("log"));
        pause.wait(std::chrono::milliseconds(200));
        TRY(launch(programs));
        back_off = BackOff();
      } else if (mono_now() >= deadline) {
        // Still recovering or stuck: do not leave it behind half started.
        (void)stop();
        return fail(Code::kUnavailable, "the private PostgreSQL does not answer in time; see " + path("log"));
      }
    }
  }

  bool ended(Duration timeout) {
    if (child) return child->wait(timeout).has_value();
    pollfd waiting{pidfd.get(), POLLIN, 0};
    return poll(&waiting, 1, static_cast<int>(timeout.count() / 1000)) == 1;
  }

  void drop_socket() {
    if (socket.starts_with(kTemporarySocket)) (void)remove_tree(socket);
  }

  Status stop() {
    if (pid == 0) return {};
    // Fast shutdown, immediate shutdown, kill.
    const std::pair<int, Duration> steps[] = {
        {SIGINT, options.patience}, {SIGQUIT, std::chrono::seconds(10)}, {SIGKILL, std::chrono::seconds(10)}};
    for (const auto& [signal, patience] : steps) {
      kill(pid, signal);
      if (!ended(patience)) continue;
      log::info("private database stopped");
      forget();
      drop_socket();
      return {};
    }
    return fail(Code::kUnavailable, "the private PostgreSQL (pid " + std::to_string(pid) + ") does not end");
  }

  Status keep_up() {
    if (pid != 0) {
      if (!ended(Duration(0))) return {};
      log::warn("private database has exited; restarting it", {{"pid", pid}});
      forget();
    }
    TRY(check_phase());
    const MonoTime deadline = mono_now() + options.patience;
    // The data directory can only be opened by the major version that created it.
    TRY_ASSIGN(const std::string version, read_file(data + "/PG_VERSION"));
    TRY_ASSIGN(const PostgresPrograms programs, find_postgres(std::atoi(version.c_str())));
    TRY_ASSIGN(const bool attached, attach(deadline));
    return attached ? Status() : start_new(programs, deadline);
  }

  Status ensure_database() {
    TRY_ASSIGN(Connection connection, Connection::open({.url = connection_text(socket, "postgres")}));
    TRY_ASSIGN(const Rows rows, connection.query("SELECT FROM pg_database WHERE datname = 'det'"));
    if (rows.empty()) TRY(connection.script("CREATE DATABASE det"));
    return {};
  }
};

PrivateServer::PrivateServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PrivateServer::PrivateServer(PrivateServer&&) noexcept = default;
PrivateServer& PrivateServer::operator=(PrivateServer&&) noexcept = default;
PrivateServer::~PrivateServer() {
  if (impl_) (void)stop();
}

Result<PrivateServer> PrivateServer::start(const PrivateServerOptions& options) {
  TRY(make_directories(options.directory));
  auto lock = FileLock::try_lock(options.directory + "/lock");
  if (!lock && lock.error().code == Code::kFailedPrecondition)
    return fail(Code::kFailedPrecondition,
                options.directory +
                    " is in use by another det-master; stop that one first, or choose"
                    " another --data-dir");
  TRY(lock);
  auto impl = std::make_unique<Impl>(options, std::move(*lock));
  impl->data = options.directory + "/data";
  TRY_ASSIGN(impl->user, choose_server_user(options.directory, impl->data));
  TRY(impl->ensure_data());
  TRY(impl->keep_up());
  PrivateServer server(std::move(impl));
  TRY(server.impl_->ensure_database());
  return server;
}

std::string PrivateServer::url(const std::string& database) const {
  return connection_text(impl_->socket, database);
}
int PrivateServer::pid() const { return impl_->pid; }
Status PrivateServer::keep_up() { return impl_->keep_up(); }
Status PrivateServer::stop() { return impl_->stop(); }
void PrivateServer::refuse_restarts() { impl_->phase = Impl::Phase::kNoRestarts; }
void PrivateServer::end_now() {
  // The order matters: a server that is not published yet finds the phase.
  impl_->phase = Impl::Phase::kEnding;
  const auto process = impl_->process.get();
  if (!process) return;
  const std::vector<Process> children = children_of(process->pid);
  send_signal(*process, SIGQUIT);
  if (ends_within(*process, std::chrono::milliseconds(1200))) return;
  // A frozen server handles no other signal, and its frozen children would outlive it.
  send_signal(*process, SIGKILL);
  for (const Process& child : children) send_signal(child, SIGKILL);
  (void)ends_within(*process, std::chrono::milliseconds(300));
}
void PrivateServer::abandon() {
  if (impl_->child) impl_->child->detach();
  impl_->forget();
}

}  // namespace det::db
