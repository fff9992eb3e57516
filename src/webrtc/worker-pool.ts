import { availableParallelism } from 'node:os';
import type { WebrtcBindConfig } from '../config/model.ts';
import { kilnError } from '../errors.ts';
import { BackOff } from '../lib/back-off.ts';
import type { Logger } from '../log/log.ts';
import { iceSockets, localAddresses, workerCount, type IceSocket } from './addresses.ts';
import type { TransportChoice } from './candidate.ts';
import { holdPorts } from './held-ports.ts';
import type { MediaWorker } from './media-worker.ts';

type IceCandidates = WebrtcBindConfig['iceCandidates'];
type IceConfig = Pick<IceCandidates, 'iceCandidate' | 'enableLinkLocalAddress' | 'iceWorkerCount'>;

const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 10_000;
/** Difference in sessions up to which a worker that already has the stream is preferred to an emptier one. */
const STICKY_SESSIONS = 50;
/** Sessions before another worker would be chosen at which it is started, so that it runs by then. */
const LEAD_SESSIONS = 25;

/**
 * Media workers of this node. One starts when the first peer is about to come, the others while those that run have peers; until
 * then their ports are held for them. Dead workers are replaced; their transports learn it from mediasoup's events.
 */
export class WorkerPool {
  readonly #config: IceConfig;
  readonly #log: Logger;
  readonly #workers: (MediaWorker | undefined)[] = [];
  /** Release the ports of workers that were never started, by index. */
  readonly #held = new Map<number, () => void>();
  /** Start of a worker that was not needed before. */
  #starting: Promise<void> | undefined;
  /** First start in place of a worker that died, whether it succeeds or not. */
  #replacing: Promise<void> | undefined;
  /** Timers of the next starts, and who ends the waiting for them. */
  readonly #timers = new Map<NodeJS.Timeout, () => void>();
  /** Number of workers that died. */
  died = 0;
  #closed = false;

  private constructor(config: IceConfig, log: Logger) {
    this.#config = config;
    this.#log = log;
  }

  /**
   * Opens the ports for one worker per configured port, at most IceWorkerCount or, where that is not set, one per core.
   * @param configs of all users of the workers; the workers listen on the ports of every one
   * @throws Error when a port cannot be opened
   */
  static async create(configs: readonly IceConfig[], log: Logger, cores = availableParallelism()): Promise<WorkerPool> {
    const config = joined(configs);
    const pool = new WorkerPool(config, log);
    const count = workerCount(config.iceCandidate, config.iceWorkerCount ?? cores);
    try {
      await pool.#hold(count);
    } catch (error) {
      pool.close();
      throw error;
    }
    return pool;
  }

  /**
   * Resolves when a worker runs, or else none can be started now: where all have died, when one of them was replaced or could
   * not be. Call it before `way` and `pick`.
   */
  async ready(): Promise<void> {
    if (this.workers.length === 0) await (this.#startNext() ?? this.#replacing);
  }

  get workers(): readonly MediaWorker[] {
    return this.#workers.filter((worker) => worker !== undefined && !worker.closed) as MediaWorker[];
  }

  /**
   * Chooses the transport for a peer: the wanted one where a worker has candidates for it, else any. Relayed peers use any.
   * @param wanted `transport` of its URL
   */
  way(
    wanted: string | null,
    { iceCandidate: entries, defaultTransport }: Pick<IceCandidates, 'iceCandidate' | 'defaultTransport'>,
  ): TransportChoice {
    const protocol = (wanted ?? defaultTransport).toLowerCase();
    if (protocol !== 'udp' && protocol !== 'tcp') return { protocol: undefined, entries };
    const way: TransportChoice = { protocol, entries };
    return this.workers.some((worker) => worker.candidatesOn(way).length > 0) ? way : { protocol: undefined, entries };
  }

  /**
   * Picks the running worker with the fewest sessions for a new peer. Starts another where an idle one is or soon will be better.
   * @param way of the peer; undefined for one that needs no candidate of a worker
   * @param prefer workers that count as having STICKY_SESSIONS fewer
   * @throws mediaUnavailable when no running worker has a candidate for the peer
   */
  pick(way: TransportChoice | undefined, prefer: (worker: MediaWorker) => boolean): MediaWorker {
    let best: MediaWorker | undefined;
    let least = Infinity;
    for (const worker of this.workers) {
      if (way !== undefined && worker.candidatesOn(way).length === 0) continue;
      const load = worker.sessions - (prefer(worker) ? STICKY_SESSIONS : 0);
      if (load < least) [best, least] = [worker, load];
    }
    if (best === undefined) throw kilnError('mediaUnavailable');
    if (best.sessions > 0 && least > -LEAD_SESSIONS) void this.#startNext();
    return best;
  }

  /** Ends the worker processes. Idempotent. */
  close(): void {
    this.#closed = true;
    for (const [timer, tried] of this.#timers) {
      clearTimeout(timer);
      tried();
    }
    for (const release of this.#held.values()) release();
    for (const worker of this.#workers) worker?.close();
  }

  async #hold(count: number): Promise<void> {
    for (let index = 0; index < count; index++) this.#held.set(index, await holdPorts(this.#sockets(index)));
  }

  #sockets(index: number): IceSocket[] {
    return iceSockets(this.#config.iceCandidate, index, localAddresses(), this.#config.enableLinkLocalAddress);
  }

  /** Starts one more worker, one at a time. */
  #startNext(): Promise<void> | undefined {
    const [next] = this.#held;
    if (this.#starting !== undefined || next === undefined || this.#closed) return this.#starting;
    const [index, release] = next;
    this.#held.delete(index);
    this.#starting = this.#start(index, release)
      .catch((error: unknown) => {
        this.#log.error({ worker: index, err: error }, 'a media worker could not be started');
        release();
        void this.#restart(index);
      })
      .finally(() => {
        this.#starting = undefined;
      });
    return this.#starting;
  }

  /** @param release frees its ports, which are held */
  async #start(index: number, release?: () => void): Promise<void> {
    // mediasoup's code takes megabytes
    const [{ MediaWorker }, { listenToMediasoup }] = await Promise.all([
      import('./media-worker.ts'),
      import('./log.ts'),
    ]);
    listenToMediasoup(this.#log);
    const onDied = (error: Error): void => {
      const { pid } = worker;
      this.#log.error(
        { event: 'worker.died', worker: index, pid, err: error },
        'a media worker died: its viewers were disconnected, and it will be replaced',
      );
      this.died++;
      this.#workers[index] = undefined;
      this.#replace(index);
    };
    const worker = await MediaWorker.start(index, this.#sockets(index), onDied, release);
    if (this.#closed) {
      worker.close();
      return;
    }
    this.#workers[index] = worker;
    this.#log.info(
      { event: 'worker.started', worker: index, pid: worker.pid, candidates: worker.candidates.length },
      'media worker started',
    );
  }

  #replace(index: number): void {
    const replacing = this.#restart(index).finally(() => {
      if (this.#replacing === replacing) this.#replacing = undefined;
    });
    this.#replacing = replacing;
  }

  /** @returns a promise for the first attempt, which may fail: others follow */
  #restart(index: number, backOff = new BackOff(LAST_RETRY_MS, FIRST_RETRY_MS)): Promise<void> {
    if (this.#closed) return Promise.resolve();
    return new Promise((tried) => {
      const timer = setTimeout(() => {
        this.#timers.delete(timer);
        this.#start(index)
          .catch((error: unknown) => {
            this.#log.error({ worker: index, err: error }, 'a media worker could not be restarted');
            void this.#restart(index, backOff);
          })
          .finally(tried);
      }, backOff.next());
      this.#timers.set(timer, tried);
    });
  }
}

function joined(configs: readonly IceConfig[]): IceConfig {
  const counts = configs.flatMap(({ iceWorkerCount }) => iceWorkerCount ?? []);
  return {
    iceCandidate: configs.flatMap(({ iceCandidate }) => iceCandidate),
    enableLinkLocalAddress: configs.some(({ enableLinkLocalAddress }) => enableLinkLocalAddress),
    ...(counts.length > 0 && { iceWorkerCount: Math.max(...counts) }),
  };
}
