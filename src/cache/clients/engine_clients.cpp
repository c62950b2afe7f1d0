// Clients as the server sees them.
#include "cache/clients/engine_clients.hpp"

#include <eddy/base/assert.hpp>

#include "cache/acl/acl_file.hpp"
#include "cache/clients/client_memory.hpp"
#include "cache/clients/closing.hpp"
#include "cache/clients/waits.hpp"

namespace eddy::cache {

void engine_clients::answer(std::uint64_t session, std::string_view fault) {
    cache::answer(state_, session, fault);
}

void engine_clients::answer_error(std::uint64_t session, const std::string& error) {
    cache::answer_error(state_, session, error);
}

void engine_clients::hold_writes(write_hold why) noexcept { cache::hold_writes(state_, why); }

void engine_clients::let_write(write_hold why) noexcept { cache::let_write(state_, why); }

void engine_clients::retire(client_session& who) {
    EDDY_ASSERT(!state_.home->script_is_late(who));
    who.closing = true;
    cache::retire(state_, who);
}

void engine_clients::note_memory(std::size_t bytes) { note_client_memory(state_, bytes); }

void engine_clients::count_closed_query() noexcept { ++state_.data.env.counters.query_closed; }

bool engine_clients::are_let_in() const noexcept {
    return state_.settings.users.default_user().needs_no_password();
}

bool engine_clients::need_password() const noexcept {
    return state_.settings.users.require_password();
}

std::size_t engine_clients::users() const noexcept { return state_.settings.users.size(); }

std::expected<void, std::string> engine_clients::load_users(std::string_view text,
                                                            std::string_view file) {
    return acl::load(state_, text, file);
}

}  // namespace eddy::cache
