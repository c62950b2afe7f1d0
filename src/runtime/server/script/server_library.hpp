// Functions of a server's script, in the table `self`: its clients, their data, and groups.
#pragma once

#include "runtime/host/host.hpp"
#include "runtime/server/script/client_route.hpp"
#include "runtime/server/script/server_script.hpp"
#include "script/library.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::server {

/// Clients of one loop, on which the functions work.
class script_clients {
public:
    virtual script_transport& transport() noexcept = 0;
    /// Null when there is none of that number here.
    virtual script_client* find(std::uint64_t id) noexcept = 0;
    virtual bool has_others() const noexcept = 0;
    /// True if the number is that of a client of another loop, which may have gone.
    virtual bool is_elsewhere(std::uint64_t id) const noexcept = 0;
    /// Connected ones, in the order of their numbers.
    virtual std::vector<script_client*> all() = 0;
    virtual std::vector<script_client*> members(std::string_view group) = 0;
    virtual void join(script_client& who, std::string_view group) = 0;
    virtual void part(script_client& who, std::string_view group) = 0;
    /// Bytes of the data of all clients here, and the limit of these: --lua-memory once more, as
    /// the data outlasts the script's state and is no part of it.
    virtual std::size_t& data_bytes() noexcept = 0;
    virtual std::size_t max_data_bytes() const noexcept = 0;
    /// For routes: the daemon, null in a trial, and the server's own name.
    virtual host* daemon() const noexcept = 0;
    virtual const std::string& own_name() const noexcept = 0;
    /// Routes the client's messages, in place of a route or pipe before. False at
    /// max_client_routes.
    virtual bool route(script_client& of, std::shared_ptr<client_route> to) = 0;

protected:
    ~script_clients() = default;
};

/// Bytes that an entry of set_data() counts.
std::size_t data_size(std::string_view key, const script::value& of) noexcept;

/// `of` outlives the script's state.
script::library server_library(script_clients& of);

}  // namespace eddy::runtime::server
