#include "master/db/store/at_rest.h"

#include <nlohmann/json.hpp>

#include "common/base/log.h"
#include "common/base/shared.h"
#include "common/expconf/secrets.h"
#include "common/yaml/yaml.h"

namespace det::db {
namespace {

constexpr int kSealBatch = 200;  // rows of one transaction
constexpr JsonLimits kStoredLimits{.bytes = 256 << 20, .depth = 200};

Shared<Vault>& shared_vault() {
  static Shared<Vault> vault;
  return vault;
}

bool has_secrets(Json& config) {
  return expconf::change_secrets(config, [](Json&) { return true; });
}

/// Restores all secrets in place. Errors: kDataLoss.
Result<bool> open_in(Json& config) {
  const auto vault = shared_vault().get();
  Status problem;
  const bool changed = vault && expconf::change_secrets(config, [&](Json& value) {
                         if (!value.is_string() || !Vault::is_sealed(value.get_ref<const std::string&>()))
                           return false;
                         const auto text = vault->unseal(value.get_ref<const std::string&>());
                         auto plain = text ? parse_json(*text, kStoredLimits) : tl::unexpected(text.error());
                         if (plain) value = std::move(*plain);
                         if (!plain) problem = tl::unexpected(plain.error());
                         return plain.has_value();
                       });
  TRY(problem);
  return changed;
}

/// A table with sealed columns, and the functions that restore and seal its row.
struct SealedTable {
  enum class Form { kJson, kYaml, kText };
  const char* select;     ///< key as text, columns; $1: the last key, $2: the limit
  const char* update;     ///< $1: key as text; $2, $3: columns
  Form form;              ///< of the first column
  bool original = false;  ///< there is a second column, in YAML
  bool numbered = true;   ///< keys are numbers from 1 on; otherwise text

  std::string first() const { return numbered ? "0" : ""; }
  Result<std::string> open(const std::string& text) const {
    return form == Form::kJson ? open_config(text) : form == Form::kYaml ? open_yaml(text) : open_text(text);
  }
  std::string seal(const std::string& text) const {
    return form == Form::kJson   ? seal_config_text(text)
           : form == Form::kYaml ? seal_yaml(text)
                                 : seal_text(text);
  }
};
using Form = SealedTable::Form;
constexpr SealedTable kSealedTables[] = {
    {"SELECT id::text, config::text, original_config FROM experiments WHERE id > $1::bigint ORDER BY id "
     "LIMIT $2",
     "UPDATE experiments SET config = $2::json, original_config = $3 WHERE id = $1::bigint", Form::kJson,
     true},
    {"SELECT id::text, config::text, '' FROM commands WHERE id > $1::bigint ORDER BY id LIMIT $2",
     "UPDATE commands SET config = $2::json WHERE id = $1::bigint", Form::kJson},
    {"SELECT id::text, coalesce(checkpoint_storage::text, ''), '' FROM workspaces WHERE id > $1::bigint"
     " ORDER BY id LIMIT $2",
     "UPDATE workspaces SET checkpoint_storage = $2::json WHERE id = $1::bigint", Form::kJson},
    {"SELECT id::text, url, '' FROM webhooks WHERE id > $1::bigint ORDER BY id LIMIT $2",
     "UPDATE webhooks SET url = $2 WHERE id = $1::bigint", Form::kText},
    {"SELECT task_id, config, '' FROM generic_tasks WHERE task_id > $1 ORDER BY task_id LIMIT $2",
     "UPDATE generic_tasks SET config = $2 WHERE task_id = $1", Form::kYaml, false, false},
    {"SELECT task_id, ssh_key, '' FROM interactive_tasks WHERE task_id > $1 AND ssh_key <> '' ORDER BY "
     "task_id"
     " LIMIT $2",
     "UPDATE interactive_tasks SET ssh_key = $2 WHERE task_id = $1", Form::kText, false, false},
    {"SELECT name, text, '' FROM templates WHERE name > $1 ORDER BY name LIMIT $2",
     "UPDATE templates SET text = $2 WHERE name = $1", Form::kYaml, false, false},
    {"SELECT workload || '/' || coalesce(workspace_id, 0), text, '' FROM config_policies"
     " WHERE workload || '/' || coalesce(workspace_id, 0) > $1 ORDER BY 1 LIMIT $2",
     "UPDATE config_policies SET text = $2 WHERE workload || '/' || coalesce(workspace_id, 0) = $1",
     Form::kYaml, false, false},
};

/// Seals the rows after `last` and moves it. Returns the number of rows seen.
Result<int> seal_rows(Connection& connection, const SealedTable& table, std::string& last) {
  TRY_ASSIGN(const Rows rows, connection.query(Sql{table.select}, last, std::int64_t{kSealBatch}));
  for (Rows::Row row : rows) {
    std::string text, original;
    row.into(last, text, original);
    const auto plain = table.open(text);
    if (!plain) return fail(plain.error().code, "row " + last + ": " + plain.error().message);
    TRY_ASSIGN(const std::string plain_original, open_yaml(original));
    const std::string sealed = table.seal(*plain);
    if (table.original) {
      const std::string sealed_original = seal_yaml(plain_original);
      if (sealed != text || sealed_original != original)
        TRY(connection.query(Sql{table.update}, last, sealed, sealed_original));
    } else if (sealed != text) {
      TRY(connection.query(Sql{table.update}, last, sealed));
    }
  }
  return static_cast<int>(rows.size());
}

}  // namespace

void use_vault(std::shared_ptr<const Vault> vault) { shared_vault().set(std::move(vault)); }

std::string seal_config(Json config) {
  const auto vault = shared_vault().get();
  if (vault) {
    expconf::change_secrets(config, [&](Json& value) {
      value = vault->seal(dump_json(value));
      return true;
    });
  }
  return dump_json(config);
}

std::string seal_config_text(const std::string& text) {
  auto config = parse_json(text, kStoredLimits);
  Json copy = config ? *config : Json();
  return config && has_secrets(copy) ? seal_config(std::move(*config)) : text;
}

Result<std::string> open_config(std::string text) {
  auto config = parse_json(text, kStoredLimits);
  if (!config) return text;
  TRY_ASSIGN(const bool changed, open_in(*config));
  return changed ? dump_json(*config) : text;
}

Result<std::string> open_section(const std::string& section, std::string text) {
  auto part = parse_json(text, kStoredLimits);
  if (!part) return text;
  Json config = Json::object();
  config[section] = std::move(*part);
  TRY_ASSIGN(const bool changed, open_in(config));
  return changed ? dump_json(config[section]) : text;
}

std::string seal_yaml(const std::string& text) {
  const auto vault = shared_vault().get();
  if (!vault) return text;
  const auto tree = parse_yaml(text, "");
  if (!tree) return text;
  Json json = to_json(*tree);
  const bool fixed = json.is_object() && json.contains("invariant_config");
  return has_secrets(json) || (fixed && has_secrets(json["invariant_config"])) ? vault->seal(text) : text;
}

Result<std::string> open_yaml(std::string text) { return open_text(std::move(text)); }

std::string seal_text(const std::string& text) {
  const auto vault = shared_vault().get();
  return vault && !text.empty() ? vault->seal(text) : text;
}

Result<std::string> open_text(std::string text) {
  const auto vault = shared_vault().get();
  if (!vault || !Vault::is_sealed(text)) return text;
  return vault->unseal(text);
}

Status seal_stored_secrets(Pool& pool) {
  const auto vault = shared_vault().get();
  if (!vault) return {};
  TRY_ASSIGN(const Rows done, pool.query("SELECT FROM cluster WHERE secrets_key = $1", vault->key_id()));
  if (!done.empty()) return {};
  std::int64_t seen = 0;
  for (const SealedTable& table : kSealedTables) {
    std::string last = table.first();
    for (int rows = kSealBatch; rows == kSealBatch; seen += rows) {
      std::string next;
      TRY(pool.in_transaction([&](Connection& connection) -> Status {
        next = last;
        TRY_ASSIGN(rows, seal_rows(connection, table, next));
        return {};
      }));
      last = next;
    }
  }
  TRY(pool.query("UPDATE cluster SET secrets_key = $1", vault->key_id()));
  log::info("secrets at rest are encrypted", {{"key", vault->key_id()}, {"rows", seen}});
  return {};
}

Result<std::string> stored_key(Pool& pool) {
  TRY_ASSIGN(const Rows rows, pool.query("SELECT secrets_key FROM cluster"));
  return rows.empty() ? std::string() : rows[0].next<std::string>();
}

Result<Rotated> rotate_stored_secrets(Pool& pool, const std::string& secret) {
  const auto vault = shared_vault().get();
  if (!vault) return fail(Code::kFailedPrecondition, "the keys of stored secrets are not open");
  Rotated done;
  const Status status = pool.in_transaction([&](Connection& connection) -> Status {
    done = {};
    for (const SealedTable& table : kSealedTables) {
      std::string last = table.first();
      for (int rows = kSealBatch; rows == kSealBatch; done.rows += rows) {
        TRY_ASSIGN(rows, seal_rows(connection, table, last));
      }
    }
    TRY(connection.query("UPDATE cluster SET secret = $1, secrets_key = $2", Bytes{secret}, vault->key_id()));
    TRY_ASSIGN(const Rows sessions, connection.query("WITH gone AS (DELETE FROM sessions RETURNING 1)"
                                                     " SELECT count(*) FROM gone"));
    TRY_ASSIGN(const Rows joins, connection.query("WITH gone AS (DELETE FROM join_tokens RETURNING 1)"
                                                  " SELECT count(*) FROM gone"));
    done.sessions = sessions[0].next<std::int64_t>();
    done.join_tokens = joins[0].next<std::int64_t>();
    return {};
  });
  TRY(status);
  return done;
}

}  // namespace det::db
