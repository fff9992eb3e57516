import { createHash } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { UnavailableError } from '../../../cluster/errors.ts';
import type * as real from '../../../cluster/redis/connection.ts';
import { afterRunning } from '../../../cluster/running-time.ts';
import type { Reply } from './lua.ts';
import type { Socket } from './net.ts';
import { REDIS } from './redis.ts';
import { here } from './scheduler.ts';
import { World } from './world.ts';

const TIMED_OUT = 'no answer in time';
const CLOSED = 'the connection was closed';
const MAX_PAUSE_MS = 1000;
const NOT_READY = "Stream isn't writeable and enableOfflineQueue options is false";

export const script: typeof real.script = (text) => ({ text, hash: createHash('sha1').update(text).digest('hex') });

interface Pending {
  readonly resolve: (reply: Reply | undefined) => void;
  readonly reject: (error: Error) => void;
}

interface ClientEvents {
  readonly onReady: () => void;
  readonly onClose: () => void;
  readonly onMessage: (channel: string, text: string) => void;
}

/** A connection to Redis that is made again and again, as ioredis does it. */
class Client {
  readonly #process = here();
  readonly #world = World.here;
  readonly #timeoutMs: number;
  readonly #events: ClientEvents;
  readonly #pending = new Set<Pending>();
  #socket: Socket | undefined;
  #attempts = 0;
  #closed = false;
  isReady = false;
  isEnding = false;

  constructor(timeoutMs: number, events: ClientEvents) {
    this.#timeoutMs = timeoutMs;
    this.#events = events;
    this.#connect();
  }

  /** Runs `command` in Redis. @throws Error when it could not be sent, or is not answered */
  async ask(command: (socket: Socket) => Reply | undefined): Promise<Reply | undefined> {
    const socket = this.#socket;
    if (socket === undefined || !this.isReady) throw new Error(NOT_READY);
    const { promise, resolve, reject } = Promise.withResolvers<Reply | undefined>();
    const pending = { resolve, reject };
    this.#pending.add(pending);
    const inTime = afterRunning(this.#timeoutMs, () => reject(new Error(TIMED_OUT)));
    this.#exchange(socket, command, resolve);
    try {
      return await promise;
    } finally {
      inTime();
      this.#pending.delete(pending);
    }
  }

  /** Gives up a connection that does not answer. */
  renew(): void {
    const socket = this.#socket;
    if (socket === undefined || this.isEnding) return;
    this.isEnding = true;
    this.isReady = false;
    socket.end(this.#process);
    setTimeout(() => this.#lost(socket), this.#timeoutMs / 4);
  }

  close(): void {
    this.#closed = true;
    this.isReady = false;
    const socket = this.#socket;
    if (socket === undefined) return;
    socket.end(this.#process);
    this.#lost(socket);
  }

  #connect(): void {
    if (this.#closed) return;
    const socket: Socket = this.#world.net.connect(this.#process, REDIS, {
      // it is asked whether it is loaded
      onOpen: () => {
        this.#exchange(
          socket,
          () => 1,
          () => {
            if (this.#socket !== socket || this.isEnding) return;
            inTime();
            this.#attempts = 0;
            this.isReady = true;
            this.#events.onReady();
          },
        );
      },
      onTold: ([channel = '', text = '']) => this.#events.onMessage(channel, text),
      onClose: () => this.#lost(socket),
    });
    this.#socket = socket;
    const inTime = afterRunning(2 * this.#timeoutMs, () => {
      socket.end(this.#process);
      this.#lost(socket);
    });
  }

  #exchange(
    socket: Socket,
    command: (socket: Socket) => Reply | undefined,
    done: (reply: Reply | undefined) => void,
  ): void {
    socket.send(() => {
      this.#world.asking = this.#process;
      const reply = command(socket);
      this.#world.asking = undefined;
      socket.answer(() => done(reply));
    });
  }

  #lost(socket: Socket): void {
    if (this.#socket !== socket) return;
    this.#socket = undefined;
    this.isReady = this.isEnding = false;
    for (const { reject } of this.#pending) reject(new Error('Connection is closed.'));
    this.#events.onClose();
    const pause = Math.min(MAX_PAUSE_MS, 25 * 2 ** Math.min((this.#attempts += 1), 10));
    setTimeout(() => this.#connect(), pause * (0.75 + this.#world.random.below(50) / 100));
  }
}

/** Stands in for `cluster/redis/connection.ts`: the Redis is that of the world. */
export class Connection implements Pick<
  real.Connection,
  'run' | 'probe' | 'close' | 'place' | 'answeredAt' | 'addresses'
> {
  /** Nobody uses locks, and no setting is asked for. */
  readonly client = Object.assign(new EventEmitter(), { info: () => Promise.reject(new Error(NOT_READY)) });
  readonly place = REDIS;
  readonly addresses = [];
  readonly #world = World.here;
  readonly #prefix: string;
  readonly #commands: Client;
  readonly #subscriber: Client;
  readonly #onDown: (reason: string) => void;
  #answered = performance.now();

  constructor(
    _options: real.RedisOptions,
    { prefix, own }: { readonly prefix: string; readonly own: string },
    commandTimeoutMs: number,
    { onUp, onDown, onMessage }: real.ConnectionListener,
  ) {
    this.#prefix = prefix;
    this.#onDown = onDown;
    this.#commands = new Client(commandTimeoutMs, {
      onReady: onUp,
      onClose: () => onDown(CLOSED),
      onMessage: () => {},
    });
    const events = `${prefix}events`;
    this.#subscriber = new Client(commandTimeoutMs, {
      onReady: () => {
        const channels = [events, `${prefix}${own}`];
        const subscribe = (socket: Socket): number => {
          this.#world.redis.subscribe(socket, channels);
          return channels.length;
        };
        // the next connection subscribes anew
        this.#subscriber.ask(subscribe).catch(() => undefined);
      },
      onClose: () => {},
      onMessage: (channel, text) => channel === events && onMessage(text),
    });
  }

  get answeredAt(): number {
    return this.#answered;
  }

  async run({ text, hash }: real.Script, args: readonly (string | number)[]): Promise<unknown> {
    const sent = performance.now();
    const { redis } = this.#world;
    const keys = [this.#prefix, `${this.#prefix}epoch`];
    const texts = args.map(String);
    try {
      const answer = await this.#commands.ask(() => (redis.evalsha(hash, keys, texts) ?? { reply: UNKNOWN }).reply);
      const reply =
        answer === UNKNOWN ? await this.#commands.ask(() => redis.eval({ text, hash }, keys, texts)) : answer;
      this.#answered = performance.now();
      return reply;
    } catch (error) {
      const { message } = error as Error;
      if (message === TIMED_OUT && this.#answered < sent && this.#commands.isReady) {
        this.#onDown(TIMED_OUT);
        this.#commands.renew();
      }
      throw new UnavailableError(`Redis: ${message}`, { cause: error, mayBeDone: message !== NOT_READY });
    }
  }

  probe(): void {
    const subscriber = this.#subscriber;
    if (!subscriber.isReady) return;
    subscriber.ask(() => 1).catch((error: Error) => error.message === TIMED_OUT && subscriber.renew());
  }

  close(): void {
    this.#commands.close();
    this.#subscriber.close();
  }
}

/** Redis does not know the script. */
const UNKNOWN: Reply = { ok: 'NOSCRIPT' };
