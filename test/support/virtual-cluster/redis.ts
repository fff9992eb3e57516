import type { Lua, Reply } from './lua.ts';
import type { Net, Socket } from './net.ts';
import { RedisData } from './redis-data.ts';
import { Process, type Scheduler } from './scheduler.ts';

/** Name of the host. */
export const REDIS = 'redis';
/** How long it has been up when the world begins: it is known then that nobody has anything in it. */
const UP_MS = 10_000;
const NO_REPLICATION = '0'.repeat(40);

/** A script as the cluster sends it. */
interface Script {
  readonly text: string;
  readonly hash: string;
}

export interface RedisOptions {
  readonly scheduler: Scheduler;
  readonly net: Net;
  readonly lua: Lua;
  /** Hears of every script that was run. */
  readonly onScript?: (hash: string, args: readonly string[], reply: Reply) => void;
}

/** Compiled scripts, of all servers of this thread: by the interpreter, then by the hash. */
const compiled = new WeakMap<Lua, Map<string, number>>();

/** A Redis in memory, for connections of `net`: it runs the scripts of the cluster, and tells who subscribes. */
export class VirtualRedis {
  readonly #options: RedisOptions;
  readonly #scripts: Map<string, number>;
  readonly #subscriptions = new Map<Socket, Set<string>>();
  /** Names runs. */
  #runs = 0;
  /** Names what it has had, and those before it. */
  #histories = 0;
  #process: Process;
  #data: RedisData;
  #known = new Set<string>();
  #startedAt = 0;
  #calls = 0;
  #failed = 0;
  #formerReplication = NO_REPLICATION;
  /** By how much its clock is ahead. */
  #aheadMs = 0;

  constructor(options: RedisOptions) {
    this.#options = options;
    const scripts = compiled.get(options.lua) ?? new Map<string, number>();
    compiled.set(options.lua, scripts);
    this.#scripts = scripts;
    this.#process = new Process(REDIS, options.scheduler);
    this.#data = new RedisData(() => this.#clock);
    this.run();
    this.#startedAt -= UP_MS;
  }

  get data(): RedisData {
    return this.#data;
  }

  get process(): Process {
    return this.#process;
  }

  /** What it has now, for run(). */
  dump(): RedisData {
    return new RedisData(() => this.#clock, this.#data);
  }

  /** Starts a new run, after the death of the one before. @param was a replica of another before, which has failed */
  run(data?: RedisData, { wasReplica = false } = {}): void {
    const { scheduler, net } = this.#options;
    this.#runs += 1;
    this.#histories += 1;
    this.#process = new Process(REDIS, scheduler);
    this.#subscriptions.clear();
    this.#data = new RedisData(() => this.#clock, data);
    this.#known = new Set();
    this.#startedAt = scheduler.now;
    this.#calls = this.#failed = 0;
    this.#formerReplication = wasReplica ? this.#id(this.#histories - 1) : NO_REPLICATION;
    net.listen(this.#process, (socket) => this.#accept(socket));
  }

  /** Loses everything that it has. */
  flush(): void {
    this.#data = new RedisData(() => this.#clock);
  }

  /** It has what another had that it followed for a moment, in the same run. */
  goBack(data: RedisData): void {
    this.#data = new RedisData(() => this.#clock, data);
    this.#histories += 1;
    this.#formerReplication = this.#id(this.#histories - 1);
  }

  /** Its clock is set. */
  jump(ms: number): void {
    this.#aheadMs += ms;
  }

  /** @returns undefined where it does not know the script */
  evalsha(hash: string, keys: readonly string[], args: readonly string[]): { readonly reply: Reply } | undefined {
    if (this.#known.has(hash)) return { reply: this.#run(hash, keys, args) };
    this.#failed += 1;
    this.#calls += 1;
    return undefined;
  }

  eval({ text, hash }: Script, keys: readonly string[], args: readonly string[]): Reply {
    if (!this.#scripts.has(hash)) this.#scripts.set(hash, this.#options.lua.compile(text));
    this.#known.add(hash);
    return this.#run(hash, keys, args);
  }

  subscribe(socket: Socket, channels: readonly string[]): void {
    const present = this.#subscriptions.get(socket);
    for (const channel of channels) present?.add(channel);
  }

  get #clock(): number {
    return Date.now() + this.#aheadMs;
  }

  #id(number: number): string {
    return number.toString(16).padStart(40, 'f');
  }

  #accept(socket: Socket): void {
    const subscriptions = this.#subscriptions;
    subscriptions.set(socket, new Set());
    socket.accept({ onClose: () => subscriptions.delete(socket) });
  }

  #run(hash: string, keys: readonly string[], args: readonly string[]): Reply {
    const { lua, onScript } = this.#options;
    const reply = lua.run(this.#scripts.get(hash) as number, keys, args, ([name = '', ...rest]) => {
      switch (name) {
        case 'TIME':
          return [String(Math.floor(this.#clock / 1000)), String((this.#clock % 1000) * 1000)];
        case 'INFO':
          return this.#info(rest[0] ?? '');
        case 'PUBSUB':
          return rest.slice(1).flatMap((channel) => [channel, this.#subscribers(channel).length]);
        case 'PUBLISH':
          return this.#publish(rest[0] ?? '', rest[1] ?? '');
        default:
          return this.#data.call([name, ...rest]);
      }
    });
    this.#calls += 1;
    onScript?.(hash, args, reply);
    return reply;
  }

  #subscribers(channel: string): Socket[] {
    return [...this.#subscriptions].flatMap(([socket, channels]) => (channels.has(channel) ? socket : []));
  }

  #publish(channel: string, text: string): number {
    const subscribers = this.#subscribers(channel);
    for (const socket of subscribers) socket.tell([channel, text]);
    return subscribers.length;
  }

  #info(section: string): string {
    const uptime = Math.floor((this.#options.scheduler.now - this.#startedAt) / 1000);
    switch (section) {
      case 'server':
        return `run_id:${this.#id(this.#runs)}\r\nuptime_in_seconds:${uptime}\r\n`;
      case 'commandstats':
        if (this.#calls === 0) return '# Commandstats\r\n';
        return `cmdstat_evalsha:calls=${this.#calls},usec=1,usec_per_call=1.00,rejected_calls=0,failed_calls=${this.#failed}\r\n`;
      default:
        return `master_replid:${this.#id(this.#histories)}\r\nmaster_replid2:${this.#formerReplication}\r\n`;
    }
  }
}
