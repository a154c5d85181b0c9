// Secrets of stored configurations are encrypted (common/crypto/vault.h). These functions stand where text
// goes into or comes out of the columns experiments.config, experiments.original_config, commands.config,
// workspaces.checkpoint_storage, generic_tasks.config, templates.text, config_policies.text, webhooks.url and
// interactive_tasks.ssh_key.
//
// JSON: each secret value is replaced by its sealed form, the rest stays readable for SQL. YAML: a text with
// secrets is sealed as a whole, so that its comments come back. Text without secrets is stored unchanged.
#pragma once

#include <memory>
#include <string>

#include "common/base/json.h"
#include "common/base/result.h"
#include "common/crypto/vault.h"
#include "master/db/pg/pool.h"

namespace det::db {

/// Sets the keys of this process. Must precede the other functions; without it they change nothing (tests).
/// Thread-safe.
void use_vault(std::shared_ptr<const Vault> vault);

/// Returns the stored form of a configuration. Equal configurations have equal forms under one key.
std::string seal_config(Json config);
/// The same for JSON text. Text that is no JSON is returned unchanged.
std::string seal_config_text(const std::string& text);
/// Restores the text of seal_config(). Text that was stored in plain is returned unchanged. Errors:
/// kDataLoss.
Result<std::string> open_config(std::string text);
/// Restores a part of a configuration that stood below `section`. Errors: kDataLoss.
Result<std::string> open_section(const std::string& section, std::string text);
/// Returns the stored form of a configuration, template or policy in YAML.
std::string seal_yaml(const std::string& text);
/// Restores the text of seal_yaml(). Errors: kDataLoss.
Result<std::string> open_yaml(std::string text);

/// Returns the stored form of a text that is a secret as a whole: the URL of a webhook, the key of a shell.
std::string seal_text(const std::string& text);
/// Restores the text of seal_text(). Text that was stored in plain is returned unchanged. Errors: kDataLoss.
Result<std::string> open_text(std::string text);

/// Encrypts with the newest key what is stored in plain or with another key. Returns at once when that has
/// been done for this key. Runs at the start of the master, before its writers. May be repeated after a
/// failure. Errors: kDataLoss (a key is missing), those of the database.
Status seal_stored_secrets(Pool& pool);

/// Returns the name of the key that everything stored is encrypted with; "" before the first start.
Result<std::string> stored_key(Pool& pool);
/// What a rotation has ended.
struct Rotated {
  std::int64_t rows = 0;  ///< configurations that were read
  std::int64_t sessions = 0, join_tokens = 0;
};
/// Encrypts everything with the newest key, replaces the secret of the cluster by `secret`, and deletes all
/// logins, access tokens and join tokens: in one transaction. Errors: as seal_stored_secrets().
Result<Rotated> rotate_stored_secrets(Pool& pool, const std::string& secret);

}  // namespace det::db
