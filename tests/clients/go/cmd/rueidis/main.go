// rueidis, as its users write it. It begins with HELLO 3 and CLIENT TRACKING by default.
package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	. "eddy.test/clients/steps"
)

var ctx = context.Background()

func option() rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: []string{Address()}, AlwaysRESP2: !Resp3, DisableCache: true,
		ForceSingleClient: true, TLSConfig: TLS()}
}

func main() {
	Version("github.com/redis/rueidis")
	r := Must(rueidis.NewClient(option()))
	do := func(command rueidis.Completed) rueidis.RedisResult { return r.Do(ctx, command) }

	Step("hello", func() {
		o := option()
		o.ClientName = "eddy-test"
		named := Must(rueidis.NewClient(o))
		defer named.Close()
		info := Must(named.Do(ctx, named.B().ClientInfo().Build()).ToString())
		True(strings.Contains(info, "name=eddy-test"), "the name")
		if strings.Contains(info, "lib-name=") {
			True(strings.Contains(info, "lib-name=rueidis"), "lib-name in "+info)
		}
	})
	Step("strings", func() {
		Ok(do(r.B().Set().Key("k").Value("v").Ex(time.Minute).Build()).Error())
		Is(Must(do(r.B().Get().Key("k").Build()).ToString()), "v")
		True(rueidis.IsRedisNil(do(r.B().Get().Key("none").Build()).Error()), "nil")
		Ok(do(r.B().Mset().KeyValue().KeyValue("a", "1").KeyValue("b", "2").Build()).Error())
		Is(Must(do(r.B().Mget().Key("a", "b").Build()).AsStrSlice()), []string{"1", "2"})
		Is(Must(do(r.B().Incrby().Key("n").Increment(42).Build()).AsInt64()), int64(42))
	})
	Step("hashes", func() {
		Is(Must(do(r.B().Hset().Key("h").FieldValue().FieldValue("a", "1").FieldValue("b", "two").Build()).AsInt64()), int64(2))
		Is(Must(do(r.B().Hgetall().Key("h").Build()).AsStrMap()), map[string]string{"a": "1", "b": "two"})
	})
	Step("lists", func() {
		Is(Must(do(r.B().Rpush().Key("l").Element("a", "b").Build()).AsInt64()), int64(2))
		Is(Must(do(r.B().Lrange().Key("l").Start(0).Stop(-1).Build()).AsStrSlice()), []string{"a", "b"})
	})
	Step("sets", func() {
		Is(Must(do(r.B().Sadd().Key("s").Member("a", "b").Build()).AsInt64()), int64(2))
		Is(Must(do(r.B().Sismember().Key("s").Member("a").Build()).AsBool()), true)
		Is(len(Must(do(r.B().Smembers().Key("s").Build()).AsStrSlice())), 2)
	})
	Step("sorted sets", func() {
		Ok(do(r.B().Zadd().Key("z").ScoreMember().ScoreMember(1, "a").ScoreMember(2.5, "b").Build()).Error())
		Is(Must(do(r.B().Zrange().Key("z").Min("0").Max("-1").Withscores().Build()).AsZScores()),
			[]rueidis.ZScore{{Member: "a", Score: 1}, {Member: "b", Score: 2.5}})
		Is(Must(do(r.B().Zscore().Key("z").Member("b").Build()).AsFloat64()), 2.5)
	})
	Step("expiry", func() {
		Ok(do(r.B().Pexpire().Key("k").Milliseconds(1).Build()).Error())
		Eventually("the key's end", func() bool {
			return Must(do(r.B().Exists().Key("k").Build()).AsInt64()) == 0
		})
	})
	Step("pipeline", func() {
		commands := rueidis.Commands{}
		for i := range 5000 {
			commands = append(commands, r.B().Set().Key(fmt.Sprint("p", i)).Value(fmt.Sprint(i)).Build(),
				r.B().Get().Key(fmt.Sprint("p", i)).Build())
		}
		Is(Must(r.DoMulti(ctx, commands...)[9999].ToString()), "4999")
		var group sync.WaitGroup
		for range 64 {
			group.Add(1)
			go func() {
				defer group.Done()
				for range 50 {
					do(r.B().Incr().Key("counter").Build())
				}
			}()
		}
		group.Wait()
		Is(Must(do(r.B().Get().Key("counter").Build()).AsInt64()), int64(3200))
	})
	Step("transactions", func() {
		Ok(do(r.B().Set().Key("balance").Value("10").Build()).Error())
		Ok(r.Dedicated(func(c rueidis.DedicatedClient) error {
			Ok(c.Do(ctx, c.B().Watch().Key("balance").Build()).Error())
			Ok(do(r.B().Set().Key("balance").Value("100").Build()).Error())
			replies := c.DoMulti(ctx, c.B().Multi().Build(), c.B().Set().Key("balance").Value("1").Build(), c.B().Exec().Build())
			True(rueidis.IsRedisNil(replies[2].Error()), "a refused transaction")
			replies = c.DoMulti(ctx, c.B().Multi().Build(), c.B().Incr().Key("balance").Build(), c.B().Exec().Build())
			Is(Must(replies[2].AsIntSlice()), []int64{101})
			return nil
		}))
	})
	Step("pub/sub", func() {
		listening, cancel := context.WithCancel(ctx)
		got := make(chan string, 10)
		ended := make(chan error, 1)
		go func() {
			ended <- r.Receive(listening, r.B().Psubscribe().Pattern("n*s").Build(), func(m rueidis.PubSubMessage) {
				got <- m.Pattern + " " + m.Channel + " " + m.Message
			})
		}()
		Eventually("a subscriber", func() bool {
			return Must(do(r.B().Publish().Channel("news").Message("hello").Build()).AsInt64()) == 1
		})
		Is(<-got, "n*s news hello")
		cancel()
		True(errors.Is(<-ended, context.Canceled), "the end")
	})
	Step("scan", func() {
		seen := map[string]bool{}
		var cursor uint64
		for {
			entry := Must(do(r.B().Scan().Cursor(cursor).Match("p*").Count(100).Build()).AsScanEntry())
			for _, key := range entry.Elements {
				seen[key] = true
			}
			if cursor = entry.Cursor; cursor == 0 {
				break
			}
		}
		Is(len(seen), 5000)
	})
	Step("blocking", func() {
		True(rueidis.IsRedisNil(do(r.B().Blpop().Key("empty").Timeout(1).Build()).Error()), "the time-out")
		got := make(chan []string, 1)
		go func() { got <- Must(do(r.B().Brpop().Key("q").Timeout(30).Build()).AsStrSlice()) }()
		Eventually("a blocked client", func() bool {
			return strings.Contains(Must(do(r.B().Info().Section("clients").Build()).ToString()), "blocked_clients:1")
		})
		Ok(do(r.B().Lpush().Key("q").Element("job").Build()).Error())
		Is(<-got, []string{"q", "job"})
	})
	Step("binary and large", func() {
		value := strings.Repeat("\x00\xff\r\n$5\r\n*1\r\n", 3<<20)
		Ok(do(r.B().Set().Key(value[:1000]).Value(value).Build()).Error())
		True(Must(do(r.B().Get().Key(value[:1000]).Build()).ToString()) == value, "the same bytes")
		Ok(do(r.B().Del().Key(value[:1000]).Build()).Error())
	})
	Step("errors", func() {
		Ok(do(r.B().Set().Key("str").Value("x").Build()).Error())
		err := do(r.B().Lpush().Key("str").Element("1").Build()).Error()
		redisError, is := rueidis.IsRedisErr(err)
		True(is, "an error of the server")
		Is(redisError.Error(), "WRONGTYPE Operation against a key holding the wrong kind of value")
		Fails(do(r.B().Arbitrary("NOSUCH").Build()).Error(), "unknown command 'NOSUCH'")
	})
	Step("databases", func() {
		o := option()
		o.SelectDB = 3
		three := Must(rueidis.NewClient(o))
		defer three.Close()
		Ok(three.Do(ctx, three.B().Set().Key("only").Value("here").Build()).Error())
		Is(Must(do(r.B().Exists().Key("only").Build()).AsInt64()), int64(0))
	})
	Step("password", func() {
		Ok(do(r.B().ConfigSet().ParameterValue().ParameterValue("requirepass", "open sesame").Build()).Error())
		defer do(r.B().ConfigSet().ParameterValue().ParameterValue("requirepass", "").Build())
		_, err := rueidis.NewClient(option())
		Fails(err, "NOAUTH")
		o := option()
		o.Password = "wrong"
		_, err = rueidis.NewClient(o)
		Fails(err, "WRONGPASS")
		o.Password = "open sesame"
		good := Must(rueidis.NewClient(o))
		defer good.Close()
		Ok(good.Do(ctx, good.B().Ping().Build()).Error())
	})
	Step("restart", func() {
		RestartServer()
		// Keys go over several connections; a write on one that is dead fails once.
		Eventually("a reconnect", func() bool {
			for i := range 100 {
				if do(r.B().Set().Key(fmt.Sprint("after", i)).Value("1").Build()).Error() != nil {
					return false
				}
			}
			return true
		})
	})
	Step("default client with its cache", func() {
		Needs("client|tracking")
		if !Resp3 {
			panic(NotYet("rueidis keeps a client-side cache with RESP3 alone"))
		}
		cached := Must(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{Address()}, TLSConfig: TLS()}))
		defer cached.Close()
		Ok(do(r.B().Set().Key("tracked").Value("1").Build()).Error())
		get := func() rueidis.RedisResult {
			return cached.DoCache(ctx, cached.B().Get().Key("tracked").Cache(), time.Minute)
		}
		Is(Must(get().ToString()), "1")
		True(get().IsCacheHit(), "a hit")
		Ok(do(r.B().Set().Key("tracked").Value("2").Build()).Error())
		Eventually("the invalidation", func() bool { return Must(get().ToString()) == "2" })
	})
	Step("scripts", func() {
		Needs("eval", "evalsha")
		double := rueidis.NewLuaScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")
		Is(Must(double.Exec(ctx, r, []string{"sn"}, []string{"21"}).AsInt64()), int64(21))
		Is(Must(double.Exec(ctx, r, []string{"sn"}, []string{"21"}).AsInt64()), int64(42))
	})
	Step("streams", func() {
		Needs("xadd", "xread")
		id := Must(do(r.B().Xadd().Key("stream").Id("*").FieldValue().FieldValue("a", "1").Build()).ToString())
		Is(Must(do(r.B().Xread().Streams().Key("stream").Id("0").Build()).AsXRead())["stream"][0].ID, id)
	})
	Finish()
}
