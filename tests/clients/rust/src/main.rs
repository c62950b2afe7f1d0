//! redis-rs, as its users write it: blocking, and asynchronous on tokio.

use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use redis::{pipe, AsyncCommands, Client, Commands, Connection, ErrorKind, RedisResult, ServerErrorKind};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn port() -> u16 {
    std::env::var("EDDY_CLIENT_PORT").unwrap().parse().unwrap()
}

fn resp3() -> bool {
    std::env::var("EDDY_CLIENT_RESP").as_deref() == Ok("3")
}

/// A URL with a database, a password and the protocol.
fn url(user: &str, database: u32) -> String {
    let protocol = if resp3() { "?protocol=resp3" } else { "" };
    format!("redis://{user}127.0.0.1:{}/{database}{protocol}", port())
}

fn connect() -> RedisResult<Connection> {
    Client::open(url("", 0))?.get_connection()
}

macro_rules! is {
    ($actual:expr, $expected:expr) => {{
        let (actual, expected) = ($actual, $expected);
        if actual != expected {
            return Err(format!("line {}: {actual:?}, but {expected:?} was due", line!()).into());
        }
    }};
}

fn eventually(what: &str, mut condition: impl FnMut() -> bool) -> Outcome {
    let end = Instant::now() + Duration::from_secs(15);
    while !condition() {
        if Instant::now() > end {
            return Err(format!("{what} did not come true").into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn restart_server() -> Outcome {
    println!("ask restart");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    is!(line.trim(), "done");
    Ok(())
}

/// True if the server has a command, asked without the library.
fn has(command: &str) -> bool {
    let mut socket = TcpStream::connect(("127.0.0.1", port())).unwrap();
    // A subcommand without arguments changes nothing.
    let question = if command.contains('|') { command.replace('|', " ") } else { format!("COMMAND INFO {command}") };
    write!(socket, "{question}\r\nQUIT\r\n").unwrap();
    let mut reply = String::new();
    socket.read_to_string(&mut reply).unwrap();
    !reply.starts_with("-ERR unknown ") && !reply.starts_with("*1\r\n*-1") && !reply.starts_with("*1\r\n$-1")
}

struct Steps {
    failed: bool,
}

impl Steps {
    fn step(&mut self, name: &str, needs: &[&str], body: impl FnOnce() -> Outcome) {
        if let Some(missing) = needs.iter().find(|command| !has(command)) {
            println!("not yet {name}: the server has no {}", missing.to_uppercase().replace('|', " "));
            return;
        }
        match body() {
            Ok(()) => println!("ok {name}"),
            Err(error) => {
                self.failed = true;
                println!("FAILED {name}: {}", error.to_string().replace('\n', " | "));
            }
        }
    }
}

fn everything() -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..=255).collect();
    bytes.extend_from_slice(b"\r\n$5\r\n");
    bytes
}

fn main() {
    println!("version {}", version());
    let mut all = Steps { failed: false };
    all.step("hello", &[], || {
        let mut c = connect()?;
        is!(redis::cmd("PING").query::<String>(&mut c)?, "PONG");
        redis::cmd("CLIENT").arg("SETNAME").arg("eddy-test").exec(&mut c)?;
        let info: String = redis::cmd("CLIENT").arg("INFO").query(&mut c)?;
        is!(info.contains("name=eddy-test"), true);
        if info.contains("lib-name=") {
            is!(info.contains("lib-name=redis-rs"), true);
        }
        Ok(())
    });
    all.step("strings", &[], || {
        let mut c = connect()?;
        let () = c.set("k", "v")?;
        is!(c.get::<_, String>("k")?, "v");
        is!(c.get::<_, Option<String>>("none")?, None);
        let () = c.mset(&[("a", 1), ("b", 2)])?;
        is!(c.mget::<_, Vec<Option<i32>>>(&["a", "b", "none"])?, vec![Some(1), Some(2), None]);
        is!(c.incr::<_, _, i64>("n", 42)?, 42);
        is!(c.incr::<_, _, f64>("n", 0.5)?, 42.5);
        is!(c.del::<_, i32>(&["a", "b", "none"])?, 2);
        Ok(())
    });
    all.step("hashes", &[], || {
        let mut c = connect()?;
        let () = c.hset_multiple("h", &[("a", "1"), ("b", "two")])?;
        let map: HashMap<String, String> = c.hgetall("h")?;
        is!(map["b"].as_str(), "two");
        is!(c.hincr::<_, _, _, i32>("h", "a", 4)?, 5);
        is!(c.hexists::<_, _, bool>("h", "c")?, false);
        Ok(())
    });
    all.step("lists", &[], || {
        let mut c = connect()?;
        is!(c.rpush::<_, _, i32>("l", &["a", "b", "c"])?, 3);
        is!(c.lrange::<_, Vec<String>>("l", 0, -1)?, vec!["a", "b", "c"]);
        is!(c.lpop::<_, Option<String>>("l", None)?, Some("a".to_string()));
        Ok(())
    });
    all.step("sets", &[], || {
        let mut c = connect()?;
        is!(c.sadd::<_, _, i32>("s", &["a", "b"])?, 2);
        is!(c.smembers::<_, BTreeSet<String>>("s")?.len(), 2);
        is!(c.sismember::<_, _, bool>("s", "a")?, true);
        Ok(())
    });
    all.step("sorted sets", &[], || {
        let mut c = connect()?;
        is!(c.zadd_multiple::<_, _, _, i32>("z", &[(1.0, "a"), (2.5, "b")])?, 2);
        is!(c.zrange_withscores::<_, Vec<(String, f64)>>("z", 0, -1)?, vec![("a".into(), 1.0), ("b".into(), 2.5)]);
        is!(c.zscore::<_, _, Option<f64>>("z", "b")?, Some(2.5));
        is!(c.zrangebyscore::<_, _, _, Vec<String>>("z", "(1", "+inf")?, vec!["b"]);
        Ok(())
    });
    all.step("expiry", &[], || {
        let mut c = connect()?;
        let () = c.set_ex("e", 1, 100)?;
        is!(c.ttl::<_, i64>("e")? > 0, true);
        is!(c.persist::<_, bool>("e")?, true);
        is!(c.pexpire::<_, bool>("e", 1)?, true);
        eventually("the key's end", || !c.exists::<_, bool>("e").unwrap())
    });
    all.step("pipeline", &[], || {
        let mut c = connect()?;
        let mut many = pipe();
        for i in 0..5000 {
            many.set(format!("p{i}"), i).ignore().get(format!("p{i}"));
        }
        is!(many.query::<Vec<i32>>(&mut c)?, (0..5000).collect::<Vec<_>>());
        Ok(())
    });
    all.step("transactions", &[], || {
        let (mut c, mut other) = (connect()?, connect()?);
        let () = c.set("balance", 10)?;
        is!(pipe().atomic().incr("balance", 1).get("balance").query::<(i32, i32)>(&mut c)?, (11, 11));
        let mut tries = 0;
        let (new,): (i32,) = redis::transaction(&mut c, &["balance"], |c, p| {
            tries += 1;
            let old: i32 = c.get("balance")?;
            if tries == 1 {
                let () = other.set("balance", 100)?;
            }
            p.incr("balance", old - old + 1).query(c)
        })?;
        is!((tries, new), (2, 101));
        Ok(())
    });
    all.step("pub/sub", &[], || {
        let (mut c, mut subscriber) = (connect()?, connect()?);
        let mut p = subscriber.as_pubsub();
        p.subscribe("news")?;
        p.psubscribe("n*s")?;
        is!(c.publish::<_, _, i32>("news", everything())?, 2);
        let (first, second) = (p.get_message()?, p.get_message()?);
        is!(first.get_payload::<Vec<u8>>()?, everything());
        is!(first.from_pattern() != second.from_pattern(), true);
        Ok(())
    });
    all.step("scan", &[], || {
        let mut c = connect()?;
        let keys: BTreeSet<String> = c.scan_match::<_, String>("p*")?.collect::<Result<_, _>>()?;
        is!(keys.len(), 5000);
        Ok(())
    });
    all.step("blocking", &[], || {
        let mut c = connect()?;
        is!(c.blpop::<_, Option<(String, String)>>("empty", 0.2)?, None);
        let waiter = std::thread::spawn(|| connect().unwrap().brpop::<_, (String, String)>(&["q1", "q2"], 30.0).unwrap());
        eventually("a blocked client", || {
            redis::cmd("INFO").arg("clients").query::<String>(&mut c).unwrap().contains("blocked_clients:1")
        })?;
        let () = c.lpush("q2", "job")?;
        is!(waiter.join().unwrap(), ("q2".to_string(), "job".to_string()));
        Ok(())
    });
    all.step("binary", &[], || {
        let mut c = connect()?;
        let () = c.set(everything(), everything())?;
        is!(c.get::<_, Vec<u8>>(everything())?, everything());
        Ok(())
    });
    all.step("large", &[], || {
        let mut c = connect()?;
        let value = everything().repeat(150_000);
        let () = c.set("large", &value)?;
        is!(c.get::<_, Vec<u8>>("large")? == value, true);
        let () = c.del("large")?;
        Ok(())
    });
    all.step("unicode", &[], || {
        let mut c = connect()?;
        for text in ["Zażółć gęślą jaźń", "日本語", "😀🚀"] {
            let () = c.set(text, text)?;
            is!(c.get::<_, String>(text)?, text);
        }
        Ok(())
    });
    all.step("errors", &[], || {
        let mut c = connect()?;
        let () = c.set("str", "x")?;
        let error = c.lpush::<_, _, i32>("str", 1).unwrap_err();
        is!(error.code(), Some("WRONGTYPE"));
        is!(error.detail(), Some("Operation against a key holding the wrong kind of value"));
        let error = c.incr::<_, _, i32>("str", 1).unwrap_err();
        is!(error.kind(), ErrorKind::Server(ServerErrorKind::ResponseError));
        is!(error.detail(), Some("value is not an integer or out of range"));
        Ok(())
    });
    all.step("databases", &[], || {
        let mut three = Client::open(url("", 3))?.get_connection()?;
        let () = three.set("only", "here")?;
        is!(connect()?.exists::<_, bool>("only")?, false);
        Ok(())
    });
    all.step("pool", &[], || {
        let pool = r2d2::Pool::builder().max_size(4).build(Client::open(url("", 0))?)?;
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let pool = pool.clone();
                std::thread::spawn(move || {
                    for _ in 0..100 {
                        pool.get().unwrap().incr::<_, _, i32>("counter", 1).unwrap();
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        is!(pool.get()?.get::<_, i32>("counter")?, 800);
        Ok(())
    });
    all.step("password", &[], || {
        let mut c = connect()?;
        let set = |c: &mut Connection, value: &str| {
            redis::cmd("CONFIG").arg("SET").arg("requirepass").arg(value).exec(c)
        };
        set(&mut c, "sesame")?;
        let outcome = (|| -> Outcome {
            let refused = connect().and_then(|mut c| redis::cmd("PING").exec(&mut c)).unwrap_err();
            is!(refused.to_string().to_lowercase().contains("auth"), true);
            is!(Client::open(url(":wrong@", 0))?.get_connection().is_err(), true);
            let mut good = Client::open(url("default:sesame@", 1))?.get_connection()?;
            is!(redis::cmd("PING").query::<String>(&mut good)?, "PONG");
            Ok(())
        })();
        set(&mut c, "")?;
        outcome
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    all.step("asynchronous", &[], || {
        runtime.block_on(async {
            let c = Client::open(url("", 0))?.get_multiplexed_async_connection().await?;
            let tasks: Vec<_> = (0..100)
                .map(|i| {
                    let mut c = c.clone();
                    tokio::spawn(async move {
                        let () = c.set(format!("async{i}"), i).await.unwrap();
                        c.get::<_, i32>(format!("async{i}")).await.unwrap()
                    })
                })
                .collect();
            for (i, task) in tasks.into_iter().enumerate() {
                is!(task.await?, i as i32);
            }
            let mut p = Client::open(url("", 0))?.get_async_pubsub().await?;
            p.subscribe("async").await?;
            let () = c.clone().publish("async", "hi").await?;
            is!(p.on_message().next().await.unwrap().get_payload::<String>()?, "hi");
            Ok(())
        })
    });
    all.step("restart", &[], || {
        runtime.block_on(async {
            let mut manager = Client::open(url("", 0))?.get_connection_manager().await?;
            let () = manager.set("before", 1).await?;
            restart_server()?;
            for _ in 0..100 {
                if manager.set::<_, _, ()>("after", 1).await.is_ok() {
                    is!(manager.get::<_, i32>("after").await?, 1);
                    return Ok(());
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Err("no reconnect".into())
        })
    });
    all.step("scripts", &["eval", "evalsha"], || {
        let mut c = connect()?;
        let double = redis::Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1])");
        is!(double.key("sn").arg(21).invoke::<i32>(&mut c)?, 21);
        is!(double.key("sn").arg(21).invoke::<i32>(&mut c)?, 42);
        Ok(())
    });
    all.step("streams", &["xadd", "xreadgroup"], || {
        use redis::streams::{StreamReadOptions, StreamReadReply};
        let mut c = connect()?;
        let id: String = c.xadd("stream", "*", &[("a", "1")])?;
        let () = c.xgroup_create("stream", "g", "0")?;
        let got: StreamReadReply =
            c.xread_options(&["stream"], &[">"], &StreamReadOptions::default().group("g", "me"))?;
        is!(&got.keys[0].ids[0].id, &id);
        is!(c.xack::<_, _, _, i32>("stream", "g", &[&id])?, 1);
        Ok(())
    });
    all.step("acl", &["acl|setuser", "acl|whoami"], || {
        let mut c = connect()?;
        is!(redis::cmd("ACL").arg("WHOAMI").query::<String>(&mut c)?, "default");
        redis::cmd("ACL").arg(&["SETUSER", "reader", "on", ">secret", "+@read", "+@connection", "~pub:*"]).exec(&mut c)?;
        let mut reader = Client::open(url("reader:secret@", 0))?.get_connection()?;
        is!(reader.set::<_, _, ()>("pub:x", 1).unwrap_err().kind(), ErrorKind::Server(ServerErrorKind::NoPerm));
        redis::cmd("ACL").arg("DELUSER").arg("reader").exec(&mut c)?;
        Ok(())
    });
    std::process::exit(i32::from(all.failed));
}

fn version() -> &'static str {
    // The lock file has the version below the name.
    let lock = include_str!("../Cargo.lock");
    let at = lock.find("name = \"redis\"").unwrap();
    lock[at..].split('"').nth(3).unwrap()
}
