// `det deploy local`: a cluster of processes on this machine.
#include <unistd.h>

#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.h"
#include "cli/commands/daemons.h"
#include "cli/output/print.h"
#include "cli/output/terminal.h"
#include "common/base/files.h"
#include "common/base/text.h"
#include "common/base/wait.h"
#include "det/v1/auth.methods.h"
#include "det/v1/cluster.methods.h"

namespace det::cli {
namespace {

/// Time limits for a daemon to become ready, and for it to end.
constexpr Duration kStart = std::chrono::seconds(90), kStop = std::chrono::seconds(100);
constexpr const char* kMaster = "master";

struct ClusterOptions {
  std::string cluster = "determined";
  void declare(CLI::App& app) {
    app.add_option("--cluster-name", cluster, "Name of the local cluster.")->capture_default_str();
  }
};

struct MasterUpOptions : ClusterOptions {
  std::string config, storage, password;
  int port = 8080;

  void declare(CLI::App& app) {
    ClusterOptions::declare(app);
    CLI::Option* file = app.add_option("--master-config-path", config, "Configuration file of det-master.");
    app.add_option("--storage-host-path", storage,
                   "Checkpoint directory (default: in the directory of the cluster).")
        ->excludes(file);
    app.add_option("--initial-user-password", password,
                   "Password of the user admin at the first start (default: generated). Visible to other "
                   "users of this machine.");
    app.add_option("--master-port", port, "Port of the master and the web UI.")
        ->check(CLI::Range(1, 65535))
        ->capture_default_str();
    app.add_flag_callback(
        "--no-autorestart", [] {}, "Accepted for compatibility: daemons are never restarted.");
  }
};

/// Devices that become slots.
struct SlotTypeOptions {
  bool gpu = false, no_gpu = false;
  void declare(CLI::App& app) {
    CLI::Option* with = app.add_flag("--gpu", gpu, "Offer GPUs as slots (default: detect).");
    app.add_flag("--no-gpu", no_gpu, "Offer CPUs as slots.")->excludes(with);
  }
};

struct AgentUpOptions : ClusterOptions {
  std::string host, name = "agent-0", pool, config, join_token;
  SlotTypeOptions slots;

  void declare(CLI::App& app) {
    app.add_option("HOST", host, "Address of the master, HOST:PORT.")->required();
    app.add_option("--agent-name", name, "Agent id.")->capture_default_str();
    app.add_option("--agent-resource-pool", pool, "Resource pool of the agent.");
    app.add_option("--agent-config-path", config, "Configuration file of det-agent.");
    app.add_option("--join-token-file", join_token,
                   "File with a join token, for a master on another machine (det join-token create).");
    slots.declare(app);
    ClusterOptions::declare(app);
  }
};

/// Returns the master's URL, such as "http://127.0.0.1:8080", once it has printed it; "" before.
std::string ready_url(const Daemons& daemons) {
  const auto text = read_file(daemons.out(kMaster), 1 << 20);
  const std::size_t at = text ? text->find("ready ") : std::string::npos;
  const std::size_t end = at == std::string::npos ? at : text->find('\n', at);
  return end == std::string::npos ? "" : std::string(trim(text->substr(at + 6, end - at - 6)));
}

/// Waits until the master is ready and returns its URL; "" if it has ended or takes longer than kStart.
std::string await_url(const Daemons& daemons) {
  wait_until([&] { return !ready_url(daemons).empty() || !daemons.running(kMaster); }, kStart);
  return ready_url(daemons);
}

tl::unexpected<Error> failed_start(const Daemons& daemons, const std::string& what) {
  return fail(Code::kAborted,
              what + "; the end of " + daemons.log(kMaster) + ":\n" + tail_of(daemons.log(kMaster), 5));
}

/// Starts the master unless it runs, and waits until it is ready. Returns its URL. Errors: kAborted, with the
/// end of the log.
Result<std::string> master_up(const MasterUpOptions& options) {
  TRY_ASSIGN(const Daemons daemons, Daemons::of(options.cluster));
  if (daemons.running(kMaster)) {
    std::string url = await_url(daemons);
    if (url.empty()) return failed_start(daemons, "the master that was started before is not ready");
    std::cout << "The master is already running at " << url << '\n';
    return url;
  }
  std::vector<std::string> arguments{"--listen", "127.0.0.1:" + std::to_string(options.port),
                                     "--cluster-name", options.cluster};
  std::string config = options.config;
  if (!options.storage.empty()) {
    config = daemons.directory() + "/master.yaml";
    TRY(make_directories(options.storage));
    TRY(write_file_atomic(config, "checkpoint_storage: {type: shared_fs, host_path: " +
                                      dump_json(Json(options.storage)) + "}\n"));
  }
  if (!config.empty()) arguments.insert(arguments.end(), {"--config", config});
  if (!options.password.empty()) {
    // A file, because other users can read the arguments of a process.
    const std::string file = daemons.directory() + "/initial-password";
    TRY(write_file_atomic(file, options.password + "\n", 0600));
    arguments.insert(arguments.end(), {"--admin-password-file", file});
  }
  TRY(daemons.start(kMaster, "det-master", std::move(arguments)));
  std::string url = await_url(daemons);
  if (url.empty()) {
    // Also removes the pid file of a master that has failed.
    TRY(daemons.stop(kMaster, kStop));
    return failed_start(daemons, "the master did not start");
  }
  std::cout << "Started the master at " << url << std::endl;
  return url;
}

/// Path of the initial password: given by the user, else generated by the master.
std::string password_file(const Daemons& daemons) {
  const std::string given = daemons.directory() + "/initial-password";
  return path_exists(given) ? given : daemons.directory() + "/" + kMaster + "/admin-password";
}

/// Keeps the stored login if the master accepts it, else logs in as admin with the initial password and
/// stores the login. The session must name the master.
Status ensure_login(Session& session, const Daemons& daemons, const std::string& url) {
  TokenFile tokens = session.tokens();
  TRY_ASSIGN(Client * client, session.anonymous());
  TRY_ASSIGN(const auto known, tokens.find(url, ""));
  if (known) {
    client->set_token(known->token);
    const auto me = client->call(v1::AuthService::CurrentUser, v1::CurrentUserRequest());
    if (me) return {};
    if (me.error().code != Code::kUnauthenticated) return tl::unexpected(me.error());
    client->set_token("");
  }
  const auto password = read_file(password_file(daemons), 64 << 10);
  const auto login = password ? session.log_in("admin", std::string(trim(*password)))
                              : Result<Login>(tl::unexpected(password.error()));
  if (!login)
    return fail(login.error().code, "cannot log in as admin with the initial password (" +
                                        login.error().message + "); log in with `det -m " + url +
                                        " user login`");
  return tokens.save(url, *login);
}

/// Starts an agent unless it runs. Does not wait for it to connect.
Status agent_up(Session&, const AgentUpOptions& options) {
  TRY_ASSIGN(const Daemons daemons, Daemons::of(options.cluster));
  if (daemons.running(options.name)) {
    std::cout << "Agent " << options.name << " is already running\n";
    return {};
  }
  std::vector<std::string> arguments{"--master", options.host, "--id", options.name};
  if (!options.pool.empty()) arguments.insert(arguments.end(), {"--pool", options.pool});
  // An agent of a cluster with its master here joins with the token of this machine.
  const std::string token = daemons.directory() + "/" + kMaster + "/agent-join-token";
  if (!options.join_token.empty() || path_exists(token))
    arguments.insert(arguments.end(),
                     {"--join-token-file", options.join_token.empty() ? token : options.join_token});
  if (!options.config.empty()) arguments.insert(arguments.end(), {"--config", options.config});
  if (options.slots.gpu || options.slots.no_gpu)
    arguments.insert(arguments.end(), {"--slot-type", options.slots.gpu ? "cuda" : "cpu"});
  TRY(daemons.start(options.name, "det-agent", std::move(arguments)));
  std::cout << "Started agent " << options.name << std::endl;
  return {};
}

/// Waits until all agents are connected. Errors: kAborted, with the end of the log of one that is not; those
/// of the call that lists agents.
Status wait_for_agents(Session& session, const Daemons& daemons, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  TRY_ASSIGN(Client * client, session.client());
  std::string missing;
  std::optional<Error> trouble;
  const bool all = wait_until(
      [&] {
        const auto response = client->call(v1::ClusterService::GetAgents, v1::GetAgentsRequest());
        trouble = response ? std::nullopt : std::optional(response.error());
        // A repetition is of use only while the master is there and busy.
        if (trouble) return trouble->code != Code::kUnavailable || !daemons.running(kMaster);
        for (const std::string& name : names) {
          missing = name;
          bool here = false;
          for (const v1::Agent& each : response->agents())
            here = here || (each.id() == name && each.connected());
          // Ends the wait early for an agent that has exited.
          if (!here) return !daemons.running(name);
        }
        missing.clear();
        return true;
      },
      kStart);
  if (trouble) return fail(trouble->code, "the master does not list its agents: " + trouble->message);
  if (all && missing.empty()) return {};
  return fail(Code::kAborted, "agent " + missing + " did not connect; the end of " + daemons.log(missing) +
                                  ":\n" + tail_of(daemons.log(missing), 5));
}

struct ClusterUpOptions : MasterUpOptions {
  SlotTypeOptions slots;
  int agents = 1;
  void declare(CLI::App& app) {
    MasterUpOptions::declare(app);
    slots.declare(app);
    app.add_option("--agents", agents, "Number of agents.")->check(CLI::Range(0, 64))->capture_default_str();
  }
};

Status cluster_up(Session& session, const ClusterUpOptions& options) {
  TRY_ASSIGN(const std::string url, master_up(options));
  TRY_ASSIGN(const Daemons daemons, Daemons::of(options.cluster));
  session.master_flag = url;
  std::vector<std::string> names;
  for (int i = 0; i < options.agents; ++i) {
    AgentUpOptions agent;
    agent.cluster = options.cluster;
    agent.slots = options.slots;
    agent.name = names.emplace_back("agent-" + std::to_string(i));
    agent.host = url.substr(url.find("//") + 2);
    TRY(agent_up(session, agent));
  }
  TRY(ensure_login(session, daemons, url));
  TRY(wait_for_agents(session, daemons, names));
  std::cout << "web UI:   " << url << " (user admin, password in " << password_file(daemons) << ")\n"
            << "command:  export DET_MASTER=" << url << "; det experiment list\n"
            << "stop:     det deploy local cluster-down"
            << (options.cluster == "determined" ? "" : " --cluster-name " + options.cluster) << '\n';
  return {};
}

struct StopOptions : ClusterOptions {
  bool delete_db = false;
  void declare(CLI::App& app) {
    ClusterOptions::declare(app);
    app.add_flag("--delete-db", delete_db,
                 "Delete all data of the cluster, including checkpoints in the default storage.");
  }
};

/// Stops the daemons that `selected` accepts in alphabetical order: agents named agent-* before the master,
/// so that they can deregister.
template <typename Selected>
Status stop_daemons(const Daemons& daemons, const Selected& selected) {
  for (const std::string& name : daemons.names()) {
    if (!selected(name)) continue;
    TRY_ASSIGN(const bool ran, daemons.stop(name, kStop));
    if (ran) std::cout << "Stopped " << name << std::endl;
  }
  return {};
}

/// Removes the data of a cluster, and the logins there: its users no longer exist.
Status remove_and_print(const std::string& path, Session& session, const std::string& url) {
  TRY(remove_tree(path));
  std::cout << "Removed " << path << '\n';
  return url.empty() ? Status() : session.tokens().forget(url, "");
}

Status cluster_down(Session& session, const StopOptions& options) {
  TRY_ASSIGN(const Daemons daemons, Daemons::of(options.cluster));
  TRY(stop_daemons(daemons, [](const std::string&) { return true; }));
  return options.delete_db ? remove_and_print(daemons.directory(), session, ready_url(daemons)) : Status();
}

Status master_down(Session& session, const StopOptions& options) {
  TRY_ASSIGN(const Daemons daemons, Daemons::of(options.cluster));
  TRY(stop_daemons(daemons, [](const std::string& name) { return name == kMaster; }));
  if (!options.delete_db) return {};
  const std::string url = ready_url(daemons);
  // The files of agents stay: an agent that runs is found by its pid file.
  for (const std::string& file : {daemons.log(kMaster), daemons.out(kMaster)}) TRY(remove_tree(file));
  for (const char* file : {"/master.yaml", "/initial-password"}) TRY(remove_tree(daemons.directory() + file));
  return remove_and_print(daemons.directory() + "/" + kMaster, session, url);
}

struct AgentDownOptions : ClusterOptions {
  std::string agent = "agent-0";
  bool all = false;
  void declare(CLI::App& app) {
    ClusterOptions::declare(app);
    CLI::Option* every = app.add_flag("--all", all, "Stop all agents of the cluster.");
    app.add_option("--agent-name", agent, "Agent id.")->capture_default_str()->excludes(every);
  }
};

Status agent_down(Session&, const AgentDownOptions& options) {
  TRY_ASSIGN(const Daemons daemons, Daemons::of(options.cluster));
  return stop_daemons(daemons, [&](const std::string& name) {
    return name != kMaster && (options.all || name == options.agent);
  });
}

struct DeployLogOptions : ClusterOptions {
  bool no_follow = false;
  void declare(CLI::App& app) {
    ClusterOptions::declare(app);
    app.add_flag("--no-follow", no_follow, "Exit at the end of the log.");
  }
};

Status print_deploy_log(Session&, const DeployLogOptions& options) {
  TRY_ASSIGN(const Daemons daemons, Daemons::of(options.cluster));
  const std::string log = daemons.log(kMaster);
  if (!path_exists(log))
    return fail(Code::kNotFound, "no log at " + log + "; `det deploy local cluster-up` starts a master");
  std::cout.flush();
  // tail replaces det: it follows the file, and Ctrl-C ends it.
  ::execlp("tail", "tail", "-n", "+1", options.no_follow ? "-q" : "-F", log.c_str(), nullptr);
  return fail(Code::kFailedPrecondition, std::string("tail cannot be started: ") + std::strerror(errno));
}

}  // namespace

Command deploy_command() {
  const auto start_master = [](Session&, const MasterUpOptions& options) -> Status {
    TRY(master_up(options));
    return {};
  };
  return {{"deploy", "d"},
          "Run a cluster on this machine.",
          {},
          {{{"local"},
            "Run the daemons as processes of the current user.",
            {},
            {{{"cluster-up"}, "Start a master and agents, and log in.", action(cluster_up)},
             {{"cluster-down"}, "Stop the agents and the master.", action(cluster_down)},
             {{"master-up"}, "Start a master.", action<MasterUpOptions>(start_master)},
             {{"master-down"}, "Stop the master.", action(master_down)},
             {{"agent-up"}, "Start an agent.", action(agent_up)},
             {{"agent-down"}, "Stop an agent.", action(agent_down)},
             {{"logs"}, "Print the master's log.", action(print_deploy_log)}}}}};
}

}  // namespace det::cli
