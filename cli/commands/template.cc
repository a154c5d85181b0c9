// `det template`: parts of configurations that experiments share. Validated here before they are sent.
#include <iostream>

#include "cli/command.h"
#include "cli/output/print.h"
#include "common/base/files.h"
#include "common/expconf/parse.h"
#include "common/yaml/yaml.h"
#include "det/v1/template.grpc.pb.h"

namespace det::cli {
namespace {

using TemplateStub = v1::TemplateService::Stub;

struct NamedTemplate {
  std::string name, file;
};

/// Lists the templates; --details adds their text.
Action declare_template_list(CLI::App& app) {
  auto output = std::make_shared<Output>();
  auto details = std::make_shared<bool>(false);
  output->declare_list(app);
  app.add_flag("-d,--details", *details, "Show what each template says.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const auto response, client->call(&TemplateStub::GetTemplates, v1::GetTemplatesRequest()));
    Table table{{"Name"}, {}};
    if (*details) table.columns.push_back("Config");
    for (const v1::Template& each : response.templates()) {
      std::vector<std::string> row{each.name()};
      if (*details) row.push_back(each.text());
      table.rows.push_back(std::move(row));
    }
    TRY(output->print(table, [&] { return list_to_json(response.templates()); }));
    return 0;
  };
}

/// Prints the text of a template as it was set.
Action declare_template_describe(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  app.add_option("NAME", *name, "The template.")->required();
  app.add_flag("--json", *json, "Print as JSON.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::GetTemplateRequest request;
    request.set_template_name(*name);
    TRY_ASSIGN(const auto response, client->call(&TemplateStub::GetTemplate, request));
    TRY_ASSIGN(const Json value, to_json(response.template_()));
    if (*json) {
      print_json(value);
    } else {
      std::cout << printable_lines(response.template_().text());
    }
    return 0;
  };
}

/// Declares `create` or `set`: PostTemplate creates a template, PutTemplate also replaces one.
template <typename Method>
std::function<Action(CLI::App&)> declare_write(Method method, const char* done) {
  return [=](CLI::App& app) -> Action {
    auto flags = std::make_shared<NamedTemplate>();
    app.add_option("NAME", flags->name, "The template.")->required();
    app.add_option("FILE", flags->file, "Its configuration (YAML); any part of an experiment's.")->required();
    return [=](Session& session) -> Result<int> {
      auto text = read_file(flags->file, 64 << 20);
      if (!text) return fail(Code::kInvalidArgument, text.error().message);
      // Validated before the call: a bad file needs no master.
      TRY(expconf::check_part(*text, flags->file));
      TRY_ASSIGN(Client * client, session.client());
      v1::SetTemplateRequest request;
      request.set_template_name(flags->name);
      request.set_text(*text);
      request.set_file_name(flags->file);
      TRY_ASSIGN(const auto response, client->call(method, request));
      for (const std::string& warning : response.warnings())
        std::cerr << "warning: " << printable(warning) << '\n';
      std::cout << done << " template " << printable(flags->name) << '\n';
      return 0;
    };
  };
}

Action declare_remove(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  app.add_option("NAME", *name, "The template.")->required();
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::DeleteTemplateRequest request;
    request.set_template_name(*name);
    TRY(client->call(&TemplateStub::DeleteTemplate, request));
    std::cout << "Removed template " << printable(*name) << '\n';
    return 0;
  };
}

}  // namespace

Command template_command() {
  return {
      {"template", "tpl"},
      "Keep parts of configurations that experiments share.",
      {},
      {{{"list", "ls"}, "List templates.", declare_template_list},
       {{"describe"}, "Show what a template says.", declare_template_describe},
       {{"create"}, "Make a template.", declare_write(&TemplateStub::PostTemplate, "Created")},
       {{"set"}, "Make a template, or replace it.", declare_write(&TemplateStub::PutTemplate, "Set")},
       {{"set-value"},
        "Change one thing of a template.",
        {},
        {{{"config"}, "Replace what a template says.", declare_write(&TemplateStub::PutTemplate, "Set")}}},
       {{"remove", "rm"}, "Remove a template.", declare_remove}}};
}

}  // namespace det::cli
