// In the place of the whole layer, where LuaJIT was left out of the build: no script loads.
#include "lua/blocking_state.hpp"

namespace eddy::lua {
namespace {

constexpr const char* absent_text =
    "this eddy was built without scripts: build it with -DEDDY_SCRIPTS=ON";

}  // namespace

state::~state() = default;

blocking_state::blocking_state(limits most, printer) : state(most.bytes) {}
blocking_state::~blocking_state() = default;

std::expected<void, std::string> blocking_state::compile(std::string_view, const std::string&) {
    return {};
}

std::expected<void, std::string> blocking_state::load(std::string_view, const std::string&,
                                                      std::span<const char* const>) {
    return std::unexpected(absent_text);
}

std::vector<bool> blocking_state::defined() const { return {}; }

std::expected<double, std::string> blocking_state::global_number(const char*, double) {
    return std::unexpected(absent_text);
}

std::expected<void, std::string> blocking_state::protect(std::chrono::nanoseconds,
                                                         void (*)(stack, void*), void*) {
    return std::unexpected(absent_text);
}

void blocking_state::interrupt(lua_State*) {}

}  // namespace eddy::lua
