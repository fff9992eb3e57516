import { BitstreamError } from '../../codecs/bits.ts';
import type { RtmpProviderConfig } from '../../config/model.ts';
import { audioParts, isExtendedAudio } from '../../containers/flv/audio.ts';
import { FlvError } from '../../containers/flv/error.ts';
import type { TrackPart } from '../../containers/flv/extended.ts';
import { isExtendedVideo, videoParts } from '../../containers/flv/video.ts';
import type { InputStream } from '../../core/stream.ts';
import type { FaultLog, Logger } from '../../log.ts';
import type { MediaUnit } from './media-unit.ts';
import type { Declared } from './metadata.ts';
import { SourceTracks, type TrackSource } from './source-tracks.ts';
import { StartGate, TRACKS_WAIT_MS } from './start-gate.ts';
import type { MediaKind } from './track-id.ts';
import { TrackWriter } from './track-writer.ts';

const DEFAULT_FIRST_MEDIA_WAIT_MS = 10_000;
/** Metadata of a stream that runs is followed no more often; what came last counts. */
const METADATA_INTERVAL_MS = 1000;

export interface IngestOptions {
  readonly config: RtmpProviderConfig;
  /** Tags in the form of Enhanced RTMP are taken. */
  readonly extended: boolean;
  readonly log: Logger;
  readonly faults: FaultLog;
  /** The source cannot be used or fell silent; called once. */
  readonly onFailure: (reason: string) => void;
}

/**
 * Audio and video messages of one publisher to packets of an input stream. Holds packets back until the tracks
 * are known, then loses none. Owns its timers; does not close the stream.
 */
export class Ingest {
  readonly #options: IngestOptions;
  readonly #sources: SourceTracks;
  readonly #gate = new StartGate();
  readonly #writer: TrackWriter;
  /** Units held back; undefined once the stream is live. */
  #held: MediaUnit[] | undefined = [];
  #declared: Declared | undefined;
  #firstMediaTimer: NodeJS.Timeout | undefined;
  #tracksTimer: NodeJS.Timeout | undefined;
  #silenceTimer: NodeJS.Timeout | undefined;
  #metadataTimer: NodeJS.Timeout | undefined;
  #lastMedia = performance.now();
  #closed = false;

  constructor(input: InputStream, options: IngestOptions) {
    this.#options = options;
    this.#sources = new SourceTracks(options.log);
    const { timestampMode, firstMediaWaitTimeoutMs, packetSilenceTimeoutMs } = options.config;
    this.#writer = new TrackWriter(input, timestampMode !== 'Original', () => {
      this.#fail('the configuration of the stream changes too often');
    });
    const firstMediaWait = firstMediaWaitTimeoutMs || DEFAULT_FIRST_MEDIA_WAIT_MS;
    this.#firstMediaTimer = setTimeout(() => this.#waitedForMedia(firstMediaWait), firstMediaWait).unref();
    if (packetSilenceTimeoutMs > 0) this.#watchSilence(packetSilenceTimeoutMs, packetSilenceTimeoutMs);
  }

  /** Takes what the source says of its tracks; of a stream that is live, the next packet of each track shows it. */
  metadata(declared: Declared): void {
    if (this.#closed) return;
    if (this.#metadataTimer !== undefined) {
      this.#declared = declared;
      return;
    }
    this.#sources.declare(declared);
    if (this.#held !== undefined) {
      this.#gate.announce(declared.announced);
      this.#startIfKnown();
      return;
    }
    this.#metadataTimer = setTimeout(() => {
      this.#metadataTimer = undefined;
      const latest = this.#declared;
      this.#declared = undefined;
      if (latest !== undefined) this.metadata(latest);
    }, METADATA_INTERVAL_MS).unref();
  }

  /** Takes the body of a video message. */
  video(payload: Buffer, timestamp: number): void {
    if (this.#accepts(payload, isExtendedVideo)) this.#take('video', videoParts(payload), timestamp);
  }

  /** Takes the body of an audio message. */
  audio(payload: Buffer, timestamp: number): void {
    if (this.#accepts(payload, isExtendedAudio)) this.#take('audio', audioParts(payload), timestamp);
  }

  /** Idempotent. */
  close(): void {
    this.#closed = true;
    this.#held = undefined;
    clearTimeout(this.#firstMediaTimer);
    clearTimeout(this.#tracksTimer);
    clearTimeout(this.#silenceTimer);
    clearTimeout(this.#metadataTimer);
  }

  #accepts(payload: Buffer, isExtended: (payload: Buffer) => boolean): boolean {
    if (this.#closed || payload.length === 0) return false;
    this.#lastMedia = performance.now();
    if (this.#options.extended || !isExtended(payload)) return true;
    this.#fail('the source sends Enhanced RTMP, which is off (Modules/ERTMP)');
    return false;
  }

  #take(kind: MediaKind, parts: Iterable<TrackPart>, timestamp: number): void {
    try {
      for (const part of parts) {
        const source = this.#sources.find(kind, part.trackId);
        if (source !== undefined) this.#takePart(source, part, timestamp);
      }
    } catch (error) {
      this.#fault(kind, 0, error);
    }
  }

  #takePart(source: TrackSource, part: TrackPart, timestamp: number): void {
    let unit: MediaUnit | undefined;
    try {
      unit = source.accept(part, timestamp);
    } catch (error) {
      this.#fault(source.kind, part.trackId, error);
    }
    if (this.#held !== undefined) {
      if (source.track !== undefined) this.#gate.known(source.kind, part.trackId);
      this.#hold(this.#held, unit);
    } else if (unit !== undefined) {
      this.#writer.write(unit);
    }
  }

  #hold(held: MediaUnit[], unit: MediaUnit | undefined): void {
    if (unit !== undefined) {
      held.push(unit);
      this.#gate.held(unit.data.length);
    }
    this.#startIfKnown();
  }

  #startIfKnown(): void {
    if (this.#held === undefined) return;
    if (this.#gate.open) {
      this.#start(this.#held);
    } else if (this.#gate.anyKnown) {
      this.#tracksTimer ??= setTimeout(() => {
        this.#gate.waited();
        this.#startIfKnown();
      }, TRACKS_WAIT_MS).unref();
    }
  }

  #start(held: readonly MediaUnit[]): void {
    this.#held = undefined;
    clearTimeout(this.#firstMediaTimer);
    clearTimeout(this.#tracksTimer);
    this.#writer.start(held, [...this.#sources].flatMap(({ track }) => track ?? []));
  }

  #waitedForMedia(waitMs: number): void {
    this.#gate.waited();
    this.#startIfKnown();
    if (this.#held !== undefined) this.#fail(`no playable audio or video within ${waitMs} ms`);
  }

  #watchSilence(timeoutMs: number, delayMs: number): void {
    this.#silenceTimer = setTimeout(() => {
      const silentMs = performance.now() - this.#lastMedia;
      if (silentMs >= timeoutMs) this.#fail(`no packet for ${timeoutMs} ms`);
      else this.#watchSilence(timeoutMs, timeoutMs - silentMs);
    }, delayMs).unref();
  }

  /** What is wrong with one track is of no consequence for the others. */
  #fault(kind: MediaKind, trackId: number, error: unknown): void {
    if (!(error instanceof FlvError) && !(error instanceof BitstreamError)) throw error;
    this.#options.faults.count(error.message);
    if (this.#held === undefined || error instanceof BitstreamError) return;
    this.#gate.unusable(kind, trackId);
    this.#startIfKnown();
  }

  #fail(reason: string): void {
    if (this.#closed) return;
    this.close();
    this.#options.onFailure(reason);
  }
}
