#include "master/engines/job_size.h"

#include <string>
#include <string_view>

namespace det::engines {
namespace {

constexpr std::string_view kPlaceholder = "{slots}";

void fill(std::string& text, const std::string& slots) {
  for (std::size_t at = text.find(kPlaceholder); at != text.npos; at = text.find(kPlaceholder, at))
    text.replace(at, kPlaceholder.size(), slots);
}

}  // namespace

ProviderConfig with_slots(ProviderConfig config, int slots) {
  const std::string count = std::to_string(slots);
  fill(config.gres, count);
  for (std::string& option : config.sbatch_options) fill(option, count);
  for (std::string& argument : config.agent_arguments) fill(argument, count);
  if (!config.resources.is_object()) return config;
  for (Json& value : config.resources) {
    std::string text = value.get<std::string>();
    fill(text, count);
    value = text;
  }
  return config;
}

}  // namespace det::engines
