// hiredis, as its users write it: replies, pipelines, formats, and the parser by itself.
// The library of Debian 12 speaks RESP2 alone.

#include <hiredis/hiredis.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static int port;
static int failed;
static const char* wrong;
static int wrong_line;

// A step returns early at the first check that does not hold.
#define CHECK(condition)           \
    do {                           \
        if (!(condition)) {        \
            wrong = #condition;    \
            wrong_line = __LINE__; \
            return;                \
        }                          \
    } while (0)

static redisContext* c;

static redisContext* open_connection(void) {
    const struct timeval patience = {30, 0};
    redisContext* opened = redisConnectWithTimeout("127.0.0.1", port, patience);
    if (opened == NULL || opened->err) {
        printf("FAILED connect: %s\n", opened ? opened->errstr : "no memory");
        exit(1);
    }
    redisSetTimeout(opened, patience);
    return opened;
}

// Each reply lives until the next one is asked for.
static redisReply* last;
#define ASK(...) (freeReplyObject(last), last = redisCommand(c, __VA_ARGS__))

static bool is_status(const redisReply* r, const char* text) {
    return r != NULL && r->type == REDIS_REPLY_STATUS && strcmp(r->str, text) == 0;
}
static bool is_string(const redisReply* r, const char* text) {
    return r != NULL && r->type == REDIS_REPLY_STRING && r->len == strlen(text) && memcmp(r->str, text, r->len) == 0;
}
static bool is_integer(const redisReply* r, long long value) {
    return r != NULL && r->type == REDIS_REPLY_INTEGER && r->integer == value;
}
static bool is_error(const redisReply* r, const char* start) {
    return r != NULL && r->type == REDIS_REPLY_ERROR && strncmp(r->str, start, strlen(start)) == 0;
}
static bool is_array(const redisReply* r, size_t size) {
    return r != NULL && r->type == REDIS_REPLY_ARRAY && r->elements == size;
}

static void hello(void) {
    CHECK(is_status(ASK("PING"), "PONG"));
    CHECK(is_status(ASK("CLIENT SETNAME eddy-test"), "OK"));
    CHECK(is_string(ASK("CLIENT GETNAME"), "eddy-test"));
    CHECK(ASK("CLIENT INFO") && strstr(last->str, "name=eddy-test") != NULL);
}

static void strings(void) {
    CHECK(is_status(ASK("SET %s %s", "k", "a value with spaces"), "OK"));
    CHECK(is_string(ASK("GET k"), "a value with spaces"));
    CHECK(ASK("GET none") && last->type == REDIS_REPLY_NIL);
    CHECK(is_integer(ASK("INCRBY n %lld", 42LL), 42));
    CHECK(is_array(ASK("MGET k none"), 2) && last->element[1]->type == REDIS_REPLY_NIL);
}

static void collections(void) {
    CHECK(is_integer(ASK("HSET h a 1 b 2"), 2));
    CHECK(is_array(ASK("HGETALL h"), 4));
    CHECK(is_integer(ASK("RPUSH l a b c"), 3));
    CHECK(is_array(ASK("LRANGE l 0 -1"), 3) && is_string(last->element[2], "c"));
    CHECK(is_integer(ASK("SADD s a b"), 2));
    CHECK(is_array(ASK("SMEMBERS s"), 2));
    CHECK(is_integer(ASK("ZADD z 1 a 2.5 b"), 2));
    CHECK(is_array(ASK("ZRANGE z 0 -1 WITHSCORES"), 4) && is_string(last->element[3], "2.5"));
}

static void expiry(void) {
    CHECK(is_status(ASK("SET e 1 PX 100000"), "OK"));
    CHECK(ASK("TTL e") && last->integer > 0 && last->integer <= 100);
    CHECK(is_integer(ASK("PERSIST e"), 1));
    CHECK(is_integer(ASK("TTL e"), -1));
}

static void pipeline(void) {
    for (int i = 0; i < 10000; ++i) {
        redisAppendCommand(c, "SET p%d %d", i, i);
        redisAppendCommand(c, "GET p%d", i);
    }
    for (int i = 0; i < 10000; ++i) {
        char expected[16];
        redisReply* reply = NULL;
        snprintf(expected, sizeof expected, "%d", i);
        CHECK(redisGetReply(c, (void**)&reply) == REDIS_OK && is_status(reply, "OK"));
        freeReplyObject(reply);
        CHECK(redisGetReply(c, (void**)&reply) == REDIS_OK && is_string(reply, expected));
        freeReplyObject(reply);
    }
}

static void transactions(void) {
    CHECK(is_status(ASK("SET balance 10"), "OK"));
    CHECK(is_status(ASK("WATCH balance"), "OK"));
    redisContext* other = open_connection();
    redisReply* reply = redisCommand(other, "SET balance 100");
    CHECK(is_status(reply, "OK"));
    freeReplyObject(reply);
    redisFree(other);
    CHECK(is_status(ASK("MULTI"), "OK"));
    CHECK(is_status(ASK("SET balance 1"), "QUEUED"));
    CHECK(ASK("EXEC") && last->type == REDIS_REPLY_NIL);
    CHECK(is_status(ASK("MULTI"), "OK"));
    CHECK(is_status(ASK("INCR balance"), "QUEUED"));
    CHECK(is_array(ASK("EXEC"), 1) && is_integer(last->element[0], 101));
}

static void pubsub(void) {
    redisContext* listener = open_connection();
    redisReply* reply = redisCommand(listener, "SUBSCRIBE news");
    CHECK(is_array(reply, 3) && is_string(reply->element[0], "subscribe"));
    freeReplyObject(reply);
    reply = redisCommand(listener, "PSUBSCRIBE n*s");
    CHECK(is_array(reply, 3) && is_integer(reply->element[2], 2));
    freeReplyObject(reply);
    CHECK(is_integer(ASK("PUBLISH news hello"), 2));
    CHECK(redisGetReply(listener, (void**)&reply) == REDIS_OK && is_array(reply, 3));
    CHECK(is_string(reply->element[0], "message") && is_string(reply->element[2], "hello"));
    freeReplyObject(reply);
    CHECK(redisGetReply(listener, (void**)&reply) == REDIS_OK && is_array(reply, 4));
    CHECK(is_string(reply->element[0], "pmessage"));
    freeReplyObject(reply);
    redisFree(listener);
}

static void scan(void) {
    char cursor[32] = "0";
    size_t found = 0;
    do {
        CHECK(is_array(ASK("SCAN %s MATCH p* COUNT 500", cursor), 2));
        found += last->element[1]->elements;
        snprintf(cursor, sizeof cursor, "%s", last->element[0]->str);
    } while (strcmp(cursor, "0") != 0);
    CHECK(found >= 10000);
}

static void blocking(void) {
    CHECK(ASK("BLPOP empty 0.1") && last->type == REDIS_REPLY_NIL);
    redisContext* waiter = open_connection();
    redisAppendCommand(waiter, "BRPOP q1 q2 30");
    int done = 0;
    while (!done) CHECK(redisBufferWrite(waiter, &done) == REDIS_OK);
    bool blocked = false;
    for (int i = 0; i < 1500 && !blocked; ++i) {
        blocked = strstr(ASK("INFO clients")->str, "blocked_clients:1") != NULL;
        if (!blocked) usleep(10000);
    }
    CHECK(blocked);
    CHECK(is_integer(ASK("LPUSH q2 job"), 1));
    redisReply* reply = NULL;
    CHECK(redisGetReply(waiter, (void**)&reply) == REDIS_OK && is_array(reply, 2));
    CHECK(is_string(reply->element[1], "job"));
    freeReplyObject(reply);
    redisFree(waiter);
}

static void binary(void) {
    char all[256];
    for (int i = 0; i < 256; ++i) all[i] = (char)i;
    CHECK(is_status(ASK("SET %b %b", all, sizeof all, all, sizeof all), "OK"));
    CHECK(ASK("GET %b", all, sizeof all) && last->len == sizeof all && memcmp(last->str, all, sizeof all) == 0);
}

static void large(void) {
    const size_t size = 40 << 20;
    char* value = malloc(size);
    memset(value, 'x', size);
    value[size - 1] = '\n';
    CHECK(is_status(ASK("SET large %b", value, size), "OK"));
    CHECK(ASK("GET large") && last->type == REDIS_REPLY_STRING && last->len == size);
    CHECK(memcmp(last->str, value, size) == 0);
    CHECK(is_integer(ASK("DEL large"), 1));
    free(value);
}

static void errors(void) {
    CHECK(is_status(ASK("SET str x"), "OK"));
    CHECK(is_error(ASK("LPUSH str 1"), "WRONGTYPE Operation against a key holding the wrong kind of value"));
    CHECK(is_error(ASK("INCR str"), "ERR value is not an integer or out of range"));
    CHECK(is_error(ASK("NOSUCH x"), "ERR unknown command 'NOSUCH', with args beginning with: 'x'"));
    CHECK(is_error(ASK("GET"), "ERR wrong number of arguments for 'get' command"));
}

static void databases(void) {
    CHECK(is_status(ASK("SELECT 3"), "OK"));
    CHECK(is_status(ASK("SET only here"), "OK"));
    CHECK(is_status(ASK("SELECT 0"), "OK"));
    CHECK(is_integer(ASK("EXISTS only"), 0));
    CHECK(is_error(ASK("SELECT 99"), "ERR DB index is out of range"));
}

static void password(void) {
    CHECK(is_status(ASK("CONFIG SET requirepass sesame"), "OK"));
    redisContext* other = open_connection();
    redisReply* reply = redisCommand(other, "PING");
    CHECK(is_error(reply, "NOAUTH Authentication required."));
    freeReplyObject(reply);
    reply = redisCommand(other, "AUTH wrong");
    CHECK(is_error(reply, "WRONGPASS"));
    freeReplyObject(reply);
    reply = redisCommand(other, "AUTH sesame");
    CHECK(is_status(reply, "OK"));
    freeReplyObject(reply);
    redisFree(other);
    CHECK(is_status(ASK("CONFIG SET requirepass %s", ""), "OK"));
}

static void restart(void) {
    char line[16] = "";
    printf("ask restart\n");
    CHECK(fgets(line, sizeof line, stdin) != NULL && strcmp(line, "done\n") == 0);
    CHECK(ASK("PING") == NULL && c->err != 0);
    CHECK(redisReconnect(c) == REDIS_OK);
    CHECK(is_status(ASK("PING"), "PONG"));
}

static void step(const char* name, void (*body)(void)) {
    wrong = NULL;
    body();
    if (wrong != NULL) {
        failed = 1;
        printf("FAILED %s: line %d: %s; the reply is type %d: %.300s\n", name, wrong_line, wrong,
               last ? last->type : 0, last && last->str ? last->str : c->errstr);
    } else {
        printf("ok %s\n", name);
    }
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    const char* text = getenv("EDDY_CLIENT_PORT");
    port = text ? atoi(text) : 6379;
    printf("version %d.%d.%d\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
    c = open_connection();
    step("hello", hello);
    step("strings", strings);
    step("collections", collections);
    step("expiry", expiry);
    step("pipeline", pipeline);
    step("transactions", transactions);
    step("pub/sub", pubsub);
    step("scan", scan);
    step("blocking", blocking);
    step("binary", binary);
    step("large", large);
    step("errors", errors);
    step("databases", databases);
    step("password", password);
    step("restart", restart);
    freeReplyObject(last);
    redisFree(c);
    return failed;
}
