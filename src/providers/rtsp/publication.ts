import type { PublisherGrant } from '../../access/publisher-grant.ts';
import type { InputStream } from '../../core/input-stream.ts';
import type { Source } from '../../core/source.ts';
import { FaultLog, type Logger } from '../../log/log.ts';
import type { RtspMedia } from '../../protocols/rtsp/description.ts';
import type { MediaTransport } from '../../protocols/rtsp/url.ts';
import { LocalClock } from '../intake/local-clock.ts';
import { openRtspIngest } from '../rtsp-intake/open.ts';

export interface PublicationOptions {
  /** Tracks that are received, at least one. */
  readonly media: readonly RtspMedia[];
  readonly transport: MediaTransport;
  /** Names the stream. */
  readonly log: Logger;
  /** Sends an RTCP packet of a track. */
  readonly report: (track: number, data: Buffer) => void;
  /** No usable media follows. The stream is still open then. */
  readonly onEnd: (reason: string) => void;
}

/** One stream that an RTSP client publishes. Tracks are numbered by their place in `media`. */
export class RtspPublication {
  readonly input: InputStream;
  readonly #faults: FaultLog;
  readonly #ingest: ReturnType<typeof openRtspIngest>;

  /** Claims the name of the stream. @throws what PublisherGrant.publish() does; RtspError when no track is supported */
  static async open(
    grant: PublisherGrant<'rtsp'>,
    source: Source,
    options: PublicationOptions,
  ): Promise<RtspPublication> {
    const input = await grant.publish(source);
    try {
      return new RtspPublication(input, grant, options);
    } catch (error) {
      input.close((error as Error).message);
      throw error;
    }
  }

  private constructor(
    input: InputStream,
    { config }: PublisherGrant<'rtsp'>,
    { media, transport, log, report, onEnd }: PublicationOptions,
  ) {
    this.input = input;
    this.#faults = new FaultLog(log);
    this.#ingest = openRtspIngest({
      media,
      transport,
      clock: new LocalClock(config.timestampMode === 'Original'),
      ignoresReports: false,
      silenceMs: config.packetSilenceTimeoutMs,
      log,
      faults: this.#faults,
      sink: {
        setTracks: (tracks) => input.setTracks(tracks),
        write: (packet) => input.write(packet),
        lost: (packets) => input.counters.lost(packets),
        trouble: (code, description) => void input.emit('trouble', code, description),
      },
      report,
      onEnd,
    });
  }

  /** Takes a packet of a track. @param bytes with what was around it */
  packet(track: number, isRtcp: boolean, data: Buffer, bytes: number): void {
    this.input.counters.received(bytes);
    if (isRtcp) this.#ingest.rtcp(track, data);
    else this.#ingest.rtp(track, data);
  }

  /** Ends the stream, and logs faults that were counted. Idempotent. */
  end(reason: string): void {
    this.#ingest.close();
    this.#faults.close();
    this.input.close(reason);
  }
}
