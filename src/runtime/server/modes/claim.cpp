// The master's claim, and the limit of guesses.
#include "runtime/server/modes/claim.hpp"

#include <eddy/base/assert.hpp>

#include "base/secret.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace eddy::runtime::server {
namespace {

std::string key_of(int family, const void* bytes, std::size_t size) {
    std::string made(1, static_cast<char>(family));
    made.append(static_cast<const char*>(bytes), size);
    return made;
}

}  // namespace

std::string guess_key(const endpoint& of) {
    if (of.family() == AF_INET) {
        sockaddr_in where{};
        std::memcpy(&where, of.data(), sizeof where);
        return key_of(AF_INET, &where.sin_addr, sizeof where.sin_addr);
    }
    if (of.family() == AF_INET6) {
        sockaddr_in6 where{};
        std::memcpy(&where, of.data(), sizeof where);
        constexpr std::size_t mapped_prefix = 12;
        constexpr std::size_t network_bytes = 8;
        const unsigned char* const bytes = where.sin6_addr.s6_addr;
        if (IN6_IS_ADDR_V4MAPPED(&where.sin6_addr))
            return key_of(AF_INET, bytes + mapped_prefix, sizeof(in_addr));
        return key_of(AF_INET6, bytes, network_bytes);
    }
    return key_of(of.family(), "", 0);
}

bool password_guesses::is_over(const guesses& of, time_point now) noexcept {
    return now - (is_locked(of) ? of.last : of.first) >= wrong_password_time;
}

bool password_guesses::may_guess(const std::string& key, time_point now) {
    const auto found = all_.find(key);
    if (found == all_.end()) return all_.size() < max_guessing_addresses || make_room(now);
    if (!is_locked(found->second)) return true;
    if (!is_over(found->second, now)) return false;
    all_.erase(found);
    return true;
}

bool password_guesses::note_wrong(const std::string& key, time_point now) {
    EDDY_ASSERT(all_.contains(key) || all_.size() < max_guessing_addresses);
    guesses& its = all_[key];
    if (its.wrong == 0 || is_over(its, now)) its = {0, now, now};
    ++its.wrong;
    its.last = now;
    return is_locked(its);
}

/// False if all addresses are locked out.
bool password_guesses::make_room(time_point now) {
    std::erase_if(all_, [&](const auto& each) { return is_over(each.second, now); });
    if (all_.size() < max_guessing_addresses) return true;
    auto oldest = all_.end();
    for (auto each = all_.begin(); each != all_.end(); ++each)
        if (!is_locked(each->second) &&
            (oldest == all_.end() || each->second.last < oldest->second.last))
            oldest = each;
    if (oldest == all_.end()) return false;
    all_.erase(oldest);
    return true;
}

void master_claim::set_password(std::string password) {
    const std::lock_guard lock(guard_);
    if (password == password_) return;
    password_ = std::move(password);
    master_.store(0, std::memory_order_relaxed);
    loop_ = nullptr;
}

void master_claim::end() {
    const std::lock_guard lock(guard_);
    master_.store(0, std::memory_order_relaxed);
    loop_ = nullptr;
}

claim_answer master_claim::claim(std::string_view password, const endpoint& from, holder by,
                                 time_point now) {
    const std::string key = guess_key(from);
    const std::lock_guard lock(guard_);
    if (!guesses_.may_guess(key, now)) return refuse(claim_answer::locked);
    return judge(!password_.empty() && is_same_secret(password, password_), key, by, now);
}

bool master_claim::may_claim(const endpoint& from, time_point now) {
    const std::lock_guard lock(guard_);
    if (guesses_.may_guess(guess_key(from), now)) return true;
    static_cast<void>(refuse(claim_answer::locked));
    return false;
}

claim_answer master_claim::decide(bool is_right, const endpoint& from, holder by, time_point now) {
    const std::string key = guess_key(from);
    const std::lock_guard lock(guard_);
    // Claims of an address that waited together count together.
    if (!guesses_.may_guess(key, now)) return refuse(claim_answer::locked);
    return judge(is_right, key, by, now);
}

claim_answer master_claim::refuse(claim_answer why) noexcept {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return why;
}

/// Under the guard, after may_guess().
claim_answer master_claim::judge(bool is_right, const std::string& key, holder by, time_point now) {
    EDDY_ASSERT(by.client != 0);
    if (!is_right) {
        guesses_.note_wrong(key, now);
        return refuse(claim_answer::wrong);
    }
    guesses_.forget(key);
    const std::uint64_t before = master_.load(std::memory_order_relaxed);
    if (before != 0 && before != by.client) return refuse(claim_answer::taken);
    master_.store(by.client, std::memory_order_relaxed);
    loop_ = by.loop;
    granted_.fetch_add(1, std::memory_order_relaxed);
    return claim_answer::granted;
}

bool master_claim::release(std::uint64_t client) {
    EDDY_ASSERT(client != 0);
    const std::lock_guard lock(guard_);
    if (master_.load(std::memory_order_relaxed) != client) return false;
    master_.store(0, std::memory_order_relaxed);
    loop_ = nullptr;
    return true;
}

master_claim::holder master_claim::master() const {
    const std::lock_guard lock(guard_);
    return {master_.load(std::memory_order_relaxed), loop_};
}

}  // namespace eddy::runtime::server
