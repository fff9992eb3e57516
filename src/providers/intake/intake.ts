import type { Track } from '../../core/track.ts';
import { Watchdog } from '../../core/watchdog.ts';
import type { MediaUnit } from './media-unit.ts';
import { StartGate, TRACKS_WAIT_MS, type Announced } from './start-gate.ts';
import type { MediaKind } from './track-id.ts';
import type { TrackWriter } from './track-writer.ts';

const DEFAULT_FIRST_MEDIA_WAIT_MS = 10_000;

export interface IntakeOptions {
  readonly writer: TrackWriter;
  /** Tracks that are known, as they are now. */
  readonly tracks: () => readonly Track[];
  /**
   * How long a picture is waited for when something else is known, where that takes longer than all tracks may: the
   * source is joined anywhere between two key frames. What else comes before the picture is left out then.
   */
  readonly pictureWaitMs?: number;
  /** How long something playable is waited for; 0 for the usual time. */
  readonly firstMediaWaitMs?: number;
  /** Without media for so long the source has failed; 0: never. */
  readonly silenceMs: number;
  /** The source brings nothing that can be used, or fell silent; called once. */
  readonly onFailure: (reason: string) => void;
}

/**
 * Holds the units of a source back until its tracks are known, then loses none. Owns its timers; does not close
 * the stream that its writer writes to.
 */
export class Intake {
  readonly #options: IntakeOptions;
  readonly #gate = new StartGate();
  /** Units held back; undefined once the stream is live. */
  #held: MediaUnit[] | undefined = [];
  readonly #firstMedia: Watchdog;
  #tracksTimer: NodeJS.Timeout | undefined;
  readonly #silence: Watchdog | undefined;
  #closed = false;

  constructor(options: IntakeOptions) {
    this.#options = options;
    const firstMediaWait = options.firstMediaWaitMs || DEFAULT_FIRST_MEDIA_WAIT_MS;
    this.#firstMedia = new Watchdog(firstMediaWait, () => this.#waitedForMedia(firstMediaWait)).unref();
    const { silenceMs } = options;
    if (silenceMs > 0)
      this.#silence = new Watchdog(silenceMs, () => this.fail(`no packet for ${silenceMs} ms`)).unref();
  }

  /** Units go out as they come. */
  get live(): boolean {
    return this.#held === undefined;
  }

  /** The source tells which tracks it has; undefined where it does not tell. */
  announce(announced: Announced | undefined): void {
    this.#gate.announce(announced);
    this.#startIfKnown();
  }

  /** Media came, whether it can be used or not. */
  heard(): void {
    this.#silence?.heard();
  }

  /** The track is known. @param trackId as the source numbers those of a kind */
  known(kind: MediaKind, trackId: number): void {
    this.#gate.known(kind, trackId);
    this.#startIfKnown();
  }

  /** A track that cannot be taken need not be waited for. */
  unusable(kind: MediaKind, trackId: number): void {
    this.#gate.unusable(kind, trackId);
    this.#startIfKnown();
  }

  unit(unit: MediaUnit): void {
    if (this.#closed) return;
    if (this.#held === undefined) return this.#options.writer.write(unit);
    this.#held.push(unit);
    this.#gate.held(unit.data.length);
    this.#startIfKnown();
  }

  /** Idempotent. */
  close(): void {
    this.#closed = true;
    this.#held = this.#held && [];
    this.#firstMedia.close();
    clearTimeout(this.#tracksTimer);
    this.#silence?.close();
  }

  /** The source cannot be used. */
  fail(reason: string): void {
    if (this.#closed) return;
    this.close();
    this.#options.onFailure(reason);
  }

  #startIfKnown(): void {
    if (this.#held === undefined || this.#closed) return;
    if (this.#gate.open) {
      this.#start(this.#held);
    } else if (this.#gate.anyKnown) {
      this.#tracksTimer ??= setTimeout(() => this.#waitedForTracks(), TRACKS_WAIT_MS).unref();
    }
  }

  #waitedForTracks(): void {
    const { pictureWaitMs = TRACKS_WAIT_MS } = this.#options;
    this.#gate.waited(pictureWaitMs > TRACKS_WAIT_MS ? 'audio' : undefined);
    this.#startIfKnown();
    if (this.#held === undefined || this.#closed) return;
    this.#tracksTimer = setTimeout(() => {
      this.#gate.waited();
      this.#startIfKnown();
    }, pictureWaitMs - TRACKS_WAIT_MS).unref();
  }

  #start(all: readonly MediaUnit[]): void {
    const first =
      this.#options.pictureWaitMs === undefined ? undefined : all.find(({ track }) => track.type === 'video');
    const held = first === undefined ? all : this.#options.writer.from(first.time, all);
    this.#held = undefined;
    this.#firstMedia.close();
    clearTimeout(this.#tracksTimer);
    const { writer, tracks } = this.#options;
    writer.start(held, tracks());
  }

  #waitedForMedia(waitMs: number): void {
    this.#gate.waited();
    this.#startIfKnown();
    if (this.#held !== undefined) this.fail(`no playable audio or video within ${waitMs} ms`);
  }
}
