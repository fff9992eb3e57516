import { UnavailableError, type Claim, type ClaimOptions, type Cluster, type Json, type Lease } from '#cluster';
import type { Application, PublishOptions } from '../core/application.ts';
import { Continuity } from '../core/continuity.ts';
import type { Registry } from '../core/registry.ts';
import type { Source } from '../core/source.ts';
import type { InputStream } from '../core/input-stream.ts';
import type { OutputStream } from '../core/output-stream.ts';
import { kilnError } from '../errors.ts';
import type { Logger } from '../log/log.ts';
import { HeldNames } from './held-names.ts';
import type { StreamChanges } from './stream-changes.ts';
import { readContinuity, readMeta, streamKey, type StreamMeta } from './stream-key.ts';
import { SyncedLease } from './synced-lease.ts';

/** Time after its end in which a stream can be continued. */
export const CONTINUED_MS = 30_000;
/** A month. */
const MOST_KEPT_MS = 30 * 24 * 3_600_000;

/** Attempts to take over a name for which other claims keep arriving. */
const TAKE_ATTEMPTS = 5;

/** Names that are reserved for configured sources: no other source gets them. */
export interface ReservedNames {
  mayBeIn(application: Application): boolean;
  /** Whether a name is reserved, as far as this node knows the configuration. */
  has(application: Application, name: string, source: Source): boolean;
}

export interface StreamNamesOptions {
  readonly cluster: Pick<Cluster, 'self' | 'claim' | 'lives' | 'config'>;
  readonly registry: Registry;
  readonly changes: StreamChanges;
  readonly reserved?: ReservedNames;
  readonly log: Logger;
}

export interface ClaimedPublishOptions extends Omit<PublishOptions, 'continuity'> {
  /**
   * Behaviour when the cluster's store is unreachable for long: `continue` for a stream that was published here, `stop` for one
   * that another node will pull.
   */
  readonly silence: 'continue' | 'stop';
  /** The name is for a slate, which takes it from no other. */
  readonly isSlate?: boolean;
  /** Aborts when the source is gone, so that the name is no longer wanted. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Assigns names to input streams, each once in the whole cluster. The claim of a name lasts as long as its stream, and
 * describes the stream to the other nodes.
 */
export class StreamNames {
  readonly #cluster: Pick<Cluster, 'claim' | 'config'>;
  readonly #log: Logger;
  readonly #claims = new Map<InputStream, NameClaim>();
  readonly #names: HeldNames;
  readonly #reserved: ReservedNames | undefined;
  readonly #unlisten: () => void;
  /** Number of streams that continue an earlier one of this node or another. */
  continued = 0;

  constructor({ cluster, registry, changes, reserved, log }: StreamNamesOptions) {
    this.#cluster = cluster;
    this.#log = log;
    this.#reserved = reserved;
    this.#names = new HeldNames({ cluster, changes, log });
    const onOutput = (output: OutputStream): void => {
      const claim = this.#claims.get(output.input);
      if (claim === undefined) return;
      claim.update();
      output.once('close', () => claim.update());
    };
    const onStarting = (_application: Application, input: InputStream): void => {
      if (input.hasOutputs) this.#claims.get(input)?.update();
    };
    registry.on('output', onOutput).on('starting', onStarting);
    this.#unlisten = () => registry.off('output', onOutput).off('starting', onStarting);
  }

  get held(): number {
    return this.#names.held;
  }

  /**
   * Claims a name for a source, as Application.publish() does. While the node that has the name does not answer, the source is
   * held for some seconds.
   * @throws what publish() throws; also streamExists when another node has the name, streamNameUnconfirmed when that node does
   * not answer, or the store cannot be asked and another node may have it, tooManyWaiting, clientGone
   */
  async publish(
    application: Application,
    name: string,
    source: Source,
    options: ClaimedPublishOptions,
  ): Promise<InputStream> {
    const key = streamKey({ vhost: application.vhost.name, app: application.name, stream: name });
    application.check(name, source, options);
    this.#checkReserved(application, name, source);
    const created = Date.now();
    const { generation } = application;
    const live = options.isListed === true;
    const meta: StreamMeta = { live, created, generation, outputs: [], starting: true };
    const { signal } = options;
    const lease = await this.#names.claim({ application, name, signal }, () =>
      this.#claim(key, meta, options, keptMs(application)),
    );
    let claim: NameClaim | undefined;
    const continuity = new Continuity(readContinuity(lease.inherited), () => claim?.keep());
    try {
      // another node may have reserved it before the name was claimed
      if (this.#reserved?.mayBeIn(application) === true) await this.#cluster.config.sync();
      this.#checkReserved(application, name, source);
      const input = application.publish(name, source, { ...options, continuity });
      claim = new NameClaim(input, lease, { created, generation }, this.#log);
      this.#claims.set(input, claim);
      if (continuity.kept.size > 0) this.continued++;
      input.once('close', () => this.#claims.delete(input));
      return input;
    } catch (error) {
      void lease.release();
      throw error;
    }
  }

  /**
   * Runs `step` while no stream of a name can begin, not even by a takeover.
   * @throws streamExists when there is one, streamNameUnconfirmed when the store cannot be asked, what `step` throws
   */
  async whileFree<T>(application: Application, name: string, step: () => Promise<T>): Promise<T> {
    const key = streamKey({ vhost: application.vhost.name, app: application.name, stream: name });
    const { generation } = application;
    const meta: StreamMeta = { live: false, created: Date.now(), generation, outputs: [], reserves: true };
    const claim = await this.#claim(key, meta, { replace: false, silence: 'stop' });
    if ('owner' in claim) throw kilnError('streamExists');
    try {
      return await step();
    } finally {
      await claim.lease.release();
    }
  }

  /** Whether this node owns the name. False when another may own it by now, such as after this process stood still. */
  isCertain(input: InputStream): boolean {
    return this.#claims.get(input)?.isValid ?? true;
  }

  /** Stops following the registry; claims end with their streams. */
  close(): void {
    this.#unlisten();
  }

  #checkReserved(application: Application, name: string, source: Source): void {
    if (this.#reserved?.has(application, name, source) === true) throw kilnError('streamExists');
  }

  async #claim(
    key: string,
    meta: StreamMeta,
    { replace, silence, isSlate = false }: Pick<ClaimedPublishOptions, 'replace' | 'silence' | 'isSlate'>,
    keepMs = CONTINUED_MS,
  ): Promise<Claim> {
    const ask = (take: ClaimOptions['take']): Promise<Claim> =>
      this.#cluster.claim(key, meta as Json, { silence, take, keepMs });
    try {
      let claim = await ask(false);
      // another publisher may have taken it over already at the same time
      for (let attempt = 1; 'owner' in claim && attempt <= TAKE_ATTEMPTS; attempt++) {
        const { handsOver = false, vacant = false, reserves = false } = readMeta(claim.owner.meta) ?? {};
        if (meta.reserves === true || reserves || !(replace || handsOver) || (isSlate && vacant)) break;
        claim = await ask(claim.owner);
      }
      return claim;
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      this.#log.warn(
        { reason: error.message },
        'the name of the stream cannot be claimed: the store of the cluster is unreachable',
      );
      throw kilnError('streamNameUnconfirmed');
    }
  }
}

/** How long what a stream keeps waits for the next publisher: where viewers rewind, as long as they can. */
function keptMs({ config: { publishers } }: Application): number {
  const seconds = [publishers.llhls, publishers.hls].map((hls) =>
    hls?.dvr?.enable === true ? hls.dvr.maxDuration : 0,
  );
  return Math.min(MOST_KEPT_MS, Math.max(CONTINUED_MS, ...seconds.map((duration) => duration * 1000)));
}

/** Claim of one stream's name, updated with the stream. */
class NameClaim {
  readonly #input: InputStream;
  readonly #lease: SyncedLease;
  readonly #facts: Pick<StreamMeta, 'created' | 'generation'>;

  constructor(input: InputStream, lease: Lease, facts: Pick<StreamMeta, 'created' | 'generation'>, log: Logger) {
    this.#input = input;
    const kept = (): Json => Object.fromEntries(input.continuity.kept) as Json;
    this.#lease = new SyncedLease(lease, { meta: () => this.#meta as Json, kept }, log);
    this.#facts = facts;
    const onLost = (): void =>
      input.end(`the stream name was lost: ${(lease.signal.reason as Error).message}`, { taken: true });
    if (lease.signal.aborted) onLost();
    lease.signal.addEventListener('abort', onLost, { once: true });
    input.once('tracks', () => this.update());
    input.on('handsOver', () => this.update());
    input.once('close', () => void this.#lease.release());
    if (input.closed) void this.#lease.release();
  }

  get isValid(): boolean {
    return this.#lease.valid;
  }

  update(): void {
    this.#lease.update();
  }

  /** Stores what a stream that continues this one inherits. */
  keep(): void {
    this.#lease.keep();
  }

  get #meta(): StreamMeta {
    const { listed, outputs, closed, hasOutputs, handsOver, isVacant } = this.#input;
    const announced = [...outputs.values()].filter((output) => output.tracks.length > 0);
    return {
      ...this.#facts,
      live: listed && !closed,
      outputs: announced.map(({ name }) => name),
      ...((handsOver || isVacant) && { handsOver: true }),
      ...(isVacant && { vacant: true }),
      starting: !hasOutputs || [...outputs.values()].some((output) => !output.announced),
    };
  }
}
