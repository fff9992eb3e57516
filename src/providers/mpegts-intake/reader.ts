import { TsDemuxer } from '../../containers/mpegts/demuxer.ts';
import type { ElementaryStream, UnknownStream } from '../../containers/mpegts/elementary.ts';
import { isMedia, type Track } from '../../core/track.ts';
import type { FaultLog, Logger } from '../../log/log.ts';
import type { MediaUnit } from '../intake/media-unit.ts';
import type { Announced } from '../intake/start-gate.ts';
import type { AudioMapItem } from './audio-lane.ts';
import { DataLane } from './data-lane.ts';
import type { Lane } from './lane.ts';
import { assignLanes, openLane } from './lanes.ts';

/** Unsupported streams that are logged. */
const MAX_REPORTED = 32;

export interface TsReaderOptions {
  /** In the order of audio in the PMT. */
  readonly audioMap: readonly AudioMapItem[];
  readonly log: Logger;
  readonly faults: FaultLog;
  /** Whether it is read from files, faster than it plays. */
  readonly isFile: boolean;
  /** Which streams are read; by default all. */
  readonly wants?: (kind: ElementaryStream['kind']) => boolean;
  /** Called at a gap in the transport stream, for protocols that do not count losses themselves. */
  readonly onGap?: () => void;
  /** Called with each PES packet, be it playable or not. */
  readonly onHeard?: () => void;
  /** Called with the tracks of the program, at first and after each change. */
  readonly onTracks: (announced: Announced, ids: ReadonlySet<number>) => void;
  /** Called with units, whose times are on CLOCK. */
  readonly onUnit: (unit: MediaUnit) => void;
}

/**
 * Converts MPEG-TS to units. Ids of tracks are stable as long as their PIDs are in the PMT: even ids for video, odd ids for audio, from
 * 512 on for events (`ID3v2`, `SCTE35`, `KLV`).
 */
export class TsReader {
  readonly #options: TsReaderOptions;
  readonly #demuxer: TsDemuxer;
  #lanes: readonly Lane[] = [];
  /** Lanes whose streams are no longer in the PMT: one for each unused number. */
  #former: readonly Lane[] = [];
  readonly #byStream = new Map<ElementaryStream, Lane>();
  readonly #reported = new Set<string>();
  #now: number | undefined;

  constructor(options: TsReaderOptions) {
    this.#options = options;
    const { faults, onGap, onHeard } = options;
    this.#demuxer = new TsDemuxer({
      streams: (streams, unknown) => this.#follow(streams, unknown),
      pes: (stream, header, payload) => {
        onHeard?.();
        this.#byStream.get(stream)?.pes(header, payload, this.#now);
      },
      section: (stream, section) => {
        const lane = this.#byStream.get(stream);
        if (lane instanceof DataLane) lane.section(section, this.#now);
      },
      lost: (stream) => this.#byStream.get(stream)?.lost(),
      ...(onGap && { gap: onGap }),
      fault: (reason) => faults.count(reason),
    });
  }

  /** Known tracks in their latest form. */
  get tracks(): readonly Track[] {
    return this.#lanes.flatMap(({ track }) => track ?? []);
  }

  /** @param data any portion of the transport stream; not kept: its memory may be used again */
  push(data: Buffer): void {
    this.#demuxer.push(data);
  }

  /** Notes a loss that counters may not show. */
  lost(): void {
    this.#demuxer.lost();
  }

  /** Notes that the next bytes do not go on from here, and have another clock. */
  restart(): void {
    this.#demuxer.restart();
  }

  /** Nothing follows what is here. */
  flush(): void {
    this.#demuxer.flush();
    for (const lane of this.#lanes) lane.flush();
  }

  #follow(all: readonly ElementaryStream[], unknown: readonly UnknownStream[]): void {
    const { audioMap, faults, isFile, onTracks, wants } = this.#options;
    for (const { pid, unsupported } of unknown) this.#report(pid, unsupported);
    const streams = wants === undefined ? all : all.filter(({ kind }) => wants(kind));
    const before = this.#lanes;
    const events = {
      unit: (unit: MediaUnit) => this.#take(unit),
      fault: (reason: string) => faults.count(reason),
    };
    const open = (stream: ElementaryStream, ids: Pick<Lane, 'id' | 'index'>): Lane =>
      openLane(stream, ids, audioMap, events, isFile);
    this.#lanes = assignLanes(before, streams, open, this.#former);
    const ids = new Set(this.#lanes.map(({ id }) => id));
    const used = new Set(ids);
    this.#former = [...before, ...this.#former].filter(({ id }) => !used.has(id) && used.add(id));
    this.#byStream.clear();
    for (const lane of this.#lanes) this.#byStream.set(lane.stream, lane);
    const indexes = (kind: ElementaryStream['kind']) =>
      this.#lanes.flatMap((lane) => (lane.stream.kind === kind ? lane.index : []));
    onTracks({ video: indexes('video'), audio: indexes('audio') }, ids);
  }

  #take(unit: MediaUnit): void {
    this.#options.onUnit(unit);
    if (isMedia(unit.track)) this.#now = unit.time;
  }

  #report(pid: number, unsupported: string): void {
    const text = `${pid} ${unsupported}`;
    if (this.#reported.has(text) || this.#reported.size >= MAX_REPORTED) return;
    this.#reported.add(text);
    this.#options.log.warn({ pid }, `${unsupported} is not supported: the track is ignored`);
  }
}
