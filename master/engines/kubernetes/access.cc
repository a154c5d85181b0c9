#include "master/engines/kubernetes/access.h"

#include "common/base/files.h"
#include "common/base/process.h"
#include "common/base/secret.h"
#include "common/base/text.h"
#include "common/yaml/yaml.h"

namespace det::engines {
namespace {

constexpr std::int64_t kMaxFile = 1 << 20;

Result<std::string> read_credential(const std::string& path) {
  auto text = read_file(path, kMaxFile);
  if (!text) return fail(Code::kFailedPrecondition, text.error().message);
  return std::string(trim(*text));
}

/// Returns the text of a key, or "".
std::string text_of(const YamlNode& node, std::string_view key) {
  const YamlNode* const found = node.find(key);
  return found && !found->is_map() && !found->is_list() && !found->is_null() ? found->text : "";
}

/// The parts of a kubeconfig.
class Kubeconfig {
 public:
  Kubeconfig(std::string file, const YamlNode& tree) : file_(std::move(file)), tree_(tree) {}

  Result<Access> read(const ProviderConfig& config) const {
    const std::string name = config.context.empty() ? text_of(tree_, "current-context") : config.context;
    if (name.empty()) return refuse("has no current-context; set the key context of the provider");
    TRY_ASSIGN(const YamlNode* const context, find("contexts", name, "context"));
    TRY_ASSIGN(const YamlNode* const cluster, find("clusters", text_of(*context, "cluster"), "cluster"));
    TRY_ASSIGN(const YamlNode* const user, find("users", text_of(*context, "user"), "user"));
    Access access{.server = text_of(*cluster, "server"), .name_space = text_of(*context, "namespace")};
    if (access.server.empty()) return refuse("has no server in cluster " + text_of(*context, "cluster"));
    while (access.server.ends_with('/')) access.server.pop_back();
    if (text_of(*cluster, "insecure-skip-tls-verify") == "true")
      return refuse("has insecure-skip-tls-verify; set certificate-authority instead");
    for (const char* key : {"exec", "auth-provider", "username", "password", "as"}) {
      if (user->find(key))
        return refuse(std::string("has ") + key + " for its user; use a token or a client certificate");
    }
    TRY_ASSIGN(access.tls.authorities, pem(*cluster, "certificate-authority"));
    TRY_ASSIGN(access.tls.certificate, pem(*user, "client-certificate"));
    TRY_ASSIGN(access.tls.key, pem(*user, "client-key"));
    access.token = text_of(*user, "token");
    if (const std::string path = text_of(*user, "tokenFile"); !path.empty()) {
      TRY_ASSIGN(access.token, read_credential(beside(path)));
    }
    return access;
  }

 private:
  tl::unexpected<Error> refuse(const std::string& problem) const {
    return fail(Code::kFailedPrecondition, "kubeconfig " + file_ + " " + problem);
  }
  /// Returns the map at `part` of the item with a name.
  Result<const YamlNode*> find(const char* list, const std::string& name, const char* part) const {
    const YamlNode* const items = tree_.find(list);
    for (std::size_t i = 0; items && i < items->items.size(); ++i) {
      const YamlNode& item = items->items[i];
      const YamlNode* const found = item.find(part);
      if (text_of(item, "name") == name && found && found->is_map()) return found;
    }
    return refuse("has no " + std::string(part) + " \"" + name + "\"");
  }
  /// Returns the PEM text of `key`-data or of the file `key`; "" without both.
  Result<std::string> pem(const YamlNode& node, const std::string& key) const {
    if (const std::string data = text_of(node, key + "-data"); !data.empty()) {
      auto text = from_base64(data);
      if (!text) return refuse("has " + key + "-data that is not base64");
      return std::move(*text);
    }
    const std::string path = text_of(node, key);
    if (path.empty()) return std::string();
    return read_credential(beside(path));
  }
  /// Paths are relative to the directory of the kubeconfig.
  std::string beside(const std::string& path) const {
    return path.starts_with('/') ? path : file_.substr(0, file_.rfind('/') + 1) + path;
  }

  const std::string file_;
  const YamlNode& tree_;
};

Result<Access> read_account(const std::string& directory) {
  const std::string host = environment_variable("KUBERNETES_SERVICE_HOST");
  const std::string port = environment_variable("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty())
    return fail(Code::kFailedPrecondition,
                "the master does not run in a pod; set the key kubeconfig of the provider");
  const bool v6 = host.find(':') != std::string::npos;
  Access access{.server = "https://" + (v6 ? "[" + host + "]" : host) + ":" + port};
  TRY_ASSIGN(access.token, read_credential(directory + "/token"));
  TRY_ASSIGN(access.tls.authorities, read_credential(directory + "/ca.crt"));
  TRY_ASSIGN(access.name_space, read_credential(directory + "/namespace"));
  return access;
}

Result<Access> read_kubeconfig(const ProviderConfig& config) {
  TRY_ASSIGN(const std::string text, read_credential(config.kubeconfig));
  const auto tree = parse_yaml(text, config.kubeconfig, {.bytes = kMaxFile});
  if (!tree) return fail(Code::kFailedPrecondition, tree.error().message);
  return Kubeconfig(config.kubeconfig, *tree).read(config);
}

}  // namespace

Result<Access> read_access(const ProviderConfig& config, const std::string& account) {
  TRY_ASSIGN(Access access, config.kubeconfig.empty() ? read_account(account) : read_kubeconfig(config));
  if (!config.name_space.empty()) access.name_space = config.name_space;
  if (access.name_space.empty()) access.name_space = "default";
  return access;
}

}  // namespace det::engines
