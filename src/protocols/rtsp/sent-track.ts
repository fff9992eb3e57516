import { randomInt } from 'node:crypto';
import type { Packet } from '../../core/packet.ts';
import { rescale, type Timebase } from '../../core/timebase.ts';
import { sameFormat, type MediaTrack, type Track } from '../../core/track.ts';
import type { MediaClock } from '../rtp/media-clock.ts';
import { createPacketizer, type Packetizer } from '../rtp/packetizer.ts';
import type { PayloadFormat } from '../rtp/payload-format.ts';
import { writeSenderReport } from '../rtp/rtcp.ts';
import { RtpSender } from '../rtp/sender.ts';
import { InterleavedFrame, packetAt } from './interleaved.ts';

/** Time between sender reports, in milliseconds (RFC 3550 section 6.2). */
export const REPORT_MS = 5000;
const FIRST_DYNAMIC = 96;
/** Places in an RTP header. */
const SEQUENCE_AT = 2;
/** A track that has sent nothing for so long sends no reports. */
const SILENT_MS = 10_000;

/** A track that is sent: its RTP packets, interleaved, and its sender reports. */
export class SentTrack {
  #track: MediaTrack;
  #format: PayloadFormat;
  readonly payloadType: number;
  /** Channel of its packets in the frames; those of reports follow. */
  readonly channel: number;
  readonly #packetizer: Packetizer;
  readonly #sender: RtpSender;
  readonly #frame = new InterleavedFrame();
  readonly #timebase: Timebase;
  readonly #offset = randomInt(2 ** 32);
  #nextSequence: number;
  /** Wall clock of the last frame, and when it was sent, in milliseconds since the Unix epoch. */
  #last: { readonly wallMs: number; readonly sentAt: number } | undefined;

  /** @param index of the track in its session */
  constructor(track: MediaTrack, format: PayloadFormat, index: number) {
    this.#track = track;
    this.#format = format;
    this.payloadType = format.payloadType ?? FIRST_DYNAMIC + index;
    this.channel = 2 * index;
    this.#packetizer = createPacketizer(track.codec);
    this.#timebase = { num: 1, den: format.clockRate };
    this.#nextSequence = randomInt(2 ** 16);
    this.#sender = new RtpSender({
      payloadType: this.payloadType,
      ssrc: randomInt(1, 2 ** 32),
      sequence: this.#nextSequence,
      output: (packet) => this.#frame.add(this.channel, packet),
    });
  }

  get track(): MediaTrack {
    return this.#track;
  }

  get format(): PayloadFormat {
    return this.#format;
  }

  /** Whether receivers go on with a track by its present description: decoders of video find parameter sets in the packets. */
  covers(track: Track): track is MediaTrack {
    const { codec, type, timebase } = this.#track;
    if (codec !== track.codec) return false;
    return type === 'video' || sameFormat(this.#track, { ...track, timebase } as Track);
  }

  /** Goes on with another configuration of the same codec. */
  reconfigure(track: MediaTrack, format: PayloadFormat): void {
    this.#track = track;
    this.#format = format;
  }

  get ssrc(): number {
    return this.#sender.ssrc;
  }

  /** Sequence number of the packet that is made next. */
  get nextSequence(): number {
    return (this.#nextSequence + this.#sender.packets) & 0xffff;
  }

  /** RTP time of an instant of the stream. */
  rtpTime(time: number, timebase: Timebase): number {
    return (rescale(time, timebase, this.#timebase) + this.#offset) >>> 0;
  }

  /**
   * Makes the packets of a frame.
   * @param now milliseconds since the Unix epoch
   * @throws BitstreamError, RangeError on one that cannot be sent
   */
  packetize(packet: Packet, clock: MediaClock, now: number): Buffer {
    const { timebase } = packet.track;
    this.#frame.begin(packet.data.length);
    this.#sender.timestamp = this.rtpTime(packet.pts, timebase);
    this.#packetizer.packetize(packet, this.#sender);
    this.#last = { wallMs: clock.wallMs(packet.pts, timebase, now), sentAt: now };
    return this.#frame.end();
  }

  /** Makes a sender report for the present. @returns undefined when nothing is being sent */
  report(now: number, cname: string): Buffer | undefined {
    const last = this.#last;
    if (last === undefined || now - last.sentAt > SILENT_MS) return undefined;
    const { ssrc, timestamp, packets, octets } = this.#sender;
    const age = Math.round(((now - last.wallMs) * this.format.clockRate) / 1000);
    return writeSenderReport({ ssrc, wallMs: now, rtpTime: (timestamp + age) >>> 0, packets, octets, cname });
  }
}

/** Sequence number of the first packet of a frame. */
export function firstSequence(frame: Buffer): number {
  const [start] = packetAt(frame, 0);
  return frame.readUInt16BE(start + SEQUENCE_AT);
}
