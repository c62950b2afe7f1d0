// Options of `eddy create http`, as a table and as what the site works with.
#pragma once

#include <eddy/http/session.hpp>
#include <eddy/http/static_files.hpp>

#include "base/problem.hpp"
#include "runtime/logs/access_log.hpp"
#include "runtime/options/bound_options.hpp"
#include "runtime/options/option.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/scripting/script_rows.hpp"
#include "runtime/serving/serving_config.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace eddy::runtime::http {

/// Checked and converted.
struct config : serving_config {
    std::string root;  ///< folder of the files; empty: none
    eddy::http::static_options files;
    bool compress = false;  ///< responses are compressed when a client accepts it
    eddy::http::session_limits limits;
    std::uint64_t max_connections = 0;
    std::string access_log;  ///< empty: none
    access_format format = access_format::common;
    script_config script = {};
};

/// Rows of the options, in the order of help.
const bound_options<config>& option_rows();
outcome<config> read_config(const settings& chosen);

}  // namespace eddy::runtime::http
