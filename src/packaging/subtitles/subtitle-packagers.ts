import type { Packet } from '../../core/packet.ts';
import type { SubtitleTrack } from '../../core/track.ts';
import type { TrackPackager } from '../track-packager.ts';
import type { WindowLimits } from '../window.ts';
import { CueStore } from '../../core/cue-store.ts';
import { SubtitlePackager } from './subtitle-packager.ts';

/** Packagers of the subtitle tracks of one stream. They follow its first video, or else its first audio. */
export class SubtitlePackagers<Data = Buffer> {
  readonly #limits: WindowLimits;
  readonly #clockOffset: number;
  /** By track id, as the cues, which stay when the leader leaves. */
  readonly #all = new Map<number, SubtitlePackager<Data>>();
  readonly #cues = new Map<number, CueStore>();

  /** @param clockOffset as of SubtitlePackager */
  constructor(limits: WindowLimits, clockOffset = 0) {
    this.#limits = limits;
    this.#clockOffset = clockOffset;
  }

  /** Takes a cue. @returns false if it is none, or another one was dropped for it */
  push(packet: Packet): boolean {
    return this.#cues.get(packet.track.id)?.add(packet) ?? true;
  }

  /**
   * Sets the tracks of the stream.
   * @param media packagers of its media
   * @returns packagers that follow their leader no more, and new ones
   */
  set(tracks: readonly SubtitleTrack[], media: readonly TrackPackager<Data>[]) {
    const leader = media.find(({ track }) => track.type === 'video') ?? media[0];
    const dropped = [...this.#all.values()].filter((one) => !tracks.includes(one.track) || one.leader !== leader);
    for (const packager of dropped) {
      this.#all.delete(packager.track.id);
      packager.close();
    }
    const added: SubtitlePackager<Data>[] = [];
    for (const track of leader === undefined ? [] : tracks) {
      if (leader === undefined || this.#all.has(track.id)) continue;
      const cues = this.#cues.get(track.id) ?? new CueStore();
      this.#cues.set(track.id, cues);
      const packager = new SubtitlePackager(track, leader, this.#limits, cues, this.#clockOffset);
      this.#all.set(track.id, packager);
      added.push(packager);
    }
    return { added, dropped };
  }
}
