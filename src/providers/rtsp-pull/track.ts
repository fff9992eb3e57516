import type { FaultLog } from '../../log.ts';
import type { RtpClock, RtpTrackClock } from '../../protocols/rtp/receive/clock.ts';
import type { RtpPacket } from '../../protocols/rtp/receive/packet.ts';
import { Reception } from '../../protocols/rtp/receive/reception.ts';
import type { SenderTime } from '../../protocols/rtp/receive/rtcp.ts';
import type { RtspMedia } from '../../protocols/rtsp/description.ts';
import { RtpLane, type LaneEvent } from '../rtp/lane.ts';
import { mpegAudioSource, trackSource } from './track-source.ts';

export interface RtspTrackOptions {
  readonly media: RtspMedia;
  /** Of the track in its stream. */
  readonly id: number;
  /** How long a packet that is missing is waited for. */
  readonly waitMs: number;
  /** Of the whole source. */
  readonly clock: RtpClock;
  readonly faults: FaultLog;
  readonly onEvent: (event: LaneEvent) => void;
  /** Hears how many packets never came. */
  readonly onLost: (packets: number) => void;
}

/** Tracks whose first packets are further from where the server says that they begin do not begin there. */
const MAX_START_SECONDS = 0.5;

/** One track of a server: its packets, and what is told beside them by RTSP and RTCP. */
export class RtspTrack {
  /** Of the track in its stream. */
  readonly id: number;
  readonly lane: RtpLane;
  readonly reception: Reception;
  /** Its sender says that nothing follows. */
  hasLeft = false;
  readonly #options: RtspTrackOptions;
  readonly #clock: RtpTrackClock;
  #first: Pick<RtpPacket, 'ssrc' | 'timestamp'> | undefined;
  #start: number | undefined;

  /** @throws RtpError for a form of a payload format that is not taken */
  constructor(options: RtspTrackOptions) {
    this.#options = options;
    const { media, id, waitMs, clock, faults, onEvent, onLost } = options;
    const { kind, format } = media;
    this.id = id;
    this.reception = new Reception(format.clockRate);
    this.#clock = clock.track(format.clockRate, kind === 'audio');
    this.lane = new RtpLane({
      kind,
      format,
      waitMs,
      faults,
      onEvent,
      onLost,
      source: trackSource(media, id),
      identify: (frame) => mpegAudioSource(media, id, frame),
      clock: this.#clock,
    });
  }

  /** Takes a packet, whose bytes are its own from now on. @param now in milliseconds of the monotonic clock */
  push(packet: RtpPacket, now: number): void {
    const {
      media: { payloadType, format },
      faults,
    } = this.#options;
    if (packet.payloadType !== payloadType)
      return faults.count(`${format.encoding}: a packet of a payload type that was not described`);
    if (this.#first === undefined) {
      this.#first = { ssrc: packet.ssrc, timestamp: packet.timestamp };
      this.#believeStart();
    }
    this.reception.packet(packet, now);
    this.lane.push(packet, now);
  }

  /** Takes which RTP time all tracks begin at: believed where the packets begin there, for many servers write anything. */
  start(rtpTime: number): void {
    this.#start = rtpTime;
    this.#believeStart();
  }

  report(report: SenderTime, now: number): void {
    this.reception.senderReport(report, now);
    this.lane.report(report);
  }

  /** A source says that it leaves. */
  bye(ssrc: number): void {
    this.hasLeft ||= ssrc === this.lane.ssrc;
  }

  #believeStart(): void {
    if (this.#first === undefined || this.#start === undefined) return;
    const { ssrc, timestamp } = this.#first;
    const distance = Math.abs((timestamp - this.#start) | 0);
    if (distance > MAX_START_SECONDS * this.#options.media.format.clockRate) return;
    // the clock of this report begins with the session; what the sender reports later takes its place
    this.#clock.report({ ssrc, ntpMs: 0, compactNtp: 0, rtpTime: this.#start });
  }
}
