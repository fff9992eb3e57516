import { setTimeout as delay } from 'node:timers/promises';
import type { NodeIdentity } from '#cluster';
import { KilnError, kilnError } from '../../../errors.ts';
import type { ChunklistForm } from '../../../packaging/playlist.ts';
import type { OnLeft } from '../answer.ts';
import type { Chunklist } from '../chunklist.ts';
import { patienceMs } from '../patience.ts';
import { markOf, type Position } from '../position.ts';
import { Text } from '../text.ts';
import { Waiters, type Outcome } from '../waiters.ts';
import { AwayError, type OwnerLink } from './link.ts';
import { FORMS, HELD_MS, type ChunklistState } from './wire.ts';

/** How old what is known may be for who asks for what is there now. */
const FRESH_MS = 200;
/** A form that nobody has asked for so long is not fetched any more. */
const FORM_MS = 10_000;
/** Between two attempts while nobody answers for the stream. */
const RETRY_MS = 500;
const TIMEOUT_MS = 5000;

/** What a rendition needs of its stream. */
export interface RemoteContext {
  readonly link: OwnerLink;
  /** Nothing comes of it any more; who asks again may find it elsewhere. */
  readonly ended: boolean;
  /**
   * The chunklist as its owner has it; undefined when that has none yet.
   * @throws AwayError, KilnError
   */
  load(file: string, query: URLSearchParams, timeoutMs: number): Promise<ChunklistState | undefined>;
  /** @throws tooManyWaiting */
  countWaiting(): void;
}

/**
 * A chunklist that another node makes. While players wait for more, one call waits for it over there, whatever they
 * wait for and however many they are.
 */
export class RemoteRendition implements Chunklist {
  readonly waiters = new Waiters();
  /** Who has the stream holds the first answer, where that is called for. */
  readonly continues = false;
  position: Position | undefined;
  readonly #file: string;
  readonly #context: RemoteContext;
  readonly #askedFor = new Map<ChunklistForm, number>();
  #texts: Partial<Record<ChunklistForm, Text>> = {};
  #told: (ChunklistState & { readonly from: NodeIdentity; readonly at: number }) | undefined;
  /** Its new owner has nothing of it yet. */
  #unbegun = false;
  #loading: Promise<void> | undefined;
  #following = false;

  constructor(file: string, context: RemoteContext) {
    this.#file = file;
    this.#context = context;
  }

  get interrupted(): boolean {
    return this.#context.ended || this.#context.link.away || this.#unbegun || this.#told?.interrupted === true;
  }

  /**
   * Makes sure that what is known is what the owner has; undefined where it is.
   * @throws KilnError of the owner; streamInterrupted when nobody answers and nothing is known
   */
  refresh(form: ChunklistForm): Promise<void> | undefined {
    const now = performance.now();
    this.#askedFor.set(form, now);
    if (this.#texts[form] !== undefined) {
      const follows = this.#following && !this.#context.link.away;
      if (follows || now - (this.#told?.at ?? -Infinity) < FRESH_MS) return undefined;
    }
    this.#loading ??= this.#load(this.position === undefined).finally(() => (this.#loading = undefined));
    return this.#loading.catch((error: unknown) => {
      if (!(error instanceof AwayError)) throw error;
      this.interrupt();
      if (this.position === undefined) throw kilnError('streamInterrupted');
    });
  }

  text(form: ChunklistForm): Text {
    const text = this.#texts[form] ?? this.#texts.full;
    if (text === undefined) throw kilnError('streamInterrupted');
    return text;
  }

  wait(ready: () => boolean, onLeft: OnLeft): Promise<Outcome> {
    this.#context.countWaiting();
    const outcome = this.waiters.wait(ready, this.#patienceMs(this.interrupted), onLeft);
    if (!this.#following) void this.#follow();
    return outcome;
  }

  /** Nobody answers for the stream: who waits is not kept for long. */
  interrupt(): void {
    this.waiters.limit(Date.now() + this.#patienceMs(true));
  }

  #patienceMs(interrupted: boolean): number {
    return patienceMs(this.#told?.targetDuration ?? 1, interrupted);
  }

  async #follow(): Promise<void> {
    const { link } = this.#context;
    this.#following = true;
    while (this.waiters.size > 0) {
      try {
        await link.unlessMoved(this.#load(true, this.position));
      } catch (error) {
        // the rendition is gone, or so is the stream
        if (error instanceof KilnError) this.waiters.close();
        else if (!(error instanceof AwayError)) throw error;
      }
      if (this.interrupted) this.interrupt();
      if (this.waiters.size > 0 && (link.away || this.#unbegun)) await link.unlessMoved(delay(RETRY_MS));
    }
    this.#following = false;
  }

  /**
   * @param waits for the first part, where players expect one, or for what comes
   * @param after that
   */
  async #load(waits: boolean, after?: Position): Promise<void> {
    const { link } = this.#context;
    const from = link.owner;
    const query = new URLSearchParams({ forms: this.#forms().join() });
    if (waits) query.set('hold', String(HELD_MS));
    if (after !== undefined) query.set('after', markOf(after));
    const state = await this.#loadState(query, waits ? HELD_MS + TIMEOUT_MS : TIMEOUT_MS);
    // what an owner of the past said, or an older call, counts no more
    if (from !== link.owner) return;
    this.#unbegun = state === undefined;
    if (state !== undefined && !(this.#told?.from === from && state.edition < this.#told.edition)) this.#apply(state, from);
  }

  async #loadState(query: URLSearchParams, timeoutMs: number): Promise<ChunklistState | undefined> {
    try {
      return await this.#context.load(this.#file, query, timeoutMs);
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

  #apply(state: ChunklistState, from: NodeIdentity): void {
    const isKnown = this.#told?.from === from && this.#told.edition === state.edition;
    if (!isKnown) this.#texts = {};
    for (const form of FORMS) {
      const text = state.texts[form];
      if (text !== undefined) this.#texts[form] ??= new Text(text);
    }
    this.#told = { ...state, from, at: performance.now() };
    this.position = state.position;
    this.waiters.check();
  }
}
