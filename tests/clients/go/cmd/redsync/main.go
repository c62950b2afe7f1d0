// redsync: Redlock on go-redis, on three servers, of which one ends.
package main

import (
	"context"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	. "eddy.test/clients/steps"
)

func main() {
	Version("github.com/go-redsync/redsync/v4")
	var pools []redsyncredis.Pool
	var first *redis.Client
	for _, address := range Addresses() {
		client := redis.NewClient(&redis.Options{Addr: address})
		if first == nil {
			first = client
		}
		pools = append(pools, goredis.NewPool(client))
	}
	locks := redsync.New(pools...)
	Step("lock", func() {
		Needs("eval", "evalsha")
		mine := locks.NewMutex("resource", redsync.WithExpiry(30*time.Second))
		Ok(mine.Lock())
		theirs := locks.NewMutex("resource", redsync.WithTries(2), redsync.WithRetryDelay(10*time.Millisecond))
		Fails(theirs.Lock(), "")
		True(Must(mine.Extend()), "the extension")
		True(Must(mine.Unlock()), "the release")
		Is(Must(first.Exists(context.Background(), "resource").Result()), int64(0))
		Ok(theirs.Lock())
		True(Must(theirs.Unlock()), "the release")
	})
	Step("two of three servers", func() {
		Needs("eval", "evalsha")
		before := locks.NewMutex("kept", redsync.WithExpiry(30*time.Second))
		Ok(before.Lock())
		EndLastServer()
		theirs := locks.NewMutex("kept", redsync.WithTries(2), redsync.WithRetryDelay(10*time.Millisecond))
		Fails(theirs.Lock(), "")
		// The lost server is reported as an error, though most have agreed.
		before.Unlock()
		Is(Must(first.Exists(context.Background(), "kept").Result()), int64(0))
		Ok(theirs.Lock())
		Is(Must(first.Exists(context.Background(), "kept").Result()), int64(1))
	})
	Finish()
}
