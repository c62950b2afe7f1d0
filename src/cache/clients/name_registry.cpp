// Registry of names and their sessions, linked both ways.
#include "cache/clients/name_registry.hpp"

namespace eddy::cache {

name_topic::member* name_registry::add(name_set& to, client_session& who, scoped_name name) {
    const auto [place, is_new] =
        topics_.try_emplace(stored_name{name.scope, std::string(name.text)});
    name_topic& topic = place->second;
    if (is_new) {
        topic.scope = place->first.scope;
        topic.name = place->first.text;
    }
    const auto [mine, added] = to.members_.try_emplace(&topic);
    if (!added) return nullptr;
    name_topic::member& made = mine->second;
    made.who = &who;
    made.of = &topic;
    topic.members.push_back(made);
    ++topic.count;
    to.bytes_ += name.text.size() + name_set::overhead;
    return &made;
}

void name_registry::drop(name_topic& topic, name_topic::member& gone) {
    gone.unlink();
    if (--topic.count > 0) return;
    const auto place = topics_.find(scoped_name{topic.scope, topic.name});
    topics_.erase(place);
}

bool name_registry::remove(name_set& from, scoped_name name) {
    name_topic* const topic = find(name);
    if (topic == nullptr) return false;
    const auto mine = from.members_.find(topic);
    if (mine == from.members_.end()) return false;
    // `name` may be the topic's own.
    from.bytes_ -= name.text.size() + name_set::overhead;
    drop(*topic, mine->second);
    from.members_.erase(mine);
    return true;
}

void name_registry::remove_all(name_set& from) {
    for (auto& [topic, member] : from.members_) drop(*member.of, member);
    from.members_.clear();
    from.bytes_ = 0;
}

}  // namespace eddy::cache
