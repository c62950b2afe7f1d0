// Test fixture: two engines, the second of which executes the changes of the first.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/wire/resp/request.hpp>

#include "cache/engine/dataset_digest.hpp"
#include "cache/engine/engine_state.hpp"
#include "cache/persistence/propagation.hpp"
#include "cache/testing/test_client.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache::testing {

/// Sink that keeps its changes as one row of commands.
class kept_changes final : public change_sink {
public:
    explicit kept_changes(bool with_messages = false) : with_messages_(with_messages) {}
    void changed(std::span<const change> unit) noexcept override {
        writer_.write(bytes, unit, with_messages_);
        ++units;
    }
    void missed() noexcept override { ++misses; }
    std::string take() {
        std::string all(bytes.text());
        bytes.clear();
        return all;
    }
    /// The commands, a line each, without SELECT.
    std::vector<std::string> lines() {
        std::vector<std::string> found;
        resp::request_parser parser;
        std::string_view rest = bytes.text();
        for (;;) {
            const auto next = parser.next(rest);
            if (next.status != resp::parse_status::complete) break;
            std::string line;
            for (std::size_t i = 0; i < next.request.argc; ++i) {
                if (i > 0) line += ' ';
                line += next.request.argv[i];
            }
            rest.remove_prefix(next.consumed);
            if (!line.starts_with("SELECT")) found.push_back(line);
        }
        bytes.clear();
        return found;
    }
    byte_buffer bytes;
    std::size_t units = 0;
    std::size_t misses = 0;

private:
    bool with_messages_;
    change_writer writer_;
};

/// Executes the changes of another engine's sink.
class change_replayer {
public:
    explicit change_replayer(engine& home) : home_(home), session_(home) {
        session_.special = client_session::master;
    }
    /// The errors that were replied.
    std::string obey(std::string_view commands) {
        std::string errors;
        resp::request_parser parser;
        byte_buffer out;
        for (;;) {
            const auto next = parser.next(commands);
            if (next.status != resp::parse_status::complete) break;
            out.clear();
            home_.execute(session_, {&next.request, 1}, out);
            if (out.text().starts_with("-")) {
                for (std::size_t i = 0; i < next.request.argc; ++i)
                    errors += std::string(next.request.argv[i].substr(0, 40)) + ' ';
                errors += out.text();
            }
            commands.remove_prefix(next.consumed);
        }
        return errors;
    }

private:
    engine& home_;
    client_session session_;
};

/// Everything there is, with the times at which keys end.
inline std::string describe(engine& of) {
    engine_state& s = of.internals();
    std::vector<std::string> keys;
    for (unsigned number = 0; number < engine::databases; ++number) {
        const keyspace* const in = s.data.keyspaces[number].get();
        if (in == nullptr) continue;
        dictionary::iterator all(in->table());
        while (const dictionary::slot* const place = all.next()) {
            const entry& e = *keyspace::at(place);
            std::string line = std::to_string(number) + ' ' + std::string(e.key()) + ' ' +
                               std::to_string(e.expiry()) + ' ' +
                               hexadecimal(value_digest(s.data.env, e));
            if (e.type == value_type::hash) {
                std::vector<std::string> ends;
                collection::walk walk(collection(s.data.env, *keyspace::at(place)),
                                      collection::also::ended);
                for (collection::element field; walk.next(field);) {
                    if (walk.ends_at() != no_expiry)
                        ends.push_back(std::string(field.field) + " ends " +
                                       std::to_string(walk.ends_at()));
                }
                std::ranges::sort(ends);
                for (const std::string& each : ends) line += ' ' + each;
            }
            if (e.type == value_type::stream) {
                const redis_stream& entries = *e.pointer<redis_stream>();
                line += ' ' + std::string(stream_id_text(entries.last_id()).view());
                for (auto group = entries.groups().first(); group; group.forward()) {
                    const stream_group& one = **group;
                    line += " group " + std::string(one.name()) + ' ' +
                            std::string(stream_id_text(one.last_id).view()) + ' ' +
                            std::to_string(one.entries_read);
                    for (auto at = one.consumers.first(); at; at.forward())
                        line += " consumer " + std::string((*at)->name());
                    for (auto at = one.pending.first(); at; at.forward())
                        line += ' ' + std::string(stream_id_text(at->id).view()) + '/' +
                                std::string(at->of->owner->name());
                }
            }
            keys.push_back(std::move(line));
        }
    }
    std::ranges::sort(keys);
    std::string text;
    for (const std::string& each : keys) text += each + '\n';
    return text;
}

}  // namespace eddy::cache::testing
