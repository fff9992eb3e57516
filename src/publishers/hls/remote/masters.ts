import { setTimeout as delay } from 'node:timers/promises';
import { OWNER_HELD_MS } from '../../../directory/stream-sender.ts';
import { checkPresent } from '../../../access/request.ts';
import { kilnError } from '../../../errors.ts';
import type { OnLeft } from '../answer/played-stream.ts';
import { HeldMasters } from '../blocking-reload/held-masters.ts';
import { holdFor } from '../blocking-reload/held-requests.ts';
import { waitMs } from '../blocking-reload/wait.ts';
import type { Outcome } from '../blocking-reload/waiters.ts';
import { AwayError, RETRY_MS, type OwnerLink } from './link.ts';
import { HELD_MS, type MasterState, type Newcomer } from '../sessions/wire.ts';

const MAX_MASTERS = 64;
/** Time for which the owner is not asked again about players that it does not count. */
const FRESH_MS = 100;
/** Requests that wait for an owner of one stream. */
const MAX_HELD = 1000;

/** Player that asks for a playlist. */
interface Asking {
  /** Session for the owner to count; the owner ends one that has openings. */
  readonly session?: Newcomer;
  /** The owner decides whether there is room for it. */
  readonly ownerCounts: boolean;
  /** Start of the player, as of `MasterRequest`, which only the owner can find. */
  readonly start: number | undefined;
}

interface Known {
  readonly state: MasterState;
  /** When it was requested, by the monotonic clock. */
  readonly at: number;
}

/**
 * Master playlists of a stream of another node. Simultaneous requests of players that only this node counts share one call;
 * otherwise the owner decides whether there is room, and whether a session name is free.
 */
export class RemoteMasters {
  readonly #link: OwnerLink;
  readonly #onRun: (run: string) => void;
  readonly #asked = new Map<string, Promise<MasterState | undefined>>();
  /** Last ones, used for a moment and while no node answers. */
  readonly #known = new Map<string, Known>();
  #held = 0;
  /** Requests for playlists that the owner does not have yet. */
  readonly #waiting = new HeldMasters<string>();

  constructor(link: OwnerLink, onRun: (run: string) => void) {
    this.#link = link;
    this.#onRun = onRun;
  }

  /**
   * Gets a playlist. While no node answers and none is known, the stream may be moving to another node: the request is held.
   * @param signal aborted when the player leaves
   * @returns undefined while there is nothing to play
   * @throws errors of the owner; streamInterrupted when no node answers in time and none is known; clientGone
   */
  async get(file: string, asking: Asking, signal: AbortSignal): Promise<MasterState | undefined> {
    const { session, ownerCounts, start } = asking;
    const isShared = session === undefined && start === undefined;
    const mayBeKnown = isShared && !ownerCounts && !this.#link.lost;
    const known = mayBeKnown ? this.#fresh(file) : undefined;
    if (known !== undefined) return known;
    const isFinal = session !== undefined && session.grant.openings.length > 0;
    for (const until = performance.now() + OWNER_HELD_MS; ;) {
      try {
        return await (isShared ? this.#getOnce(file, ownerCounts) : this.#load(file, asking));
      } catch (error) {
        if (!(error instanceof AwayError)) throw error;
        const last = isFinal ? undefined : this.#known.get(file);
        if (last !== undefined) return last.state;
        // the owner may have the session, and would end its openings
        const mayRepeat = !isFinal || !error.mayBeDone;
        if (!mayRepeat || performance.now() >= until || this.#held >= MAX_HELD) throw kilnError('streamInterrupted');
      }
      checkPresent(signal);
      this.#held++;
      await this.#link.unlessMoved(delay(RETRY_MS, undefined, { ref: false, signal }).catch(() => {}));
      this.#held--;
      checkPresent(signal);
    }
  }

  /**
   * Resolves when the owner may have a playlist that it did not have. One call waits at the owner for all requests here.
   * @param since when the request came, in milliseconds since the epoch
   * @throws tooManyWaiting
   */
  whenStarted(file: string, onLeft: OnLeft, since: number): Promise<Outcome> {
    const isFirst = this.#waiting.sizeOf(file) === 0;
    const outcome = this.#waiting.wait(file, waitMs(1, false, 'start') + since - Date.now(), onLeft);
    if (isFirst && this.#waiting.sizeOf(file) > 0) void this.#follow(file);
    return outcome;
  }

  /** Gives up requests that have waited for long enough. @param now milliseconds since the epoch */
  expire(now: number): void {
    this.#waiting.expire(now);
  }

  close(outcome: Outcome): void {
    this.#waiting.close(outcome);
  }

  /**
   * Serves a node that relays from this one: waits for something to play, for `holdMs` at most; undefined when there is nothing.
   * @throws AwayError, errors of the owner
   */
  async state(file: string, holdMs: number): Promise<MasterState | undefined> {
    if (this.#link.lost) throw new AwayError('no node has the stream');
    const state = this.#fresh(file) ?? (await this.#getOnce(file, false));
    if (state !== undefined || holdMs === 0) return state;
    await holdFor(holdMs)((onLeft) => this.whenStarted(file, onLeft, Date.now()));
    return await this.#getOnce(file, false);
  }

  /** Forgets the playlists, which are of another run. */
  clear(): void {
    this.#known.clear();
  }

  #fresh(file: string): MasterState | undefined {
    const known = this.#known.get(file);
    return known !== undefined && performance.now() - known.at < FRESH_MS ? known.state : undefined;
  }

  #getOnce(file: string, ownerCounts: boolean): Promise<MasterState | undefined> {
    const key = `${ownerCounts ? 'counted' : ''}/${file}`;
    let asked = this.#asked.get(key);
    if (asked === undefined) {
      if (this.#asked.size >= MAX_MASTERS) throw kilnError('tooManyWaiting');
      asked = this.#load(file, { ownerCounts, start: undefined }).finally(() => this.#asked.delete(key));
      this.#asked.set(key, asked);
    }
    return asked;
  }

  /** Waits for the start of a playlist while requests wait for it. Never throws. */
  async #follow(file: string): Promise<void> {
    while (this.#waiting.sizeOf(file) > 0) {
      const begun = performance.now();
      const state = await this.#link
        .unlessMoved(this.#load(file, { ownerCounts: false, start: undefined }, HELD_MS))
        .catch((error: unknown) => {
          // waiting requests get the error when they ask again
          if (!(error instanceof AwayError)) this.#waiting.release(file, 'ready');
        });
      if (state !== undefined) this.#waiting.release(file, 'ready');
      // the node that was asked may not hold the call
      const early = RETRY_MS - (performance.now() - begun);
      if (early > 0 && this.#waiting.sizeOf(file) > 0) await this.#link.unlessMoved(delay(early));
    }
  }

  async #load(file: string, { session, ownerCounts, start }: Asking, holdMs = 0): Promise<MasterState | undefined> {
    const at = performance.now();
    const link = this.#link;
    const { master } = link.calls;
    const { answer: state } = await (ownerCounts || start !== undefined
      ? link.ask(master, { file, session, start })
      : link.fetch(master, { file }, holdMs));
    if (state === null) return undefined;
    this.#onRun(state.run);
    if (start === undefined && (this.#known.size < MAX_MASTERS || this.#known.has(file))) {
      const { run, template } = state;
      this.#known.set(file, { state: { run, template }, at });
    }
    return state;
  }
}
