import { setTimeout as delay } from 'node:timers/promises';
import { isSameIncarnation, type NodeIdentity } from '#cluster';
import { KilnError, kilnError } from '../../../errors.ts';
import { within } from '../../../lib/within.ts';
import type { ChunklistForm } from '../../../packaging/playlist.ts';
import type { OnLeft } from '../answer/played-stream.ts';
import type { Chunklist } from '../package/chunklist.ts';
import { holdFor } from '../package/held-requests.ts';
import { waitMs, type Wait } from '../package/wait.ts';
import { markOf, type Position } from '../answer/chunklist-position.ts';
import { Repeats } from '../package/repeats.ts';
import { Text } from '../answer/text.ts';
import { Waiters, type Outcome } from '../package/waiters.ts';
import { AwayError, RETRY_MS, type OwnerLink } from './link.ts';
import { hintOf } from './feed-wire.ts';
import { FORMS, HELD_MS, type ChunklistState } from '../sessions/wire.ts';

/** How old what is known may be for who asks for what is there now. */
const FRESH_MS = 200;
/** A form that nobody has asked for so long is not fetched any more. */
const FORM_MS = 10_000;
/** The same for the first answer: players give up after 10 seconds, and the owner may turn out to be silent. */
const FIRST_HELD_MS = 4000;
/** An owner that has not answered so long after it was to is taken for silent. Less than players wait at least. */
const LATE_MS = 1000;

/** What is to be loaded of a chunklist. */
export interface WantedChunklist {
  readonly forms: ChunklistForm[];
  /** The mark of the position that is known: what comes after it. */
  readonly after?: string;
}

/** What a rendition needs of its stream. */
export interface RemoteContext {
  readonly link: OwnerLink;
  /** Nothing comes of it any more; who asks again may find it elsewhere. */
  readonly ended: boolean;
  /**
   * The chunklist as its owner has it; undefined when that has none yet.
   * @param holdMs so long the owner may wait for it
   * @throws AwayError, KilnError
   */
  load(file: string, wanted: WantedChunklist, holdMs: number): Promise<ChunklistState | undefined>;
  /**
   * Waits for the chunklist to be sent, for `holdMs` at most.
   * @returns false where it is to be loaded
   */
  hold(file: string, wanted: WantedChunklist, holdMs: number): Promise<boolean>;
  /** Whether it is sent whenever it changes. */
  sends(file: string): boolean;
  /** Who was sending is silent. */
  readonly late: boolean;
  /** @throws tooManyWaiting */
  countWaiting(): void;
  /** The owner does not have it any more. */
  drop(file: string, rendition: RemoteRendition): void;
  /** Takes an error that nothing foresees. */
  onFault(error: unknown): void;
}

/** A call that the owner has not answered. */
interface Pending {
  readonly owner: NodeIdentity;
  /** When it is late, by the monotonic clock. */
  readonly lateAt: number;
}

/**
 * A chunklist that another node makes. While players wait for more, one call waits for it over there, whatever they
 * wait for and however many they are. While that node is silent they get what is known, and soon.
 */
export class RemoteRendition implements Chunklist {
  readonly waiters = new Waiters();
  readonly repeats = new Repeats();
  /** Who has the stream holds the first answer, where that is called for. */
  readonly continues = false;
  position: Position | undefined;
  readonly #file: string;
  readonly #context: RemoteContext;
  readonly #askedFor = new Map<ChunklistForm, number>();
  readonly #pending = new Set<Pending>();
  #texts: Partial<Record<ChunklistForm, Text>> = {};
  #told: (ChunklistState & { readonly from: NodeIdentity; readonly at: number }) | undefined;
  #hint: string | undefined;
  /** Its new owner has nothing of it yet. */
  #unbegun = false;
  #loading: Promise<void> | undefined;
  #following = false;

  constructor(file: string, context: RemoteContext) {
    this.#file = file;
    this.#context = context;
  }

  get targetDuration(): number {
    return this.#told?.targetDuration ?? 1;
  }

  get interrupted(): boolean {
    const {
      ended,
      link: { lost },
    } = this.#context;
    return ended || lost || this.#silent || this.#unbegun || this.#told?.interrupted === true;
  }

  /**
   * Makes sure that what is known is what the owner has, unless that is silent; undefined where it is.
   * @throws KilnError of the owner; streamInterrupted when nobody answers and nothing is known
   */
  refresh(form: ChunklistForm): Promise<void> | undefined {
    const now = performance.now();
    this.#askedFor.set(form, now);
    if (this.#texts[form] !== undefined) {
      const isFollowed = this.#following || this.#context.sends(this.#file);
      if ((isFollowed && !this.#silent) || now - (this.#told?.at ?? -Infinity) < FRESH_MS) return undefined;
    }
    const silent = this.#silent;
    const loading = this.#loadShared();
    if (this.position === undefined) return loading;
    if (!silent) return within(LATE_MS, loading);
    // what comes of it is for those who ask next
    loading.catch(() => {});
    return undefined;
  }

  text(form: ChunklistForm): Text | Promise<Text> {
    const stated = this.#texts[form] ?? (form === 'delta' ? this.#texts.full : undefined);
    return stated ?? this.#loadText(form);
  }

  /** As RemoteChunklists.state, once what is known is what the owner has. */
  async state({ forms, after }: WantedChunklist, holdMs: number): Promise<ChunklistState | undefined> {
    const changed = (): boolean => this.position !== undefined && markOf(this.position) !== after;
    if (holdMs > 0 && !changed())
      await holdFor(holdMs)((onLeft) => this.wait(changed, onLeft, { since: Date.now(), what: 'next' }));
    for (const form of forms) {
      this.#askedFor.set(form, performance.now());
      if (this.#texts[form] === undefined) await this.#loadText(form);
    }
    const told = this.#told;
    const { ended, link } = this.#context;
    if (ended || link.lost || this.#silent || this.#unbegun || (told && !isSameIncarnation(told.from, link.owner)))
      throw new AwayError('what is known may not be what the owner has');
    if (told === undefined) return undefined;
    const { run, edition, interrupted, targetDuration, position } = told;
    const texts = forms.map((form) => [form, this.#texts[form]?.plain.toString()]);
    return { run, edition, interrupted, targetDuration, position, texts: Object.fromEntries(texts) };
  }

  /** What comes next, as it was told; undefined where it is not sent. */
  get hinted(): string | undefined {
    return this.#context.sends(this.#file) ? this.#hint : undefined;
  }

  wait(ready: () => boolean, onLeft: OnLeft, { since, what }: Wait): Promise<Outcome> {
    this.#context.countWaiting();
    const outcome = this.waiters.wait(ready, this.#waitMs(this.interrupted, what) + since - Date.now(), onLeft);
    if (!this.#following && this.waiters.size > 0) void this.#follow();
    return outcome;
  }

  /** Nobody answers for the stream: who waits is not kept for long. */
  interrupt(): void {
    this.waiters.limit(Date.now() + this.#waitMs(true));
  }

  /** Nobody answers, as far as is known, or not in time. */
  get #silent(): boolean {
    const { link } = this.#context;
    if (link.away || this.#context.late) return true;
    const now = performance.now();
    for (const { owner, lateAt } of this.#pending)
      if (isSameIncarnation(owner, link.owner) && lateAt < now) return true;
    return false;
  }

  /** So short that an owner is found to be silent before those who wait are given up, who might be told what is known. */
  get #holdMs(): number {
    return Math.max(RETRY_MS, Math.min(HELD_MS, this.#waitMs(false) / 2 - LATE_MS));
  }

  #waitMs(interrupted: boolean, what?: Wait['what']): number {
    return waitMs(this.targetDuration, interrupted, what);
  }

  /** Waits for what comes as long as players do. It never throws. */
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

  /** What is there now, once for all who ask at the same time. @throws as refresh */
  #loadShared(): Promise<void> {
    this.#loading ??= this.#load(this.position === undefined ? FIRST_HELD_MS : 0)
      .catch((error: unknown) => {
        this.#note(error);
        if (error instanceof KilnError) throw error;
        if (this.position === undefined) throw kilnError('streamInterrupted');
      })
      .finally(() => (this.#loading = undefined));
    return this.#loading;
  }

  /** A form that nobody had asked for when what is known was loaded. */
  async #loadText(form: ChunklistForm): Promise<Text> {
    this.#askedFor.set(form, performance.now());
    // the load that is under way may have been sent without it
    for (let attempt = 0; attempt < 2 && this.#texts[form] === undefined; attempt++) await this.#loadShared();
    const text = this.#texts[form];
    if (text === undefined) throw kilnError('streamInterrupted');
    return text;
  }

  /** Takes what became of a call that failed. */
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
   * @param holdMs so long the owner waits for the first part, where players expect one, or for what comes
   * @param after that
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

  /** @param state as the owner has told it; undefined where that has nothing yet */
  take(state: ChunklistState | undefined, owner: NodeIdentity): void {
    // what an owner of the past said, or an older call, counts no more
    if (!isSameIncarnation(owner, this.#context.link.owner)) return;
    this.#unbegun = state === undefined;
    if (state === undefined) return;
    const told = this.#told !== undefined && isSameIncarnation(this.#told.from, owner) ? this.#told : undefined;
    if (told === undefined || state.edition >= told.edition) this.#apply(state, owner, told?.edition === state.edition);
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
    if (!isKnown) this.#texts = {};
    for (const form of FORMS) {
      const text = state.texts[form];
      if (text !== undefined) this.#texts[form] ??= new Text(text);
    }
    this.#told = { ...state, from, at: performance.now() };
    this.#hint = hintOf(state.texts.full ?? '');
    this.position = state.position;
    this.waiters.check();
  }
}
