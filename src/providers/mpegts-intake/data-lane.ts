import type { ElementaryStream, TsForm } from '../../containers/mpegts/elementary.ts';
import { id3Of, klvOf } from '../../containers/mpegts/metadata.ts';
import type { PesHeader } from '../../containers/mpegts/pes-header.ts';
import { isSplice, spliceTime } from '../../containers/mpegts/splice.ts';
import { ticksAhead } from '../../containers/mpegts/times.ts';
import { eventRate, MAX_EVENT_BYTES } from '../../core/event-limits.ts';
import { EVENT_TRACK_NAME } from '../../core/event-tracks.ts';
import { VIDEO_TIMEBASE } from '../../core/timebase.ts';
import type { DataCodec, DataTrack } from '../../core/track.ts';
import type { Lane, LaneEvents } from './lane.ts';

/** A splice that is announced further ahead takes effect at once. */
const MAX_AHEAD = 3600 * 90_000;

const CODECS: Partial<Record<TsForm, DataCodec>> = { ID3: 'ID3v2', KLV: 'KLV' };

/**
 * Timed metadata, KLV or splices of one PID, within limits. A splice is decoded when it arrives, and presented when it takes
 * effect. KLV without a time is of the time at which it arrives.
 */
export class DataLane implements Lane {
  readonly stream: ElementaryStream;
  readonly id: number;
  readonly index: number;
  readonly track: DataTrack;
  readonly #events: LaneEvents;
  readonly #rate = eventRate();

  constructor(stream: ElementaryStream, ids: Pick<Lane, 'id' | 'index'>, events: LaneEvents) {
    this.stream = stream;
    this.id = ids.id;
    this.index = ids.index;
    this.#events = events;
    this.track = Object.freeze({
      id: ids.id,
      name: EVENT_TRACK_NAME,
      type: 'data',
      codec: CODECS[stream.form] ?? 'SCTE35',
      timebase: VIDEO_TIMEBASE,
      bypass: false,
    });
  }

  pes({ streamId, pts }: PesHeader, payload: Buffer, now: number | undefined): void {
    if (this.track.codec === 'KLV') return this.#klv(klvOf(streamId, payload), pts ?? now);
    const tags = id3Of(streamId, payload);
    if (tags === undefined || pts === undefined || tags.length > MAX_EVENT_BYTES)
      this.#events.fault('unusable timed metadata');
    else this.#emit(tags, pts, 0);
  }

  /** @param now time of the program; undefined before its first audio or video */
  section(section: Buffer, now: number | undefined): void {
    if (!isSplice(section)) return;
    if (now === undefined) {
      this.#events.fault('a splice before any audio or video');
      return;
    }
    const ahead = ticksAhead(now, spliceTime(section) ?? now);
    this.#emit(section, now, ahead <= MAX_AHEAD ? ahead : 0);
  }

  #klv(items: Buffer | undefined, time: number | undefined): void {
    if (items === undefined || items.length > MAX_EVENT_BYTES) this.#events.fault('unusable KLV');
    else if (time === undefined) this.#events.fault('KLV without a time before any audio or video');
    else this.#emit(items, time, 0);
  }

  lost(): void {
    // each event is complete by itself
  }

  flush(): void {
    // nothing waits
  }

  #emit(data: Buffer, time: number, compositionTime: number): void {
    if (!this.#rate.take()) return this.#events.fault('dropped an event: the publisher sends too many');
    this.#events.unit({ track: this.track, data: Buffer.from(data), key: true, time, compositionTime, duration: 0 });
  }
}
