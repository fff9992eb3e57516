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
import { PictureOrder, reorderedIn } from './picture-order.ts';

/** Something of a stream, in the order in which it came: a whole frame, or that one is missing or the count begins anew. */
export interface LaneEvent {
  readonly lane: RtpLane;
  readonly what: 'frame' | 'damage' | 'restart';
  readonly data: Buffer;
  readonly timestamp: number;
  /** When its last packet came, in milliseconds of the monotonic clock. */
  readonly now: number;
  /** Of a frame that was held for it: the next one. */
  readonly following?: LaneEvent;
}

export interface LaneOptions {
  readonly kind: 'video' | 'audio';
  readonly format: RtpFormat;
  /** What the track is made of; undefined where the first frame tells. */
  readonly source: VideoIntake | AudioIntake | undefined;
  /** Makes it of the first frame. @throws BitstreamError */
  readonly identify?: (frame: Buffer) => AudioIntake;
  /** How long a packet that is missing is waited for. */
  readonly waitMs: number;
  readonly clock: RtpTrackClock;
  readonly faults: FaultLog;
  /** Hears how many packets never came. */
  readonly onLost: (packets: number) => void;
  /** Hears of what comes; hands it to `unit` when the clock may be asked. */
  readonly onEvent: (event: LaneEvent) => void;
}

const NOTHING = Buffer.alloc(0);
/** Pictures behind a loss are left out for so long at most: a source that refreshes bit by bit may not tell where. */
const KEY_WAIT_MS = 5000;

/** One RTP stream: its packets to frames, and those to units of one track. Behind a loss pictures go on with the next key frame. */
export class RtpLane implements ReceiverSink, Waiting {
  readonly kind: 'video' | 'audio';
  /** Packets that came, and whole frames. */
  packets = 0;
  frames = 0;
  /** When a packet came last, and a key frame, in milliseconds of the monotonic clock; -Infinity before the first. */
  lastHeard = -Infinity;
  lastKey = -Infinity;
  readonly #options: LaneOptions;
  readonly #receiver: RtpReceiver;
  readonly #times = new DecodeTimes();
  /** Where the configuration does not tell how many pictures are reordered. */
  #order: PictureOrder | undefined;
  /** It is known, or the first picture was looked at together with the next one, which tells. */
  #isSettled: boolean;
  #source: VideoIntake | AudioIntake | undefined;
  #known: Track | undefined;
  #isBroken = true;
  /** When the first picture behind a loss came that is no key frame; undefined before that. */
  #waitingSince: number | undefined;
  readonly #leading = new LeadingPictures();
  #now = 0;
  /** Whose report came in front of all packets. */
  #reporter: number | undefined;

  /** @throws RtpError for a form of a payload format that is not taken */
  constructor(options: LaneOptions) {
    this.#options = options;
    this.kind = options.kind;
    this.#receiver = new RtpReceiver(options.format, options.waitMs, this);
    this.#source = options.source;
    const { source } = options;
    this.#isSettled = source?.kind !== 'video' || source.codec !== 'H264' || isTold(source);
  }

  /** undefined until it is known what it is. */
  get track(): Track | undefined {
    return this.#source?.track;
  }

  /** Pictures wait for a key frame. */
  get broken(): boolean {
    return this.kind === 'video' && this.#isBroken;
  }

  get deadline(): number | undefined {
    return this.#receiver.deadline;
  }

  /** Whose packets it takes; undefined before the first. */
  get ssrc(): number | undefined {
    return this.#receiver.ssrc;
  }

  /** Its sender has told of which time its timestamps are. */
  get isReported(): boolean {
    return this.#options.clock.isReported;
  }

  /** Takes a packet, whose bytes are its own from now on. @param now in milliseconds of the monotonic clock */
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

  /** Takes note of a packet that is none of its format. @returns whether it may be of the same source and count */
  other(packet: RtpPacket, now: number): boolean {
    this.#now = now;
    return this.#receiver.other(packet, now);
  }

  tick(now: number): void {
    this.#now = now;
    this.#receiver.tick(now);
  }

  /** Takes what the sender of its packets tells of their times; others are not believed. */
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
   * Whether a frame is the first one and should be taken together with the next one, which tells how pictures are reordered;
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

  /** What an event brings; undefined where that is nothing, or nothing that can be shown. */
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
      return this.#source && this.#picture(this.#source, event, time);
    });
  }

  #picture(source: VideoIntake, event: LaneEvent, time: number): MediaUnit | undefined {
    const { data, now } = event;
    let unit: MediaUnit;
    try {
      unit = source.frame(data, time, 0);
    } catch (error) {
      // some send parameter sets as frames of their own
      if (hasNoPicture(source.codec, data)) return undefined;
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
    const picture = { key: unit.key, pts: time };
    if (unit.key) {
      if (this.#isBroken) this.#leading.begin(picture);
      this.lastKey = now;
      this.#isBroken = false;
      this.#waitingSince = undefined;
    }
    if (this.#isBroken ? this.#waits(now) : this.#leading.waits && this.#leading.drops(picture)) return undefined;
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
    this.#order = isUnknown ? new PictureOrder(track.config) : undefined;
  }

  /** Where pictures come between the first one and the next, that begins so much earlier as they need. */
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

function hasNoPicture(codec: VideoIntake['codec'], data: Buffer): boolean {
  if (codec !== 'H264' && codec !== 'H265') return false;
  const nals = tolerant(() => bareNals(data));
  return (
    nals?.some((nal) =>
      codec === 'H264' ? h264.nalType(nal) < h264.NAL.sei : h265.nalType(nal) <= h265.NAL.lastVcl,
    ) === false
  );
}

/** The description says how many pictures are reordered. */
function isTold({ codec, track }: VideoIntake): boolean {
  return track !== undefined && reorderedFrames(codec, track.config) !== undefined;
}
