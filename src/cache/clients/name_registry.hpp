// Registry of names (channels, patterns, keys of a database), each with the sessions that
// subscribed to it, watch it or wait for it, in the order of their requests.
#pragma once

#include <eddy/base/intrusive_list.hpp>

#include "cache/memory/key_hash.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace eddy::cache {

struct client_session;

/// A name within a scope, which is a database's number, or 0.
struct scoped_name {
    unsigned scope = 0;
    std::string_view text;
};

class name_registry;

/// All sessions of one name.
struct name_topic {
    /// One session's interest in one name.
    struct member : list_link<> {
        client_session* who = nullptr;
        name_topic* of = nullptr;
        bool flag = false;  ///< meaning defined by the registry's user
    };

    unsigned scope = 0;
    std::string_view name;  ///< lives as long as the topic
    intrusive_list<member> members;
    std::size_t count = 0;
    bool noted = false;      ///< meaning defined by the registry's user
    bool has_flags = false;  ///< set by the registry's user once a member's flag was set
};

/// Names of one session. Before destruction, name_registry::remove_all() must empty it.
class name_set {
public:
    /// Bytes counted for a name beside its own.
    static constexpr std::size_t overhead = 160;

    std::size_t size() const noexcept { return members_.size(); }
    bool empty() const noexcept { return members_.empty(); }
    /// Bytes of its names and of their bookkeeping.
    std::size_t bytes() const noexcept { return bytes_; }

    /// Calls f(name_topic&, name_topic::member&) for each, in no particular order; f changes
    /// neither this set nor the registry.
    template <class F>
    void for_each(F&& f) {
        for (auto& [topic, member] : members_) f(*member.of, member);
    }

private:
    friend class name_registry;
    std::unordered_map<const name_topic*, name_topic::member> members_;
    std::size_t bytes_ = 0;
};

/// Adding, removing and finding are O(1). One thread.
class name_registry {
public:
    /// Names come from clients, so they are hashed with the engine's secret, which must outlive the
    /// registry.
    explicit name_registry(const key_hash& hash) : topics_(16, hasher{&hash}) {}

    bool empty() const noexcept { return topics_.empty(); }
    /// Names with at least one session.
    std::size_t size() const noexcept { return topics_.size(); }

    /// The name's topic, or null when it has no members. Valid until its last member is removed.
    name_topic* find(scoped_name name) noexcept {
        const auto found = topics_.find(name);
        return found == topics_.end() ? nullptr : &found->second;
    }

    /// The new member, after the existing ones; null when the set has the name already.
    name_topic::member* add(name_set& to, client_session& who, scoped_name name);
    /// False when the set did not have the name.
    bool remove(name_set& from, scoped_name name);
    void remove_all(name_set& from);

    /// Calls f(name_topic&) for each; f changes nothing here.
    template <class F>
    void for_each(F&& f) {
        for (auto& [name, topic] : topics_) f(topic);
    }

private:
    struct stored_name {
        unsigned scope;
        std::string text;
        // NOLINTNEXTLINE(google-explicit-constructor): for the lookup
        operator scoped_name() const noexcept { return {scope, text}; }
    };
    struct hasher {
        using is_transparent = void;
        const key_hash* hash;
        std::size_t operator()(scoped_name name) const noexcept {
            return (*hash)(name.text) + name.scope * 0x9e37'79b9'7f4a'7c15ULL;
        }
    };
    struct same_name {
        using is_transparent = void;
        bool operator()(scoped_name a, scoped_name b) const noexcept {
            return a.scope == b.scope && a.text == b.text;
        }
    };

    void drop(name_topic& topic, name_topic::member& gone);

    std::unordered_map<stored_name, name_topic, hasher, same_name> topics_;
};

}  // namespace eddy::cache
