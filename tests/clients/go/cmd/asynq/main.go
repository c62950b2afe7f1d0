// asynq: task queues on go-redis, all of it by scripts.
package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	. "eddy.test/clients/steps"
)

func main() {
	Version("github.com/hibiken/asynq")
	redis := asynq.RedisClientOpt{Addr: Address()}
	client := asynq.NewClient(redis)
	inspector := asynq.NewInspector(redis)
	var done, tries atomic.Int64
	mux := asynq.NewServeMux()
	mux.HandleFunc("count", func(context.Context, *asynq.Task) error {
		done.Add(1)
		return nil
	})
	mux.HandleFunc("fail", func(context.Context, *asynq.Task) error {
		if tries.Add(1) < 2 {
			return fmt.Errorf("no good")
		}
		return nil
	})
	mux.HandleFunc("result", func(_ context.Context, t *asynq.Task) error {
		_, err := t.ResultWriter().Write(append([]byte("result of "), t.Payload()...))
		return err
	})
	server := asynq.NewServer(redis, asynq.Config{Concurrency: 4, LogLevel: asynq.FatalLevel,
		Queues: map[string]int{"critical": 6, "default": 3}, TaskCheckInterval: 50 * time.Millisecond,
		DelayedTaskCheckInterval: 50 * time.Millisecond,
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return time.Millisecond }})
	started := false
	needs := func() {
		Needs("eval", "evalsha")
		if !started {
			Ok(server.Start(mux))
			started = true
		}
	}

	Step("tasks", func() {
		needs()
		for i := range 100 {
			Must(client.Enqueue(asynq.NewTask("count", []byte(fmt.Sprint(i)))))
		}
		Eventually("all tasks", func() bool { return done.Load() == 100 })
	})
	Step("queues and delays", func() {
		needs()
		before := done.Load()
		Must(client.Enqueue(asynq.NewTask("count", nil), asynq.Queue("critical"), asynq.ProcessIn(300*time.Millisecond)))
		Eventually("the delayed task", func() bool { return done.Load() == before+1 })
	})
	Step("unique tasks", func() {
		needs()
		task := asynq.NewTask("count", []byte("unique"))
		Must(client.Enqueue(task, asynq.Unique(time.Minute), asynq.ProcessIn(time.Hour)))
		_, err := client.Enqueue(task, asynq.Unique(time.Minute), asynq.ProcessIn(time.Hour))
		Fails(err, "already exists")
		Is(len(Must(inspector.ListScheduledTasks("default"))), 1)
		Must(inspector.DeleteAllScheduledTasks("default"))
	})
	Step("retries", func() {
		needs()
		Must(client.Enqueue(asynq.NewTask("fail", nil), asynq.MaxRetry(3)))
		Eventually("the second try", func() bool { return tries.Load() == 2 })
	})
	Step("results", func() {
		needs()
		info := Must(client.Enqueue(asynq.NewTask("result", []byte("x")), asynq.Retention(time.Minute)))
		Eventually("the result", func() bool {
			return string(Must(inspector.GetTaskInfo("default", info.ID)).Result) == "result of x"
		})
	})
	Step("inspection", func() {
		needs()
		info := Must(inspector.GetQueueInfo("default"))
		True(info.Processed >= 100, "the count of processed tasks")
		Ok(inspector.PauseQueue("default"))
		Ok(inspector.UnpauseQueue("default"))
		Eventually("a server", func() bool { return len(Must(inspector.Servers())) == 1 })
	})
	if started {
		server.Shutdown()
	}
	client.Close()
	inspector.Close()
	Finish()
}
