// Scripts by their SHA-1, in the order of their use.
#include "cache/script/script_cache.hpp"

#include "base/sha1.hpp"
#include "cache/script/redis_library.hpp"
#include "cache/script/script_text.hpp"

#include <utility>

namespace eddy::cache {

script_cache::script_cache(script_runner& runner)
    : runner_(runner),
      sandbox_(runner, runner.state().settings.options.max_script_memory, [this](lua::stack in) {
          runner_.seed_random(in);
          push_redis_library(in, false);
          set_redis_library(in);
      }) {}

script_cache::~script_cache() {
    while (!evictable_.empty()) evictable_.pop_front();
}

cached_script* script_cache::find(std::string_view name) noexcept {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return nullptr;
    cached_script& it = *found->second;
    if (!it.loaded) {
        it.unlink();
        evictable_.push_back(it);
    }
    return &it;
}

cached_script* script_cache::add(call& c, std::string_view text, bool loaded) {
    if (text.size() > max_bytes) {
        c.error("ERR the script is longer than the cache of scripts may be");
        return nullptr;
    }
    const std::string name = hexadecimal(sha1(text));
    if (cached_script* const known = find(name)) {
        if (loaded && !known->loaded) {
            known->unlink();
            known->loaded = true;
        }
        return known;
    }
    const script_head head = take_script_head(text, false);
    if (!head.refusal.empty()) {
        c.error("ERR " + head.refusal);
        return nullptr;
    }
    while ((bytes_ + text.size() > max_bytes || by_name_.size() >= max_count) &&
           !evictable_.empty()) {
        remove(evictable_.front());
    }
    if (loaded && (bytes_ + text.size() > max_bytes || by_name_.size() >= max_count)) {
        c.error("ERR the cache of scripts is full: SCRIPT FLUSH empties it");
        return nullptr;
    }
    std::string why;
    const int function = sandbox_.compile(head.rest, "@user_script", why);
    if (function == 0) {
        c.error("ERR Error compiling script (new function): " + why);
        return nullptr;
    }
    auto made = std::make_unique<cached_script>();
    made->name = name;
    made->text = text;
    made->function = function;
    made->flags = head.flags;
    made->loaded = loaded;
    cached_script* const kept = by_name_.emplace(name, std::move(made)).first->second.get();
    bytes_ += text.size();
    if (!loaded) evictable_.push_back(*kept);
    return kept;
}

void script_cache::remove(cached_script& gone) {
    gone.unlink();
    sandbox_.forget(gone.function);
    bytes_ -= gone.text.size();
    by_name_.erase(by_name_.find(gone.name));
}

void script_cache::flush() {
    while (!evictable_.empty()) evictable_.pop_front();
    by_name_.clear();
    bytes_ = 0;
    sandbox_.reset();
}

}  // namespace eddy::cache
