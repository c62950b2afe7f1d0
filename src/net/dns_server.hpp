// Name server for tests, on a UDP and a TCP port of the test's loop.
#pragma once

#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/net/resolver.hpp>
#include <eddy/net/tcp.hpp>
#include <eddy/net/udp.hpp>

#include "io/testing.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace eddy::testing {

/// Names missing from `records` do not exist. RFC 1035.
class dns_server {
public:
    explicit dns_server(scope& tasks) {
        // A port that is free for UDP may be taken for TCP.
        for (int tries = 0; !listener_ && tries < 100; ++tries) {
            socket_ = must(udp::bind("127.0.0.1", 0));
            if (auto accepting = tcp::listen("127.0.0.1", socket_.local().port()))
                listener_ = std::move(*accepting);
        }
        tasks.spawn(serve(*this));
        if (listener_) tasks.spawn(serve_tcp(*this));
    }

    /// As resolver_options::servers takes it.
    std::string address() const { return socket_.local().to_string(); }

    std::map<std::string, std::vector<std::string>> records;      ///< names to numeric addresses
    std::map<std::string, std::vector<service_record>> services;  ///< SRV
    std::uint32_t ttl = 60;                                       ///< of every record, in seconds
    std::set<std::string> silent;                                 ///< no answer ever comes
    std::set<std::string> silent_a;                               ///< none to a query for IPv4
    std::set<std::string> silent_aaaa;                            ///< none to a query for IPv6
    std::set<std::string> broken;                                 ///< the server fails (SERVFAIL)
    std::set<std::string> refused;         ///< the server does not want to (REFUSED)
    std::set<std::string> forged;          ///< before the answer comes one to another query
    std::set<std::string> garbled;         ///< before the first answer of each family comes rubbish
    std::set<std::string> always_garbled;  ///< before every answer comes rubbish
    bool truncate = false;                 ///< UDP answers are cut short, TCP ones are not
    std::map<std::string, int> asked;
    int asked_by_tcp = 0;

private:
    static constexpr std::size_t header_size = 12;
    enum : unsigned { no_error = 0, server_failure = 2, no_such_name = 3, refusal = 5 };

    static void put(std::string& to, unsigned value, int size) {
        while (size-- > 0) to += static_cast<char>(value >> (8 * size));
    }

    /// The name of the query, in small letters; `end` is set behind the question.
    static std::string name_of(std::string_view query, std::size_t& end) {
        std::string name;
        std::size_t at = header_size;
        while (at < query.size() && query[at] != 0) {
            const auto size = static_cast<unsigned char>(query[at]);
            if (!name.empty()) name += '.';
            for (char c : query.substr(at + 1, size))
                name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
            at += size + 1U;
        }
        end = at + 5;
        return name;
    }

    static std::string data_of(const endpoint& one) {
        const auto* v4 = reinterpret_cast<const sockaddr_in*>(one.data());
        const auto* v6 = reinterpret_cast<const sockaddr_in6*>(one.data());
        return one.family() == AF_INET6
                   ? std::string(reinterpret_cast<const char*>(&v6->sin6_addr), 16)
                   : std::string(reinterpret_cast<const char*>(&v4->sin_addr), 4);
    }

    static std::string data_of(const service_record& one) {
        std::string data;
        for (const unsigned number : {one.priority, one.weight, one.port}) put(data, number, 2);
        std::string_view left = one.host;
        while (!left.empty() && one.host != ".") {
            const std::string_view label = left.substr(0, left.find('.'));
            put(data, static_cast<unsigned>(label.size()), 1);
            data += label;
            left.remove_prefix(std::min(label.size() + 1, left.size()));
        }
        return data + '\0';
    }

    /// The answer; empty for none.
    std::string answer(std::string_view query, bool over_tcp) {
        std::size_t end = 0;
        const std::string name = name_of(query, end);
        if (end > query.size()) return {};
        ++asked[name];
        asked_by_tcp += over_tcp ? 1 : 0;
        const bool wants_ipv6 = query[end - 3] == 28;
        const bool wants_service = query[end - 3] == 33;
        if (silent.contains(name) || (wants_ipv6 ? silent_aaaa : silent_a).contains(name))
            return {};

        unsigned code = no_error;
        std::vector<std::string> found;
        if (broken.contains(name)) {
            code = server_failure;
        } else if (refused.contains(name)) {
            code = refusal;
        } else if (wants_service && services.contains(name)) {
            for (const service_record& each : services[name]) found.push_back(data_of(each));
        } else if (const auto known = records.find(name); known != records.end()) {
            for (const std::string& text : known->second) {
                const endpoint one = must(endpoint::ip(text, 0));
                if ((one.family() == AF_INET6) == wants_ipv6 && !wants_service)
                    found.push_back(data_of(one));
            }
        } else {
            code = no_such_name;
        }

        const bool cut = truncate && !over_tcp;
        std::string reply(query.substr(0, 2));
        put(reply, 0x8180U | (cut ? 0x0200U : 0U) | code, 2);
        put(reply, 1, 2);
        put(reply, cut ? 0U : static_cast<unsigned>(found.size()), 2);
        put(reply, 0, 4);
        reply += query.substr(header_size, end - header_size);
        if (cut) return reply;
        for (const std::string& data : found) {
            put(reply, 0xc000U | header_size, 2);  // the name, as in the question
            put(reply, static_cast<unsigned char>(query[end - 3]), 2);
            put(reply, 1, 2);
            put(reply, ttl, 4);
            put(reply, static_cast<unsigned>(data.size()), 2);
            reply += data;
        }
        return reply;
    }

    static task<void> serve(dns_server& self) {
        for (;;) {
            auto query = co_await self.socket_.receive();
            if (!query) co_return;
            const std::string_view text = query->payload.text();
            if (text.size() < header_size) continue;
            const std::string reply = self.answer(text, false);
            if (reply.empty()) continue;
            std::size_t end = 0;
            const std::string name = name_of(text, end);
            if (self.forged.contains(name)) {
                std::string other = reply;
                other[0] = static_cast<char>(other[0] + 1);
                static_cast<void>(self.socket_.send_to(as_bytes(other), query->from));
            }
            if (self.always_garbled.contains(name) ||
                (self.garbled.contains(name) && self.asked[name] <= 2))
                static_cast<void>(self.socket_.send_to(as_bytes("rubbish"), query->from));
            static_cast<void>(self.socket_.send_to(as_bytes(reply), query->from));
        }
    }

    static task<void> serve_tcp(dns_server& self) {
        for (;;) {
            auto peer = co_await self.listener_.accept();
            if (!peer) co_return;
            std::string text;
            for (;;) {
                auto got = co_await peer->read();
                if (!got) break;
                text += got->text();
                while (text.size() >= 2) {
                    const std::size_t size = static_cast<unsigned char>(text[0]) * 256U +
                                             static_cast<unsigned char>(text[1]);
                    if (text.size() < size + 2) break;
                    const std::string reply = self.answer(text.substr(2, size), true);
                    text.erase(0, size + 2);
                    std::string framed;
                    put(framed, static_cast<unsigned>(reply.size()), 2);
                    framed += reply;
                    if (!co_await peer->write_all(framed)) break;
                }
            }
        }
    }

    datagram socket_;
    listener listener_;
};

}  // namespace eddy::testing
