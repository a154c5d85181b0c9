// `det template`: parts of configurations that experiments share. Validated here before they are sent.
#include <iostream>

#include "cli/command.h"
#include "cli/output/print.h"
#include "common/base/files.h"
#include "common/expconf/parse.h"
#include "common/yaml/yaml.h"
#include "det/v1/template.methods.h"

namespace det::cli {
namespace {

struct TemplateListOptions {
  Output output;
  bool details = false;
  void declare(CLI::App& app) {
    output.declare_list(app);
    app.add_flag("-d,--details", details, "Show the text of each template.");
  }
};

/// Lists the templates; --details adds their text.
Status list_templates(Client& client, const TemplateListOptions& options) {
  TRY_ASSIGN(const auto response, client.call(v1::TemplateService::GetTemplates, v1::GetTemplatesRequest()));
  Table table{{"Name"}, {}};
  if (options.details) table.columns.push_back("Config");
  for (const v1::Template& each : response.templates()) {
    std::vector<std::string> row{each.name()};
    if (options.details) row.push_back(each.text());
    table.rows.push_back(std::move(row));
  }
  return options.output.print(table, [&] { return list_to_json(response.templates()); });
}

struct TemplateOptions {
  std::string name;
  void declare(CLI::App& app) { app.add_option("NAME", name, "Template name.")->required(); }
};

struct TemplateDescribeOptions : TemplateOptions {
  bool json = false;
  void declare(CLI::App& app) {
    TemplateOptions::declare(app);
    app.add_flag("--json", json, "Print as JSON.");
  }
};

/// Prints the text of a template as it was set.
Status describe_template(Client& client, const TemplateDescribeOptions& options) {
  v1::GetTemplateRequest request;
  request.set_template_name(options.name);
  TRY_ASSIGN(const auto response, client.call(v1::TemplateService::GetTemplate, request));
  if (options.json) return print_json(response.template_());
  std::cout << printable_lines(response.template_().text());
  return {};
}

struct TemplateSetOptions : TemplateOptions {
  std::string file;
  void declare(CLI::App& app) {
    TemplateOptions::declare(app);
    app.add_option("FILE", file, "Part of an experiment configuration (YAML).")->required();
  }
};

/// Validates the file and makes the call `method`. Prints `done`.
template <typename Method>
Status store_template(Session& session, const TemplateSetOptions& options, Method method, const char* done) {
  auto text = read_file(options.file, 64 << 20);
  if (!text) return fail(Code::kInvalidArgument, text.error().message);
  // Validated before the call: a bad file needs no master.
  TRY(expconf::check_part(*text, options.file));
  TRY_ASSIGN(Client * client, session.client());
  v1::SetTemplateRequest request;
  request.set_template_name(options.name);
  request.set_text(*text);
  request.set_file_name(options.file);
  TRY_ASSIGN(const auto response, client->call(method, request));
  print_warnings(response.warnings());
  std::cout << done << " template " << printable(options.name) << '\n';
  return {};
}

Status create_template(Session& session, const TemplateSetOptions& options) {
  return store_template(session, options, v1::TemplateService::PostTemplate, "Created");
}

Status set_template(Session& session, const TemplateSetOptions& options) {
  return store_template(session, options, v1::TemplateService::PutTemplate, "Set");
}

Status remove_template(Client& client, const TemplateOptions& options) {
  v1::DeleteTemplateRequest request;
  request.set_template_name(options.name);
  TRY(client.call(v1::TemplateService::DeleteTemplate, request));
  std::cout << "Removed template " << printable(options.name) << '\n';
  return {};
}

}  // namespace

Command template_command() {
  return {{"template", "tpl"},
          "Manage configuration templates.",
          {},
          {{{"list", "ls"}, "List templates.", action(list_templates)},
           {{"describe"}, "Show the text of a template.", action(describe_template)},
           {{"create"}, "Create a template.", action(create_template)},
           {{"set"}, "Create or replace a template.", action(set_template)},
           {{"set-value"},
            "Change a template.",
            {},
            {{{"config"}, "Replace the text of a template.", action(set_template)}}},
           {{"remove", "rm"}, "Remove a template.", action(remove_template)}}};
}

}  // namespace det::cli
