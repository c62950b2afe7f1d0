// Rows of positions. See command_row.hpp for the columns.
#pragma once

#include "cache/catalog/command_row.hpp"
#include "cache/catalog/commands.hpp"

namespace eddy::cache::rows {

inline constexpr command_row geo_rows[] = {
    {"geoadd", commands::geoadd, -5, grow, category::geo, "RW update|i1|r0.1.0", "3.2.0", "geo",
     "key [condition@6.2.0: NX|XX] [CH<change>@6.2.0] (data: longitude/double latitude/double "
     "member)...",
     "Adds positions, or moves them."},
    {"geopos", commands::geopos, -2, readonly, category::geo, "RO access|i1|r0.1.0", "3.2.0", "geo",
     "key [member...]", "Returns positions."},
    {"geodist", commands::geodist, -4, readonly, category::geo, "RO access|i1|r0.1.0", "3.2.0",
     "geo", "key member1 member2 [unit: M|KM|FT|MI]", "Returns the distance between two members."},
    {"geohash", commands::geohash, -2, readonly, category::geo, "RO access|i1|r0.1.0", "3.2.0",
     "geo", "key [member...]", "Returns positions as geohashes."},
    {"georadius", commands::georadius, -6, grow | movablekeys | keys_by_options, category::geo,
     "RO access|i1|r0.1.0;OW update|kSTORE.6|r0.1.0;OW update|kSTOREDIST.6|r0.1.0", "3.2.0!6.2.0",
     "geo",
     "key longitude/double latitude/double radius/double (unit: M|KM|FT|MI) [WITHCOORD] [WITHDIST] "
     "[WITHHASH] [count-block: COUNT count/int [ANY@6.2.0]] [order: ASC|DESC] [store: STORE "
     "storekey=key/key|STOREDIST storedistkey=key/key]",
     "Finds the members within a circle, and may store them."},
    {"georadius_ro", commands::georadius_ro, -6, readonly, category::geo, "RO access|i1|r0.1.0",
     "3.2.10!6.2.0", "geo",
     "key longitude/double latitude/double radius/double (unit: M|KM|FT|MI) [WITHCOORD] [WITHDIST] "
     "[WITHHASH] [count-block: COUNT count/int [ANY@6.2.0]] [order: ASC|DESC]",
     "Finds the members within a circle."},
    {"georadiusbymember", commands::georadiusbymember, -5, grow | movablekeys | keys_by_options,
     category::geo, "RO access|i1|r0.1.0;OW update|kSTORE.5|r0.1.0;OW update|kSTOREDIST.5|r0.1.0",
     "3.2.0!6.2.0", "geo",
     "key member radius/double (unit: M|KM|FT|MI) [WITHCOORD] [WITHDIST] [WITHHASH] [count-block: "
     "COUNT count/int [ANY]] [order: ASC|DESC] [store: STORE storekey=key/key|STOREDIST "
     "storedistkey=key/key]",
     "Finds the members around another, and may store them."},
    {"georadiusbymember_ro", commands::georadiusbymember_ro, -5, readonly, category::geo,
     "RO access|i1|r0.1.0", "3.2.10!6.2.0", "geo",
     "key member radius/double (unit: M|KM|FT|MI) [WITHCOORD] [WITHDIST] [WITHHASH] [count-block: "
     "COUNT count/int [ANY]] [order: ASC|DESC]",
     "Finds the members around another."},
    {"geosearch", commands::geosearch, -7, readonly, category::geo, "RO access|i1|r0.1.0", "6.2.0",
     "geo",
     "key (from: FROMMEMBER member|FROMLONLAT (fromlonlat: longitude/double latitude/double)) (by: "
     "(circle: BYRADIUS radius/double (unit: M|KM|FT|MI))|(box: BYBOX width/double height/double "
     "(unit: M|KM|FT|MI))) [order: ASC|DESC] [count-block: COUNT count/int [ANY]] [WITHCOORD] "
     "[WITHDIST] [WITHHASH]",
     "Finds the members within a circle or a box."},
    {"geosearchstore", commands::geosearchstore, -8, grow, category::geo,
     "OW update|i1|r0.1.0;RO access|i2|r0.1.0", "6.2.0", "geo",
     "destination/key source/key (from: FROMMEMBER member|FROMLONLAT (fromlonlat: longitude/double "
     "latitude/double)) (by: (circle: BYRADIUS radius/double (unit: M|KM|FT|MI))|(box: BYBOX "
     "width/double height/double (unit: M|KM|FT|MI))) [order: ASC|DESC] [count-block: COUNT "
     "count/int [ANY]] [STOREDIST]",
     "Stores the members within a circle or a box."},
};

}  // namespace eddy::cache::rows
