import { TsDemuxer } from '../../containers/mpegts/demuxer.ts';
import type { ElementaryStream, UnknownStream } from '../../containers/mpegts/elementary.ts';
import { CLOCK } from '../../containers/mpegts/stream-types.ts';
import { Timeline } from '../../core/timeline.ts';
import { isMedia } from '../../core/track.ts';
import type { FaultLog, Logger } from '../../log/log.ts';
import { Intake } from '../intake/intake.ts';
import type { MediaUnit } from '../intake/media-unit.ts';
import { TrackWriter, type TrackSink } from '../intake/track-writer.ts';
import type { AudioMapItem } from './audio-lane.ts';
import { DataLane } from './data-lane.ts';
import type { Lane } from './lane.ts';
import { assignLanes, openLane } from './lanes.ts';

/** Longest interval of key frames, for sources that are joined between two of them. */
const VIDEO_WAIT_MS = 5000;
/** Most missing messages that continuity counters reveal: two have at most 14 packets, and the counters 16 values. */
const COUNTED_MESSAGES = 2;
/** Unsupported streams that are logged. */
const MAX_REPORTED = 32;

export interface TsSourceOptions {
  /** Input stream, which is not closed. */
  readonly sink: TrackSink;
  /**
   * Settings that all MPEG-TS providers have (docs/compatibility.md#configuration). `audioMap` is in the order of audio
   * in the PMT.
   */
  readonly config: {
    readonly timestampMode: 'Auto' | 'ZeroBased' | 'Original';
    /** 0: never. */
    readonly packetSilenceTimeoutMs: number;
    readonly audioMap: readonly AudioMapItem[];
  };
  readonly log: Logger;
  readonly faults: FaultLog;
  /**
   * Whether it is read from files, ahead of its times: arrivals then say nothing about them.
   */
  readonly isFile?: boolean;
  /** Called at a gap in the transport stream, for protocols that do not count losses themselves. */
  readonly onGap?: () => void;
  /** Called once, when the source sends nothing playable or falls silent; nothing is written after it. */
  readonly onFailure: (reason: string) => void;
}

/**
 * Converts MPEG-TS, from any protocol, to packets of an input stream:
 *
 *     const source = new TsSource({ sink: input, config, log, faults, onFailure });
 *     source.push(bytes); // a datagram, a message, a chunk: any portion of the transport stream
 *     source.lost(); // for a known loss that counters may not show
 *     source.flush(); // at the end, when the protocol says that nothing follows
 *     source.close();
 *
 * Bytes are neither kept nor counted as received: the provider does that. The stream goes live once all tracks of the PMT
 * have begun or the wait for them is over; later tracks are added. Ids of tracks are stable as long as their
 * PIDs are in the PMT: even ids for video, odd ids for audio, from 512 on for events (`ID3v2`, `SCTE35`).
 */
export class TsSource {
  readonly #options: TsSourceOptions;
  readonly #demuxer: TsDemuxer;
  readonly #writer: TrackWriter;
  readonly #intake: Intake;
  #lanes: readonly Lane[] = [];
  /** Lanes whose streams are no longer in the PMT: one for each unused number. */
  #former: readonly Lane[] = [];
  readonly #byStream = new Map<ElementaryStream, Lane>();
  readonly #reported = new Set<string>();
  #now: number | undefined;
  /** Arrival of the current bytes, in milliseconds of the monotonic clock. */
  #arrival = 0;
  #closed = false;

  constructor(options: TsSourceOptions) {
    this.#options = options;
    const { sink, config, faults, isFile = false } = options;
    this.#writer = new TrackWriter({
      sink,
      clock: CLOCK,
      timeline: new Timeline(CLOCK, config.timestampMode !== 'Original', isFile ? null : () => this.#arrival),
      onUnsteady: () => this.#intake.fail('the configuration of the stream changes too often'),
    });
    this.#intake = new Intake({
      writer: this.#writer,
      silenceMs: config.packetSilenceTimeoutMs,
      videoWaitMs: VIDEO_WAIT_MS,
      tracks: () => this.#lanes.flatMap(({ track }) => track ?? []),
      onFailure: (reason) => {
        this.close();
        options.onFailure(reason);
      },
    });
    this.#demuxer = new TsDemuxer({
      streams: (streams, unknown) => this.#follow(streams, unknown),
      pes: (stream, header, payload) => {
        this.#intake.heard();
        this.#byStream.get(stream)?.pes(header, payload);
      },
      section: (stream, section) => {
        const lane = this.#byStream.get(stream);
        if (lane instanceof DataLane) lane.section(section, this.#now);
      },
      lost: (stream) => this.#byStream.get(stream)?.lost(),
      ...(options.onGap && { gap: options.onGap }),
      fault: (reason) => faults.count(reason),
    });
  }

  /** @param data is not kept: its memory may be used again */
  push(data: Buffer): void {
    if (this.#closed) return;
    this.#arrival = performance.now();
    this.#demuxer.push(data);
  }

  lost(): void {
    this.#demuxer.lost();
  }

  /** Messages of up to seven packets are missing here. */
  lostMessages(messages: number): void {
    if (messages > COUNTED_MESSAGES) this.lost();
  }

  flush(): void {
    if (this.#closed) return;
    this.#demuxer.flush();
    for (const lane of this.#lanes) lane.flush();
  }

  close(): void {
    this.#closed = true;
    this.#intake.close();
  }

  #follow(streams: readonly ElementaryStream[], unknown: readonly UnknownStream[]): void {
    for (const { pid, unsupported } of unknown) this.#report(pid, unsupported);
    const { audioMap } = this.#options.config;
    const before = this.#lanes;
    const open = (stream: ElementaryStream, ids: Pick<Lane, 'id' | 'index'>): Lane =>
      openLane(stream, ids, audioMap, {
        unit: (unit) => this.#take(unit),
        fault: (reason) => this.#options.faults.count(reason),
      });
    this.#lanes = assignLanes(before, streams, open, this.#former);
    const ids = new Set(this.#lanes.map(({ id }) => id));
    this.#former = [...before, ...this.#former].filter(({ id }) => !ids.has(id) && ids.add(id));
    this.#byStream.clear();
    for (const lane of this.#lanes) this.#byStream.set(lane.stream, lane);
    const indexes = (kind: ElementaryStream['kind']) =>
      this.#lanes.flatMap((lane) => (lane.stream.kind === kind ? lane.index : []));
    if (this.#intake.live && this.#lanes.length > 0) this.#writer.keep(new Set(this.#lanes.map(({ id }) => id)));
    this.#intake.announce({ video: indexes('video'), audio: indexes('audio') });
  }

  #take(unit: MediaUnit): void {
    if (this.#closed) return;
    this.#intake.unit(unit);
    if (isMedia(unit.track)) this.#now = unit.time;
  }

  #report(pid: number, unsupported: string): void {
    const text = `${pid} ${unsupported}`;
    if (this.#reported.has(text) || this.#reported.size >= MAX_REPORTED) return;
    this.#reported.add(text);
    this.#options.log.warn({ pid }, `${unsupported} is not supported: the track is ignored`);
  }
}
