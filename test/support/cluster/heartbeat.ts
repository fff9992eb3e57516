import { EventEmitter } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { ClaimTable } from '../../../cluster/redis/claim-table.ts';
import { Heartbeat, type HeartbeatOptions } from '../../../cluster/redis/heartbeat.ts';
import type { Beat } from '../../../cluster/redis/nodes.ts';
import { SCRIPTS } from '../../../cluster/redis/scripts.ts';
import { StoreSync, type StoreSyncOptions } from '../../../cluster/redis/store-sync.ts';
import { timingOf } from '../../../cluster/redis/timing.ts';

const record = (fence: number): string => `${fence} token-${fence} a life continue 0 null`;
const told = (revision: number, key: string): string => `claim ${revision - 1} ${revision} ${record(revision)}\n${key}`;

/** Answer of Redis to a beat, and what becomes of it. */
export interface Answer extends Partial<Beat> {
  /** The beat fails. */
  readonly fails?: Error;
  /** The leases cannot be renewed though the beat was answered. */
  readonly renewalFails?: Error;
  readonly draining?: boolean;
  /** Whether a pull finds that everybody may claim; the beat's own `open` unless given. */
  readonly opens?: boolean;
}

/** A node before its first beat, and a Redis whose answers come when the test says. It is closed after the test. */
export function openHeartbeat(t: Pick<ExecutionContext, 'teardown'>, { rank = 0, answer: first = {} as Answer } = {}) {
  /** As Redis has them: the claim of each revision. */
  const claims = ['first'];
  const asked = {
    pulls: 0,
    beats: 0,
    answers: 0,
    probes: 0,
    /** Revisions that pulls went on from. */ since: [] as number[],
  };
  /** What the node did, in order. */
  const log: string[] = [];
  const reported: unknown[] = [];
  const held: (() => void)[] = [];
  const leases = {
    highest: 0,
    atStake: false,
    see: () => {},
    loseAll: () => void log.push('loses all'),
  };
  const renewal = {
    restored: 2,
    expectBeat: () => async () => {
      if (redis.answer.renewalFails !== undefined) throw redis.answer.renewalFails;
    },
  };
  const redis = {
    answer: first,
    /** Answer to the next beat alone. */ once: undefined as Answer | undefined,
    holds: false,
    pullFails: undefined as Error | undefined,
  };
  const answered = <T>(reply: T): Promise<T> =>
    new Promise((resolve) => {
      if (redis.holds) held.push(() => resolve(reply));
      else resolve(reply);
    });
  const table = new ClaimTable(
    () => {},
    (error) => {
      throw error;
    },
  );
  const nodes = {
    rank,
    draining: false,
    beat: async (known: { readonly reported: unknown }) => {
      asked.beats += 1;
      reported.push(known.reported);
      const { fails, draining = false, ...more } = redis.once ?? redis.answer;
      redis.once = undefined;
      const beat: Partial<Beat> = {
        sentAt: performance.now(),
        lossTag: '1:run::',
        run: 'run',
        replaced: false,
        markedDead: false,
        epoch: 1,
        open: true,
        recovery: undefined,
        wanted: false,
        claimsRevision: claims.length,
        configRevision: 0,
        nodesChanged: false,
        asks: [],
        nextSilentMs: Infinity,
        ...more,
      };
      await answered(undefined);
      // others run in between, as they do while a socket is read
      await setImmediate();
      // the rest of a beat follows in the same turn
      asked.answers += 1;
      if (fails !== undefined) throw fails;
      nodes.draining = draining;
      return beat;
    },
  };
  const connection = {
    answeredAt: 0,
    probe: () => void (asked.probes += 1),
    run: async (script: unknown, args: readonly unknown[]) => {
      if (script !== SCRIPTS.pull) throw new Error('what is this?');
      asked.pulls += 1;
      const since = Number(args[1]);
      asked.since.push(since);
      if (redis.pullFails !== undefined) throw redis.pullFails;
      const { epoch = 1, open = true, opens = open } = redis.answer;
      const entries = claims.slice(since).flatMap((key, at) => [key, record(since + at + 1)]);
      return await answered([
        String(epoch),
        opens ? 1 : 0,
        [String(claims.length), 'changed', entries, ''],
        ['0', 0, []],
        '',
      ]);
    },
  };
  const events = new EventEmitter();
  for (const event of ['state', 'drain', 'nodes', 'emptied', 'replaced'])
    events.on(event, (...values: unknown[]) => log.push([event, ...values].join(' ')));
  const options = {
    connection,
    nodes,
    table,
    timing: timingOf({ beat: 1e6, command: 1 }),
    events,
    leases,
    renewal,
    config: { version: { epoch: 0, revision: 0 }, since: 0, seen: 0, apply: () => {} },
    outage: {
      begin: (reason: string) => log.push(`outage: ${reason}`),
      end: () => log.push('outage ends'),
    },
    onAtStake: () => log.push('at stake'),
    onAsk: ({ id }: { readonly id: string }) => log.push(`asks ${id}`),
    onConfirmed: () => log.push('confirmed'),
    onMarkedDead: () => log.push('marked dead'),
    onBeat: (isTaken: boolean) => log.push(isTaken ? 'beat' : 'no beat'),
    onFault: (error: Error) => log.push(`fault: ${error.message}`),
  };
  const sync = new StoreSync(options as unknown as StoreSyncOptions);
  const heartbeat = new Heartbeat({ ...options, sync } as unknown as HeartbeatOptions);
  const answer = (): void => {
    redis.holds = false;
    held.splice(0).forEach((resolve) => resolve());
  };
  t.teardown(() => {
    answer();
    return heartbeat.close();
  });
  return {
    heartbeat,
    sync,
    asked,
    leases,
    renewal,
    redis,
    reported,
    pull: () => sync.pull(),
    hear: (message: string) => sync.hear(message),
    opened: () => sync.opened(),
    keys: (): string[] => [...table.list('').keys()],
    /** A claim is made. @returns the message of it */
    claim(key: string): string {
      claims.push(key);
      return told(claims.length, key);
    },
    /** Answers wait from now on, as they are when they are asked for. */
    hold: () => void (redis.holds = true),
    answer,
    /** @returns what the node did since the last call */
    done: (): string[] => log.splice(0),
  };
}
