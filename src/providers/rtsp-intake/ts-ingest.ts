import { RtpError } from '../../protocols/rtp/receive/error.ts';
import { parseRtp } from '../../protocols/rtp/receive/packet.ts';
import { RtpReceiver } from '../../protocols/rtp/receive/receiver.ts';
import { placed } from '../intake/local-clock.ts';
import { GapTimer } from '../rtp/gap-timer.ts';
import { TsSource } from '../mpegts-intake/source.ts';
import { tsConfig } from '../mpegts-intake/ts-config.ts';
import { DATAGRAM_WAIT_MS, type RtspIngestOptions } from './ingest.ts';
import { TRANSPORT_STREAM } from './track-source.ts';

const SYNC_BYTE = 0x47;

/** Converts the transport stream of one session to packets of a stream. */
export class TsIngest {
  readonly #track: number;
  readonly #payloadType: number;
  readonly #options: RtspIngestOptions;
  readonly #receiver: RtpReceiver;
  readonly #source: TsSource;
  readonly #gaps: GapTimer;
  #closed = false;

  constructor(options: RtspIngestOptions) {
    this.#options = options;
    const { media, transport, sink, clock, silenceMs, log, faults, onEnd } = options;
    this.#track = media.findIndex(({ format }) => format.encoding === TRANSPORT_STREAM);
    this.#payloadType = media[this.#track]?.payloadType ?? NaN;
    clock.restart();
    this.#source = new TsSource({
      log,
      faults,
      sink: { setTracks: (tracks) => sink.setTracks(tracks), write: (packet) => sink.write(placed(packet, clock)) },
      config: tsConfig(clock, silenceMs),
      onFailure: (reason) => {
        this.close();
        onEnd(reason);
      },
    });
    const format = { encoding: TRANSPORT_STREAM, clockRate: 90_000, parameters: {} };
    this.#receiver = new RtpReceiver(format, transport === 'tcp' ? 0 : DATAGRAM_WAIT_MS, {
      frame: (data) => this.#source.push(data),
      damaged: () => this.#source.lost(),
      lost: (packets) => sink.lost(packets),
      configuration: () => {},
      restarted: () => this.#source.lost(),
    });
    this.#gaps = new GapTimer([this.#receiver]);
  }

  rtp(track: number, data: Buffer): void {
    if (this.#closed || track !== this.#track) return;
    const now = performance.now();
    try {
      const packet = parseRtp(data);
      // a transport stream is accepted under any payload type
      if (packet.payloadType === this.#payloadType || packet.payload[0] === SYNC_BYTE) this.#receiver.push(packet, now);
      else this.#receiver.other(packet, now);
    } catch (error) {
      if (!(error instanceof RtpError)) throw error;
      this.#options.faults.count(error.message);
    }
    this.#gaps.heard(this.#receiver, now);
  }

  rtcp(): void {
    // the transport stream has its own clocks
  }

  start(): void {}

  close(): void {
    this.#closed = true;
    this.#gaps.close();
    this.#source.close();
  }
}
