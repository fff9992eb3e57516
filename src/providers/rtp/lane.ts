import { BitstreamError, tolerant } from '../../codecs/bits.ts';
import * as h264 from '../../codecs/h264.ts';
import * as h265 from '../../codecs/h265.ts';
import { bareNals } from '../../codecs/nal.ts';
import { LeadingPictures } from '../../core/leading-pictures.ts';
import { reorderedFrames } from '../../core/reordering.ts';
import type { Track } from '../../core/track.ts';
import type { FaultLog } from '../../log/log.ts';
import type { RtpTrackClock } from '../../protocols/rtp/receive/clock.ts';
import type { RtpFormat } from '../../protocols/rtp/receive/format.ts';
import type { RtpPacket } from '../../protocols/rtp/receive/packet.ts';
import { RtpReceiver, type ReceiverSink } from '../../protocols/rtp/receive/receiver.ts';
import type { SenderTime } from '../../protocols/rtp/receive/rtcp.ts';
import type { AudioIntake } from '../intake/audio-intake.ts';
import type { MediaUnit } from '../intake/media-unit.ts';
import type { VideoIntake } from '../intake/video-intake.ts';
import { DecodeTimes } from './decode-times.ts';
import type { Waiting } from './gap-timer.ts';
import { FrameOrder, reorderedIn } from './frame-order.ts';

/** Event of a stream, in order of arrival: a whole frame, a loss, or a restart of its timestamps. */
export interface LaneEvent {
  readonly lane: RtpLane;
  readonly what: 'frame' | 'damage' | 'restart';
  readonly data: Buffer;
  readonly timestamp: number;
  /** Arrival of the last packet, in milliseconds of the monotonic clock. */
  readonly now: number;
  /** Next frame, if this one was held for it. */
  readonly following?: LaneEvent;
}

export interface LaneOptions {
  readonly kind: 'video' | 'audio';
  readonly format: RtpFormat;
  /** Converter of the track; undefined if the first frame identifies it. */
  readonly source: VideoIntake | AudioIntake | undefined;
  /** Creates `source` for the first frame. @throws BitstreamError */
  readonly identify?: (frame: Buffer) => AudioIntake;
  readonly waitMs: number;
  readonly clock: RtpTrackClock;
  readonly faults: FaultLog;
  readonly onLost: (packets: number) => void;
  /** Called for each event; passes it to `unit` when the clock may be used. */
  readonly onEvent: (event: LaneEvent) => void;
}

const NOTHING = Buffer.alloc(0);
/** Longest wait for a key frame after a loss: gradual refresh may have no recovery point. */
const KEY_WAIT_MS = 5000;

/** Converts one RTP stream to units of one track. Video resumes after a loss with the next key frame. */
export class RtpLane implements ReceiverSink, Waiting {
  readonly kind: 'video' | 'audio';
  packets = 0;
  frames = 0;
  /** Arrival of the latest packet and the latest key frame, in milliseconds of the monotonic clock; -Infinity before. */
  lastHeard = -Infinity;
  lastKey = -Infinity;
  readonly #options: LaneOptions;
  readonly #receiver: RtpReceiver;
  readonly #times = new DecodeTimes();
  /** Set when the configuration does not give the number of reordered frames. */
  #order: FrameOrder | undefined;
  /** Whether the reordering is known, or the first two frames were compared for it. */
  #isSettled: boolean;
  #source: VideoIntake | AudioIntake | undefined;
  #known: Track | undefined;
  #isBroken = true;
  #waitingSince: number | undefined;
  readonly #leading = new LeadingPictures();
  #now = 0;
  /** Sender of a report before the first packet. */
  #reporter: number | undefined;

  /** @throws RtpError for an unsupported form of a payload format */
  constructor(options: LaneOptions) {
    this.#options = options;
    this.kind = options.kind;
    this.#receiver = new RtpReceiver(options.format, options.waitMs, this);
    this.#source = options.source;
    const { source } = options;
    this.#isSettled = source?.kind !== 'video' || source.codec !== 'H264' || knowsReordering(source);
  }

  /** undefined until the format is known. */
  get track(): Track | undefined {
    return this.#source?.track;
  }

  /** Whether video waits for a key frame. */
  get broken(): boolean {
    return this.kind === 'video' && this.#isBroken;
  }

  get deadline(): number | undefined {
    return this.#receiver.deadline;
  }

  /** SSRC of the source; undefined before the first packet. */
  get ssrc(): number | undefined {
    return this.#receiver.ssrc;
  }

  get isReported(): boolean {
    return this.#options.clock.isReported;
  }

  /** Receives a packet and keeps its bytes. @param now in milliseconds of the monotonic clock */
  push(packet: RtpPacket, now: number): void {
    this.#now = now;
    this.lastHeard = now;
    this.packets++;
    if (this.#reporter !== undefined) {
      if (this.#reporter !== packet.ssrc) this.#options.clock.restart();
      this.#reporter = undefined;
    }
    this.#receiver.push(packet, now);
  }

  /** Counts a packet of another format. @returns whether it may be of the same source and sequence */
  other(packet: RtpPacket, now: number): boolean {
    this.#now = now;
    return this.#receiver.other(packet, now);
  }

  tick(now: number): void {
    this.#now = now;
    this.#receiver.tick(now);
  }

  /** Applies a sender report; reports of other sources are ignored. */
  report(report: SenderTime): void {
    if (this.ssrc === undefined) this.#reporter = report.ssrc;
    else if (this.ssrc !== report.ssrc) return this.#fault('a sender report of another source');
    if (!this.#options.clock.report(report)) this.#fault('a sender report with impossible timestamps');
  }

  frame(data: Buffer, timestamp: number): void {
    this.frames++;
    this.#emit('frame', data, timestamp);
  }

  damaged(reason: string): void {
    this.#fault(reason);
    this.#emit('damage', NOTHING, 0);
  }

  lost(packets: number): void {
    this.#options.onLost(packets);
  }

  configuration(config: Buffer): void {
    const source = this.#source;
    if (source?.kind === 'audio') this.#try(() => source.configure(config));
  }

  restarted(): void {
    this.#emit('restart', NOTHING, 0);
  }

  /**
   * Whether a frame is the first one and must be passed on together with the next one, which shows the reordering. True
   * once at most.
   */
  looksAhead(data: Buffer): boolean {
    if (this.#isSettled) return false;
    const nals = tolerant(() => bareNals(data)) ?? [];
    if (!nals.some(h264.isKeyNal)) return false;
    this.#isSettled = true;
    const sps = nals.findLast((nal) => h264.nalType(nal) === h264.NAL.sps);
    return sps === undefined || tolerant(() => h264.parseSps(sps))?.maxReorderFrames === undefined;
  }

  /** Converts an event to a unit; undefined when it yields none that can be shown. */
  unit(event: LaneEvent): MediaUnit | undefined {
    const { what, data, timestamp, now } = event;
    if (what !== 'frame') {
      this.#isBroken = true;
      this.#order?.restart();
      this.#waitingSince = undefined;
      if (what === 'restart') this.#restart();
      return undefined;
    }
    const time = this.#options.clock.time(timestamp, now);
    return this.#try(() => {
      this.#source ??= this.#options.identify?.(data);
      if (this.#source?.kind === 'audio') return this.#source.frame(data, time);
      return this.#source && this.#videoUnit(this.#source, event, time);
    });
  }

  #videoUnit(source: VideoIntake, event: LaneEvent, time: number): MediaUnit | undefined {
    const { data, now } = event;
    let unit: MediaUnit;
    try {
      unit = source.frame(data, time, 0);
    } catch (error) {
      // some senders send parameter sets as frames of their own
      if (hasNoSlice(source.codec, data)) return undefined;
      this.#isBroken = true;
      throw error;
    }
    if (source.track !== this.#known) {
      this.#known = source.track;
      this.#reconfigure(source);
    }
    const step = this.#order?.step(unit.data);
    if (event.following !== undefined) this.#lookAhead(event, event.following);
    const dts = step === undefined ? this.#times.next(time) : this.#times.next(time, step, reorderedIn(step));
    const frame = { key: unit.key, pts: time };
    if (unit.key) {
      if (this.#isBroken) this.#leading.begin(frame);
      this.lastKey = now;
      this.#isBroken = false;
      this.#waitingSince = undefined;
    }
    if (this.#isBroken ? this.#waits(now) : this.#leading.waits && this.#leading.drops(frame)) return undefined;
    return { ...unit, time: dts, compositionTime: time - dts };
  }

  #waits(now: number): boolean {
    this.#waitingSince ??= now;
    return now - this.#waitingSince < KEY_WAIT_MS;
  }

  #reconfigure({ codec, track }: VideoIntake): void {
    const reordered = reorderedFrames(codec, track?.config);
    this.#times.expect(reordered);
    const isUnknown = codec === 'H264' && reordered === undefined && track?.config !== undefined;
    this.#order = isUnknown ? new FrameOrder(track.config) : undefined;
  }

  /** Expects the reordered frames between the first frame and the next, so that decoding begins early enough. */
  #lookAhead({ timestamp }: LaneEvent, following: LaneEvent): void {
    if (this.#order === undefined) return;
    const step = this.#order.peek(following.data);
    const ticks = (following.timestamp - timestamp) | 0;
    if (step > 1 && ticks > 0) this.#times.expect(reorderedIn(step), ticks / step);
  }

  #restart(): void {
    this.#options.clock.restart();
    this.#times.restart();
  }

  #emit(what: LaneEvent['what'], data: Buffer, timestamp: number): void {
    this.#options.onEvent({ lane: this, what, data, timestamp, now: this.#now });
  }

  #try<R>(action: () => R): R | undefined {
    try {
      return action();
    } catch (error) {
      if (!(error instanceof BitstreamError)) throw error;
      this.#fault(error.message);
      return undefined;
    }
  }

  #fault(reason: string): void {
    this.#options.faults.count(`${this.#options.format.encoding}: ${reason}`);
  }
}

function hasNoSlice(codec: VideoIntake['codec'], data: Buffer): boolean {
  if (codec !== 'H264' && codec !== 'H265') return false;
  const nals = tolerant(() => bareNals(data));
  return (
    nals?.some((nal) =>
      codec === 'H264' ? h264.nalType(nal) < h264.NAL.sei : h265.nalType(nal) <= h265.NAL.lastVcl,
    ) === false
  );
}

function knowsReordering({ codec, track }: VideoIntake): boolean {
  return track !== undefined && reorderedFrames(codec, track.config) !== undefined;
}
