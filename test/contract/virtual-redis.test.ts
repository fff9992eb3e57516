import test from 'ava';
import { Redis } from 'ioredis';
import { Random } from '../soak/random.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { Lua, type Reply } from '../support/virtual-cluster/lua.ts';
import { RedisData } from '../support/virtual-cluster/redis-data.ts';

const STEPS = 6000;
const CALL = 'return redis.call(unpack(ARGV))';
/** Of these Redis tells the order of nothing. */
const UNORDERED = new Set(['HKEYS', 'HVALS', 'SMEMBERS', 'SPOP']);
const FIELDS = ['a', 'b', 'b!', 'b 1', 'c', 'ä', ''];
const SCORES = ['-inf', '0', '1', '2', '1800000000000', 'inf'];

function commandOf(random: Random): string[] {
  const some = (from: readonly string[]): string[] =>
    Array.from({ length: 1 + random.below(3) }, () => random.pick(from));
  const field = (): string => random.pick(FIELDS);
  const score = (): string => random.pick(SCORES);
  const limit = (): string => (random.chance(0.3) ? '(' : '') + score();
  const value = (): string => random.pick(['', 'x', 'some text', 'ü', '17']);
  const [text, number, hash, set, sorted] = ['t', 'n', 'h', 's', 'z'].map((kind) => `${kind}${random.below(3)}`) as [
    string,
    string,
    string,
    string,
    string,
  ];
  const choices: (() => string[])[] = [
    () => ['DEL', ...some([text, number, hash, set, sorted])],
    () => ['EXISTS', random.pick([text, hash, set, sorted])],
    () => ['GET', text],
    () => ['SET', text, value(), ...random.pick([[], ['NX'], ['NX', 'PX', '900000'], ['PX', '900000']])],
    () => ['PEXPIRE', random.pick([text, hash]), '900000'],
    () => ['INCR', number],
    () => ['HGET', hash, field()],
    () => ['HMGET', hash, ...some(FIELDS)],
    () => ['HGETALL', hash],
    () => [random.pick(['HKEYS', 'HVALS', 'HLEN']), hash],
    () => ['HEXISTS', hash, field()],
    () => ['HSET', hash, ...some(FIELDS).flatMap((name) => [name, value()])],
    () => ['HSETNX', hash, field(), value()],
    () => ['HDEL', hash, ...some(FIELDS)],
    () => ['HINCRBY', `c${hash}`, field(), random.pick(['1', '-1', '12'])],
    () => ['SADD', set, ...some(FIELDS)],
    () => ['SREM', set, ...some(FIELDS)],
    () => ['SISMEMBER', set, field()],
    () => ['SMEMBERS', set],
    // all of them: which ones it takes is for Redis to say
    () => ['SPOP', set, '100'],
    () => ['SUNIONSTORE', ...some(['s0', 's1', 's2']), set],
    () => ['ZADD', sorted, ...(random.chance(0.3) ? ['NX'] : []), ...some(FIELDS).flatMap((name) => [score(), name])],
    () => ['ZREM', sorted, ...some(FIELDS)],
    () => ['ZSCORE', sorted, field()],
    () => ['ZCARD', sorted],
    () => [
      random.pick(['ZRANGE', 'ZREVRANGE']),
      sorted,
      random.pick(['0', '1', '-2']),
      random.pick(['0', '2', '-1']),
      ...(random.chance(0.5) ? ['WITHSCORES'] : []),
    ],
    () => ['ZRANGEBYSCORE', sorted, limit(), limit(), ...(random.chance(0.3) ? ['LIMIT', '0', '2'] : [])],
    // all members of these have the same score, as the order of Redis needs it
    () => ['ZADD', `l${sorted}`, ...some(FIELDS).flatMap((name) => ['0', name])],
    () => [
      'ZRANGEBYLEX',
      `l${sorted}`,
      random.pick(['[b', '[b ', '(b']),
      random.pick(['(b!', '[c']),
      'LIMIT',
      '0',
      '2',
    ],
    () => ['ZREMRANGEBYSCORE', sorted, limit(), limit()],
    () => ['ZPOPMIN', sorted, String(1 + random.below(2))],
  ];
  return random.pick(choices)();
}

/** As it can be compared: without an order that is nobody's. */
function comparable([name = '']: readonly string[], reply: Reply): unknown {
  if (name === 'HGETALL') {
    const list = reply as readonly string[];
    return Array.from({ length: list.length / 2 }, (_, at) => `${list[2 * at]}=${list[2 * at + 1]}`).sort();
  }
  return UNORDERED.has(name) ? [...(reply as readonly string[])].sort() : reply;
}

test('the Redis in memory answers scripts as Redis does', async (t) => {
  const redis = await RedisServer.start(t);
  const client = new Redis(redis.url);
  t.teardown(() => client.disconnect());
  const lua = await Lua.start();
  const script = lua.compile(CALL);
  const data = new RedisData(() => Date.now());
  const random = new Random(Number(process.env.KILN_SEED ?? 5));
  const commands = Array.from({ length: STEPS }, () => commandOf(random));
  const pipeline = client.pipeline();
  for (const command of commands) pipeline.eval(CALL, 0, ...command);
  const replies = (await pipeline.exec()) ?? [];
  for (const [at, command] of commands.entries()) {
    const [error, reply] = replies[at] as [Error | null, Reply];
    t.is(error, null, command.join(' '));
    const own = lua.run(script, [], command, (called) => data.call(called));
    t.deepEqual(comparable(command, own), comparable(command, reply), `${at}: ${command.join(' ')}`);
  }
});

test('Lua gives Redis back what it makes of values', async (t) => {
  const redis = await RedisServer.start(t);
  const client = new Redis(redis.url);
  t.teardown(() => client.disconnect());
  const lua = await Lua.start();
  const scripts = [
    'return 3.7',
    'return -3.7',
    'return true',
    'return false',
    'return nil',
    'return "text"',
    'return { 1, "two", { "three" }, false, true, nil, 7 }',
    'return { {}, redis.call("GET", KEYS[1]) }',
    'return redis.call("HMGET", KEYS[1], "a")[1] == false and 1 or 0',
    'return cjson.decode(ARGV[1])[2].b',
    'return #cjson.decode("[]")',
    'local found = {} for word in string.gmatch(ARGV[2], "%S+") do found[#found + 1] = word end return found',
    'return string.format("%.0f %.17g", 1800000000123, 0.1)',
    'return tonumber("x") == nil and tostring(tonumber("12") + 1)',
    'return { string.match("cut 12", "^(%S+) ?(%d*)") }',
  ];
  for (const text of scripts) {
    const args = ['[1, {"b": "c"}]', 'some words'];
    const own = lua.run(lua.compile(text), ['key'], args, (called) => new RedisData(() => 0).call(called));
    t.deepEqual(own, (await client.eval(text, 1, 'key', ...args)) as Reply, text);
  }
});
