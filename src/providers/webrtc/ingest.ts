import { Timeline } from '../../core/timeline.ts';
import type { WebrtcProviderConfig } from '../../config/model.ts';
import type { FaultLog } from '../../log/log.ts';
import { RTP_CLOCK, RtpClock } from '../../protocols/rtp/receive/clock.ts';
import { RtpError } from '../../protocols/rtp/receive/error.ts';
import { parseRtp } from '../../protocols/rtp/receive/packet.ts';
import { formatOf } from '../../webrtc/codecs.ts';
import { AudioIntake } from '../intake/audio-intake.ts';
import { Intake } from '../intake/intake.ts';
import { streamTrackId } from '../intake/track-id.ts';
import { TrackWriter, type TrackSink } from '../intake/track-writer.ts';
import { VideoIntake } from '../intake/video-intake.ts';
import { areAligned, SILENT_WAIT_MS } from '../rtp/alignment.ts';
import { clockDrift } from '../rtp/clock-drift.ts';
import { FirstFrames } from '../rtp/first-frames.ts';
import { GapTimer } from '../rtp/gap-timer.ts';
import { RtpLane, type LaneEvent } from '../rtp/lane.ts';
import type { IngestPlan } from './accepted.ts';
import { LayerGate } from './layer-gate.ts';

/** Receiver of a publisher's stream. */
export interface IngestSink extends TrackSink {
  /** Counts packets that were lost on their way. */
  lost(packets: number): void;
  /** Reports a problem with the source to the operator: code and text of an alert. */
  trouble(code: string, description: string): void;
}

export type IngestConfig = Pick<
  WebrtcProviderConfig,
  'timestampMode' | 'rtcpBasedTimestamp' | 'timeout' | 'packetSilenceTimeoutMs' | 'firInterval'
> & { readonly rtx: Pick<WebrtcProviderConfig['rtx'], 'maxHoldMs'> };

export interface IngestOptions {
  readonly sink: IngestSink;
  readonly config: IngestConfig;
  readonly plans: readonly IngestPlan[];
  readonly faults: FaultLog;
  readonly onKeyWanted: (plan: IngestPlan) => void;
  /** Called once, when the source is unusable or falls silent. */
  readonly onFailure: (reason: string) => void;
}

/** Interval of requests for key frames that did not arrive. */
const RETRY_MS = 500;
/** Shortest interval of key frames requested for new readers: each costs several times the bits of another frame. */
const WANTED_MS = 1000;
/** Silence after which a quality counts as not sent: browsers leave out qualities that the bandwidth does not allow. */
const ACTIVE_MS = 1500;
/** Longest wait for sender reports, which come once a second or more often. */
const REPORTS_WAIT_MS = 3000;

/** Section of the session, with its streams: one, or the qualities of one video. */
interface Section {
  readonly plan: IngestPlan;
  readonly lanes: readonly RtpLane[];
  askedAt: number;
  /** Time since which a reader waits for a key frame; undefined when none does. */
  wantedAt: number | undefined;
}

/** Converts RTP of one publisher to packets of a stream. Owns its timers. */
export class Ingest {
  readonly #options: IngestOptions;
  readonly #clock: RtpClock;
  readonly #sections: readonly Section[];
  readonly #intake: Intake;
  readonly #gate: LayerGate;
  readonly #timer = setInterval(() => this.#tick(), RETRY_MS).unref();
  readonly #gaps: GapTimer;
  readonly #first = new FirstFrames((event) => this.#take(event));
  #aligned: boolean;
  #heardAt: number | undefined;
  #closed = false;

  constructor(options: IngestOptions) {
    this.#options = options;
    const { sink, config, plans, faults } = options;
    const keepsTimes = config.timestampMode === 'Original';
    this.#clock = new RtpClock(true, keepsTimes, (share) => sink.trouble(...clockDrift(share)));
    this.#sections = plans.map((plan) => this.#section(plan, faults));
    this.#aligned = !config.rtcpBasedTimestamp;
    const lanes = this.#sections.flatMap((section) => section.lanes);
    this.#gaps = new GapTimer(lanes);
    const writer = new TrackWriter({
      sink,
      clock: RTP_CLOCK,
      timeline: new Timeline(RTP_CLOCK, !keepsTimes),
      onUnsteady: () => this.#intake.fail('the configuration of the stream changes too often'),
    });
    const { timeout, packetSilenceTimeoutMs: silence } = config;
    this.#intake = new Intake({
      writer,
      tracks: () => lanes.flatMap(({ track }) => track ?? []),
      firstMediaWaitMs: timeout,
      silenceMs: silence > 0 ? Math.min(silence, timeout) : timeout,
      onFailure: (reason) => this.#fail(reason),
    });
    const videos = this.#sections.flatMap(({ plan, lanes: own }) => (plan.kind === 'video' ? own : []));
    this.#gate = new LayerGate(videos.length, {
      pass: (unit) => this.#intake.unit(unit),
      onWaited: () => this.#leaveOutSilent(),
    });
    this.#intake.announce({
      video: videos.map((_, index) => index),
      audio: plans.some(({ kind }) => kind === 'audio') ? [0] : [],
    });
  }

  /** Streams of a section, in the order of its rids. */
  lanes(plan: IngestPlan): readonly RtpLane[] {
    return this.#sections.find((section) => section.plan === plan)?.lanes ?? [];
  }

  /** Kinds of the sections without packets. */
  get silent(): IngestPlan['kind'][] {
    return this.#sections.flatMap(({ plan: { kind }, lanes }) =>
      lanes.every(({ packets }) => packets === 0) ? kind : [],
    );
  }

  /** Receives a packet of a stream and keeps its bytes. */
  push(lane: RtpLane, packet: Buffer): void {
    if (this.#closed) return;
    const now = performance.now();
    this.#intake.heard();
    try {
      lane.push(parseRtp(packet), now);
    } catch (error) {
      if (!(error instanceof RtpError)) throw error;
      this.#options.faults.count(error.message);
    }
    this.#gaps.heard(lane, now);
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#timer);
    this.#gaps.close();
    this.#first.close();
    this.#gate.close();
    this.#intake.close();
  }

  #section(plan: IngestPlan, faults: FaultLog): Section {
    const { codec, kind, rids } = plan;
    const { mimeType, clockRate } = formatOf(codec);
    const format = { encoding: mimeType.slice(mimeType.indexOf('/') + 1), clockRate, parameters: {} };
    const lanes = Array.from(
      { length: Math.max(1, rids.length) },
      (_, index) =>
        new RtpLane({
          kind,
          format,
          faults,
          source: sourceOf(plan, streamTrackId(kind, index)),
          waitMs: this.#options.config.rtx.maxHoldMs,
          clock: this.#clock.track(clockRate, kind === 'audio'),
          onEvent: (event) => this.#hear(event),
          onLost: (packets) => this.#options.sink.lost(packets),
        }),
    );
    const section: Section = { plan, lanes, askedAt: -Infinity, wantedAt: undefined };
    return section;
  }

  #hear(event: LaneEvent): void {
    // frames have no time before that
    if (event.what === 'frame' && !this.#isAligned(event.now)) return;
    this.#first.push(event);
  }

  #take(event: LaneEvent): void {
    const { lane, now } = event;
    const unit = lane.unit(event);
    if (lane.broken) {
      const section = this.#sections.find(({ lanes }) => lanes.includes(lane));
      if (section !== undefined) this.#askForKey(section, now);
    }
    if (unit !== undefined) this.#gate.push(unit);
  }

  /** Whether frames have times: with `rtcpBasedTimestamp`, only after sender reports or a limited wait for them. */
  #isAligned(now: number): boolean {
    if (this.#aligned) return true;
    this.#heardAt ??= now;
    const waitsForSilent = now - this.#heardAt < SILENT_WAIT_MS;
    const lanes = this.#sections.flatMap((section) => section.lanes);
    this.#aligned = areAligned(lanes, waitsForSilent) || now - this.#heardAt > REPORTS_WAIT_MS;
    if (!this.#aligned) return false;
    if (!waitsForSilent) this.#leaveOutSilent();
    for (const section of this.#sections) this.#askForKey(section, now);
    return true;
  }

  #leaveOutSilent(): void {
    for (const { plan, lanes } of this.#sections)
      lanes.forEach(({ packets }, index) => {
        if (packets === 0) this.#intake.absent(plan.kind, index);
      });
  }

  #tick(): void {
    const now = performance.now();
    const {
      config: { firInterval },
    } = this.#options;
    for (const section of this.#sections) {
      if (section.plan.kind === 'audio') continue;
      const due = active(section, now).some(
        ({ broken, lastKey }) => broken || (firInterval > 0 && now - lastKey >= firInterval),
      );
      if (due) this.#askForKey(section, now);
      this.#askForReaders(section, now);
    }
  }

  /** Asks for key frames, which a new reader waits for. */
  wantKeys(): void {
    const now = performance.now();
    for (const section of this.#sections) {
      section.wantedAt ??= now;
      this.#askForReaders(section, now);
    }
  }

  #askForReaders(section: Section, now: number): void {
    const { wantedAt, askedAt } = section;
    if (wantedAt === undefined) return;
    const sent = active(section, now);
    const isThere = sent.length > 0 && sent.every(({ lastKey }) => lastKey > wantedAt);
    if (!isThere && now - askedAt < WANTED_MS) return;
    section.wantedAt = undefined;
    if (!isThere) this.#askForKey(section, now);
  }

  #askForKey(section: Section, now: number): void {
    if (this.#closed || section.plan.kind === 'audio' || now - section.askedAt < RETRY_MS) return;
    section.askedAt = now;
    this.#options.onKeyWanted(section.plan);
  }

  #seen(): string {
    const all = this.#sections.flatMap(({ plan: { codec }, lanes }) =>
      lanes.map(({ packets, frames }) => `${codec}: ${packets} packets, ${frames} frames`),
    );
    return all.join('; ');
  }

  #fail(reason: string): void {
    if (this.#closed) return;
    this.close();
    this.#options.onFailure(this.#intake.live ? reason : `${reason} (${this.#seen()})`);
  }
}

/** Streams of a section that are sent now. */
function active({ lanes }: Section, now: number): RtpLane[] {
  return lanes.filter(({ lastHeard }) => now - lastHeard < ACTIVE_MS);
}

function sourceOf({ kind, codec }: IngestPlan, id: number): VideoIntake | AudioIntake {
  if (kind === 'video') return new VideoIntake({ id, codec: codec as VideoIntake['codec'] });
  return new AudioIntake({ id, codec: codec as AudioIntake['codec'] });
}
