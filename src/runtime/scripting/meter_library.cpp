// Counters and gauges of scripts.
#include "runtime/scripting/meter_library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>

namespace eddy::runtime {
namespace {

using script::answer;
using script::argument_kind;
using script::invocation;
using script::library_function;

constexpr std::string_view prelude_text = R"lua(
local _, extend = ...
local calls = meters

-- To read a global that is not there is an error.
local function global(read)
  local is_there, value = pcall(read)
  return is_there and value or nil
end
local outer = global(function() return eddy end) or {}

local counter = {}
counter.__index = counter
counter.__metatable = false
function counter:add(by) return calls.add(self.id, by == nil and 1 or by) end
function counter:value() return calls.value(self.id) end

local gauge = {}
gauge.__index = gauge
gauge.__metatable = false
function gauge:set(to) return calls.set(self.id, to) end
gauge.add, gauge.value = counter.add, counter.value

extend(outer, "counter", function(name) return setmetatable({ id = calls.counter(name) }, counter) end)
extend(outer, "gauge", function(name) return setmetatable({ id = calls.gauge(name) }, gauge) end)
eddy = outer
)lua";

/// As Prometheus has names of labels and metrics, without colons.
bool is_name(std::string_view text) noexcept {
    const auto is_letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    return !text.empty() && text.size() <= max_meter_name && is_letter(text.front()) &&
           std::ranges::all_of(text,
                               [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace

std::string_view meter_prelude() noexcept { return prelude_text; }

struct meter_functions {
    template <script_meters::kind Kind>
    static answer open(invocation& of) {
        auto& library = of.context<meter_library>();
        const std::string_view name = of.text(1);
        if (!is_name(name))
            return answer::misused(
                fmt::format("a name has letters, digits and '_', the first "
                            "no digit, and at most {} of them",
                            max_meter_name));
        const bool is_there = library.all_.has(name);
        script_meters::meter* const found = library.all_.at(name, Kind);
        if (found == nullptr && is_there)
            return answer::misused(
                fmt::format("\"{}\" is a {}", name,
                            Kind == script_meters::kind::counter ? "gauge" : "counter"));
        if (found == nullptr)
            return answer::failed(fmt::format(
                "the script has {} counters and gauges, which is the limit", max_script_meters));
        const auto known = std::ranges::find(library.used_, found);
        if (known == library.used_.end()) {
            library.used_.push_back(found);
            return script::values_of(library.used_.size());
        }
        return script::values_of(known - library.used_.begin() + 1);
    }

    static answer add(invocation& of) {
        script_meters::meter* const which = find(of);
        const double by = of.number(2);
        if (which == nullptr || !std::isfinite(by)) return answer::misused();
        if (by < 0 && which->is() == script_meters::kind::counter)
            return answer::misused("a counter only grows: add() takes no negative number");
        which->set(which->value() + by);
        return {};
    }

    static answer set(invocation& of) {
        script_meters::meter* const which = find(of);
        const double to = of.number(2);
        if (which == nullptr || !std::isfinite(to)) return answer::misused();
        which->set(to);
        return {};
    }

    static answer value(invocation& of) {
        script_meters::meter* const which = find(of);
        if (which == nullptr) return answer::misused();
        return script::values_of(which->value());
    }

private:
    static script_meters::meter* find(const invocation& of) noexcept {
        const auto& used = of.context<meter_library>().used_;
        const double id = of.number(1);
        if (!(id >= 1 && id <= static_cast<double>(used.size()))) return nullptr;
        return used[static_cast<std::size_t>(id) - 1];
    }
};

namespace {

constexpr script::argument name_argument{.name = "name", .kind = argument_kind::text};
constexpr script::argument id_argument{.name = "id", .kind = argument_kind::number};
constexpr script::argument number_argument{.name = "number", .kind = argument_kind::number};

constexpr std::array<library_function, 5> rows = {{
    {.name = "counter",
     .arguments = {{name_argument}},
     .takes = "a name",
     .help = "Number of a counter.",
     .run = meter_functions::open<script_meters::kind::counter>},
    {.name = "gauge",
     .arguments = {{name_argument}},
     .takes = "a name",
     .help = "Number of a gauge.",
     .run = meter_functions::open<script_meters::kind::gauge>},
    {.name = "add",
     .arguments = {{id_argument, number_argument}},
     .takes = "a counter or gauge, and a number",
     .help = "Adds to it.",
     .run = meter_functions::add},
    {.name = "set",
     .arguments = {{id_argument, number_argument}},
     .takes = "a gauge and a number",
     .help = "Sets a gauge.",
     .run = meter_functions::set},
    {.name = "value",
     .arguments = {{id_argument}},
     .takes = "a counter or gauge",
     .help = "Its value on this thread.",
     .run = meter_functions::value},
}};

}  // namespace

script::library meter_library::functions() noexcept {
    script::library made;
    made.name = "meters";
    made.functions = rows;
    made.context = this;
    return made;
}

}  // namespace eddy::runtime
