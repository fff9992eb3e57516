import { Redis } from 'ioredis';
import type { VirtualHostConfig } from '../config/model.ts';
import { parseEndpoint } from '../config/values.ts';
import { FaultLog, type Logger } from '../log/log.ts';
import { AnnouncedKeys } from './announced-keys.ts';

/** Interval between turns, which check the keys that another origin announced. */
const TURN_MS = 500;
const COMMAND_MS = 1000;
const LONGEST_PAUSE_MS = 2000;
/** Limit of lookups that wait for an answer: further ones fail at once. */
const MAX_ASKED = 1000;

type StoreConfig = NonNullable<VirtualHostConfig['originMapStore']>;

/**
 * The Redis in which OvenMediaEngine's origins announce their streams (docs/compatibility.md#origins): `app/stream` with the
 * URL to pull it from. Each virtual host has a connection of its own, made when it is first needed.
 */
export class OriginMapStore {
  readonly #redis: Redis;
  readonly #faults: FaultLog;
  readonly #keys: AnnouncedKeys;
  readonly #asked = new Map<string, Promise<string | undefined>>();
  #timer: NodeJS.Timeout | undefined;
  #turn: Promise<void> | undefined;

  constructor({ redisServer }: StoreConfig, log: Logger) {
    const { host, port } = parseEndpoint(redisServer.host) ?? { host: redisServer.host, port: 6379 };
    this.#faults = new FaultLog(log);
    this.#redis = new Redis({
      host,
      port,
      ...(redisServer.auth !== undefined && { password: redisServer.auth }),
      connectTimeout: COMMAND_MS,
      commandTimeout: COMMAND_MS,
      enableOfflineQueue: false,
      maxRetriesPerRequest: 1,
      retryStrategy: (times) => Math.min(times * 200, LONGEST_PAUSE_MS),
    });
    this.#keys = new AnnouncedKeys(this.#redis);
    this.#redis.on('ready', () => {
      this.#keys.doubt();
      this.#refresh();
    });
    this.#redis.on('error', (error: Error) => this.#faults.count(`the OriginMapStore: ${error.message}`));
  }

  /**
   * URL under which an origin has a stream. One lookup at a time for each stream.
   * @param key `app/stream`, with the name that viewers use
   * @returns undefined when no origin has it, or Redis does not answer
   */
  find(key: string): Promise<string | undefined> {
    const present = this.#asked.get(key);
    if (present !== undefined) return present;
    if (this.#asked.size >= MAX_ASKED) return Promise.resolve(undefined);
    const answer = this.#find(key).finally(() => this.#asked.delete(key));
    this.#asked.set(key, answer);
    return answer;
  }

  /** Announces a stream until the returned undo is called. The entry of an origin that was first stays. */
  announce(key: string, url: string): () => void {
    this.#keys.set(key, url);
    this.#timer ??= setInterval(() => this.#refresh(), TURN_MS).unref();
    this.#refresh();
    return () => {
      this.#keys.delete(key, url);
      this.#refresh();
    };
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#keys.clear();
    await this.#turn;
    if (this.#isReady)
      await this.#keys.turn().catch((error: Error) => this.#faults.count(`the OriginMapStore: ${error.message}`));
    this.#redis.disconnect();
    this.#faults.close();
  }

  get #isReady(): boolean {
    return this.#redis.status === 'ready';
  }

  async #find(key: string): Promise<string | undefined> {
    try {
      if (!this.#isReady) await this.#connected();
      return (await this.#redis.get(key)) ?? undefined;
    } catch (error) {
      this.#faults.count(`the OriginMapStore: ${(error as Error).message}`);
      return undefined;
    }
  }

  /** Waits for a connection that is being made, but not for one that was lost. */
  async #connected(): Promise<void> {
    const { status } = this.#redis;
    if (status !== 'connecting' && status !== 'connect') return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(late);
        this.#redis.off('ready', done).off('close', done);
        resolve();
      };
      const late = setTimeout(done, COMMAND_MS);
      this.#redis.once('ready', done).once('close', done);
    });
  }

  #refresh(): void {
    if (!this.#isReady || this.#turn !== undefined) return;
    this.#turn = this.#keys
      .turn()
      .catch((error: Error) => {
        this.#faults.count(`the OriginMapStore: ${error.message}`);
      })
      .finally(() => (this.#turn = undefined));
  }
}
