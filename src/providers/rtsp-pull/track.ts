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

/** What packets of one format of a track become. */
interface Fitted {
  readonly media: RtspMedia;
  readonly lane: RtpLane;
  readonly reception: Reception;
  readonly clock: RtpTrackClock;
}

/** One track of a server: its packets, and what is told beside them by RTSP and RTCP. */
export class RtspTrack implements Waiting {
  /** Of the track in its stream. */
  readonly id: number;
  /** Its sender says that nothing follows. */
  hasLeft = false;
  readonly #options: RtspTrackOptions;
  /** As what it is described, the most likely first. */
  #forms: readonly RtspMedia[];
  #fitted: Fitted;
  #first: Pick<RtpPacket, 'ssrc' | 'timestamp'> | undefined;
  #start: number | undefined;

  /** @throws RtpError when it is described in no form of a payload format that is taken */
  constructor(options: RtspTrackOptions) {
    this.#options = options;
    this.id = options.id;
    const { media } = options;
    this.#forms = [media, ...media.others.map((other) => ({ ...media, ...other }))].filter(isTakenTrack);
    this.#fitted = this.#fitFirst();
  }

  /** Another one once its first packet tells that it is of another format. */
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

  /** Takes a packet, whose bytes are its own from now on. @param now in milliseconds of the monotonic clock */
  push(packet: RtpPacket, now: number): void {
    const { payloadType } = packet;
    if (payloadType !== this.#fitted.media.payloadType && !this.#isTaken(payloadType)) {
      const { encoding } = this.#fitted.media.format;
      this.#options.faults.count(
        `${encoding}: a packet of payload type ${payloadType}, which is not that of the track`,
      );
      // it is received, and nothing is missing where it was
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
    const { media, clock } = this.#fitted;
    if (distance > MAX_START_SECONDS * media.format.clockRate) return;
    // the clock of this report begins with the session; what the sender reports later takes its place
    clock.report({ ssrc, ntpMs: 0, compactNtp: 0, rtpTime: this.#start });
  }

  /** Whether a packet of another payload type than the one before is one of the track; the first decides of which codec that is. */
  #isTaken(payloadType: number): boolean {
    const form = this.#formOf(payloadType);
    if (form === undefined) return false;
    if (this.#first === undefined) return this.#refit(form);
    const { kind, format } = this.#fitted.media;
    // what decoders need of video is in its packets
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

  /** @returns why it is not taken; no packet of it is tried again */
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
