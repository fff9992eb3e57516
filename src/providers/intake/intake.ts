import { isMedia, type Track } from '../../core/track.ts';
import { Watchdog } from '../../lib/watchdog.ts';
import type { MediaUnit } from './media-unit.ts';
import { StartGate, TRACKS_WAIT_MS, type Announced } from './start-gate.ts';
import { trackIdOf, type MediaKind } from './track-id.ts';
import type { TrackWriter } from './track-writer.ts';

const DEFAULT_FIRST_MEDIA_WAIT_MS = 10_000;
/** How long pictures are waited for whose decoder configuration is known: encoders begin to send audio earlier. */
const DESCRIBED_PICTURE_WAIT_MS = 5000;

export interface IntakeOptions {
  readonly writer: TrackWriter;
  /** Tracks that are known, as they are now: those that bring something are of the stream. */
  readonly tracks: () => readonly Track[];
  /**
   * How long a picture is waited for when something else has come, where that takes longer than all tracks may: the
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
 * Holds the units of a source back until something has come of all its tracks, then loses none. Owns its timers; does not
 * close the stream that its writer writes to.
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
    this.#startIfComplete();
  }

  /** Media came, whether it can be used or not. */
  heard(): void {
    this.#silence?.heard();
  }

  /** What decoders need for the track is known: its units will follow. @param trackId as the source numbers those of a kind */
  described(kind: MediaKind, trackId: number): void {
    this.#gate.described(kind, trackId);
  }

  /** A track that cannot be taken, or was waited for already, need not be waited for. */
  absent(kind: MediaKind, trackId: number): void {
    this.#gate.absent(kind, trackId);
    this.#startIfComplete();
  }

  unit(unit: MediaUnit): void {
    if (this.#closed) return;
    if (this.#held === undefined) return this.#options.writer.write(unit);
    this.#held.push(unit);
    this.#gate.held(unit.data.length);
    const { track } = unit;
    if (isMedia(track)) this.#gate.present(track.type, trackIdOf(track.id));
    this.#startIfComplete();
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

  #startIfComplete(): void {
    if (this.#held === undefined || this.#closed) return;
    if (this.#gate.open) {
      this.#start(this.#held);
    } else if (this.#gate.anyPresent) {
      this.#tracksTimer ??= setTimeout(() => this.#waitedForTracks(), TRACKS_WAIT_MS).unref();
    }
  }

  #waitedForTracks(): void {
    const described = this.#gate.expectsPicture ? DESCRIBED_PICTURE_WAIT_MS : TRACKS_WAIT_MS;
    const { pictureWaitMs = described } = this.#options;
    this.#gate.waited(pictureWaitMs > TRACKS_WAIT_MS ? 'audio' : undefined);
    this.#startIfComplete();
    if (this.#held === undefined || this.#closed) return;
    this.#tracksTimer = setTimeout(() => {
      this.#gate.waited();
      this.#startIfComplete();
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
    const present = tracks().filter(
      (track) => !isMedia(track) || this.#gate.isPresent(track.type, trackIdOf(track.id)),
    );
    writer.start(held, present);
  }

  #waitedForMedia(waitMs: number): void {
    if (this.#gate.anyPresent) this.#gate.waited();
    this.#startIfComplete();
    if (this.#held !== undefined && !this.#gate.anyDescribed)
      this.fail(`no playable audio or video within ${waitMs} ms`);
  }
}
