// More scripts of differential_clients_test.cpp, in the form of differential_scripts.hpp: what is
// refused before anything else is looked at.
#pragma once

#include <string_view>

namespace eddy::cache::testing {

/// Names and numbers of arguments that no command has, where another refusal is near.
inline constexpr std::string_view refusal_scripts[] = {
    // Without the password.
    R"(
A: CONFIG SET requirepass pw ; B: RESET ; B: NOSUCH a ; B: GET ; B: GET k ; B: CONFIG NOSUCH ; B: CONFIG GET ; B: CONFIG GET port ; B: CONFIG ;
B: CLIENT NOSUCH ; B: CLIENT ID x ; B: CLIENT ; B: DEBUG ; B: OBJECT NOSUCH k ; B: OBJECT ENCODING ; B: OBJECT HELP x ;
B: XINFO NOSUCH ; B: XINFO STREAM ; B: XGROUP NOSUCH ; B: XGROUP CREATE k ; B: MEMORY NOSUCH ; B: MEMORY USAGE ; B: AUTH ; B: EVAL ; B: FUNCTION NOSUCH ;
B: SCRIPT NOSUCH ; B: ACL NOSUCH ; B: ACL SETUSER ; B: SLOWLOG NOSUCH ; B: LATENCY NOSUCH ; B: COMMAND NOSUCH ; B: PUBSUB NOSUCH ; B: CLUSTER NOSUCH ;
B: COMMAND ; B: MULTI ; B: EXEC ; B: EXEC x ; B: WATCH ; B: SUBSCRIBE ; A: CONFIG SET requirepass ''
)",
    // Of those who may not do it anyway.
    R"(
A: ACL SETUSER u on >p +get +client|id +config|get +multi +exec ~k* resetchannels ; B: AUTH u p ; B: NOSUCH a ; B: GET ; B: GET k ; B: CONFIG NOSUCH ;
B: CONFIG GET ; B: CONFIG SET x ; B: CONFIG SET x y ; B: CLIENT NOSUCH ; B: CLIENT ID x ; B: CLIENT LIST ; B: CLIENT ; B: OBJECT NOSUCH k ; B: OBJECT ENCODING ;
B: XINFO NOSUCH ; B: XGROUP CREATE k ; B: MEMORY NOSUCH ; B: FUNCTION NOSUCH ; B: SCRIPT NOSUCH ; B: ACL NOSUCH ; B: SLOWLOG NOSUCH ; B: LATENCY NOSUCH ;
B: COMMAND NOSUCH ; B: PUBSUB NOSUCH ; B: CLUSTER NOSUCH ; B: MULTI ; B: CONFIG NOSUCH ; B: EXEC ; B: MULTI ; B: SLOWLOG GET x y ; B: EXEC
)",
    // While all wait.
    R"(
A: CLIENT PAUSE 5000 WRITE ; B: NOSUCH ; B: SET ; B: FUNCTION NOSUCH ; B: FUNCTION DELETE ; B: XGROUP NOSUCH ; B: XGROUP CREATE k ;
B: SCRIPT NOSUCH ; B: PUBLISH c ; B: EVAL ; A: INFO nosuch ; B: SET k v ; A: CLIENT UNPAUSE ; B: GET k
)",
};

}  // namespace eddy::cache::testing
