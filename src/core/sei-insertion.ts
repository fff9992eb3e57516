import { takesSei, userDataSei, withNalBeforeSlices } from '../codecs/sei.ts';
import type { Packet } from './packet.ts';
import { toSeconds } from './timebase.ts';
import type { Track } from './track.ts';

/** User data for the video of a stream. */
export interface UserData {
  readonly uuid: Buffer;
  readonly data: Buffer;
  /** Goes into key frames alone. */
  readonly keyFrameOnly: boolean;
}

interface Waiting extends UserData {
  /** Media time in seconds. */
  readonly from: number;
  /** Ids of the tracks that have it. */
  readonly done: Set<number>;
}

const MAX_WAITING = 32;
/** Limit of the wait for a frame, and of the distance ahead of the frames, whose timestamps may have gone back. */
const MAX_WAIT_SECONDS = 30;

/** SEI messages that wait for a frame of each video track of an output stream, which may come late from an encoder. */
export class SeiInsertion {
  #waiting: readonly Waiting[] = [];

  get empty(): boolean {
    return this.#waiting.length === 0;
  }

  /** @param from media time, in seconds, of the first frame that takes it */
  add(userData: UserData, from: number): void {
    this.#waiting = [...this.#waiting, { ...userData, from, done: new Set<number>() }].slice(-MAX_WAITING);
  }

  /** A packet with what waits for it, or the packet itself. @param tracks of the stream */
  apply(packet: Packet, tracks: readonly Track[]): Packet {
    const { track, key } = packet;
    if (track.type !== 'video' || !takesSei(track.codec)) return packet;
    const time = toSeconds(packet.pts, track.timebase);
    const due = this.#waiting.filter(
      ({ from, done, keyFrameOnly }) => time >= from && (key || !keyFrameOnly) && !done.has(track.id),
    );
    let { data } = packet;
    // each goes in front of the first slice, and so behind those before it
    for (const one of due) {
      data = withNalBeforeSlices(track.codec, data, userDataSei(track.codec, one.uuid, one.data));
      one.done.add(track.id);
    }
    const takers = tracks.filter(({ type, codec }) => type === 'video' && takesSei(codec));
    this.#waiting = this.#waiting.filter(
      ({ from, done }) => Math.abs(time - from) < MAX_WAIT_SECONDS && takers.some(({ id }) => !done.has(id)),
    );
    return due.length === 0 ? packet : { ...packet, data };
  }
}
