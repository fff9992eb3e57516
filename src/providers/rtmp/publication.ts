import type { PublisherGrant } from '../../access/publisher-grant.ts';
import type { RtmpProviderConfig } from '../../config/model.ts';
import type { Source } from '../../core/source.ts';
import type { InputStream } from '../../core/input-stream.ts';
import { FaultLog, type Logger } from '../../log/log.ts';
import type { AmfValue } from '../../protocols/rtmp/amf-value.ts';
import type { RtmpError } from '../../protocols/rtmp/error.ts';
import { Passthrough } from '../intake/passthrough.ts';
import { DataEvents } from './data-events.ts';
import { FormerTracks } from './former-tracks.ts';
import { RtmpIngest } from './ingest.ts';

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
  readonly #faults: FaultLog;
  readonly #events: DataEvents;
  readonly #ingest: RtmpIngest;

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
  constructor(input: InputStream, { config, extended, log, onFailure }: PublicationOptions) {
    this.input = input;
    this.#faults = new FaultLog(log);
    this.#events = new DataEvents(input, config, this.#faults);
    const former = new FormerTracks(input.continuity);
    this.#ingest = new RtmpIngest({
      sink: input,
      zeroBased: config.timestampMode !== 'Original',
      extended,
      expected: former.announced,
      firstMediaWaitMs: config.firstMediaWaitTimeoutMs,
      silenceMs: config.packetSilenceTimeoutMs,
      log,
      faults: this.#faults,
      onMedia: (kind, trackId) => former.known(kind, trackId),
      onFailure,
    });
  }

  /** Takes the body of a video message. @param timestamp in milliseconds */
  video(payload: Buffer, timestamp: number): void {
    this.#ingest.video(payload, timestamp);
  }

  /** Takes the body of an audio message. @param timestamp in milliseconds */
  audio(payload: Buffer, timestamp: number): void {
    this.#ingest.audio(payload, timestamp);
  }

  /** Takes the values of a data message: metadata of the tracks, events, or neither. */
  data(values: readonly AmfValue[]): void {
    this.#ingest.metadata(values);
    this.#events.take(values);
  }

  /** Counts a data message that cannot be read. */
  malformedData(error: RtmpError): void {
    this.#faults.count(`malformed data message: ${error.message}`);
  }

  /** Ends the stream, and logs faults that were counted. Idempotent. */
  end(reason: string): void {
    this.#ingest.close();
    this.#events.close();
    this.#faults.close();
    this.input.close(reason);
  }
}
