import { randomInt } from 'node:crypto';
import type { FaultLog, Logger } from '../../log/log.ts';
import { RTP_CLOCK, RtpClock } from '../../protocols/rtp/receive/clock.ts';
import { RtpError } from '../../protocols/rtp/receive/error.ts';
import { isRtcp, parseRtp } from '../../protocols/rtp/receive/packet.ts';
import { parseRtcp } from '../../protocols/rtp/receive/rtcp.ts';
import { writeReceiverReport } from '../../protocols/rtp/rtcp.ts';
import type { RtspMedia } from '../../protocols/rtsp/description.ts';
import { RtspError } from '../../protocols/rtsp/error.ts';
import type { MediaTransport } from '../../protocols/rtsp/url.ts';
import { Intake } from '../intake/intake.ts';
import { streamTrackId, trackIdOf } from '../intake/track-id.ts';
import { TrackWriter, type TrackSink } from '../intake/track-writer.ts';
import type { LocalClock } from '../intake/local-clock.ts';
import { areAligned } from '../rtp/alignment.ts';
import { clockDrift } from '../rtp/clock-drift.ts';
import { FirstFrames } from '../rtp/first-frames.ts';
import { GapTimer } from '../rtp/gap-timer.ts';
import type { LaneEvent } from '../rtp/lane.ts';
import { AlignmentHold } from './alignment-hold.ts';
import { connectionClock } from './lane-clock.ts';
import { RtspTrack } from './track.ts';

/** Receiver of a stream. */
export interface RtspIngestSink extends TrackSink {
  /** Counts packets that were lost on their way. */
  lost(packets: number): void;
  /** Reports a problem with the source to the operator: code and text of an alert. */
  trouble(code: string, description: string): void;
}

export interface RtspIngestOptions {
  readonly media: readonly RtspMedia[];
  readonly transport: MediaTransport;
  readonly sink: RtspIngestSink;
  /** Clock that continues across connections. */
  readonly clock: LocalClock;
  /** Whether tracks are aligned by arrival, without sender reports. */
  readonly ignoresReports: boolean;
  /** 0: never. */
  readonly silenceMs: number;
  readonly log: Logger;
  readonly faults: FaultLog;
  /** Sends an RTCP packet of a track. */
  readonly report: (track: number, data: Buffer) => void;
  /** Called once, when no usable media follows. */
  readonly onEnd: (reason: string) => void;
}

export const DATAGRAM_WAIT_MS = 100;
const REPORT_MS = 5000;
/** Longest interval of key frames of cameras. */
const VIDEO_WAIT_MS = 5000;
const CNAME = 'kiln';

/** Converts RTP of one session to packets of a stream. Owns its timers. */
export class RtspIngest {
  readonly #options: RtspIngestOptions;
  /** In the order of the session; undefined for unsupported tracks. */
  readonly #tracks: readonly (RtspTrack | undefined)[];
  readonly #intake: Intake;
  readonly #first: FirstFrames;
  readonly #hold: AlignmentHold;
  readonly #ssrc = randomInt(2 ** 32);
  readonly #reports = setInterval(() => this.#report(), REPORT_MS).unref();
  readonly #gaps: GapTimer;
  #closed = false;

  /** @throws RtspError when no track is supported */
  constructor(options: RtspIngestOptions) {
    this.#options = options;
    const { sink, silenceMs, clock: local } = options;
    const clock = new RtpClock(!options.ignoresReports, local.keepsTimes, (share) =>
      sink.trouble(...clockDrift(share)),
    );
    const counts = { video: 0, audio: 0 };
    this.#tracks = options.media.map((media) => this.#track(media, clock, counts));
    const tracks = this.#tracks.flatMap((track) => track ?? []);
    this.#gaps = new GapTimer(tracks);
    if (counts.video + counts.audio === 0) {
      clearInterval(this.#reports);
      throw new RtspError('none of its tracks is supported');
    }
    const writer = new TrackWriter({
      sink,
      clock: RTP_CLOCK,
      timeline: connectionClock(local),
      onUnsteady: () => this.#intake.fail('the configuration of the stream changes too often'),
    });
    this.#intake = new Intake({
      writer,
      silenceMs,
      ...(counts.video > 0 && { videoWaitMs: VIDEO_WAIT_MS }),
      tracks: () => tracks.flatMap(({ lane }) => lane.track ?? []),
      onFailure: (reason) => this.#end(reason),
    });
    const indices = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
    this.#intake.announce({ video: indices(counts.video), audio: indices(counts.audio) });
    this.#first = new FirstFrames((event) => this.#enter(event));
    this.#hold = new AlignmentHold({
      isAligned: (waitsForSilent) =>
        options.ignoresReports ||
        areAligned(
          tracks.map(({ lane }) => lane),
          waitsForSilent,
        ),
      onSilent: () => this.#leaveOutSilent(),
      output: (event) => this.#first.push(event),
    });
  }

  rtp(track: number, data: Buffer): void {
    if (this.#closed) return;
    if (isRtcp(data)) return this.rtcp(track, data);
    const taken = this.#tracks[track];
    if (taken === undefined) return;
    const now = performance.now();
    this.#intake.heard();
    try {
      taken.push(parseRtp(data), now);
    } catch (error) {
      if (!(error instanceof RtpError)) throw error;
      this.#options.faults.count(error.message);
    }
    this.#gaps.heard(taken, now);
  }

  /** Sets the RTP time of a track at the common start, from the RTP-Info of a server. */
  start(track: number, rtpTime: number): void {
    this.#tracks[track]?.start(rtpTime);
  }

  rtcp(track: number, data: Buffer): void {
    const taken = this.#tracks[track];
    if (this.#closed || taken === undefined) return;
    try {
      const { senders, byes } = parseRtcp(data);
      const now = performance.now();
      for (const sender of senders) taken.report(sender, now);
      for (const ssrc of byes) taken.bye(ssrc);
    } catch (error) {
      if (!(error instanceof RtpError)) throw error;
      this.#options.faults.count(error.message);
    }
    if (this.#tracks.every((one) => one === undefined || one.hasLeft)) this.#end('the source has gone');
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#reports);
    this.#gaps.close();
    this.#hold.close();
    this.#first.close();
    this.#intake.close();
  }

  #track(media: RtspMedia, clock: RtpClock, counts: Record<RtspMedia['kind'], number>): RtspTrack | undefined {
    const { faults, log, transport, sink } = this.#options;
    const {
      kind,
      format: { encoding },
    } = media;
    try {
      const track = new RtspTrack({
        media,
        clock,
        faults,
        id: streamTrackId(kind, counts[kind]),
        waitMs: transport === 'tcp' ? 0 : DATAGRAM_WAIT_MS,
        onEvent: (event) => this.#hold.push(event),
        onLost: (packets) => sink.lost(packets),
      });
      counts[kind]++;
      return track;
    } catch (error) {
      if (!(error instanceof RtpError)) throw error;
      log.warn({ encoding, reason: error.message }, 'a track over RTSP is not supported and is ignored');
      return undefined;
    }
  }

  #enter(event: LaneEvent): void {
    const { lane } = event;
    const unit = lane.unit(event);
    if (unit === undefined || this.#closed) return;
    this.#intake.unit(unit);
  }

  #leaveOutSilent(): void {
    for (const track of this.#tracks)
      if (track?.lane.packets === 0) this.#intake.absent(track.lane.kind, trackIdOf(track.id));
  }

  #report(): void {
    const now = performance.now();
    this.#tracks.forEach((track, place) => {
      const block = track?.reception.block(now);
      if (block !== undefined) this.#options.report(place, writeReceiverReport(this.#ssrc, [block], CNAME));
    });
  }

  #end(reason: string): void {
    if (this.#closed) return;
    this.close();
    this.#options.onEnd(reason);
  }
}
