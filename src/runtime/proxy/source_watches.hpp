// Source watches: the runtimes, the names in DNS, and the masters of Sentinels that are backends,
// followed while a proxy runs.
#pragma once

#include <eddy/io/scope.hpp>
#include <eddy/io/task.hpp>

#include "proxy/followed_masters.hpp"
#include "proxy/followed_names.hpp"
#include "runtime/host/host.hpp"
#include "runtime/proxy/backend_source.hpp"
#include "serving/journal.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace eddy::runtime::proxy {

/// Watches of one proxy: of runtimes at most max_watches of its host, of names in DNS at most
/// followed_names::max_names, of masters at most followed_masters::max_names. end() before the
/// destructor. One loop's thread.
class source_watches final : private eddy::proxy::name_observer,
                             private eddy::proxy::master_observer {
public:
    /// True for an address of the proxy's own.
    using own_address = std::function<bool(const transport::address&)>;

    /// Calls `on_change` for each change, also within follow(), but not while is_waiting(). Host
    /// and journal must outlive it. No master is one that `is_self`; null: each may be.
    source_watches(host& daemon, serving::journal& events, std::function<void()> on_change,
                   own_address is_self = nullptr);
    source_watches(const source_watches&) = delete;
    source_watches& operator=(const source_watches&) = delete;
    ~source_watches();

    /// Watches the names among these sources, each of them once, and no other names in DNS. One
    /// that cannot be watched is noted in the journal. `servers` are the name servers, as
    /// resolver_options::servers; `sentinels` are those of masters.
    void follow(const std::vector<backend_source>& sources, const std::string& servers,
                eddy::proxy::sentinel_group sentinels = {});

    followed_addresses known() const noexcept { return {&dns_, &masters_}; }
    /// Master of each of these sources that has one, and the Sentinel that has named it, in words.
    std::string masters_of(const std::vector<backend_source>& sources) const;
    /// True while names in DNS, and masters, that are new have no first answer: see followed_names
    /// and followed_masters. The backends stay as they are until then; `on_change` is called at the
    /// end.
    bool is_waiting() const noexcept { return dns_.is_waiting() || masters_.is_waiting(); }
    /// Awaits that.
    task<void> wait();
    /// Ends all watches.
    task<void> end();

private:
    task<void> follow_runtime(address_watch addresses);
    void notify();
    void follow_runtimes(const std::vector<backend_source>& sources);

    bool is_own(const transport::address& where) const override;
    void note_changed_masters() override;
    void note_master(std::string_view name, const eddy::proxy::known_master& now,
                     const transport::address* before) noexcept override;
    void note_no_master(std::string_view name, std::string_view why,
                        bool has_master) noexcept override;
    void note_lost_sentinel(std::string_view why) noexcept override;
    void note_found_sentinel(std::string_view sentinel) noexcept override;
    void note_changed_names() override;
    void note_failed_name(std::string_view name, std::error_code why,
                          bool has_addresses) noexcept override;
    void note_gone_name(std::string_view name) noexcept override;
    void note_found_name(std::string_view name) noexcept override;
    void note_long_answer(std::string_view name, std::size_t count) noexcept override;

    host& daemon_;
    serving::journal& events_;
    const std::function<void()> on_change_;
    const own_address is_self_;
    std::vector<std::string> runtimes_;
    std::string servers_;
    eddy::proxy::followed_names dns_;
    eddy::proxy::followed_masters masters_;
    bool has_noted_limit_ = false;
    scope tasks_;
};

}  // namespace eddy::runtime::proxy
