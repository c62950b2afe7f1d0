// The engine's scripts, and their interface for the rest of the engine.
#include "cache/script/scripts.hpp"

#include "base/text/text.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/script/script_text.hpp"
#include "cache/script/scripting.hpp"

#include <string>
#include <utility>

namespace eddy::cache {

libraries& scripts::functions() {
    if (functions_ == nullptr) functions_ = std::make_unique<libraries>(runner_);
    return *functions_;
}

void scripts_deleter::operator()(scripts* gone) const noexcept { delete gone; }

scripts& scripts_of(call& c) {
    if (c.state.scripting == nullptr) c.state.scripting.reset(new scripts(c.client.home));
    return *c.state.scripting;
}

namespace scripting {
namespace {

// Flags of the called script or function.
std::uint32_t said_by(const call& c) {
    if ((c.spec->flags & command_flag::runs_text) != 0) {
        const script_head head = take_script_head(c.arg(1), false);
        return head.refusal.empty() ? head.flags : script_flag::unsaid;
    }
    if (c.state.scripting == nullptr) return script_flag::unsaid;
    if ((c.spec->flags & command_flag::calls_function) != 0) {
        const libraries* const all = c.state.scripting->functions_if_any();
        const libraries::function* const its = all == nullptr ? nullptr : all->find(c.arg(1));
        return its == nullptr ? script_flag::unsaid : its->flags;
    }
    const cached_script* const its = c.state.scripting->cache().find(lower(c.arg(1)));
    return its == nullptr ? script_flag::unsaid : its->flags;
}

}  // namespace

std::uint64_t flags_of(const call& c, std::uint64_t flags) {
    if (c.count < 2) return flags;
    const std::uint32_t said = said_by(c);
    if ((said & script_flag::unsaid) != 0) return flags;
    flags &= ~(command_flag::stale | command_flag::may_replicate);
    if ((said & script_flag::no_writes) == 0) flags |= command_flag::write;
    if ((said & script_flag::allow_stale) != 0) flags |= command_flag::stale;
    return flags;
}

void run_with_scripts(call& c, void (*what)(call&)) { scripts_of(c).runner().on_fiber(c, what); }

bool is_late(const engine_state& s) noexcept {
    return s.scripting != nullptr && s.scripting->runner().is_late();
}

bool is_cut_off(const engine_state& s) noexcept {
    return s.scripting != nullptr && s.scripting->runner().is_cut_off();
}

bool is_busy(const engine_state& s) noexcept {
    return s.scripting != nullptr && s.scripting->runner().is_busy();
}

void go_on(engine_state& s) { s.scripting->runner().go_on(); }

void pause(engine_state& s, std::int64_t us) {
    if (s.scripting != nullptr) s.scripting->runner().pause(us);
}

void hold_back(engine_state& s) noexcept { s.scripting->runner().hold_back(); }

void let_begin(engine_state& s) noexcept { s.scripting->runner().let_begin(); }

void forget(engine_state& s, client_session& who) {
    if (s.scripting != nullptr) s.scripting->runner().forget(who);
}

bool has_changed(const engine_state& s) noexcept {
    return is_late(s) && s.scripting->runner().has_changed();
}

void cut_off(engine_state& s) {
    if (is_late(s)) s.scripting->runner().cut_off();
}

std::string_view busy_text(const engine_state& s) noexcept {
    if (s.scripting == nullptr) return busy_script_text;
    const script_call* const running = s.scripting->runner().running();
    return running != nullptr && running->is_function ? busy_function_text : busy_script_text;
}

std::vector<std::string> library_codes(const engine_state& s) {
    std::vector<std::string> codes;
    if (s.scripting == nullptr) return codes;
    if (const libraries* const known = s.scripting->functions_if_any()) {
        for (const auto& each : known->all()) codes.push_back(each->code);
    }
    return codes;
}

std::string load_library(engine_state& s, std::string_view code, bool replaces) {
    if (s.scripting == nullptr) s.scripting.reset(new scripts(*s.home));
    std::string why;
    s.scripting->functions().load(code, replaces, why);
    return why;
}

void drop_libraries(engine_state& s) noexcept {
    if (s.scripting != nullptr && s.scripting->functions_if_any() != nullptr) {
        s.scripting->functions().flush();
    }
}

usage use(const engine_state& s) noexcept {
    if (s.scripting == nullptr) return {};
    scripts& of = *s.scripting;
    usage now;
    now.vm_bytes = of.cache().sandbox().used_bytes();
    now.scripts = of.cache().count();
    now.script_bytes = of.cache().bytes();
    if (const libraries* const known = of.functions_if_any()) {
        now.function_vm_bytes = known->sandbox().used_bytes();
        now.functions = known->function_count();
        now.libraries = known->size();
        now.library_bytes = known->text_bytes();
    }
    return now;
}

}  // namespace scripting
}  // namespace eddy::cache
