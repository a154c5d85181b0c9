// The Core API's reports of media.
#include "harness/src/base/heartbeat.h"
#include "harness/src/core_api/core_state.h"
#include "harness/src/observability/media.h"

namespace det {
namespace {

MediaOptions options_of(std::int64_t steps_completed, const std::string& caption) {
  return {.caption = caption, .steps_completed = steps_completed};
}

void report(CoreState& state, const MediaRecord& record) {
  beat();
  // Clients of other ranks discard it.
  state.client->report_media(record);
}

}  // namespace

void TrainContext::report_image(std::int64_t steps_completed, const std::string& name, const Image& image,
                                const std::string& caption) {
  report(state_, image_record(name, image, options_of(steps_completed, caption)));
}
void TrainContext::report_histogram(std::int64_t steps_completed, const std::string& name,
                                    const std::vector<double>& values, int bins) {
  report(state_, histogram_record(name, values, bins, options_of(steps_completed, "")));
}
void TrainContext::report_text(std::int64_t steps_completed, const std::string& name,
                               const std::string& text) {
  report(state_, text_record(name, text, options_of(steps_completed, "")));
}
void TrainContext::report_table(std::int64_t steps_completed, const std::string& name,
                                const std::vector<std::string>& columns, const Json& rows) {
  report(state_, table_record(name, columns, rows, options_of(steps_completed, "")));
}
void TrainContext::report_file(std::int64_t steps_completed, const std::string& name, const std::string& path,
                               const std::string& caption) {
  report(state_, file_record(name, path, options_of(steps_completed, caption)));
}

}  // namespace det
