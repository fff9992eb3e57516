import { randomInt } from 'node:crypto';
import type { WebrtcPublisherConfig } from '../../config/model.ts';
import type { Packet } from '../../core/packet.ts';
import { rescale, type Timebase } from '../../core/timebase.ts';
import type { MediaTrack } from '../../core/track.ts';
import { createPacketizer, type Packetizer } from '../../protocols/rtp/packetizer.ts';
import { writeSenderReport } from '../../protocols/rtp/rtcp.ts';
import { RtpSender } from '../../protocols/rtp/sender.ts';
import { formatOf } from '../codecs.ts';
import { playoutDelayExtension } from '../extensions.ts';
import { FEED_PAYLOAD_TYPE, type Outlet } from './outlet.ts';
import type { MediaClock } from '../../protocols/rtp/media-clock.ts';

/** A stream that has sent nothing for so long sends no reports. */
const SILENT_MS = 2000;

export interface FeedOptions {
  readonly cname: string;
  readonly clock: MediaClock;
  readonly playoutDelay: WebrtcPublisherConfig['playoutDelay'];
  /** Called for a frame that could not be sent. */
  readonly onFault: (error: Error) => void;
}

/** One RTP stream, of packets of one codec: packetized once, however many producers and viewers there are. */
export class TrackFeed {
  readonly #options: FeedOptions;
  readonly #outlets: ReadonlySet<Outlet>;
  readonly #packetizer: Packetizer;
  readonly #sender: RtpSender;
  readonly #rtpTimebase: Timebase;
  readonly #timestampOffset = randomInt(2 ** 32);
  #last: Packet | undefined;
  #lastLateMs = 0;
  #sentAt = 0;

  constructor(codec: MediaTrack['codec'], outlets: ReadonlySet<Outlet>, options: FeedOptions) {
    const { playoutDelay } = options;
    this.#options = options;
    this.#outlets = outlets;
    this.#packetizer = createPacketizer(codec);
    this.#rtpTimebase = { num: 1, den: formatOf(codec).clockRate };
    this.#sender = new RtpSender({
      payloadType: FEED_PAYLOAD_TYPE,
      ssrc: randomInt(1, 2 ** 32),
      sequence: randomInt(2 ** 16),
      ...(playoutDelay === undefined
        ? {}
        : { playoutDelay: { id: playoutDelayExtension().id, minMs: playoutDelay.min, maxMs: playoutDelay.max } }),
      output: (packet) => {
        for (const { channel, head } of outlets) channel.add(head, packet);
      },
    });
  }

  get ssrc(): number {
    return this.#sender.ssrc;
  }

  /**
   * Sends one frame to every outlet.
   * @param now milliseconds since the Unix epoch
   * @param lateMs reports date the frame so much later than its own time
   */
  send(packet: Packet, now: number, lateMs = 0): void {
    const { timebase } = packet.track as MediaTrack;
    this.#sender.timestamp = (rescale(packet.pts, timebase, this.#rtpTimebase) + this.#timestampOffset) >>> 0;
    try {
      this.#packetizer.packetize(packet, this.#sender);
    } catch (error) {
      this.#options.onFault(error as Error);
      return;
    } finally {
      for (const { channel } of this.#outlets) channel.flush();
    }
    this.#last = packet;
    this.#lastLateMs = lateMs;
    this.#sentAt = now;
  }

  /**
   * Makes a sender report. It has the time of the media that is captured now, not of the frame sent last: mediasoup assumes the
   * same network delay for the reports of all streams, and would otherwise believe that late frames were captured late.
   * @returns undefined when nothing is being sent
   */
  report(now: number): Buffer | undefined {
    const last = this.#last;
    if (last === undefined || now - this.#sentAt > SILENT_MS) return undefined;
    const { ssrc, timestamp, packets, octets } = this.#sender;
    const { timebase } = last.track as MediaTrack;
    const ageMs = now - this.#options.clock.wallMs(last.pts, timebase, now) - this.#lastLateMs;
    return writeSenderReport({
      ssrc,
      wallMs: now,
      rtpTime: (timestamp + Math.round((ageMs * this.#rtpTimebase.den) / 1000)) >>> 0,
      packets,
      octets,
      cname: this.#options.cname,
    });
  }
}
