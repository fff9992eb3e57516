import type { NodeIdentity } from '#cluster';
import { kilnError } from '../../../errors.ts';
import type { Logger } from '../../../log/log.ts';
import type { ChunklistForm } from '../../../packaging/playlist.ts';
import type { Directives, FileAnswer, Hold, Viewer } from '../answer/played-stream.ts';
import { answerChunklist } from '../blocking-reload/chunklist.ts';
import { MAX_WAITING, type Outcome } from '../blocking-reload/waiters.ts';
import type { Feed } from './feed.ts';
import { AwayError, type OwnerLink } from './link.ts';
import type { RemotePast } from './past.ts';
import { RemoteRendition, type RemoteContext, type WantedChunklist } from './rendition.ts';
import type { HlsForm } from '../package/hls-form.ts';
import type { ChunklistState } from '../sessions/wire.ts';

/** Limit per stream. */
const MAX_RENDITIONS = 256;
/** Limit per connection: caches in front of players ask for many at once. */
const MAX_LOADED_BY_ONE = 64;

export interface RemoteChunklistsOptions {
  readonly link: OwnerLink;
  readonly feed: Pick<Feed, 'hold' | 'sends' | 'late' | 'heard'>;
  readonly form: Pick<HlsForm, 'rendition'>;
  /** Number of viewers of this node and of its child nodes. */
  readonly viewers: () => number;
  readonly past: RemotePast | undefined;
  readonly onRun: (run: string) => void;
  readonly log: Logger;
}

/** Chunklists of a stream of another node, by name: those that the owner has. */
export class RemoteChunklists implements RemoteContext {
  readonly link: OwnerLink;
  readonly #options: RemoteChunklistsOptions;
  readonly #renditions = new Map<string, RemoteRendition>();
  /** Names that the owner has not confirmed yet: clients can invent some. */
  readonly #candidates = new Map<string, RemoteRendition>();
  #ended = false;
  #targetDuration: number | undefined;

  constructor(options: RemoteChunklistsOptions) {
    this.#options = options;
    this.link = options.link;
  }

  get past(): RemotePast | undefined {
    return this.#options.past;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Seconds, as last received from the owner. */
  get targetDuration(): number | undefined {
    return this.#targetDuration;
  }

  /** @throws as PlayedFiles.file */
  answer(
    name: string,
    directives: Directives,
    hold: Hold,
    viewer: Viewer | undefined,
  ): FileAnswer | Promise<FileAnswer> {
    const since = Date.now();
    const form = directives.legacy ? 'legacy' : directives.skip ? 'delta' : 'full';
    let { rendition, loaded } = this.#refresh(name, form);
    if (loaded === undefined) return answerChunklist(rendition, directives, hold, viewer, since);
    const attempt = async (): Promise<void> => {
      const first = loaded;
      loaded = undefined;
      if (first !== undefined) return await first;
      if (this.#ended) throw kilnError('streamInterrupted');
      const next = this.#refresh(name, form);
      rendition = next.rendition;
      await next.loaded;
    };
    return hold(() => this.link.whileAway(attempt), MAX_LOADED_BY_ONE).then(() => {
      if (this.#ended && rendition.position === undefined) throw kilnError('streamInterrupted');
      return answerChunklist(rendition, directives, hold, viewer, since);
    });
  }

  /**
   * Serves a node that relays from this one: waits for a chunklist to change from `wanted`, for `holdMs` at most.
   * @returns undefined while the owner has none
   * @throws KilnError of the owner; AwayError where another node may know more
   */
  async state(name: string, wanted: WantedChunklist, holdMs: number): Promise<ChunklistState | undefined> {
    const { rendition, loaded } = this.#refresh(name, 'full');
    await loaded;
    return await rendition.state(wanted, holdMs);
  }

  async load(file: string, wanted: WantedChunklist, holdMs: number): Promise<ChunklistState | undefined> {
    const asked = { file, ...wanted, viewers: this.#options.viewers() };
    const { answer: state } = await this.#heard(this.link.fetch(this.link.calls.chunklist, asked, holdMs));
    if (state === null) return undefined;
    this.#note(state);
    return state;
  }

  hold(file: string, wanted: WantedChunklist, holdMs: number): Promise<boolean> {
    return this.#options.feed.hold(file, wanted, holdMs);
  }

  sends(file: string): boolean {
    return this.#options.feed.sends(file);
  }

  isVideo(file: string): boolean {
    return this.#options.form.rendition(file)?.startsWith('video_') ?? false;
  }

  get late(): boolean {
    return this.#options.feed.late;
  }

  take(name: string, state: ChunklistState, owner: NodeIdentity): void {
    this.#note(state);
    this.#renditions.get(name)?.take(state, owner);
  }

  /** Tests whether a file is the next part, which the source node will send. */
  expects(file: string): boolean {
    for (const { hinted } of this.#renditions.values()) if (hinted === file) return true;
    return false;
  }

  countWaiting(): void {
    let waiting = 0;
    for (const { waiters } of this.#renditions.values()) waiting += waiters.size;
    if (waiting >= MAX_WAITING) throw kilnError('tooManyWaiting');
  }

  drop(name: string, rendition: RemoteRendition): void {
    if (this.#renditions.get(name) === rendition) this.#renditions.delete(name);
  }

  onFault(error: unknown): void {
    this.#options.log.error({ err: error }, 'a chunklist could not be loaded from the node that has the stream');
  }

  /** Shortens the waits while no node has the stream. */
  interrupt(): void {
    for (const rendition of this.#renditions.values()) rendition.interrupt();
  }

  /** Gives up requests that have waited for long enough. @param now milliseconds since the epoch */
  expire(now: number): void {
    for (const { waiters } of this.#renditions.values()) waiters.expire(now);
  }

  /** Ends all waits, also those of unconfirmed names. Idempotent. */
  close(outcome: Outcome): void {
    this.#ended = true;
    for (const { waiters } of [...this.#renditions.values(), ...this.#candidates.values()]) waiters.close(outcome);
  }

  /** Any answer shows that the other node is alive. */
  #heard<T>(call: Promise<T>): Promise<T> {
    const { feed } = this.#options;
    call.then(
      () => feed.heard(),
      (error) => error instanceof AwayError || feed.heard(),
    );
    return call;
  }

  #note({ run, atCapacity, targetDuration }: ChunklistState): void {
    if (atCapacity === true) this.link.ownerAtCapacity();
    this.#options.onRun(run);
    this.#targetDuration = targetDuration;
  }

  #refresh(name: string, form: ChunklistForm): { rendition: RemoteRendition; loaded: Promise<void> | undefined } {
    const known = this.#renditions.get(name);
    const rendition = known ?? this.#candidate(name);
    const refreshed = rendition.refresh(form);
    const isNew = known === undefined && refreshed !== undefined;
    return { rendition, loaded: isNew ? this.#admit(name, rendition, refreshed) : refreshed };
  }

  #candidate(name: string): RemoteRendition {
    let candidate = this.#candidates.get(name);
    if (candidate === undefined) {
      if (this.#candidates.size >= MAX_RENDITIONS) throw kilnError('tooManyWaiting');
      this.#candidates.set(name, (candidate = new RemoteRendition(name, this)));
    }
    return candidate;
  }

  async #admit(name: string, rendition: RemoteRendition, loaded: Promise<void>): Promise<void> {
    try {
      await loaded;
    } finally {
      if (this.#candidates.get(name) === rendition) this.#candidates.delete(name);
    }
    if (rendition.position === undefined || this.#renditions.get(name) === rendition) return;
    if (this.#renditions.size >= MAX_RENDITIONS) throw kilnError('tooManyWaiting');
    this.#renditions.set(name, rendition);
  }
}
