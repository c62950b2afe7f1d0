// Names of the functions of a type's scripts, as its tables have them, and their use in a text.
#include "runtime/scripting/script_names.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/blocking.hpp>
#include <eddy/io/loop.hpp>

#include "runtime/scripting/callback_names.hpp"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>

namespace eddy::runtime {
namespace {

/// A larger text is read by another thread.
constexpr std::size_t largest_at_once = 64 * 1024;
constexpr std::string_view usual_option = "--lua";

/// With the callback that streams must have.
constexpr std::string_view listing = R"lua(
function handle() end
fields = {}
for name, value in pairs(self) do
  fields[#fields + 1] = name
  if type(value) == "table" then
    for inner in pairs(value) do fields[#fields + 1] = name .. "." .. inner end
  end
end
)lua";

blocking_pool& readers() {
    static blocking_pool all({.max_threads = 1, .max_queue = 100});
    return all;
}

/// The same names for each script of a type, so they are made once.
const script::script_names& names_of(const script_type& type) {
    static std::mutex mutex;
    static std::map<const void*, script::script_names> all;
    const std::lock_guard lock(mutex);
    const auto found = all.find(type.callbacks.data());
    if (found != all.end()) return found->second;
    script::script_names made;
    made.callbacks.assign(all_callbacks.begin(), all_callbacks.end());
    made.tables = {"self", "eddy", "socketley"};
    if (type.table_name != nullptr) made.tables.emplace_back(type.table_name);
    made.functions = functions_of(type);
    return all.emplace(type.callbacks.data(), std::move(made)).first->second;
}

}  // namespace

std::vector<std::string> functions_of(const script_type& type) {
    constexpr std::size_t memory = std::size_t{16} << 20;
    script_config budgets;
    budgets.memory = memory;
    budgets.slice = budgets.time = std::chrono::seconds(1);
    no_journal lines;
    script_tallies counted;
    failure_log failures(lines, script_failure_interval, {.one = "", .many = ""});
    script_type named = type;
    named.daemon = nullptr;
    script_version version(named, budgets, lines, counted, failures);
    const auto loaded = version.host().load(listing, "fields");
    EDDY_ASSERT(loaded);
    std::vector<std::string> made;
    const script::value fields = version.host().global("fields");
    EDDY_ASSERT(fields.fields() != nullptr);
    for (const script::value& each : fields.fields()->elements) made.push_back(*each.text());
    return made;
}

outcome<> check_script_names(const script::script_names& known, std::string_view option,
                             const script_file& from) {
    for (const script::name_fault& each : script::check_names(from.text, known))
        if (!each.is_warning)
            return refuse(400,
                          fmt::format("{}: {}:{}: {}", option, from.name, each.line, each.text));
    return {};
}

task<outcome<>> check_script_names_in_background(const script::script_names& known,
                                                 std::string_view option, const script_file& from) {
    // A simulated loop has no other threads.
    if (from.text.size() <= largest_at_once || loop::current().kind() == io_backend_kind::sim)
        co_return check_script_names(known, option, from);
    auto done =
        co_await run_blocking(readers(), [&] { return check_script_names(known, option, from); });
    if (!done) co_return refuse(503, fmt::format("{}: {}", option, done.error().message()));
    co_return std::move(*done);
}

outcome<> check_script_names(const script_type& type, const script_file& from) {
    return check_script_names(names_of(type), usual_option, from);
}

task<outcome<>> check_script_names_in_background(const script_type& type, const script_file& from) {
    return check_script_names_in_background(names_of(type), usual_option, from);
}

}  // namespace eddy::runtime
