import { createHash } from 'node:crypto';
import type { ConnectionOptions } from 'node:tls';
import { Cluster, Redis, ReplyError, type RedisOptions as ClientOptions } from 'ioredis';
import { UnavailableError } from '../errors.ts';
import { afterRunning } from '../running-time.ts';
import type { StoreAddress } from '../types.ts';

/** The longest pause between two attempts to connect. */
const MAX_PAUSE_MS = 1000;
const TIMED_OUT = 'no answer in time';
const CLOSED = 'the connection was closed';
/**
 * A key that a store in use has, where the prefix alone is none: of a Redis Cluster whose slot is on its way to another
 * node, neither runs a script that names a key that there is and one that there is not (it answers TRYAGAIN). A script that
 * ran on one of them would find only a part of the keys.
 */
const ALWAYS_THERE = 'epoch';
/** ioredis' own time for a command, in times of the given one: it counts on while this process stands still. */
const BACKSTOP = 10;

/** Where Redis is; one of the three. Addresses are `redis://host:port/db`, or `rediss://` for TLS. */
export type RedisOptions = {
  /** Name of an ACL user; without one the password is that of `default`. A url may bring its own. */
  readonly username?: string;
  readonly password?: string;
  /** For `rediss://`: authorities, client certificate. */
  readonly tls?: ConnectionOptions;
} & (
  | { readonly url: string }
  /** Some nodes of a Redis Cluster. */
  | { readonly cluster: readonly string[] }
  | {
      readonly sentinels: readonly string[];
      /** Name of the master that the sentinels watch. */
      readonly master: string;
      readonly sentinelUsername?: string;
      readonly sentinelPassword?: string;
    }
);

export interface ConnectionListener {
  /** The connection for commands was made, or is lost; the end of one that was given up is reported twice. */
  readonly onUp: () => void;
  readonly onDown: (reason: string) => void;
  readonly onMessage: (text: string) => void;
  /** Seconds until a command was answered; undefined when there was no answer that can be used. */
  readonly onCommand: (seconds: number | undefined) => void;
  readonly onFault: (error: Error) => void;
}

export type Client = Redis | Cluster;

/** A script with its hash. */
export interface Script {
  readonly text: string;
  readonly hash: string;
}

export function script(text: string): Script {
  return { text, hash: createHash('sha1').update(text).digest('hex') };
}

/**
 * The connections to Redis: one for commands, one for messages. Commands that cannot be sent at once fail at once; one
 * without an answer in time fails, and closes a connection that does not answer at all.
 */
export class Connection {
  readonly client: Client;
  readonly #subscriber: Client;
  readonly #prefix: string;
  readonly #configured: string;
  readonly #onDown: ConnectionListener['onDown'];
  readonly #onCommand: ConnectionListener['onCommand'];
  /** Clients whose connection was given up and is not closed yet. */
  readonly #ending = new Set<Client>();
  #closed = false;
  /** When the last answer came, on the monotonic clock; at first, when this was made. */
  #answered = performance.now();

  /**
   * @param prefix of all keys, hash tag included
   * @param own channel below it to which no other process subscribes: Redis knows by it when this process has ended
   */
  constructor(
    options: RedisOptions,
    { prefix, own }: { readonly prefix: string; readonly own: string },
    commandTimeoutMs: number,
    listener: ConnectionListener,
  ) {
    this.#prefix = prefix;
    this.#configured = placeOf(options);
    this.client = timed(createClient(options, commandTimeoutMs), commandTimeoutMs);
    this.#subscriber = timed(createClient(options, commandTimeoutMs), commandTimeoutMs);
    const onError = (error: Error): void => listener.onFault(describe(error));
    const follow = (client: Redis, isForMessages: boolean): void => {
      // the first attempt to connect for messages may fail because Redis ends: the connection for commands reports that
      const quietAttempts = isForMessages ? 1 : 0;
      let attempts = 0;
      // a connection that was there ends with the error: what comes of that is known by `close`
      const onSocketError = (error: Error): void => {
        if (client.status !== 'ready' && attempts > quietAttempts) onError(error);
      };
      // ioredis hears the first error of a socket only, and a TLS socket may have another, also before it is connected
      const heard = new WeakSet<object>();
      const listen = (): void => {
        const stream = client.stream as Redis['stream'] | undefined;
        if (stream === undefined || heard.has(stream)) return;
        heard.add(stream);
        stream.on('error', onSocketError);
      };
      // one that was under way when commands got their connection counts as the first
      if (isForMessages && this.client instanceof Redis) this.client.on('ready', () => (attempts = 0));
      client
        .on('connecting', () => attempts++)
        .on('ready', () => (attempts = 0))
        .on('connect', listen)
        .on('error', (error: Error) => {
          listen();
          onSocketError(error);
        });
    };
    for (const client of [this.client, this.#subscriber]) {
      const isForMessages = client === this.#subscriber;
      if (client instanceof Redis) follow(client, isForMessages);
      else client.on('error', onError).on('+node', (node: Redis) => follow(node, isForMessages));
      client.on('end', () => this.#again(client, onError));
    }
    this.client.on('ready', listener.onUp);
    this.#onDown = listener.onDown;
    this.#onCommand = listener.onCommand;
    this.client.on('close', () => listener.onDown(CLOSED));
    const events = `${prefix}events`;
    this.#subscriber.on('message', (channel: string, text: string) => channel === events && listener.onMessage(text));
    this.#subscriber.on('ready', () => {
      // what fails here is retried with the next connection; messages only speed up what polling finds
      this.#subscriber.subscribe(events, `${prefix}${own}`).catch((error: Error) => {
        // one without an answer went with its connection
        if (error instanceof ReplyError) onError(error);
      });
    });
  }

  /** The address of Redis: of the present connection, or as configured. */
  get place(): string {
    const { client } = this;
    const [address] = client instanceof Cluster ? [] : this.addresses;
    return address === undefined ? this.#configured : hostAndPort(address);
  }

  /** When the last answer came, on the monotonic clock; before the first one, when this was made. */
  get answeredAt(): number {
    return this.#answered;
  }

  /** Servers that it is connected to now; of a Redis Cluster every node that is known. */
  get addresses(): StoreAddress[] {
    const { client } = this;
    if (client instanceof Cluster) {
      return client.nodes('all').map(({ options: { host = '', port = 0 } }) => ({ host, port }));
    }
    // what sentinels name is in no option
    const { remoteAddress, remotePort } = (client.stream as Redis['stream'] | undefined) ?? {};
    return remoteAddress === undefined || remotePort === undefined ? [] : [{ host: remoteAddress, port: remotePort }];
  }

  /** @throws UnavailableError when it has not been run, or (`mayBeDone`) it is not known whether it was */
  async run({ text, hash }: Script, args: readonly (string | number)[]): Promise<unknown> {
    const sent = performance.now();
    try {
      const keys = [this.#prefix, `${this.#prefix}${ALWAYS_THERE}`] as const;
      const reply = await this.client.evalsha(hash, keys.length, ...keys, ...args).catch((error: Error) => {
        if (!error.message.startsWith('NOSCRIPT')) throw error;
        return this.client.eval(text, keys.length, ...keys, ...args);
      });
      this.#answered = performance.now();
      this.#onCommand((this.#answered - sent) / 1000);
      return reply;
    } catch (error) {
      this.#onCommand(undefined);
      if (isTimeout(error) && this.#answered < sent) this.#renew(this.client);
      throw new UnavailableError(`Redis: ${(error as Error).message}`, {
        cause: error,
        mayBeDone: isUnanswered(error),
      });
    }
  }

  /** Checks that messages still arrive: a dead connection is closed. */
  probe(): void {
    const subscriber = this.#subscriber;
    if (subscriber.status === 'ready')
      subscriber.ping().catch((error: Error) => isTimeout(error) && this.#renew(subscriber));
  }

  /** Gives up a connection that does not answer. ioredis' own socketTimeout would end the one after it, too. */
  #renew(client: Client): void {
    if (client.status !== 'ready' || this.#ending.has(client)) return;
    this.#ending.add(client);
    if (client === this.client) this.#onDown(TIMED_OUT);
    client.once('close', () => this.#ending.delete(client));
    client.disconnect(true);
  }

  /** ioredis gives up for good when sentinels tell it of a new master while it asks them for the one that it has lost. */
  #again(client: Client, onError: (error: Error) => void): void {
    setTimeout(() => {
      if (!this.#closed) client.connect().catch(onError);
    }, pause(1)).unref();
  }

  close(): void {
    this.#closed = true;
    this.client.disconnect();
    this.#subscriber.disconnect();
  }
}

/** Fails commands that have no answer in time. */
function timed<C extends Client>(client: C, timeoutMs: number): C {
  const send = client.sendCommand.bind(client) as Redis['sendCommand'];
  client.sendCommand = (...args: Parameters<Redis['sendCommand']>) => {
    const [command] = args;
    const inTime = afterRunning(timeoutMs, () => command.reject(new Error(TIMED_OUT)));
    command.promise.then(inTime, inTime);
    return send(...args);
  };
  return client;
}

function createClient(options: RedisOptions, commandTimeoutMs: number): Client {
  const { username, password, tls } = options;
  const common = {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    // of what ioredis asks the nodes of a Redis Cluster of its own accord
    commandTimeout: BACKSTOP * commandTimeoutMs,
    connectTimeout: 2 * commandTimeoutMs,
    // how long a connection that is given up may take to end
    disconnectTimeout: commandTimeoutMs / 4,
    retryStrategy: pause,
    // a master that was made a replica: its address has to be found anew
    reconnectOnError: (error: Error) => /^(READONLY|MASTERDOWN)/.test(error.message),
  } satisfies ClientOptions;
  if ('url' in options) {
    const { secure, ...address } = addressOf(options.url);
    return new Redis({ ...common, ...address, ...(secure && { tls: tls ?? {} }) });
  }
  if ('cluster' in options) {
    const addresses = options.cluster.map(addressOf);
    const secure = addresses.some((address) => address.secure);
    const { retryStrategy, maxRetriesPerRequest: _, enableOfflineQueue, autoResubscribe: __, ...own } = common;
    const first = addresses[0];
    const redisOptions = { ...own, ...credentials(first), ...(secure && { tls: tls ?? {} }) };
    return new Cluster(
      addresses.map(({ host, port }) => ({ host, port })),
      {
        redisOptions,
        enableOfflineQueue,
        clusterRetryStrategy: retryStrategy,
        slotsRefreshTimeout: 2 * commandTimeoutMs,
        // names in certificates are those of the nodes
        ...(secure && { dnsLookup: (address, callback) => callback(null, address) }),
      },
    );
  }
  const sentinels = options.sentinels.map(addressOf);
  const secure = sentinels.some((address) => address.secure);
  return new Redis({
    ...common,
    sentinels: sentinels.map(({ host, port }) => ({ host, port })),
    name: options.master,
    sentinelRetryStrategy: pause,
    sentinelCommandTimeout: commandTimeoutMs,
    failoverDetector: true,
    ...(options.sentinelUsername !== undefined && { sentinelUsername: options.sentinelUsername }),
    ...(options.sentinelPassword !== undefined && { sentinelPassword: options.sentinelPassword }),
    ...(secure && { tls: tls ?? {}, sentinelTLS: tls ?? {}, enableTLSForSentinelMode: true }),
  });
}

interface Address {
  readonly host: string;
  readonly port: number;
  readonly username?: string;
  readonly password?: string;
  readonly db?: number;
  readonly secure: boolean;
}

/** @throws TypeError when it is no url */
function addressOf(text: string): Address {
  const url = new URL(text);
  const db = Number(url.pathname.slice(1) || 0);
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || 6379),
    ...credentials({ username: decodeURIComponent(url.username), password: decodeURIComponent(url.password) }),
    ...(db > 0 && { db }),
    secure: url.protocol === 'rediss:',
  };
}

/** The configured addresses of Redis. */
function placeOf(options: RedisOptions): string {
  if ('url' in options) return hostAndPort(addressOf(options.url));
  if ('cluster' in options) return options.cluster.map((url) => hostAndPort(addressOf(url))).join(', ');
  const sentinels = options.sentinels.map((url) => hostAndPort(addressOf(url))).join(', ');
  return `the master ${options.master} (sentinels ${sentinels})`;
}

function hostAndPort({ host, port }: StoreAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

function credentials(from: { readonly username?: string; readonly password?: string } | undefined) {
  return { ...(from?.username && { username: from.username }), ...(from?.password && { password: from.password }) };
}

function isTimeout(error: unknown): boolean {
  return (error as Error).message === TIMED_OUT;
}

/** True unless it is an answer, or the command was not sent at all. */
function isUnanswered(error: unknown): boolean {
  return !(error instanceof ReplyError) && !(error as Error).message.includes('enableOfflineQueue');
}

function pause(attempts: number): number {
  return Math.min(MAX_PAUSE_MS, 25 * 2 ** Math.min(attempts, 10)) * (0.75 + Math.random() / 2);
}

function describe(error: Error): UnavailableError {
  return new UnavailableError(`Redis: ${error.message || (error as NodeJS.ErrnoException).code}`, { cause: error });
}
