import type { PublisherGrant } from '../../access/publisher-grant.ts';
import { BitstreamError } from '../../codecs/bits.ts';
import type { RtmpProviderConfig } from '../../config/model.ts';
import { audioParts, isExtendedAudio } from '../../containers/flv/audio.ts';
import { FlvError } from '../../containers/flv/error.ts';
import type { TrackPart } from '../../containers/flv/extended.ts';
import { isExtendedVideo, videoParts } from '../../containers/flv/video.ts';
import type { Source } from '../../core/source.ts';
import type { InputStream } from '../../core/input-stream.ts';
import { MILLISECONDS } from '../../core/timebase.ts';
import { Timeline } from '../../core/timeline.ts';
import { FaultLog, type Logger } from '../../log/log.ts';
import type { AmfValue } from '../../protocols/rtmp/amf-value.ts';
import type { RtmpError } from '../../protocols/rtmp/error.ts';
import { Intake } from '../intake/intake.ts';
import type { MediaUnit } from '../intake/media-unit.ts';
import { Passthrough } from '../intake/passthrough.ts';
import type { MediaKind } from '../intake/track-id.ts';
import { TrackWriter } from '../intake/track-writer.ts';
import { DataEvents } from './data-events.ts';
import { FormerTracks } from './former-tracks.ts';
import { readMetadata, type Declared } from './metadata.ts';
import { SourceTracks, type TrackSource } from './source-tracks.ts';

/** Shortest time between two changes of metadata that a live stream follows; of several, the last one counts. */
const METADATA_INTERVAL_MS = 1000;
const CLOCK = Object.freeze({ timebase: MILLISECONDS, bits: 32 });

export interface PublicationOptions {
  readonly config: RtmpProviderConfig;
  /** Enhanced RTMP is accepted. */
  readonly extended: boolean;
  /** Names the stream. */
  readonly log: Logger;
  /** The source cannot be used, or has fallen silent. Called once; the stream is still open then. */
  readonly onFailure: (reason: string) => void;
}

/** One stream that an RTMP client publishes: messages to packets and events of an input stream. */
export class RtmpPublication {
  readonly input: InputStream;
  readonly #options: PublicationOptions;
  readonly #faults: FaultLog;
  readonly #events: DataEvents;
  readonly #sources: SourceTracks;
  readonly #intake: Intake;
  readonly #former: FormerTracks;
  #declared: Declared | undefined;
  #metadataTimer: NodeJS.Timeout | undefined;
  #closed = false;

  /** Claims the name of the stream. @throws what PublisherGrant.publish() does */
  static async open(
    grant: PublisherGrant<'rtmp'>,
    source: Source,
    options: Omit<PublicationOptions, 'config'>,
  ): Promise<RtmpPublication> {
    const { vhost, app, config } = grant;
    const { passthroughOutputProfile: isPassthrough } = config;
    const input = await grant.publish(source, { isPassthrough });
    if (isPassthrough) new Passthrough(vhost.demandApplication(app), input, (reason) => input.close(reason));
    return new RtmpPublication(input, { ...options, config });
  }

  /** @param input is closed by `end` */
  constructor(input: InputStream, options: PublicationOptions) {
    const { config, log } = options;
    this.input = input;
    this.#options = options;
    this.#faults = new FaultLog(log);
    this.#events = new DataEvents(input, config, this.#faults);
    this.#sources = new SourceTracks(log);
    const { timestampMode, firstMediaWaitTimeoutMs, packetSilenceTimeoutMs } = config;
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
        this.#close();
        options.onFailure(reason);
      },
    });
    this.#former = new FormerTracks(input.continuity);
    this.#intake.announce(this.#former.announced);
  }

  /** Takes the body of a video message. @param timestamp in milliseconds */
  video(payload: Buffer, timestamp: number): void {
    if (this.#accepts(payload, isExtendedVideo)) this.#take('video', videoParts(payload), timestamp);
  }

  /** Takes the body of an audio message. @param timestamp in milliseconds */
  audio(payload: Buffer, timestamp: number): void {
    if (this.#accepts(payload, isExtendedAudio)) this.#take('audio', audioParts(payload), timestamp);
  }

  /** Takes the values of a data message: metadata of the tracks, events, or neither. */
  data(values: readonly AmfValue[]): void {
    const declared = readMetadata(values);
    if (declared !== undefined) this.#declare(declared);
    this.#events.take(values);
  }

  /** Counts a data message that cannot be read. */
  malformedData(error: RtmpError): void {
    this.#faults.count(`malformed data message: ${error.message}`);
  }

  /** Ends the stream, and logs faults that were counted. Idempotent. */
  end(reason: string): void {
    this.#close();
    this.#events.close();
    this.#faults.close();
    this.input.close(reason);
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

  #close(): void {
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

  /** Counts a fault of one track; the others go on. */
  #fault(kind: MediaKind, trackId: number, error: unknown): void {
    if (!(error instanceof FlvError) && !(error instanceof BitstreamError)) throw error;
    this.#faults.count(error.message);
    if (!this.#intake.live && !(error instanceof BitstreamError)) this.#intake.absent(kind, trackId);
  }
}
