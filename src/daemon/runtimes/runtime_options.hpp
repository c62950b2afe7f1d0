// Options of a runtime as JSON: checks against its type, and secrets, which are stored but never
// shown.
#pragma once

#include "base/problem.hpp"
#include "daemon/control/json.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/type.hpp"

#include <string_view>
#include <vector>

namespace eddy::daemon {

/// Parses by the table of the type's options, and applies its check of what the table cannot say.
outcome<runtime::settings> check_options(const runtime::type& type, const json& given);

/// Checks files that options name, where the type does, before options of a user are stored.
outcome<> check_files(const runtime::type& type, const runtime::settings& chosen);

/// Options with their secrets masked: what is shown ends up in reports and logs. `type` may be
/// null.
json mask_secrets(const runtime::type* type, json options);

/// Inverse for an edit, by a client that has read options and sends them back: a masked value means
/// the stored one, so it is taken out of `changed`. Refuses (400) the mask in another text.
outcome<> unmask_secrets(const runtime::type& type, const json& stored, json& changed);

/// The options whose values differ, given or by default, and that are not live, in the order of the
/// table. A running instance can take `next` in the place of `now` if there are none. The names are
/// the table's.
std::vector<std::string_view> restart_options(const runtime::type& type,
                                              const runtime::settings& now,
                                              const runtime::settings& next);

}  // namespace eddy::daemon
