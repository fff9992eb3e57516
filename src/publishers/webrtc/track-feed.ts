import { randomInt } from 'node:crypto';
import type { types } from 'mediasoup';
import type { WebrtcPublisherConfig } from '../../config/model.ts';
import type { Packet } from '../../core/packet.ts';
import { rescale, type Timebase } from '../../core/timebase.ts';
import type { MediaTrack, Track } from '../../core/track.ts';
import { createPacketizer, type Packetizer } from '../../protocols/rtp/packetizer.ts';
import { writeSenderReport } from '../../protocols/rtp/rtcp.ts';
import { RtpSender } from '../../protocols/rtp/sender.ts';
import { formatOf } from '../../webrtc/codecs.ts';
import { playoutDelayExtension } from '../../webrtc/extensions.ts';
import type { MediaClock } from './media-clock.ts';

/** What packets of a feed are handed to: one producer of one worker. */
export interface Outlet {
  readonly direct: types.DirectTransport;
  readonly producer: types.Producer;
}

/** Payload type between here and the worker, which gives each viewer the one it agreed on. */
export const FEED_PAYLOAD_TYPE = 100;

/** mediasoup trusts a source's clock after three reports. */
const FIRST_REPORTS = 3;
const FIRST_INTERVAL_MS = 50;
const INTERVAL_MS = 1000;

export interface FeedOptions {
  readonly cname: string;
  readonly clock: MediaClock;
  readonly playoutDelay: WebrtcPublisherConfig['playoutDelay'];
  /** Called for a frame that could not be sent. */
  readonly onFault: (error: Error) => void;
}

/** One track as one RTP stream: packetized once, however many producers and viewers there are. */
export class TrackFeed {
  readonly #id: number;
  readonly #codec: MediaTrack['codec'];
  readonly #options: FeedOptions;
  readonly #outlets = new Set<Outlet>();
  readonly #packetizer: Packetizer;
  readonly #sender: RtpSender;
  readonly #rtpTimebase: Timebase;
  readonly #timestampOffset = randomInt(2 ** 32);
  #reports = 0;
  #nextReport = 0;

  constructor(track: MediaTrack, options: FeedOptions) {
    const { playoutDelay } = options;
    this.#id = track.id;
    this.#codec = track.codec;
    this.#options = options;
    this.#packetizer = createPacketizer(track.codec);
    this.#rtpTimebase = { num: 1, den: formatOf(track.codec).clockRate };
    this.#sender = new RtpSender({
      payloadType: FEED_PAYLOAD_TYPE,
      ssrc: randomInt(1, 2 ** 32),
      sequence: randomInt(2 ** 16),
      ...(playoutDelay === undefined
        ? {}
        : { playoutDelay: { id: playoutDelayExtension().id, minMs: playoutDelay.min, maxMs: playoutDelay.max } }),
      output: (packet) => {
        for (const { producer } of this.#outlets) producer.send(packet);
      },
    });
  }

  get ssrc(): number {
    return this.#sender.ssrc;
  }

  /** Whether packets of `track` belong here. */
  carries(track: Track): boolean {
    return track.id === this.#id && track.codec === this.#codec;
  }

  /** @returns the undo */
  addOutlet(outlet: Outlet): () => void {
    this.#outlets.add(outlet);
    this.#reports = 0;
    this.#nextReport = 0;
    return () => this.#outlets.delete(outlet);
  }

  /** Sends one frame of the track to every outlet, and a sender report when one is due. */
  send(packet: Packet): void {
    if (this.#outlets.size === 0) return;
    const { timebase } = packet.track as MediaTrack;
    this.#sender.timestamp = (rescale(packet.pts, timebase, this.#rtpTimebase) + this.#timestampOffset) >>> 0;
    try {
      this.#packetizer.packetize(packet, this.#sender);
    } catch (error) {
      this.#options.onFault(error as Error);
      return;
    }
    const now = Date.now();
    if (now >= this.#nextReport) this.#report(packet, timebase, now);
  }

  #report(packet: Packet, timebase: Timebase, now: number): void {
    this.#reports++;
    this.#nextReport = now + (this.#reports < FIRST_REPORTS ? FIRST_INTERVAL_MS : INTERVAL_MS);
    const { ssrc, timestamp, packets, octets } = this.#sender;
    const report = writeSenderReport({
      ssrc,
      wallMs: this.#options.clock.wallMs(packet.pts, timebase, now),
      rtpTime: timestamp,
      packets,
      octets,
      cname: this.#options.cname,
    });
    for (const { direct } of this.#outlets) direct.sendRtcp(report);
  }
}
