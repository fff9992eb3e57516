import { setTimeout as delay } from 'node:timers/promises';
import { isSameIncarnation, type NodeIdentity } from '#cluster';
import { KilnError, kilnError } from '../../../errors.ts';
import { within } from '../../../lib/within.ts';
import type { ChunklistForm } from '../../../packaging/playlist.ts';
import type { OnLeft } from '../answer/played-stream.ts';
import type { Chunklist } from '../blocking-reload/chunklist.ts';
import { holdFor } from '../blocking-reload/held-requests.ts';
import { waitMs, type Wait } from '../blocking-reload/wait.ts';
import { markOf, type Position } from '../blocking-reload/chunklist-position.ts';
import { Repeats } from '../blocking-reload/repeats.ts';
import { Text } from '../answer/text.ts';
import { Waiters, type Outcome } from '../blocking-reload/waiters.ts';
import { AwayError, interrupted, RETRY_MS, type OwnerLink } from './link.ts';
import { hintOf } from './feed-wire.ts';
import type { RemotePast } from './past.ts';
import { FORMS, HELD_MS, type ChunklistState } from '../sessions/wire.ts';

/** Age up to which the known state answers a request. */
const FRESH_MS = 200;
/** Time without requests after which a form is no longer fetched. */
const FORM_MS = 10_000;
/** Hold of the first load: players give up after 10 seconds, and the owner may turn out to be silent. */
const FIRST_HELD_MS = 4000;
/** Delay after which an owner is taken for silent. Less than players wait at least. */
const LATE_MS = 1000;

export interface WantedChunklist {
  readonly forms: ChunklistForm[];
  /** Mark of the known position, for a later state. */
  readonly after?: string;
}

/** Access of a rendition to its stream. */
export interface RemoteContext {
  readonly link: OwnerLink;
  /** True when nothing more comes; another request may find the stream elsewhere. */
  readonly ended: boolean;
  /**
   * Loads the chunklist of the owner; undefined when that has none yet.
   * @param holdMs time for which the owner may wait for it
   * @throws AwayError, KilnError
   */
  load(file: string, wanted: WantedChunklist, holdMs: number): Promise<ChunklistState | undefined>;
  /** Waits for the chunklist to be sent, for `holdMs` at most. @returns false where it is to be loaded */
  hold(file: string, wanted: WantedChunklist, holdMs: number): Promise<boolean>;
  sends(file: string): boolean;
  isVideo(file: string): boolean;
  readonly late: boolean;
  /** Past of the playlists of the stream; undefined where players do not rewind. */
  readonly past: RemotePast | undefined;
  /** @throws tooManyWaiting */
  countWaiting(): void;
  /** Forgets a rendition that the owner no longer has. */
  drop(file: string, rendition: RemoteRendition): void;
  onFault(error: unknown): void;
}

interface Pending {
  readonly owner: NodeIdentity;
  /** When it is late, by the monotonic clock. */
  readonly lateAt: number;
}

/**
 * Chunklist of another node. One call waits at that node for all players that wait here. While the node is silent, players get
 * the known state, and soon.
 */
export class RemoteRendition implements Chunklist {
  readonly waiters = new Waiters();
  readonly repeats = new Repeats();
  /** False: the owner holds the first answer where that is needed. */
  readonly continues = false;
  position: Position | undefined;
  readonly #file: string;
  readonly #context: RemoteContext;
  readonly #askedFor = new Map<ChunklistForm, number>();
  readonly #pending = new Set<Pending>();
  #texts: Partial<Record<ChunklistForm, Text>> = {};
  /** With the past. */
  #longTexts: Partial<Record<ChunklistForm, Text>> = {};
  #last: (ChunklistState & { readonly from: NodeIdentity; readonly at: number }) | undefined;
  #hint: string | undefined;
  /** The new owner has nothing of it yet. */
  #unbegun = false;
  #loading: Promise<void> | undefined;
  #following = false;

  constructor(file: string, context: RemoteContext) {
    this.#file = file;
    this.#context = context;
  }

  get leads(): boolean {
    return this.#context.isVideo(this.#file);
  }

  get targetDuration(): number {
    return this.#last?.targetDuration ?? 1;
  }

  get interrupted(): boolean {
    const {
      ended,
      link: { lost },
    } = this.#context;
    return ended || lost || this.#silent || this.#unbegun || this.#last?.interrupted === true;
  }

  /**
   * Makes the known state that of the owner, unless that is silent; undefined where it is.
   * @throws KilnError of the owner; streamInterrupted when no node answers and nothing is known
   */
  refresh(form: ChunklistForm): Promise<void> | undefined {
    const now = performance.now();
    this.#askedFor.set(form, now);
    if (this.#texts[form] !== undefined) {
      const isFollowed = this.#following || this.#context.sends(this.#file);
      if ((isFollowed && !this.#silent) || now - (this.#last?.at ?? -Infinity) < FRESH_MS) return undefined;
    }
    const silent = this.#silent;
    const loading = this.#loadShared();
    if (this.position === undefined) return loading;
    if (!silent) return within(LATE_MS, loading);
    // its result is for later requests
    loading.catch(() => {});
    return undefined;
  }

  text(form: ChunklistForm, rewinds: boolean): Text | Promise<Text> {
    const { past } = this.#context;
    if (!rewinds || past === undefined) return this.#present(form);
    const whole = this.#present(form === 'legacy' ? 'legacy' : 'full');
    return (
      this.#longTexts[form] ??
      (whole instanceof Promise ? whole.then((there) => this.#long(past, there, form)) : this.#long(past, whole, form))
    );
  }

  #long(past: RemotePast, whole: Text, form: ChunklistForm): Text | Promise<Text> {
    const texts = this.#longTexts;
    const keep = (text: Text): Text => (texts[form] = text);
    const text = past.before(this.#file, whole, () => this.#texts[form] ?? whole, form);
    return text instanceof Promise ? text.then(keep) : keep(text);
  }

  #present(form: ChunklistForm): Text | Promise<Text> {
    const stated = this.#texts[form] ?? (form === 'delta' ? this.#texts.full : undefined);
    return stated ?? this.#loadText(form);
  }

  /** As RemoteChunklists.state, after a refresh. */
  async state({ forms, after }: WantedChunklist, holdMs: number): Promise<ChunklistState | undefined> {
    const changed = (): boolean => this.position !== undefined && markOf(this.position) !== after;
    if (holdMs > 0 && !changed())
      await holdFor(holdMs)((onLeft) => this.wait(changed, onLeft, { since: Date.now(), what: 'next' }));
    for (const form of forms) {
      this.#askedFor.set(form, performance.now());
      if (this.#texts[form] === undefined) await this.#loadText(form);
    }
    const last = this.#last;
    const { ended, link } = this.#context;
    if (ended || link.lost || this.#silent || this.#unbegun || (last && !isSameIncarnation(last.from, link.owner)))
      throw new AwayError('what is known may not be what the owner has');
    if (last === undefined) return undefined;
    const { run, edition, interrupted, targetDuration, position } = last;
    const texts = forms.map((form) => [form, this.#texts[form]?.plain.toString()]);
    return { run, edition, interrupted, targetDuration, position, texts: Object.fromEntries(texts) };
  }

  /** Name of the announced part; undefined where it is not sent. */
  get hinted(): string | undefined {
    return this.#context.sends(this.#file) ? this.#hint : undefined;
  }

  wait(ready: () => boolean, onLeft: OnLeft, { since, what }: Wait): Promise<Outcome> {
    this.#context.countWaiting();
    const outcome = this.waiters.wait(ready, this.#waitMs(this.interrupted, what) + since - Date.now(), onLeft);
    if (!this.#following && this.waiters.size > 0) void this.#follow();
    return outcome;
  }

  /** Shortens the waits while no node answers. */
  interrupt(): void {
    this.waiters.limit(Date.now() + this.#waitMs(true));
  }

  /** True when the owner is known to be unreachable, or late. */
  get #silent(): boolean {
    const { link } = this.#context;
    if (link.away || this.#context.late) return true;
    const now = performance.now();
    for (const { owner, lateAt } of this.#pending)
      if (isSameIncarnation(owner, link.owner) && lateAt < now) return true;
    return false;
  }

  /** Short enough to notice a silent owner before the waits end, so that players still get the known state. */
  get #holdMs(): number {
    return Math.max(RETRY_MS, Math.min(HELD_MS, this.#waitMs(false, this.leads ? 'soon' : 'next') / 2 - LATE_MS));
  }

  #waitMs(interrupted: boolean, what?: Wait['what']): number {
    return waitMs(this.targetDuration, interrupted, what);
  }

  /** Waits for changes while players do. Never throws. */
  async #follow(): Promise<void> {
    const { link } = this.#context;
    this.#following = true;
    while (this.waiters.size > 0) {
      let failed = false;
      try {
        await link.unlessMoved(this.#load(this.#holdMs, this.position));
      } catch (error) {
        failed = true;
        this.#note(error);
      }
      if (this.interrupted) this.interrupt();
      if (this.waiters.size > 0 && (failed || this.#unbegun)) await link.unlessMoved(delay(RETRY_MS));
    }
    this.#following = false;
  }

  /** Loads the present state, once for all simultaneous requests. @throws as refresh */
  #loadShared(): Promise<void> {
    this.#loading ??= this.#load(this.position === undefined ? FIRST_HELD_MS : 0)
      .catch((error: unknown) => {
        this.#note(error);
        if (error instanceof KilnError) throw error;
        if (this.position !== undefined) return;
        throw error instanceof AwayError ? interrupted(error) : kilnError('streamInterrupted');
      })
      .finally(() => (this.#loading = undefined));
    return this.#loading;
  }

  async #loadText(form: ChunklistForm): Promise<Text> {
    this.#askedFor.set(form, performance.now());
    // the load that is under way may have been sent without it
    for (let attempt = 0; attempt < 2 && this.#texts[form] === undefined; attempt++) await this.#loadShared();
    const text = this.#texts[form];
    if (text === undefined) throw kilnError('streamInterrupted');
    return text;
  }

  #note(error: unknown): void {
    if (error instanceof KilnError) {
      if (error.code !== 'fileNotFound' && error.code !== 'streamNotFound') return;
      this.waiters.close();
      this.#context.drop(this.#file, this);
      return;
    }
    if (!(error instanceof AwayError)) this.#context.onFault(error);
    this.interrupt();
  }

  /**
   * @param holdMs time for which the owner waits for the first part, where players expect one, or for a change
   * @param after the known position
   */
  async #load(holdMs: number, after?: Position): Promise<void> {
    const { link } = this.#context;
    const { owner } = link;
    const wanted = { forms: this.#forms(), ...(after !== undefined && { after: markOf(after) }) };
    if (holdMs > 0 && after !== undefined && (await this.#context.hold(this.#file, wanted, holdMs))) return;
    const pending = { owner, lateAt: performance.now() + holdMs + LATE_MS };
    this.#pending.add(pending);
    try {
      this.take(await this.#loadState(wanted, holdMs), owner);
    } finally {
      this.#pending.delete(pending);
    }
  }

  /** @param state of the owner; undefined where that has none yet */
  take(state: ChunklistState | undefined, owner: NodeIdentity): void {
    // a former owner, or an older call, no longer counts
    if (!isSameIncarnation(owner, this.#context.link.owner)) return;
    this.#unbegun = state === undefined;
    if (state === undefined) return;
    const last = this.#last !== undefined && isSameIncarnation(this.#last.from, owner) ? this.#last : undefined;
    if (last === undefined || state.edition >= last.edition) this.#apply(state, owner, last?.edition === state.edition);
  }

  async #loadState(wanted: WantedChunklist, holdMs: number): Promise<ChunklistState | undefined> {
    try {
      return await this.#context.load(this.#file, wanted, holdMs);
    } catch (error) {
      const unbegun = error instanceof KilnError && error.code === 'streamInterrupted' && this.position !== undefined;
      if (unbegun) return undefined;
      throw error;
    }
  }

  #forms(): ChunklistForm[] {
    const since = performance.now() - FORM_MS;
    return FORMS.filter((form) => form === 'full' || (this.#askedFor.get(form) ?? -Infinity) > since);
  }

  #apply(state: ChunklistState, from: NodeIdentity, isKnown: boolean): void {
    if (!isKnown) {
      this.#texts = {};
      this.#longTexts = {};
    }
    for (const form of FORMS) {
      const text = state.texts[form];
      if (text !== undefined) this.#texts[form] ??= new Text(text);
    }
    this.#last = { ...state, from, at: performance.now() };
    this.#hint = hintOf(state.texts.full ?? '');
    this.position = state.position;
    this.waiters.check();
  }
}
