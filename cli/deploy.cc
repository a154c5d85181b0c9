#include "cli/deploy.h"

#include <unistd.h>

#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "base/wait.h"
#include "cli/daemons.h"
#include "cli/print.h"
#include "cli/terminal.h"
#include "det/v1/cluster.grpc.pb.h"

namespace det::cli {
namespace {

constexpr Duration kStart = std::chrono::seconds(90), kStop = std::chrono::seconds(40);
constexpr const char* kMaster = "master";

struct MasterFlags {
  std::string cluster = "determined", config, storage, password;
  int port = 8080;

  void declare_name(CLI::App& app) {
    app.add_option("--cluster-name", cluster, "Which of the clusters of this machine.")
        ->capture_default_str();
  }
  void declare(CLI::App& app) {
    declare_name(app);
    CLI::Option* file = app.add_option("--master-config-path", config, "A configuration of det-master.");
    app.add_option("--storage-host-path", storage,
                   "Where checkpoints go; else below the cluster's own directory.")
        ->excludes(file);
    app.add_option("--initial-user-password", password,
                   "Of the user admin, at the first start; else one is made up. Others on this machine may "
                   "see it here.");
    app.add_option("--master-port", port, "Port of the master and the web UI.")
        ->check(CLI::Range(1, 65535))
        ->capture_default_str();
    app.add_flag_callback(
        "--no-autorestart", [] {}, "Accepted: nothing is started again by itself anyway.");
  }
};

struct AgentFlags {
  std::string host, name = "agent-0", pool, config;
  bool gpu = false, no_gpu = false;

  void declare_kind(CLI::App& app) {
    CLI::Option* with = app.add_flag("--gpu", gpu, "A slot a GPU; else whatever the machine has.");
    app.add_flag("--no-gpu", no_gpu, "A slot of CPUs.")->excludes(with);
  }
};

/// "http://127.0.0.1:8080" once the master says so; "" before.
std::string ready_url(const Daemons& daemons) {
  const auto text = read_file(daemons.out(kMaster), 1 << 20);
  const std::size_t at = text ? text->find("ready ") : std::string::npos;
  const std::size_t end = at == std::string::npos ? at : text->find('\n', at);
  return end == std::string::npos ? "" : std::string(trim(text->substr(at + 6, end - at - 6)));
}

Result<std::string> master_up(const MasterFlags& flags) {
  TRY_ASSIGN(const Daemons daemons, Daemons::of(flags.cluster));
  if (daemons.running(kMaster)) {
    std::cout << "The master runs already at " << ready_url(daemons) << '\n';
    return ready_url(daemons);
  }
  std::vector<std::string> arguments{"--listen", "127.0.0.1:" + std::to_string(flags.port), "--cluster-name",
                                     flags.cluster};
  std::string config = flags.config;
  if (!flags.storage.empty()) {
    config = daemons.directory() + "/master.yaml";
    TRY(make_directories(flags.storage));
    TRY(write_file_atomic(config, "checkpoint_storage: {type: shared_fs, host_path: " +
                                      dump_json(Json(flags.storage)) + "}\n"));
  }
  if (!config.empty()) arguments.insert(arguments.end(), {"--config", config});
  if (!flags.password.empty()) {
    const std::string file = daemons.directory() + "/initial-password";
    TRY(write_file_atomic(file, flags.password + "\n", 0600));
    arguments.insert(arguments.end(), {"--admin-password-file", file});
  }
  TRY(daemons.start(kMaster, "det-master", std::move(arguments)));
  wait_until([&] { return !ready_url(daemons).empty() || !daemons.running(kMaster); }, kStart);
  const std::string url = ready_url(daemons);
  if (url.empty()) {
    TRY(daemons.stop(kMaster, kStop));
    return fail(Code::kAborted, "the master did not start; the end of " + daemons.log(kMaster) + ":\n" +
                                    tail_of(daemons.log(kMaster), 5));
  }
  std::cout << "Started the master at " << url << std::endl;
  return url;
}

/// The password of the first start, from where it lies.
std::string password_file(const Daemons& daemons) {
  const std::string given = daemons.directory() + "/initial-password";
  return path_exists(given) ? given : daemons.directory() + "/" + kMaster + "/admin-password";
}

Status log_in(Session& session, const Daemons& daemons, const std::string& url) {
  session.master_flag = url;
  TRY_ASSIGN(const std::string password, read_file(password_file(daemons), 64 << 10));
  TRY_ASSIGN(const Login login, session.log_in("admin", std::string(trim(password))));
  TokenFile tokens = session.tokens();
  return tokens.save(url, login);
}

Status agent_up(const MasterFlags& cluster, const AgentFlags& flags) {
  TRY_ASSIGN(const Daemons daemons, Daemons::of(cluster.cluster));
  if (daemons.running(flags.name)) {
    std::cout << "Agent " << flags.name << " runs already\n";
    return {};
  }
  std::vector<std::string> arguments{"--master", flags.host, "--id", flags.name};
  if (!flags.pool.empty()) arguments.insert(arguments.end(), {"--pool", flags.pool});
  if (!flags.config.empty()) arguments.insert(arguments.end(), {"--config", flags.config});
  if (flags.gpu || flags.no_gpu)
    arguments.insert(arguments.end(), {"--slot-type", flags.gpu ? "cuda" : "cpu"});
  TRY(daemons.start(flags.name, "det-agent", std::move(arguments)));
  std::cout << "Started agent " << flags.name << std::endl;
  return {};
}

/// A failure with the log's end when one does not come within a while.
Status wait_for_agents(Session& session, const Daemons& daemons, const std::vector<std::string>& names) {
  TRY_ASSIGN(Client * client, session.client());
  std::string missing;
  const bool all = wait_until(
      [&] {
        const auto response = client->call(&v1::ClusterService::Stub::GetAgents, v1::GetAgentsRequest());
        for (const std::string& name : names) {
          missing = name;
          bool here = false;
          for (const v1::Agent& each :
               response ? response->agents() : google::protobuf::RepeatedPtrField<v1::Agent>())
            here = here || (each.id() == name && each.connected());
          if (!here) return !daemons.running(name);
        }
        missing.clear();
        return true;
      },
      kStart);
  if (all && missing.empty()) return {};
  return fail(Code::kAborted, "agent " + missing + " does not connect; the end of " + daemons.log(missing) +
                                  ":\n" + tail_of(daemons.log(missing), 5));
}

Action declare_cluster_up(CLI::App& app) {
  struct Flags : MasterFlags {
    AgentFlags agent;
    int agents = 1;
  };
  auto flags = std::make_shared<Flags>();
  flags->declare(app);
  flags->agent.declare_kind(app);
  app.add_option("--agents", flags->agents, "How many agents.")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(const std::string url, master_up(*flags));
    TRY_ASSIGN(const Daemons daemons, Daemons::of(flags->cluster));
    session.master_flag = url;
    const auto known = session.tokens().find(url, "");
    if (!known || !*known) TRY(log_in(session, daemons, url));
    std::vector<std::string> names;
    for (int i = 0; i < flags->agents; ++i) {
      AgentFlags agent = flags->agent;
      agent.name = names.emplace_back("agent-" + std::to_string(i));
      agent.host = url.substr(url.find("//") + 2);
      TRY(agent_up(*flags, agent));
    }
    TRY(wait_for_agents(session, daemons, names));
    std::cout << "web UI:   " << url << " (user admin, password in " << password_file(daemons) << ")\n"
              << "command:  export DET_MASTER=" << url << "; det experiment list\n"
              << "stop:     det deploy local cluster-down"
              << (flags->cluster == "determined" ? "" : " --cluster-name " + flags->cluster) << '\n';
    return 0;
  };
}

Action declare_master_up(CLI::App& app) {
  auto flags = std::make_shared<MasterFlags>();
  flags->declare(app);
  return [=](Session&) -> Result<int> {
    TRY(master_up(*flags));
    return 0;
  };
}

Action declare_agent_up(CLI::App& app) {
  struct Flags : AgentFlags {
    MasterFlags cluster;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("HOST", flags->host, "The master, HOST:PORT.")->required();
  app.add_option("--agent-name", flags->name, "The agent's id.")->capture_default_str();
  app.add_option("--agent-resource-pool", flags->pool, "The pool it joins.");
  app.add_option("--agent-config-path", flags->config, "A configuration of det-agent.");
  flags->declare_kind(app);
  flags->cluster.declare_name(app);
  return [=](Session&) -> Result<int> {
    TRY(agent_up(flags->cluster, *flags));
    return 0;
  };
}

enum class Which { kCluster, kMaster, kAgent };

/// Agents first: they say goodbye to a master that is there.
std::function<Action(CLI::App&)> declare_down(Which which) {
  return [which](CLI::App& app) -> Action {
    struct Flags : MasterFlags {
      std::string agent = "agent-0";
      bool all = false, delete_db = false;
    };
    auto flags = std::make_shared<Flags>();
    flags->declare_name(app);
    if (which == Which::kAgent) {
      CLI::Option* all = app.add_flag("--all", flags->all, "Every agent of the cluster.");
      app.add_option("--agent-name", flags->agent, "The agent's id.")->capture_default_str()->excludes(all);
    } else {
      app.add_flag("--delete-db", flags->delete_db,
                   "Remove all that was stored, checkpoints of the default storage too.");
    }
    return [=](Session&) -> Result<int> {
      TRY_ASSIGN(const Daemons daemons, Daemons::of(flags->cluster));
      std::vector<std::string> names = daemons.names();
      std::erase_if(names, [&](const std::string& name) {
        if (which == Which::kMaster) return name != kMaster;
        return which == Which::kAgent && (name == kMaster || (!flags->all && name != flags->agent));
      });
      for (const std::string& name : names) {
        TRY_ASSIGN(const bool ran, daemons.stop(name, kStop));
        if (ran) std::cout << "Stopped " << name << std::endl;
      }
      if (flags->delete_db) {
        TRY(remove_tree(daemons.directory()));
        std::cout << "Removed " << daemons.directory() << '\n';
      }
      return 0;
    };
  };
}

Action declare_deploy_logs(CLI::App& app) {
  auto flags = std::make_shared<MasterFlags>();
  auto once = std::make_shared<bool>(false);
  flags->declare_name(app);
  app.add_flag("--no-follow", *once, "Stop at the end.");
  return [=](Session&) -> Result<int> {
    TRY_ASSIGN(const Daemons daemons, Daemons::of(flags->cluster));
    const std::string log = daemons.log(kMaster);
    if (!path_exists(log))
      return fail(Code::kNotFound, "no log at " + log + "; `det deploy local cluster-up` starts a master");
    std::cout.flush();
    ::execlp("tail", "tail", "-n", "+1", *once ? "-q" : "-F", log.c_str(), nullptr);
    return fail(Code::kFailedPrecondition, std::string("tail does not start: ") + std::strerror(errno));
  };
}

}  // namespace

Command deploy_command() {
  return {{"deploy", "d"},
          "Start and stop a cluster on this machine.",
          {},
          {{{"local"},
            "As processes of this machine; nothing is installed.",
            {},
            {{{"cluster-up"}, "Start a master and agents, and log in.", declare_cluster_up},
             {{"cluster-down"}, "Stop agents and master.", declare_down(Which::kCluster)},
             {{"master-up"}, "Start a master.", declare_master_up},
             {{"master-down"}, "Stop the master.", declare_down(Which::kMaster)},
             {{"agent-up"}, "Start an agent.", declare_agent_up},
             {{"agent-down"}, "Stop an agent.", declare_down(Which::kAgent)},
             {{"logs"}, "Print the master's log.", declare_deploy_logs}}}}};
}

}  // namespace det::cli
