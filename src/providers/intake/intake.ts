import { isMedia, type Track } from '../../core/track.ts';
import { Watchdog } from '../../lib/watchdog.ts';
import type { MediaUnit } from './media-unit.ts';
import { StartGate, TRACKS_WAIT_MS, type Announced } from './start-gate.ts';
import { trackIdOf, type MediaKind } from './track-id.ts';
import type { TrackWriter } from './track-writer.ts';

const DEFAULT_FIRST_MEDIA_WAIT_MS = 10_000;
/** Wait for video whose decoder configuration is known: encoders begin to send audio earlier. */
const DESCRIBED_VIDEO_WAIT_MS = 5000;

export interface IntakeOptions {
  readonly writer: TrackWriter;
  /** Known tracks in their latest form; those that have sent something become tracks of the stream. */
  readonly tracks: () => readonly Track[];
  /**
   * Wait for video once another track has begun, for sources that are joined between two key frames and so need longer
   * than the usual wait. Units before the first video frame are left out then.
   */
  readonly videoWaitMs?: number;
  readonly firstMediaWaitMs?: number;
  /** Silence after which the source has failed; 0: never. */
  readonly silenceMs: number;
  /** Called once, when the source sends nothing playable or falls silent. */
  readonly onFailure: (reason: string) => void;
}

/**
 * Holds back the units of a source until all its tracks have begun, so that none is lost. Owns its timers; does not
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

  get live(): boolean {
    return this.#held === undefined;
  }

  announce(announced: Announced | undefined): void {
    this.#gate.announce(announced);
    this.#startIfComplete();
  }

  /** Resets the silence timer, for media that is playable or not. */
  heard(): void {
    this.#silence?.heard();
  }

  /** Notes that the decoder configuration of a track is known, so that its units will follow. @param trackId as the source numbers those of a kind */
  described(kind: MediaKind, trackId: number): void {
    this.#gate.described(kind, trackId);
  }

  /** Stops waiting for a track that is not supported, or was waited for already. */
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

  close(): void {
    this.#closed = true;
    this.#held = this.#held && [];
    this.#firstMedia.close();
    clearTimeout(this.#tracksTimer);
    this.#silence?.close();
  }

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
    const described = this.#gate.expectsVideo ? DESCRIBED_VIDEO_WAIT_MS : TRACKS_WAIT_MS;
    const { videoWaitMs = described } = this.#options;
    this.#gate.waited(videoWaitMs > TRACKS_WAIT_MS ? 'audio' : undefined);
    this.#startIfComplete();
    if (this.#held === undefined || this.#closed) return;
    this.#tracksTimer = setTimeout(() => {
      this.#gate.waited();
      this.#startIfComplete();
    }, videoWaitMs - TRACKS_WAIT_MS).unref();
  }

  #start(all: readonly MediaUnit[]): void {
    const first = this.#options.videoWaitMs === undefined ? undefined : all.find(({ track }) => track.type === 'video');
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
