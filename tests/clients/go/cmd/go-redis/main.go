// go-redis, as its users write it.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	. "eddy.test/clients/steps"
)

var ctx = context.Background()

func options() *redis.Options {
	protocol := 2
	if Resp3 {
		protocol = 3
	}
	return &redis.Options{Addr: Address(), Protocol: protocol, TLSConfig: TLS()}
}

func main() {
	Version("github.com/redis/go-redis/v9")
	r := redis.NewClient(options())
	everything := ""
	for i := 0; i < 256; i++ {
		everything += string([]byte{byte(i)})
	}
	everything += "\r\n$5\r\n"

	Step("hello", func() {
		Is(Must(r.Ping(ctx).Result()), "PONG")
		o := options()
		o.ClientName = "eddy-test"
		named := redis.NewClient(o)
		defer named.Close()
		Is(Must(named.ClientGetName(ctx).Result()), "eddy-test")
		info := Must(named.Do(ctx, "CLIENT", "INFO").Text())
		True(strings.Contains(info, "name=eddy-test"), "the name")
		if strings.Contains(info, "lib-name=") {
			Eventually("lib-name", func() bool {
				return strings.Contains(Must(named.Do(ctx, "CLIENT", "INFO").Text()), "lib-name=go-redis")
			})
		}
		True(Must(named.ClientInfo(ctx).Result()).Name == "eddy-test", "the parsed CLIENT INFO")
	})
	Step("strings", func() {
		Is(Must(r.Set(ctx, "k", "v", 0).Result()), "OK")
		Is(Must(r.Get(ctx, "k").Result()), "v")
		Is(r.Get(ctx, "none").Err(), redis.Nil)
		Is(Must(r.SetNX(ctx, "k", "w", 0).Result()), false)
		Is(Must(r.SetArgs(ctx, "k", "w", redis.SetArgs{Get: true, TTL: time.Minute}).Result()), "v")
		Ok(r.MSet(ctx, "a", 1, "b", 2).Err())
		Is(Must(r.MGet(ctx, "a", "b", "none").Result()), []any{"1", "2", nil})
		Is(Must(r.IncrBy(ctx, "n", 42).Result()), int64(42))
		Is(Must(r.IncrByFloat(ctx, "n", 0.5).Result()), 42.5)
		Is(Must(r.GetDel(ctx, "k").Result()), "w")
		Is(Must(r.Del(ctx, "a", "b", "none").Result()), int64(2))
	})
	Step("hashes", func() {
		Is(Must(r.HSet(ctx, "h", map[string]any{"a": 1, "b": "two"}).Result()), int64(2))
		Is(Must(r.HGetAll(ctx, "h").Result()), map[string]string{"a": "1", "b": "two"})
		Is(Must(r.HMGet(ctx, "h", "b", "c").Result()), []any{"two", nil})
		var into struct {
			A int    `redis:"a"`
			B string `redis:"b"`
		}
		Ok(r.HGetAll(ctx, "h").Scan(&into))
		Is(into.A, 1)
		Is(Must(r.HIncrBy(ctx, "h", "a", 4).Result()), int64(5))
		Is(Must(r.HRandFieldWithValues(ctx, "h", 2).Result()) != nil, true)
		Is(Must(r.HDel(ctx, "h", "a").Result()), int64(1))
	})
	Step("lists", func() {
		Is(Must(r.RPush(ctx, "l", "a", "b", "c").Result()), int64(3))
		Is(Must(r.LRange(ctx, "l", 0, -1).Result()), []string{"a", "b", "c"})
		Is(Must(r.LPop(ctx, "l").Result()), "a")
		Is(Must(r.RPopCount(ctx, "l", 5).Result()), []string{"c", "b"})
		Is(Must(r.LLen(ctx, "l").Result()), int64(0))
		r.RPush(ctx, "lm", "x")
		key, values, err := r.LMPop(ctx, "left", 1, "none", "lm").Result()
		Ok(err)
		Is(key, "lm")
		Is(values, []string{"x"})
	})
	Step("sets", func() {
		Is(Must(r.SAdd(ctx, "s", "a", "b", "c").Result()), int64(3))
		members := Must(r.SMembers(ctx, "s").Result())
		sort.Strings(members)
		Is(members, []string{"a", "b", "c"})
		Is(Must(r.SIsMember(ctx, "s", "a").Result()), true)
		r.SAdd(ctx, "t", "b", "d")
		Is(Must(r.SInter(ctx, "s", "t").Result()), []string{"b"})
		Is(Must(r.SMIsMember(ctx, "s", "a", "x").Result()), []bool{true, false})
	})
	Step("sorted sets", func() {
		Is(Must(r.ZAdd(ctx, "z", redis.Z{Score: 1, Member: "a"}, redis.Z{Score: 2.5, Member: "b"}).Result()), int64(2))
		Is(Must(r.ZScore(ctx, "z", "b").Result()), 2.5)
		Is(Must(r.ZRangeWithScores(ctx, "z", 0, -1).Result()), []redis.Z{{Score: 1, Member: "a"}, {Score: 2.5, Member: "b"}})
		Is(Must(r.ZRangeByScore(ctx, "z", &redis.ZRangeBy{Min: "(1", Max: "+inf"}).Result()), []string{"b"})
		Is(Must(r.ZIncrBy(ctx, "z", 10, "a").Result()), 11.0)
		Is(Must(r.ZRank(ctx, "z", "a").Result()), int64(1))
		Is(Must(r.ZPopMin(ctx, "z").Result()), []redis.Z{{Score: 2.5, Member: "b"}})
		Is(Must(r.ZMScore(ctx, "z", "a", "none").Result()), []float64{11, 0})
		Ok(r.GeoAdd(ctx, "geo", &redis.GeoLocation{Name: "Palermo", Longitude: 13.361389, Latitude: 38.115556}).Err())
		Is(len(Must(r.GeoSearchLocation(ctx, "geo", &redis.GeoSearchLocationQuery{GeoSearchQuery: redis.GeoSearchQuery{
			Longitude: 13, Latitude: 38, Radius: 100, RadiusUnit: "km"}, WithCoord: true, WithDist: true}).Result())), 1)
	})
	Step("expiry", func() {
		Ok(r.Set(ctx, "e", 1, 100*time.Second).Err())
		True(Must(r.TTL(ctx, "e").Result()) > 0, "a TTL")
		Is(Must(r.ExpireLT(ctx, "e", 50*time.Second).Result()), true)
		Is(Must(r.Persist(ctx, "e").Result()), true)
		Is(Must(r.TTL(ctx, "e").Result()), time.Duration(-1))
		Ok(r.PExpire(ctx, "e", time.Millisecond).Err())
		Eventually("the key's end", func() bool { return r.Get(ctx, "e").Err() == redis.Nil })
	})
	Step("pipeline", func() {
		replies, err := r.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := 0; i < 5000; i++ {
				p.Set(ctx, fmt.Sprint("p", i), i, 0)
				p.Get(ctx, fmt.Sprint("p", i))
			}
			return nil
		})
		Ok(err)
		Is(replies[9999].(*redis.StringCmd).Val(), "4999")
		mixed, err := r.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.Set(ctx, "str", "x", 0)
			p.LPush(ctx, "str", "y")
			p.Get(ctx, "str")
			return nil
		})
		Fails(err, "WRONGTYPE")
		Is(mixed[2].(*redis.StringCmd).Val(), "x")
	})
	Step("transactions", func() {
		Ok(r.Set(ctx, "balance", 10, 0).Err())
		replies, err := r.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Incr(ctx, "balance")
			p.Get(ctx, "balance")
			return nil
		})
		Ok(err)
		Is(replies[1].(*redis.StringCmd).Val(), "11")
		err = r.Watch(ctx, func(tx *redis.Tx) error {
			Ok(r.Set(ctx, "balance", 100, 0).Err())
			_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.Set(ctx, "balance", 1, 0)
				return nil
			})
			return err
		}, "balance")
		True(errors.Is(err, redis.TxFailedErr), "a refused transaction")
		Is(Must(r.Get(ctx, "balance").Result()), "100")
	})
	Step("pub/sub", func() {
		p := r.Subscribe(ctx, "news")
		defer p.Close()
		Ok(p.PSubscribe(ctx, "n*s"))
		Must(p.Receive(ctx))
		Must(p.Receive(ctx))
		Is(Must(r.PubSubNumSub(ctx, "news").Result()), map[string]int64{"news": 1})
		Is(Must(r.Publish(ctx, "news", everything).Result()), int64(2))
		channel := p.Channel()
		patterns := []string{(<-channel).Pattern, (<-channel).Pattern}
		sort.Strings(patterns)
		Is(patterns, []string{"", "n*s"})
		Ok(p.Unsubscribe(ctx))
		s := r.SSubscribe(ctx, "shard")
		defer s.Close()
		Must(s.Receive(ctx))
		Is(Must(r.SPublish(ctx, "shard", "x").Result()), int64(1))
		Is((<-s.Channel()).Payload, "x")
	})
	Step("scan", func() {
		Must(r.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := 0; i < 3000; i++ {
				p.Set(ctx, fmt.Sprint("scan:", i), i, 0)
			}
			return nil
		}))
		seen := map[string]bool{}
		keys := r.Scan(ctx, 0, "scan:*", 100).Iterator()
		for keys.Next(ctx) {
			seen[keys.Val()] = true
		}
		Ok(keys.Err())
		Is(len(seen), 3000)
		for i := 0; i < 1000; i++ {
			r.ZAdd(ctx, "bigz", redis.Z{Score: float64(i), Member: i})
		}
		pairs := 0
		members := r.ZScan(ctx, "bigz", 0, "", 10).Iterator()
		for members.Next(ctx) {
			pairs++
		}
		Is(pairs, 2000)
	})
	Step("blocking", func() {
		start := time.Now()
		Is(r.BLPop(ctx, time.Second, "empty").Err(), redis.Nil)
		True(time.Since(start) >= 900*time.Millisecond, "the time-out")
		got := make(chan []string, 1)
		go func() { got <- r.BRPop(ctx, 30*time.Second, "q1", "q2").Val() }()
		Eventually("a blocked client", func() bool {
			return strings.Contains(r.Info(ctx, "clients").Val(), "blocked_clients:1")
		})
		Ok(r.LPush(ctx, "q2", "job").Err())
		Is(<-got, []string{"q2", "job"})
		Is(Must(r.Ping(ctx).Result()), "PONG")
	})
	Step("binary", func() {
		Ok(r.Set(ctx, everything, everything, 0).Err())
		Is(Must(r.Get(ctx, everything).Result()), everything)
	})
	Step("large", func() {
		value := bytes.Repeat([]byte("abcdefgh"), 5<<20)
		Ok(r.Set(ctx, "large", value, 0).Err())
		True(bytes.Equal(Must(r.Get(ctx, "large").Bytes()), value), "the same bytes")
		r.Del(ctx, "large")
	})
	Step("unicode", func() {
		for _, text := range []string{"Zażółć gęślą jaźń", "日本語", "😀🚀"} {
			Ok(r.Set(ctx, "u:"+text, text, 0).Err())
			Is(Must(r.Get(ctx, "u:"+text).Result()), text)
		}
	})
	Step("errors", func() {
		Ok(r.Set(ctx, "str", "x", 0).Err())
		Is(r.LPush(ctx, "str", 1).Err().Error(), "WRONGTYPE Operation against a key holding the wrong kind of value")
		Fails(r.Incr(ctx, "str").Err(), "ERR value is not an integer or out of range")
		Fails(r.Do(ctx, "NOSUCH", "x").Err(), "ERR unknown command 'NOSUCH', with args beginning with: 'x'")
		Fails(r.Do(ctx, "GET").Err(), "ERR wrong number of arguments for 'get' command")
	})
	Step("databases", func() {
		o := options()
		o.DB = 3
		three := redis.NewClient(o)
		defer three.Close()
		Ok(three.Set(ctx, "only", "here", 0).Err())
		Is(Must(r.Exists(ctx, "only").Result()), int64(0))
		Ok(three.FlushDB(ctx).Err())
	})
	Step("commands", func() {
		commands := Must(r.Command(ctx).Result())
		Is(commands["get"].Arity, int8(2))
		Is(Must(r.CommandGetKeys(ctx, "MSET", "a", 1, "b", 2).Result()), []string{"a", "b"})
		Is(Must(r.ConfigGet(ctx, "maxmemory").Result()), map[string]string{"maxmemory": "0"})
		Must(r.SlowLogGet(ctx, 10).Result())
	})
	Step("pool", func() {
		o := options()
		o.PoolSize = 8
		pooled := redis.NewClient(o)
		defer pooled.Close()
		var group sync.WaitGroup
		for range 32 {
			group.Add(1)
			go func() {
				defer group.Done()
				for range 50 {
					pooled.Incr(ctx, "counter")
				}
			}()
		}
		group.Wait()
		Is(Must(pooled.Get(ctx, "counter").Int()), 1600)
	})
	Step("password", func() {
		o := options()
		o.Password = "open sesame"
		good := redis.NewClient(o)
		defer good.Close()
		Ok(r.ConfigSet(ctx, "requirepass", "open sesame").Err())
		defer good.ConfigSet(ctx, "requirepass", "")
		none := redis.NewClient(options())
		defer none.Close()
		Fails(none.Ping(ctx).Err(), "NOAUTH")
		o = options()
		o.Password = "wrong"
		bad := redis.NewClient(o)
		defer bad.Close()
		Fails(bad.Ping(ctx).Err(), "WRONGPASS")
		Ok(good.Ping(ctx).Err())
		url := Must(redis.ParseURL(Scheme() + "://default:open%20sesame@" + Address() + "/1"))
		byURL := redis.NewClient(url)
		defer byURL.Close()
		Ok(byURL.Ping(ctx).Err())
	})
	Step("restart", func() {
		p := r.Subscribe(ctx, "again")
		defer p.Close()
		Must(p.Receive(ctx))
		channel := p.Channel()
		RestartServer()
		Eventually("a reconnect", func() bool { return r.Set(ctx, "after", 1, 0).Err() == nil })
		Eventually("the subscription again", func() bool {
			r.Publish(ctx, "again", "x")
			select {
			case <-channel:
				return true
			case <-time.After(100 * time.Millisecond):
				return false
			}
		})
	})
	Step("scripts", func() {
		Needs("eval", "evalsha", "script|load")
		double := redis.NewScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")
		Is(Must(double.Run(ctx, r, []string{"sn"}, 21).Int()), 21)
		Is(Must(double.Run(ctx, r, []string{"sn"}, 21).Int()), 42)
		Is(Must(double.Exists(ctx, r).Result()), []bool{true})
	})
	Step("streams", func() {
		Needs("xadd", "xreadgroup", "xautoclaim")
		id := Must(r.XAdd(ctx, &redis.XAddArgs{Stream: "stream", Values: map[string]any{"a": 1}}).Result())
		Ok(r.XGroupCreate(ctx, "stream", "g", "0").Err())
		got := Must(r.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "g", Consumer: "me", Streams: []string{"stream", ">"}}).Result())
		Is(got[0].Messages[0].ID, id)
		Is(Must(r.XPending(ctx, "stream", "g").Result()).Count, int64(1))
		Is(Must(r.XAck(ctx, "stream", "g", id).Result()), int64(1))
		Is(len(Must(r.XInfoStreamFull(ctx, "stream", 10).Result()).Groups), 1)
	})
	Step("blocking sorted sets", func() {
		Needs("bzpopmin", "bzmpop")
		r.ZAdd(ctx, "bz", redis.Z{Score: 1, Member: "a"})
		Is(Must(r.BZPopMin(ctx, time.Second, "bz").Result()).Member, "a")
	})
	Step("acl", func() {
		Needs("acl|setuser", "acl|whoami", "acl|list")
		Ok(r.ACLSetUser(ctx, "reader", "on", ">secret", "+@read", "~pub:*").Err())
		o := options()
		o.Username, o.Password = "reader", "secret"
		reader := redis.NewClient(o)
		defer reader.Close()
		Fails(reader.Set(ctx, "pub:x", 1, 0).Err(), "NOPERM")
		Is(len(Must(r.ACLList(ctx).Result())), 2)
		Ok(r.ACLDelUser(ctx, "reader").Err())
	})
	Finish()
}
