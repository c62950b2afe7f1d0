// Message delivery: each message is encoded once a protocol and appended to each receiver's outbox.
#include "cache/clients/messages.hpp"

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/glob.hpp>
#include <eddy/wire/resp/reply_writer.hpp>

#include "cache/acl/secret_arguments.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/clients/client_memory.hpp"
#include "cache/engine/call.hpp"
#include "cache/engine/server_host.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <initializer_list>
#include <span>
#include <string>

namespace eddy::cache {
namespace {

constexpr std::int64_t second_us = 1'000'000;

// A push of texts, in the form that each protocol has for it.
class encoded_push {
public:
    explicit encoded_push(std::initializer_list<std::string_view> parts) : parts_(parts) {}

    std::string_view in(int protocol) {
        byte_buffer& made = forms_[protocol == 2 ? 0 : 1];
        if (made.empty()) {
            resp::reply_writer to(made, protocol);
            to.push(parts_.size());
            for (const std::string_view each : parts_) to.bulk(each);
        }
        return made.text();
    }

private:
    std::initializer_list<std::string_view> parts_;
    std::array<byte_buffer, 2> forms_;
};

std::size_t send_to_all(engine_state& s, name_topic* topic, encoded_push message) {
    if (topic == nullptr) return 0;
    topic->members.for_each(
        [&](name_topic::member& each) { push_to(s, *each.who, message.in(each.who->protocol)); });
    return topic->count;
}

// By its form, as of CONFIG GET or HELP, where it has several.
bool is_administrative(const call& c) noexcept {
    if ((c.spec->flags & command_flag::has_forms) == 0 || c.count < 2)
        return (c.spec->flags & command_flag::admin) != 0;
    const command_spec* const form = find_form(*c.spec, c.arg(1));
    return form == nullptr || (form->shown_flags & command_flag::admin) != 0;
}

// "/run/cache.sock:0" is "unix:/run/cache.sock" here.
std::string shown_address(std::string_view address) {
    if (!address.starts_with('/')) return std::string(address);
    return "unix:" + std::string(address.substr(0, address.rfind(':')));
}

// As a Redis user would type it into a string.
void append_quoted(std::string& to, std::string_view text) {
    to += '"';
    for (const char c : text) {
        switch (c) {
            case '\\':
            case '"':
                to += '\\';
                to += c;
                break;
            case '\n': to += "\\n"; break;
            case '\r': to += "\\r"; break;
            case '\t': to += "\\t"; break;
            case '\a': to += "\\a"; break;
            case '\b': to += "\\b"; break;
            default:
                if (c >= ' ' && c <= '~') {
                    to += c;
                } else {
                    char hex[8];
                    std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned char>(c));
                    to += hex;
                }
        }
    }
    to += '"';
}

}  // namespace

void push_to(engine_state& s, client_session& who, std::string_view bytes) {
    if (who.closing) return;
    if (&who == s.clients.executing) {
        s.clients.own_pushes.append(bytes);
        s.clients.has_effects = true;
        if (s.clients.own_pushes.size() > s.settings.options.clients.max_outbox) kill(s, who);
        return;
    }
    session_extras& extras = extras_of(who);
    const bool was_empty = extras.outbox.empty();
    extras.outbox.append(bytes);
    check_output(s, who);
    note_client_memory(s, bytes.size());
    if (was_empty && !who.closing) who.wake();
}

void check_output(engine_state& s, client_session& who) {
    if (!who.extras || who.closing) return;
    session_extras& extras = *who.extras;
    const std::size_t waiting = extras.outbox.size() + extras.unsent;
    const output_limit& limit =
        s.settings.options.clients.output[static_cast<std::size_t>(class_of(who))];
    // Its own replies have other limits.
    const std::size_t from_others = who.waits_for_others() ? waiting : extras.outbox.size();
    bool over = from_others > s.settings.options.clients.max_outbox ||
                (limit.hard != 0 && waiting >= limit.hard);
    if (limit.soft == 0 || waiting < limit.soft) {
        extras.over_since_us = 0;
    } else {
        if (extras.over_since_us == 0) extras.over_since_us = s.data.env.steady_us;
        const std::int64_t until_us = extras.over_since_us + limit.soft_seconds * second_us;
        over |= s.data.env.steady_us > until_us;
        if (!over) note_outputs_due(s, until_us + 1);
    }
    if (!over) return;
    ++s.data.env.counters.output_closed;
    kill(s, who);
}

void note_outputs_due(engine_state& s, std::int64_t at_us) noexcept {
    if (at_us >= s.clients.outputs_due_us) return;
    s.clients.outputs_due_us = at_us;
    if (s.server != nullptr) s.server->outputs_due();
}

std::size_t publish(engine_state& s, std::string_view channel, std::string_view message) {
    std::size_t sent = send_to_all(s, s.clients.channels.find({0, channel}),
                                   encoded_push{"message", channel, message});
    if (s.clients.patterns.empty()) return sent;
    s.clients.patterns.for_each([&](name_topic& pattern) {
        if (!glob_match(pattern.name, channel)) return;
        sent += send_to_all(s, &pattern, encoded_push{"pmessage", pattern.name, channel, message});
    });
    return sent;
}

std::size_t publish_to_shard(engine_state& s, std::string_view channel, std::string_view message) {
    return send_to_all(s, s.clients.shard_channels.find({0, channel}),
                       encoded_push{"smessage", channel, message});
}

void unsubscribe_all(client_state& s, client_session& who) {
    if (!who.extras) return;
    s.channels.remove_all(who.extras->channels);
    s.patterns.remove_all(who.extras->patterns);
    s.shard_channels.remove_all(who.extras->shard_channels);
    who.special &= static_cast<std::uint16_t>(~client_session::subscriber);
}

void feed_monitors(const call& c) {
    if (is_administrative(c)) return;
    engine_state& s = c.state;
    const std::span<const std::string_view> args(c.args, c.count);
    char head[64];
    std::snprintf(head, sizeof head, "+%lld.%06lld [%u ",
                  static_cast<long long>(s.data.env.now_us / second_us),
                  static_cast<long long>(s.data.env.now_us % second_us), unsigned{c.client.db});
    std::string line = head;
    line += shown_address(c.client.address);
    line += ']';
    for (std::size_t i = 0; i < c.count; ++i) {
        line += ' ';
        append_quoted(line, is_secret(*c.spec, args, i) ? redacted : args[i]);
    }
    line += "\r\n";
    for (client_session* const each : s.clients.monitors) push_to(s, *each, line);
}

void stop_monitoring(client_state& s, client_session& who) noexcept {
    if ((who.special & client_session::monitoring) == 0) return;
    who.special &= static_cast<std::uint16_t>(~client_session::monitoring);
    s.monitors.erase(std::find(s.monitors.begin(), s.monitors.end(), &who));
    if (s.monitors.empty()) s.slow_path &= static_cast<std::uint16_t>(~slow_path::monitors);
}

}  // namespace eddy::cache
