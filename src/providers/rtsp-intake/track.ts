import type { FaultLog } from '../../log/log.ts';
import type { RtpClock, RtpTrackClock } from '../../protocols/rtp/receive/clock.ts';
import { RtpError } from '../../protocols/rtp/receive/error.ts';
import type { RtpPacket } from '../../protocols/rtp/receive/packet.ts';
import { Reception } from '../../protocols/rtp/receive/reception.ts';
import type { SenderTime } from '../../protocols/rtp/receive/rtcp.ts';
import type { RtspMedia } from '../../protocols/rtsp/description.ts';
import type { Waiting } from '../rtp/gap-timer.ts';
import { RtpLane, type LaneEvent } from '../rtp/lane.ts';
import { isTakenTrack, mpegAudioSource, trackSource } from './track-source.ts';

export interface RtspTrackOptions {
  readonly media: RtspMedia;
  /** Track id in the input stream. */
  readonly id: number;
  readonly waitMs: number;
  readonly clock: RtpClock;
  readonly faults: FaultLog;
  readonly onEvent: (event: LaneEvent) => void;
  readonly onLost: (packets: number) => void;
}

/** Longest distance of a track's first packet from the start that the server announced, for which that is used. */
const MAX_START_SECONDS = 0.5;

interface Fitted {
  readonly media: RtspMedia;
  readonly lane: RtpLane;
  readonly reception: Reception;
  readonly clock: RtpTrackClock;
}

/** Track of a server: its packets, and the reports about it by RTSP and RTCP. */
export class RtspTrack implements Waiting {
  /** Track id in the input stream. */
  readonly id: number;
  hasLeft = false;
  readonly #options: RtspTrackOptions;
  #forms: readonly RtspMedia[];
  #fitted: Fitted;
  #first: Pick<RtpPacket, 'ssrc' | 'timestamp'> | undefined;
  #start: number | undefined;

  /** @throws RtpError when no described format is supported */
  constructor(options: RtspTrackOptions) {
    this.#options = options;
    this.id = options.id;
    const { media } = options;
    this.#forms = [media, ...media.others.map((other) => ({ ...media, ...other }))].filter(isTakenTrack);
    this.#fitted = this.#fitFirst();
  }

  get lane(): RtpLane {
    return this.#fitted.lane;
  }

  get reception(): Reception {
    return this.#fitted.reception;
  }

  get deadline(): number | undefined {
    return this.lane.deadline;
  }

  tick(now: number): void {
    this.lane.tick(now);
  }

  /** Receives a packet and keeps its bytes. @param now in milliseconds of the monotonic clock */
  push(packet: RtpPacket, now: number): void {
    const { payloadType } = packet;
    if (payloadType !== this.#fitted.media.payloadType && !this.#isTaken(payloadType)) {
      const { encoding } = this.#fitted.media.format;
      this.#options.faults.count(
        `${encoding}: a packet of payload type ${payloadType}, which is not that of the track`,
      );
      // counted as received, so that its number is not missing
      if (this.lane.other(packet, now)) this.reception.packet(packet, now);
      return;
    }
    if (this.#first === undefined) {
      this.#first = { ssrc: packet.ssrc, timestamp: packet.timestamp };
      this.#believeStart();
    }
    this.reception.packet(packet, now);
    this.lane.push(packet, now);
  }

  /** Sets the RTP time of the common start, used only if the packets begin near it: many servers send arbitrary values. */
  start(rtpTime: number): void {
    this.#start = rtpTime;
    this.#believeStart();
  }

  report(report: SenderTime, now: number): void {
    this.reception.senderReport(report, now);
    this.lane.report(report);
  }

  bye(ssrc: number): void {
    this.hasLeft ||= ssrc === this.lane.ssrc;
  }

  #believeStart(): void {
    if (this.#first === undefined || this.#start === undefined) return;
    const { ssrc, timestamp } = this.#first;
    const distance = Math.abs((timestamp - this.#start) | 0);
    const { media, clock } = this.#fitted;
    if (distance > MAX_START_SECONDS * media.format.clockRate) return;
    // this report's clock begins with the session; later sender reports replace it
    clock.report({ ssrc, ntpMs: 0, compactNtp: 0, rtpTime: this.#start });
  }

  /** Whether another payload type belongs to the track; that of the first packet decides its codec. */
  #isTaken(payloadType: number): boolean {
    const form = this.#formOf(payloadType);
    if (form === undefined) return false;
    if (this.#first === undefined) return this.#refit(form);
    const { kind, format } = this.#fitted.media;
    // video packets have their decoder configuration
    if (kind !== 'video' || form.format.encoding !== format.encoding || form.format.clockRate !== format.clockRate)
      return false;
    this.#fitted = { ...this.#fitted, media: form };
    return true;
  }

  #formOf(payloadType: number): RtspMedia | undefined {
    for (const form of this.#forms) if (form.payloadType === payloadType) return form;
    return undefined;
  }

  #fitFirst(): Fitted {
    let refused: unknown = new RtpError('no payload format that is taken');
    for (const form of this.#forms) {
      const fitted = this.#tryFit(form);
      if (!(fitted instanceof RtpError)) return fitted;
      refused = fitted;
    }
    throw refused;
  }

  #refit(form: RtspMedia): boolean {
    const fitted = this.#tryFit(form);
    if (fitted instanceof RtpError) return false;
    this.#fitted = fitted;
    return true;
  }

  /** @returns why it is not supported; the format is not tried again */
  #tryFit(form: RtspMedia): Fitted | RtpError {
    try {
      return this.#fit(form);
    } catch (error) {
      if (!(error instanceof RtpError)) throw error;
      this.#forms = this.#forms.filter((one) => one !== form);
      return error;
    }
  }

  #fit(media: RtspMedia): Fitted {
    const { id, waitMs, clock: whole, faults, onEvent, onLost } = this.#options;
    const { kind, format } = media;
    const clock = whole.track(format.clockRate, kind === 'audio');
    const lane = new RtpLane({
      kind,
      format,
      waitMs,
      faults,
      onEvent,
      onLost,
      source: trackSource(media, id),
      identify: (frame) => mpegAudioSource(media, id, frame),
      clock,
    });
    return { media, lane, reception: new Reception(format.clockRate), clock };
  }
}
