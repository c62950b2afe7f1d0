// Rows of positions. See command_row.hpp for the fields.
#pragma once

#include "cache/catalog/command_row.hpp"
#include "cache/catalog/commands.hpp"

namespace eddy::cache::rows {

inline constexpr command_row geo_rows[] = {
    {.name = "geoadd",
     .run = commands::geoadd,
     .arity = -5,
     .flags = grow,
     .categories = category::geo,
     .keys = "RW update|i1|r0.1.0",
     .since = "3.2.0",
     .group = "geo",
     .syntax =
         "key [condition@6.2.0: NX|XX] [CH<change>@6.2.0] (data: longitude/double latitude/double "
         "member)...",
     .summary = "Adds positions, or moves them."},
    {.name = "geopos",
     .run = commands::geopos,
     .arity = -2,
     .flags = readonly,
     .categories = category::geo,
     .keys = "RO access|i1|r0.1.0",
     .since = "3.2.0",
     .group = "geo",
     .syntax = "key [member...]",
     .summary = "Returns positions."},
    {.name = "geodist",
     .run = commands::geodist,
     .arity = -4,
     .flags = readonly,
     .categories = category::geo,
     .keys = "RO access|i1|r0.1.0",
     .since = "3.2.0",
     .group = "geo",
     .syntax = "key member1 member2 [unit: M|KM|FT|MI]",
     .summary = "Returns the distance between two members."},
    {.name = "geohash",
     .run = commands::geohash,
     .arity = -2,
     .flags = readonly,
     .categories = category::geo,
     .keys = "RO access|i1|r0.1.0",
     .since = "3.2.0",
     .group = "geo",
     .syntax = "key [member...]",
     .summary = "Returns positions as geohashes."},
    {.name = "georadius",
     .run = commands::georadius,
     .arity = -6,
     .flags = grow | movablekeys | keys_by_options,
     .categories = category::geo,
     .keys = "RO access|i1|r0.1.0;OW update|kSTORE.6|r0.1.0;OW update|kSTOREDIST.6|r0.1.0",
     .since = "3.2.0!6.2.0",
     .group = "geo",
     .syntax =
         "key longitude/double latitude/double radius/double (unit: M|KM|FT|MI) [WITHCOORD] "
         "[WITHDIST] "
         "[WITHHASH] [count-block: COUNT count/int [ANY@6.2.0]] [order: ASC|DESC] [store: STORE "
         "storekey=key/key|STOREDIST storedistkey=key/key]",
     .summary = "Finds the members within a circle, and may store them."},
    {.name = "georadius_ro",
     .run = commands::georadius_ro,
     .arity = -6,
     .flags = readonly,
     .categories = category::geo,
     .keys = "RO access|i1|r0.1.0",
     .since = "3.2.10!6.2.0",
     .group = "geo",
     .syntax = "key longitude/double latitude/double radius/double (unit: M|KM|FT|MI) [WITHCOORD] "
               "[WITHDIST] "
               "[WITHHASH] [count-block: COUNT count/int [ANY@6.2.0]] [order: ASC|DESC]",
     .summary = "Finds the members within a circle."},
    {.name = "georadiusbymember",
     .run = commands::georadiusbymember,
     .arity = -5,
     .flags = grow | movablekeys | keys_by_options,
     .categories = category::geo,
     .keys = "RO access|i1|r0.1.0;OW update|kSTORE.5|r0.1.0;OW update|kSTOREDIST.5|r0.1.0",
     .since = "3.2.0!6.2.0",
     .group = "geo",
     .syntax = "key member radius/double (unit: M|KM|FT|MI) [WITHCOORD] [WITHDIST] [WITHHASH] "
               "[count-block: "
               "COUNT count/int [ANY]] [order: ASC|DESC] [store: STORE storekey=key/key|STOREDIST "
               "storedistkey=key/key]",
     .summary = "Finds the members around another, and may store them."},
    {.name = "georadiusbymember_ro",
     .run = commands::georadiusbymember_ro,
     .arity = -5,
     .flags = readonly,
     .categories = category::geo,
     .keys = "RO access|i1|r0.1.0",
     .since = "3.2.10!6.2.0",
     .group = "geo",
     .syntax = "key member radius/double (unit: M|KM|FT|MI) [WITHCOORD] [WITHDIST] [WITHHASH] "
               "[count-block: "
               "COUNT count/int [ANY]] [order: ASC|DESC]",
     .summary = "Finds the members around another."},
    {.name = "geosearch",
     .run = commands::geosearch,
     .arity = -7,
     .flags = readonly,
     .categories = category::geo,
     .keys = "RO access|i1|r0.1.0",
     .since = "6.2.0",
     .group = "geo",
     .syntax =
         "key (from: FROMMEMBER member|FROMLONLAT (fromlonlat: longitude/double latitude/double)) "
         "(by: "
         "(circle: BYRADIUS radius/double (unit: M|KM|FT|MI))|(box: BYBOX width/double "
         "height/double "
         "(unit: M|KM|FT|MI))) [order: ASC|DESC] [count-block: COUNT count/int [ANY]] [WITHCOORD] "
         "[WITHDIST] [WITHHASH]",
     .summary = "Finds the members within a circle or a box."},
    {.name = "geosearchstore",
     .run = commands::geosearchstore,
     .arity = -8,
     .flags = grow,
     .categories = category::geo,
     .keys = "OW update|i1|r0.1.0;RO access|i2|r0.1.0",
     .since = "6.2.0",
     .group = "geo",
     .syntax =
         "destination/key source/key (from: FROMMEMBER member|FROMLONLAT (fromlonlat: "
         "longitude/double "
         "latitude/double)) (by: (circle: BYRADIUS radius/double (unit: M|KM|FT|MI))|(box: BYBOX "
         "width/double height/double (unit: M|KM|FT|MI))) [order: ASC|DESC] [count-block: COUNT "
         "count/int [ANY]] [STOREDIST]",
     .summary = "Stores the members within a circle or a box."},
};

}  // namespace eddy::cache::rows
