import { BitstreamError } from '../../codecs/bits.ts';
import type { RtmpProviderConfig } from '../../config/model.ts';
import { audioParts, isExtendedAudio } from '../../containers/flv/audio.ts';
import { FlvError } from '../../containers/flv/error.ts';
import type { TrackPart } from '../../containers/flv/extended.ts';
import { isExtendedVideo, videoParts } from '../../containers/flv/video.ts';
import type { InputStream } from '../../core/stream.ts';
import { MILLISECONDS } from '../../core/timebase.ts';
import { Timeline } from '../../core/timeline.ts';
import type { FaultLog, Logger } from '../../log/log.ts';
import { Intake } from '../intake/intake.ts';
import type { MediaUnit } from '../intake/media-unit.ts';
import type { MediaKind } from '../intake/track-id.ts';
import { TrackWriter } from '../intake/track-writer.ts';
import { FormerTracks } from './former-tracks.ts';
import type { Declared } from './metadata.ts';
import { SourceTracks, type TrackSource } from './source-tracks.ts';

/** Metadata of a stream that runs is followed no more often; what came last counts. */
const METADATA_INTERVAL_MS = 1000;
const CLOCK = Object.freeze({ timebase: MILLISECONDS, bits: 32 });

export interface IngestOptions {
  readonly config: RtmpProviderConfig;
  /** Tags in the form of Enhanced RTMP are taken. */
  readonly extended: boolean;
  readonly log: Logger;
  readonly faults: FaultLog;
  /** The source cannot be used or fell silent; called once. */
  readonly onFailure: (reason: string) => void;
}

/** Audio and video messages of one publisher to packets of an input stream, which it does not close. */
export class Ingest {
  readonly #options: IngestOptions;
  readonly #sources: SourceTracks;
  readonly #intake: Intake;
  readonly #former: FormerTracks;
  #declared: Declared | undefined;
  #metadataTimer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(input: InputStream, options: IngestOptions) {
    this.#options = options;
    this.#sources = new SourceTracks(options.log);
    const { timestampMode, firstMediaWaitTimeoutMs, packetSilenceTimeoutMs } = options.config;
    const writer = new TrackWriter({
      sink: input,
      clock: CLOCK,
      timeline: new Timeline(CLOCK, timestampMode !== 'Original'),
      onUnsteady: () => this.#intake.fail('the configuration of the stream changes too often'),
    });
    this.#intake = new Intake({
      writer,
      firstMediaWaitMs: firstMediaWaitTimeoutMs,
      silenceMs: packetSilenceTimeoutMs,
      tracks: () => [...this.#sources].flatMap(({ track }) => track ?? []),
      onFailure: (reason) => {
        this.close();
        options.onFailure(reason);
      },
    });
    this.#former = new FormerTracks(input.continuity);
    this.#intake.announce(this.#former.announced);
  }

  /** Takes what the source says of its tracks; of a stream that is live, the next packet of each track shows it. */
  metadata(declared: Declared): void {
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
    this.#intake.close();
    clearTimeout(this.#metadataTimer);
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
    if (this.#intake.live && unit !== undefined) this.#former.known(source.kind, part.trackId);
  }

  /** What is wrong with one track is of no consequence for the others. */
  #fault(kind: MediaKind, trackId: number, error: unknown): void {
    if (!(error instanceof FlvError) && !(error instanceof BitstreamError)) throw error;
    this.#options.faults.count(error.message);
    if (!this.#intake.live && !(error instanceof BitstreamError)) this.#intake.absent(kind, trackId);
  }
}
