import { BitstreamError } from '../../codecs/bits.ts';
import { audioParts, isExtendedAudio } from '../../containers/flv/audio.ts';
import { FlvError } from '../../containers/flv/error.ts';
import type { TrackPart } from '../../containers/flv/extended.ts';
import { isExtendedVideo, videoParts } from '../../containers/flv/video.ts';
import { MILLISECONDS } from '../../core/timebase.ts';
import { Timeline } from '../../core/timeline.ts';
import type { FaultLog, Logger } from '../../log/log.ts';
import type { AmfValue } from '../../protocols/rtmp/amf-value.ts';
import { Intake } from '../intake/intake.ts';
import type { MediaUnit } from '../intake/media-unit.ts';
import type { Announced } from '../intake/start-gate.ts';
import type { MediaKind } from '../intake/track-id.ts';
import { TrackWriter, type TrackSink } from '../intake/track-writer.ts';
import { readMetadata, type Declared } from './metadata.ts';
import { SourceTracks, type TrackSource } from './source-tracks.ts';

/** Shortest time between two changes of metadata that a live stream follows; of several, the last one counts. */
const METADATA_INTERVAL_MS = 1000;
const CLOCK = Object.freeze({ timebase: MILLISECONDS, bits: 32 });

export interface RtmpIngestOptions {
  readonly sink: TrackSink;
  /** Times begin with 0; else they are the source's own. */
  readonly zeroBased: boolean;
  /** Enhanced RTMP is accepted. */
  readonly extended: boolean;
  /** Tracks to expect where the source announces none. */
  readonly expected?: Announced | undefined;
  /** Times and limits as in `IntakeOptions`. */
  readonly videoWaitMs?: number;
  readonly firstMediaWaitMs?: number;
  readonly silenceMs: number;
  readonly log: Logger;
  readonly faults: FaultLog;
  /** A track has media in the stream, which is live. @param trackId as the source numbers those of a kind */
  readonly onMedia?: (kind: MediaKind, trackId: number) => void;
  /** The source cannot be used, or has fallen silent. Called once; the ingest is closed then. */
  readonly onFailure: (reason: string) => void;
}

/** Converts the audio, video and metadata messages of one RTMP source to packets of a stream. */
export class RtmpIngest {
  readonly #options: RtmpIngestOptions;
  readonly #sources: SourceTracks;
  readonly #intake: Intake;
  #declared: Declared | undefined;
  #metadataTimer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: RtmpIngestOptions) {
    const { sink, zeroBased, expected, videoWaitMs, firstMediaWaitMs, silenceMs, log, onFailure } = options;
    this.#options = options;
    this.#sources = new SourceTracks(log);
    const writer = new TrackWriter({
      sink,
      clock: CLOCK,
      timeline: new Timeline(CLOCK, zeroBased),
      onUnsteady: () => this.#intake.fail('the configuration of the stream changes too often'),
    });
    this.#intake = new Intake({
      writer,
      videoWaitMs,
      firstMediaWaitMs,
      silenceMs,
      tracks: () => [...this.#sources].flatMap(({ track }) => track ?? []),
      onFailure: (reason) => {
        this.close();
        onFailure(reason);
      },
    });
    this.#intake.announce(expected);
  }

  /** Takes the body of a video message. @param timestamp in milliseconds */
  video(payload: Buffer, timestamp: number): void {
    if (this.#accepts(payload, isExtendedVideo)) this.#take('video', videoParts(payload), timestamp);
  }

  /** Takes the body of an audio message. @param timestamp in milliseconds */
  audio(payload: Buffer, timestamp: number): void {
    if (this.#accepts(payload, isExtendedAudio)) this.#take('audio', audioParts(payload), timestamp);
  }

  /** Takes the values of a data message: metadata of the tracks, or something else. */
  metadata(values: readonly AmfValue[]): void {
    const declared = readMetadata(values);
    if (declared !== undefined) this.#declare(declared);
  }

  /** Idempotent. */
  close(): void {
    this.#closed = true;
    this.#intake.close();
    clearTimeout(this.#metadataTimer);
  }

  /** In a live stream the next packet of each track carries the change. */
  #declare(declared: Declared): void {
    if (this.#closed) return;
    if (this.#metadataTimer !== undefined) {
      this.#declared = declared;
      return;
    }
    this.#sources.declare(declared);
    if (!this.#intake.live) return this.#intake.announce(declared.announced);
    this.#metadataTimer = setTimeout(() => {
      this.#metadataTimer = undefined;
      const latest = this.#declared;
      this.#declared = undefined;
      if (latest !== undefined) this.#declare(latest);
    }, METADATA_INTERVAL_MS).unref();
  }

  #accepts(payload: Buffer, isExtended: (payload: Buffer) => boolean): boolean {
    if (this.#closed || payload.length === 0) return false;
    this.#intake.heard();
    if (this.#options.extended || !isExtended(payload)) return true;
    this.#intake.fail('the source sends Enhanced RTMP, which is off (Modules/ERTMP)');
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
    if (!this.#intake.live && source.track !== undefined) this.#intake.described(source.kind, part.trackId);
    if (unit !== undefined) this.#intake.unit(unit);
    if (this.#intake.live && unit !== undefined) this.#options.onMedia?.(source.kind, part.trackId);
  }

  /** Counts a fault of one track; the others go on. */
  #fault(kind: MediaKind, trackId: number, error: unknown): void {
    if (!(error instanceof FlvError) && !(error instanceof BitstreamError)) throw error;
    this.#options.faults.count(error.message);
    if (!this.#intake.live && !(error instanceof BitstreamError)) this.#intake.absent(kind, trackId);
  }
}
