// Claim of a server's master (--mode master): one for the clients of all loops, by a password whose
// guesses are limited by address.
#pragma once

#include <eddy/io/endpoint.hpp>
#include <eddy/io/timer.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace eddy::runtime::server {

class inbox;

/// Wrong passwords of one address within wrong_password_time; at that number its claims are refused
/// for the same time from the last of them on, right or wrong.
inline constexpr unsigned max_wrong_passwords = 5;
inline constexpr duration wrong_password_time = std::chrono::minutes(1);
/// Addresses whose wrong passwords are counted. Beyond them the oldest one that may still guess is
/// forgotten; while none may, claims of other addresses are refused.
inline constexpr std::size_t max_guessing_addresses = 1024;

/// The address that guesses count for: of IPv4 whole, of IPv6 its network of 64 bits, since a
/// client has all of them. Clients of a Unix socket have one together.
std::string guess_key(const endpoint& of);

/// Wrong passwords by address. One thread at a time.
class password_guesses {
public:
    /// True if a claim from there is to be checked.
    bool may_guess(const std::string& key, time_point now);
    /// Counts a wrong password, after may_guess(). True if the address is locked out by it.
    bool note_wrong(const std::string& key, time_point now);
    void forget(const std::string& key) { all_.erase(key); }
    std::size_t size() const noexcept { return all_.size(); }

private:
    struct guesses {
        unsigned wrong = 0;
        time_point first;
        time_point last;
    };
    static bool is_locked(const guesses& of) noexcept { return of.wrong >= max_wrong_passwords; }
    static bool is_over(const guesses& of, time_point now) noexcept;
    bool make_room(time_point now);

    std::unordered_map<std::string, guesses> all_;
};

/// Answer to a claim.
enum class claim_answer : std::uint8_t {
    granted,  ///< also to the master itself
    taken,    ///< by another client
    wrong,    ///< password
    locked,   ///< too many wrong ones: nothing was compared
};

/// Any thread.
class master_claim {
public:
    /// A client, by its number among those of all loops, and what other loops send it by: null with
    /// one loop.
    struct holder {
        std::uint64_t client = 0;
        inbox* loop = nullptr;
    };

    /// Sets the password; while it is empty no claim is granted. Another one than before ends the
    /// claim.
    void set_password(std::string password);
    /// Ends the claim of any client.
    void end();

    /// Claims for a client, from that address.
    claim_answer claim(std::string_view password, const endpoint& from, holder by, time_point now);
    /// The same without a password, in two steps. False, which counts as refused, while the address
    /// may not guess.
    bool may_claim(const endpoint& from, time_point now);
    claim_answer decide(bool is_right, const endpoint& from, holder by, time_point now);
    /// Ends the claim if it is that client's. True if it was.
    bool release(std::uint64_t client);

    /// The master, with client 0 if there is none.
    holder master() const;
    bool has_master() const noexcept { return master_.load(std::memory_order_relaxed) != 0; }
    bool is_master(std::uint64_t client) const noexcept {
        return master_.load(std::memory_order_relaxed) == client;
    }

    std::uint64_t granted() const noexcept { return granted_.load(std::memory_order_relaxed); }
    /// Claims that were not granted.
    std::uint64_t refused() const noexcept { return refused_.load(std::memory_order_relaxed); }

private:
    claim_answer refuse(claim_answer why) noexcept;
    claim_answer judge(bool is_right, const std::string& key, holder by, time_point now);

    mutable std::mutex guard_;
    std::string password_;
    password_guesses guesses_;
    inbox* loop_ = nullptr;
    std::atomic<std::uint64_t> master_{0};  // changed under the guard
    std::atomic<std::uint64_t> granted_{0};
    std::atomic<std::uint64_t> refused_{0};
};

}  // namespace eddy::runtime::server
