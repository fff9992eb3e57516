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

/** Key frames may be so far from each other where a source is joined. */
const PICTURE_WAIT_MS = 5000;
/** Streams that are told of as not taken. */
const MAX_TOLD = 32;

export interface TsSourceOptions {
  /** The input stream. It is not closed. */
  readonly sink: TrackSink;
  /** What providers of MPEG-TS have in common (docs/compatibility.md#configuration); by the index of a track in its PMT, among sound. */
  readonly config: {
    readonly timestampMode: 'Auto' | 'ZeroBased' | 'Original';
    /** 0: never. */
    readonly packetSilenceTimeoutMs: number;
    readonly audioMap: readonly AudioMapItem[];
  };
  readonly log: Logger;
  readonly faults: FaultLog;
  /** Hears of a gap in the transport stream, where nothing beneath it counts what is lost. */
  readonly onGap?: () => void;
  /** The source brings nothing that can be used, or fell silent; called once, and nothing is written after it. */
  readonly onFailure: (reason: string) => void;
}

/**
 * MPEG-TS to packets of an input stream, whatever it came over:
 *
 *     const source = new TsSource({ sink: input, config, log, faults, onFailure });
 *     source.push(bytes); // a datagram, a message, a chunk: any portion of the transport stream
 *     source.lost(); // where it is known that bytes are missing, for what counters cannot tell
 *     source.flush(); // at the end, where it is known that nothing follows
 *     source.close();
 *
 * Bytes are not kept and are not counted as received: the provider does that. The stream goes live when something of all
 * tracks of the PMT has come, or was waited for; a track that comes later is added. Ids of tracks are stable as long as their
 * PIDs are in the PMT: 0 and up by twos for pictures, 1 and up for sound, from 512 on for events (`ID3v2`, `SCTE35`).
 */
export class TsSource {
  readonly #options: TsSourceOptions;
  readonly #demuxer: TsDemuxer;
  readonly #writer: TrackWriter;
  readonly #intake: Intake;
  #lanes: readonly Lane[] = [];
  /** Whose streams are not in the PMT any more: one for each number that no other stream has. */
  #former: readonly Lane[] = [];
  readonly #byStream = new Map<ElementaryStream, Lane>();
  readonly #told = new Set<string>();
  /** Time of the last picture or sound. */
  #now: number | undefined;
  /** When the bytes came that are read now, in milliseconds of the monotonic clock. */
  #arrival = 0;
  #closed = false;

  constructor(options: TsSourceOptions) {
    this.#options = options;
    const { sink, config, faults } = options;
    this.#writer = new TrackWriter({
      sink,
      clock: CLOCK,
      timeline: new Timeline(CLOCK, config.timestampMode !== 'Original', () => this.#arrival),
      onUnsteady: () => this.#intake.fail('the configuration of the stream changes too often'),
    });
    this.#intake = new Intake({
      writer: this.#writer,
      silenceMs: config.packetSilenceTimeoutMs,
      pictureWaitMs: PICTURE_WAIT_MS,
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

  /** It is known that bytes are missing here. */
  lost(): void {
    this.#demuxer.lost();
  }

  /** The source has ended: what waited for more is written. */
  flush(): void {
    if (this.#closed) return;
    this.#demuxer.flush();
    for (const lane of this.#lanes) lane.flush();
  }

  /** Nothing is written any more. Idempotent. */
  close(): void {
    this.#closed = true;
    this.#intake.close();
  }

  #follow(streams: readonly ElementaryStream[], unknown: readonly UnknownStream[]): void {
    for (const { pid, unsupported } of unknown) this.#tell(pid, unsupported);
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

  #tell(pid: number, unsupported: string): void {
    const text = `${pid} ${unsupported}`;
    if (this.#told.has(text) || this.#told.size >= MAX_TOLD) return;
    this.#told.add(text);
    this.#options.log.warn({ pid }, `${unsupported} is not supported: the track is ignored`);
  }
}
